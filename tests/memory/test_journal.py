"""Memories are created, read, changed and deleted within the caller's scope."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from alma.bootstrap import create_embedder
from alma.clock import now
from alma.errors import (
    ConflictError,
    NotFoundError,
    RefusedError,
    ScopeViolationError,
    UniquenessError,
    ValidationError,
)
from alma.memory.filters import MemoryFilter
from alma.memory.journal import Journal
from alma.memory.settings import SystemSettings
from alma.model.governance import ANONYMOUS, Attribution, AuditEvent, Setting, SettingType
from alma.model.memory import Layer, Memory
from alma.model.query import Compare
from alma.model.record import Record
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from tests.support.together import together

SHOP = Scope(project_id="shop")
ANA, BEN = Attribution(user_id="ana"), Attribution(user_id="ben")


def note(journal: Journal, content: str = "the cart is tested on Fridays", **fields: Any) -> Memory:
    return journal.create(content, **{"project_id": "shop", "user_id": "ana", **fields})


# ---------------------------------------------------------------------- creating


def test_what_is_created_is_read_again(journal: Journal) -> None:
    made = note(journal, tags=["b", "a"], memory_type="decision")
    assert journal.get(made.id, SHOP) == made
    assert made.tags == ("a", "b")
    assert made.embedding is not None


def test_content_may_be_json_with_a_text(journal: Journal) -> None:
    made = note(journal, {"text": "paid by card", "amount": 12})  # type: ignore[arg-type]
    assert (made.content, made.content_json) == ("paid by card", {"text": "paid by card", "amount": 12})
    without = note(journal, {"amount": 12})  # type: ignore[arg-type]
    assert without.content == '{"amount": 12}'


def test_whose_a_memory_is_comes_from_who_acts(journal: Journal) -> None:
    by = Attribution(user_id="ana", agent="helena", session_id="s1")
    made = journal.create("noted", by=by)
    assert (made.user_id, made.source_agent, made.session_id) == ("ana", "helena", "s1")


@pytest.mark.parametrize(
    ("content", "fields", "sentence"),
    [
        ("x" * (1 << 20) + "x", {}, "at most 1,048,576 bytes"),
        ("é" * (1 << 19) + "é", {}, "at most 1,048,576 bytes"),
        (" ", {}, "must not be empty"),
        ("x", {"memory_typ": "note"}, "has no such field"),
        ("x", {"layers": ["cosmic"]}, "must be among session, project, global, temporal"),
        ("x", {"ttl_seconds": 0}, "must be a number of seconds above 0"),
        ("x", {"importance_score": 2}, "must be between 0 and 1"),
        ("x", {"is_private": True, "user_id": None}, "needs a user_id"),
        (12, {}, "must be text"),
        ({"a": object()}, {}, "must be text or JSON"),
    ],
)
def test_what_is_wrong_with_a_memory_is_said_in_a_sentence(
    light: Journal, content: Any, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValidationError, match=sentence):
        note(light, content, **fields)
    assert not light.batch_read(Scope.everywhere()).memories


def test_a_megabyte_is_still_accepted(light: Journal) -> None:
    text = "word " * 200_000
    assert len(note(light, text[: 1 << 20]).content) == 1_000_000


def test_none_says_nothing(light: Journal) -> None:
    unsaid = {"category": None, "importance_score": None, "layers": None, "ttl_seconds": None, "tags": None, "id": None}
    made = note(light, "the schema of the database", **unsaid)
    assert (made.category, made.importance_score, made.layer_project) == ("database", 0.5, True)


def test_a_memory_of_no_one_is_refused(light: Journal) -> None:
    with pytest.raises(ScopeViolationError, match="a user, a project or a session"):
        light.create("x")


def test_an_id_is_given_once(journal: Journal) -> None:
    note(journal, id="m1")
    with pytest.raises(UniquenessError, match="must be unique"):
        note(journal, "another", id="m1")
    assert journal.require("m1", SHOP).content == "the cart is tested on Fridays"


def test_a_time_to_live_ends_a_memory(journal: Journal, store: StorageBackend) -> None:
    made = note(journal, ttl_seconds=60)
    assert made.expires_at is not None
    assert made.expires_at - made.created_at < timedelta(seconds=61)
    store.update(Memory, made.id, {"expires_at": now() - timedelta(seconds=1)}, SHOP)
    assert journal.get(made.id, SHOP) is None
    assert not journal.batch_read(SHOP).memories
    assert journal.batch_read(SHOP, where=MemoryFilter(include_expired=True)).memories


class Doorkeeper(MemoryWriter):
    """A writer that asks where text comes from, and puts what comes from outside away."""

    def save(self, record: Record, by: Attribution = ANONYMOUS, source: str = "agent") -> Any:
        if source == "web":
            return SimpleNamespace(id=str(record.key), status="quarantined", reason="it looks like an instruction")
        return SimpleNamespace(id=super().save(record, by), status="stored", reason=None)


def test_a_writer_may_put_away_what_comes_from_elsewhere(store: StorageBackend) -> None:
    embedder = create_embedder("mock")
    engine = RetrievalEngine(store, embedder)
    with Journal(store, Doorkeeper(store, embedder), engine) as journal:
        made = note(journal, "from a colleague", source="user")
        assert journal.update(made.id, {"content": "from a friend"}, SHOP, source="user").content == "from a friend"
        with pytest.raises(RefusedError, match="was quarantined and not stored: it looks like an instruction"):
            note(journal, "obey", source="web")
        with pytest.raises(RefusedError, match="was not changed: it looks like an instruction"):
            journal.update(made.id, {"content": "obey"}, SHOP, source="web")
        assert journal.batch_read(SHOP).memories[0].id == made.id
    with Journal(store, MemoryWriter(store, embedder), engine) as journal:
        assert note(journal, "from the web", source="web")
    engine.close()


# ---------------------------------------------------------------------- private


def test_a_private_memory_is_seen_by_its_user_alone(journal: Journal) -> None:
    made = note(journal, "my salary", is_private=True)
    for by in (BEN, Attribution(), Attribution(agent="helena")):
        assert journal.get(made.id, SHOP, by=by) is None
        assert not journal.batch_read(SHOP, by=by).memories
        assert not journal.batch_read(SHOP, by=by, ids=[made.id]).memories
        assert not journal.search("salary", SHOP, by=by, mode="keyword").hits
        assert not journal.search("salary", SHOP, by=by).hits
        assert not journal.search("my salary", SHOP, by=by, mode="semantic").hits
        assert not journal.summarize(SHOP, by=by)
        assert not journal.get_context(SHOP, activity="my salary", by=by).items
        assert not journal.delete(made.id, SHOP, by=by, hard=True)
        assert journal.bulk_delete(SHOP, where=MemoryFilter(types=["note"]), by=by).count == 0
        with pytest.raises(NotFoundError):
            journal.update(made.id, {"is_private": False}, SHOP, by=by)
    assert journal.get(made.id, SHOP, by=ANA) == made
    assert journal.get(made.id, Scope(user_id="ana")) == made
    assert journal.search("my salary", SHOP, by=ANA).memories == (made,)


def test_acting_as_another_user_does_not_open_what_is_private(journal: Journal) -> None:
    made = note(journal, "my salary", is_private=True)
    assert journal.get(made.id, Scope(user_id="ana"), by=BEN) is None


def test_retrieval_shows_no_private_memory_to_the_agent_that_wrote_it(journal: Journal) -> None:
    made = note(journal, "the login form was tested", is_private=True, source_agent="helena")
    engine = journal._retrieval
    assert not engine.retrieve("the login form was tested", "helena", "shop").memories
    assert not engine.retrieve("the login form was tested", "helena", "shop", user_id="ben").memories
    assert engine.retrieve("the login form was tested", "helena", "shop", user_id="ana").memories == (made,)


# ---------------------------------------------------------------------- changing


def test_a_change_is_a_version_with_its_reason(journal: Journal, store: StorageBackend) -> None:
    made = note(journal)
    changed = journal.update(made.id, {"content": "on Mondays", "tags": ["x"]}, SHOP, by=ANA, reason="it moved")
    assert (changed.content, changed.tags, changed.updated_at > made.updated_at) == ("on Mondays", ("x",), True)
    assert changed.embedding != made.embedding
    history = store.history(Memory, made.id, SHOP)
    assert [(each.change_reason, each.created_by) for each in history] == [(None, None), ("it moved", "ana")]
    assert journal.search("Mondays", SHOP, mode="keyword").memories == (changed,)
    assert not journal.search("Fridays", SHOP, mode="keyword").hits


def test_layers_may_be_changed_by_name(journal: Journal) -> None:
    made = note(journal)
    changed = journal.update(made.id, {"layers": ["global", "temporal"]}, SHOP)
    assert changed.layers == {Layer.GLOBAL, Layer.TEMPORAL}
    assert changed.embedding == made.embedding


def test_a_change_of_something_else_meanwhile_is_refused(journal: Journal) -> None:
    made = note(journal)
    assert journal.version(made.id, SHOP) == 1
    changed = journal.update(made.id, {"title": "a"}, SHOP, expected_version=1, expected_updated_at=made.updated_at)
    with pytest.raises(ConflictError, match="is at version 2, not at 1: read it again"):
        journal.update(made.id, {"title": "b"}, SHOP, expected_version=1)
    with pytest.raises(ConflictError, match="after it was read: read it again"):
        journal.update(made.id, {"title": "b"}, SHOP, expected_updated_at=made.updated_at)
    assert journal.require(made.id, SHOP) == changed


def test_two_writers_of_different_fields_both_succeed(journal: Journal) -> None:
    made = note(journal)
    assert not together(
        *(lambda i=i: journal.update(made.id, {"content_json": {"n": i}, "title": f"t{i}"}, SHOP) for i in range(6)),
        lambda: journal.update(made.id, {"category": "x"}, SHOP),
    )
    final = journal.require(made.id, SHOP)
    assert (final.category, final.title) == ("x", f"t{(final.content_json or {})['n']}")
    assert journal.version(made.id, SHOP) == 8


@pytest.mark.parametrize("changes", [{}, {"id": "x"}, {"access_count": 9}, {"created_at": now()}, {"nonsense": 1}])
def test_what_cannot_be_changed_is_refused(light: Journal, changes: dict[str, Any]) -> None:
    made = note(light)
    with pytest.raises(ValidationError):
        light.update(made.id, changes, SHOP)
    assert light.version(made.id, SHOP) == 1


def test_an_unknown_memory_cannot_be_changed(journal: Journal) -> None:
    made = note(journal)
    for memory_id, scope in (("nothing", SHOP), (made.id, Scope(project_id="bank"))):
        with pytest.raises(NotFoundError, match="there is no memory with id"):
            journal.update(memory_id, {"title": "x"}, scope)
        with pytest.raises(NotFoundError):
            journal.require(memory_id, scope)


# ---------------------------------------------------------------------- deleting


def test_a_deleted_memory_comes_back(journal: Journal, store: StorageBackend) -> None:
    made = note(journal)
    assert journal.delete(made.id, SHOP, by=ANA, reason="wrong")
    assert journal.get(made.id, SHOP) is None
    assert not journal.search("cart", SHOP, mode="keyword").hits
    assert not journal.delete(made.id, SHOP)
    assert journal.get(made.id, SHOP, include_deleted=True) is not None
    back = journal.undelete(made.id, SHOP, reason="it was right")
    assert back == made.replace(updated_at=back.updated_at)
    assert [each.change_reason for each in store.history(Memory, made.id, SHOP)] == [None, "wrong", "it was right"]


def test_a_memory_deleted_for_good_is_gone(journal: Journal, store: StorageBackend) -> None:
    made = note(journal)
    assert journal.delete(made.id, SHOP, hard=True)
    assert store.get(Memory, made.id, SHOP) is None
    with pytest.raises(NotFoundError):
        journal.undelete(made.id, SHOP)
    log = store.find(AuditEvent, Scope.everywhere(), Compare("resource_id", "eq", made.id))
    assert [(event.action, event.success) for event in log] == [("create", True), ("delete", True), ("restore", False)]


def test_many_are_deleted_by_type_age_and_tags(journal: Journal) -> None:
    old = datetime(2020, 1, 1, tzinfo=UTC)
    gone = note(journal, memory_type="context", tags=["x", "y"], created_at=old)
    kept = [
        note(journal, memory_type="context", tags=["x", "y"]),
        note(journal, memory_type="note", tags=["x", "y"], created_at=old),
        note(journal, memory_type="context", tags=["x"], created_at=old),
        note(journal, memory_type="context", tags=["x", "y"], created_at=old, project_id="bank"),
    ]
    where = MemoryFilter(types=["context"], tags=["x", "y"])
    planned = journal.bulk_delete(SHOP, where=where, older_than=timedelta(days=30), dry_run=True)
    assert (planned.ids, planned.dry_run) == ((gone.id,), True)
    assert journal.get(gone.id, SHOP) is not None
    assert journal.bulk_delete(SHOP, where=where, older_than=timedelta(days=30), reason="old").ids == (gone.id,)
    assert journal.get(gone.id, SHOP) is None
    assert journal.undelete(gone.id, SHOP)
    assert journal.bulk_delete(SHOP, where=where, older_than=now() - timedelta(days=30), hard=True).count == 1
    with pytest.raises(NotFoundError):
        journal.undelete(gone.id, SHOP)
    assert all(journal.get(each.id, Scope.everywhere()) for each in kept)


def test_deleting_everything_must_be_said(light: Journal) -> None:
    note(light)
    with pytest.raises(ValidationError, match="must say what to delete"):
        light.bulk_delete(SHOP)


# ---------------------------------------------------------------------- settings


def test_stored_settings_steer_what_is_assigned(journal: Journal, store: StorageBackend) -> None:
    kinds = (
        ("auto_categorization_enabled", "false", SettingType.BOOLEAN),
        ("default_decay_rate", "0.3", SettingType.FLOAT),
    )
    store.save_many([Setting(key=key, value=value, value_type=kind) for key, value, kind in kinds])
    made = note(journal, "the database schema")
    assert (made.category, made.decay_rate) == (None, 0.3)


def test_settings_of_a_user_steer_what_is_assigned_to_theirs(journal: Journal, store: StorageBackend) -> None:
    SystemSettings(store).set("auto_categorization_enabled", False, user_id="ana")
    SystemSettings(store).set("default_decay_rate", 0.3, user_id="ana")
    for fields in ({"by": Attribution(user_id="ana")}, {"by": Attribution(user_id="bob"), "user_id": "ana"}):
        made = journal.create("the database schema", project_id="shop", **fields)
        assert (made.category, made.decay_rate) == (None, 0.3)
    others = journal.create("the database schema", by=Attribution(user_id="bob"), project_id="shop")
    assert (others.category, others.decay_rate) == ("database", 0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda journal: journal.get("m", "shop"),
        lambda journal: journal.update("m", {"title": "x"}, "shop"),
        lambda journal: journal.delete("m", "shop"),
        lambda journal: journal.batch_read("shop"),
        lambda journal: journal.bulk_delete("shop", older_than=timedelta(1)),
        lambda journal: journal.search("x", "shop"),
        lambda journal: journal.summarize(None),
        lambda journal: journal.get_context("shop"),
        lambda journal: journal.promote("shop"),
    ],
)
def test_a_project_named_instead_of_a_scope_is_refused(light: Journal, call: Callable[[Journal], object]) -> None:
    with pytest.raises(ScopeViolationError, match="needs a Scope"):
        call(light)
