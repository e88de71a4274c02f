"""A user or a project is deleted with everything of theirs, after a count that is confirmed, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA
from alma.errors import NotFoundError, ValidationError
from alma.graph import Entity, create_graph_store
from alma.model.governance import ArchivedRecord, Attribution
from alma.model.kinds import KINDS
from alma.model.learning import UserPreference
from alma.model.memory import Memory, MemoryVersion
from alma.model.query import At
from alma.model.scope import Scope
from alma.model.workspace import Project, Session, User
from alma.operations import operation_named
from alma.operations.access import Caller
from alma.progress import ProgressTracker
from alma.session import SessionManager
from tests.faces.rest import memory_at, place_of
from tests.lifecycle.test_erasure import SECRET, assert_nothing_left, told

EVERYWHERE = Scope.everywhere()
ANA, BEN = Attribution(user_id="ana"), Attribution(user_id="ben")
on_every_store = pytest.mark.parametrize("place", ["sqlite", "postgresql", "files"], indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    return place_of(request)


@pytest.fixture
def alma(place: str) -> Iterator[ALMA]:
    with memory_at(place) as memory:
        yield memory


def live(alma: ALMA, user: str, project: str, text: str) -> None:
    """Everything that a user leaves in a project."""
    by, store = Attribution(user_id=user), alma.storage
    shop = alma.for_project(project)
    alma.users.create(user, user_id=user, profile={"about": text})
    alma.projects.initialize(user, project, description=text, by=by)
    shop.add_user_preference(user, "style", text)
    shop.add_domain_knowledge("helena", "safes", text)
    for outcome in ("success", "failure"):
        for _ in range(3):
            shop.learn("helena", f"Open a safe. {text}", outcome, strategy_used=text, error_message=text)
    session = alma.sessions.create(user_id=user, project_id=project, goal=text)
    alma.states.save("helena", {"state": text}, session_id=session.id)
    made = alma.journal.create(f"A note. {text}", by=by, project_id=project, session_id=session.id)
    alma.working.add(session.id, made.id, Scope(project_id=project))
    archived = alma.journal.create(f"An old note. {text}", by=by, project_id=project)
    alma.archive.put(Memory, archived.id, Scope(project_id=project), reason=text)
    deleted = alma.journal.create(f"A wrong note. {text}", by=by, project_id=project)
    store.write(lambda tx: tx.delete(Memory, [deleted.id], EVERYWHERE))
    alma.journal.search(text, Scope(project_id=project), by=by)
    manager = SessionManager(project, store)
    context = manager.start_session(agent="helena", goal=text)
    manager.create_handoff("helena", context.session_id, last_action=text, last_outcome="success")
    tracker = ProgressTracker(project, store)
    tracker.create_work_item(title=text)
    tracker.log_progress(note=text)
    graph = create_graph_store("storage", storage=store, project_id=project)
    graph.add_entity(Entity(id=f"{project}-1", name=" ".join(text.split()[:2]), entity_type="person"))


def left(alma: ALMA, scope: Scope) -> set[str]:
    """The kinds of which a scope has records."""
    name = "user_id" if scope.user_id else "project_id"
    kinds = [cls for cls in KINDS if name in cls.spec.by_name and not cls.spec.append_only]
    return {cls.spec.kind for cls in kinds if alma.storage.count(cls, scope)}


@on_every_store
def test_a_user_is_deleted_with_everything_and_nothing_of_others(alma: ALMA, place: str, tmp_path: Path) -> None:
    live(alma, "ana", "shop", SECRET)
    live(alma, "ben", "bank", "Tuvalu Brightwater opens safes")
    told(alma)
    before = {cls.spec.kind: alma.storage.count(cls, Scope(project_id="bank")) for cls in (Memory, Session)}

    plan = alma.deletions.plan("user", "ana")
    assert plan.projects == ("shop",)
    assert {"user", "project", "session", "memory", "heuristic", "outcome", "archived_record"} <= plan.counts.keys()
    assert alma.storage.get(User, "ana", EVERYWHERE) is not None
    alma.deletions.delete("user", "ana", plan.token, by=BEN)

    assert left(alma, Scope(user_id="ana")) == left(alma, Scope(project_id="shop")) == set()
    assert alma.storage.count(MemoryVersion, EVERYWHERE, At("record_json", "user_id", "ana")) == 0
    assert_nothing_left(alma, place, tmp_path)
    assert {cls.spec.kind: alma.storage.count(cls, Scope(project_id="bank")) for cls in (Memory, Session)} == before
    assert alma.storage.count(UserPreference, Scope(user_id="ben")) == 1
    assert alma.storage.count(ArchivedRecord, Scope(user_id="ben")) == 1
    with pytest.raises(NotFoundError, match="ana"):
        alma.deletions.plan("user", "ana")


def test_a_project_takes_what_is_in_it_and_leaves_its_user(alma: ALMA, place: str, tmp_path: Path) -> None:
    live(alma, "ana", "shop", SECRET)
    alma.journal.create("Ben's note on safes", by=BEN, project_id="shop")
    alma.add_user_preference("ana", "style", "Answers in verse")
    plan = alma.deletions.plan("project", "shop")
    alma.deletions.delete("project", "shop", plan.token)
    assert left(alma, Scope(project_id="shop")) == set()
    assert alma.storage.get(Project, "shop", EVERYWHERE) is None
    assert alma.storage.get(User, "ana", EVERYWHERE) is not None
    assert alma.audit.verify()


def test_what_changed_since_it_was_counted_is_counted_again(alma: ALMA) -> None:
    alma.journal.create("The office closes at six", by=ANA, project_id="shop")
    plan = alma.deletions.plan("user", "ana")
    alma.journal.create("The office opens at nine", by=ANA, project_id="shop")
    with pytest.raises(ValidationError, match="count again"):
        alma.deletions.delete("user", "ana", plan.token)
    assert alma.storage.count(Memory, Scope(user_id="ana")) == 2
    with pytest.raises(NotFoundError):
        alma.deletions.plan("project", "nowhere")


def test_it_is_exported_first_where_a_folder_is_named(alma: ALMA, tmp_path: Path) -> None:
    live(alma, "ana", "shop", SECRET)
    delete = operation_named("delete_user")
    folder = tmp_path / "kept"
    counted = delete.perform(Caller(alma), {"user_id": "ana"})
    assert not counted.deleted
    done = delete.perform(Caller(alma), {"user_id": "ana", "confirm": counted.confirm, "export_to": str(folder)})
    assert done.deleted
    assert sorted(path.name for path in folder.iterdir()) == ["project-shop.jsonl.gz", "user-ana.jsonl.gz"]
    assert alma.storage.count(Memory, Scope(user_id="ana")) == 0


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_indexes_beside_the_store_are_told(alma: ALMA) -> None:
    alma.storage.register_projection("mirror", [Memory, User, Project])
    made = alma.journal.create("The office closes at six", by=ANA, project_id="shop")
    marks = alma.storage.claim("mirror", 10, 60)
    alma.storage.acknowledge(marks)
    plan = alma.deletions.plan("user", "ana")
    alma.deletions.delete("user", "ana", plan.token)
    assert made.id in {mark.record_id for mark in alma.storage.claim("mirror", 10, 60)}
