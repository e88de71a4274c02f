"""Gaps: what the memory of a project lacks, with the memories that show it; rules are the same on every store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from alma.bootstrap import open_storage
from alma.clock import now
from alma.errors import ValidationError
from alma.memory.gaps import ContextGaps, Gap
from alma.memory.relationships import Relationships
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.relations.said import said, two_timeouts

SHOP = Scope(project_id="shop")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StorageBackend]:
    with open_storage(str(tmp_path / "alma.db")) as storage:
        yield storage


def gaps(store: StorageBackend, **options: object) -> list[Gap]:
    return ContextGaps(store).suggest_context_gaps(SHOP, **options)  # type: ignore[arg-type]


def kinds(found: list[Gap]) -> list[tuple[str, tuple[str, ...]]]:
    return [(gap.kind, gap.memory_ids) for gap in found]


def test_problems_without_a_solution_are_gaps_by_file(store: StorageBackend) -> None:
    two_timeouts(store)
    said(store, "x1", "KeyError in src/cart.py", "error")
    said(store, "x2", "ValueError in src/cart.py", "error")
    (gap,) = gaps(store)
    assert (gap.kind, gap.subject, gap.memory_ids) == ("unsolved_problem", "src/cart.py", ("x1", "x2"))
    assert gap.reason.startswith("2 problems and no solution")


def test_a_decision_without_a_reason_is_a_gap(store: StorageBackend) -> None:
    said(store, "d1", "Use Postgres", "decision")
    said(store, "d2", "Use Redis because sessions must be shared", "decision")
    said(store, "d3", "Keep sessions in Redis", "decision")
    Relationships(store).relate("d3", "d2", "builds_on", SHOP)
    assert kinds(gaps(store)) == [("decision_without_reason", ("d1",))]


def test_an_open_question_is_a_gap_until_it_is_answered(store: StorageBackend) -> None:
    said(store, "q1", "Which region do we deploy to?", session_id="s")
    said(store, "q2", "Who owns the billing alerts?")
    said(store, "a1", "We deploy to the region eu-central because of latency", session_id="s")
    assert kinds(gaps(store)) == [("open_question", ("q2",))]
    said(store, "a2", "The platform team")
    Relationships(store).relate("a2", "q2", "reply_to", SHOP)
    assert gaps(store) == []


def test_contradictions_are_gaps_until_one_supersedes_the_other(store: StorageBackend) -> None:
    said(store, "a", "restart the worker")
    said(store, "b", "leave the worker alone")
    relationships = Relationships(store)
    relationships.relate("a", "b", "contradicts", SHOP)
    assert kinds(gaps(store)) == [("open_contradiction", ("a", "b"))]
    relationships.relate("b", "a", "supersedes", SHOP)
    assert gaps(store) == []


def test_knowledge_that_no_one_touched_is_stale(store: StorageBackend) -> None:
    long_ago = now() - timedelta(days=400)
    times = {"created_at": long_ago, "updated_at": long_ago, "last_accessed_at": long_ago}
    store.save(make.a_memory(id="old", memory_type="insight", content="the API is slow", **times))
    store.save(make.a_memory(id="note", memory_type="note", content="lunch at noon", **times))
    (gap,) = gaps(store)
    assert (gap.kind, gap.memory_ids) == ("stale_knowledge", ("old",))
    assert "400 days" in gap.reason


def test_files_and_activity_narrow_the_gaps(store: StorageBackend) -> None:
    said(store, "x1", "KeyError when adding twice", "error", context_json={"files": ["src/cart.py"]})
    said(store, "x2", "ValueError in src/pay.py", "error")
    said(store, "d", "Use Postgres for invoices", "decision")
    assert kinds(gaps(store, files=["cart.py", "src/new.py"])) == [("unsolved_problem", ("x1",)), ("unknown_file", ())]
    assert kinds(gaps(store, activity="invoices in Postgres")) == [("decision_without_reason", ("d",))]
    with pytest.raises(ValidationError, match="list of files"):
        gaps(store, files="cart.py")


def test_gaps_do_not_tell_of_what_is_private(store: StorageBackend) -> None:
    said(store, "x", "KeyError in src/cart.py", "error", is_private=True, user_id="bob")
    assert gaps(store) == []
    assert kinds(ContextGaps(store).suggest_context_gaps(Scope(user_id="bob"))) == [("unsolved_problem", ("x",))]


def test_gaps_are_the_same_on_every_database(database: StorageBackend) -> None:
    said(database, "x", "KeyError in src/cart.py", "error")
    said(database, "d", "Use Postgres", "decision")
    found = ContextGaps(database).suggest_context_gaps(SHOP, files=["src/cart.py", "src/new.py"])
    assert kinds(found) == [("unsolved_problem", ("x",)), ("unknown_file", ())]
