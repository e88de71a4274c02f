"""LangGraph's long-term memory, beside the in-memory store that LangGraph ships."""

from __future__ import annotations

import asyncio
import copy
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from alma import ALMA, clock
from alma.errors import ValidationError
from alma.integration.langgraph_store import ALMAStore
from alma.memory.history import History
from alma.model.memory import Memory
from tests.integration.conftest import RunExample, memory_at


def same_vectors(memory: ALMA, **index: Any) -> InMemoryStore:
    """LangGraph's store with the vectors of this memory."""
    embedder = memory.retrieval.embedder

    def embed(texts: Any) -> list[list[float]]:
        return [list(each.vector) for each in embedder.encode_texts(text.replace("\x00", " ") for text in texts)]

    return InMemoryStore(index={"dims": embedder.dimension, "embed": embed, **index})  # type: ignore[arg-type]


def plain(found: Any) -> Any:
    """A result without times, and with the items of searches in an order that both stores agree on."""
    if isinstance(found, list):
        if any(isinstance(each, SearchItem) for each in found):
            return sorted(map(plain, found), key=repr)
        return [plain(each) for each in found]
    if isinstance(found, SearchItem):
        score = None if found.score is None else round(found.score, 4)
        return (found.namespace, found.key, found.value, score)
    return found if found is None or isinstance(found, tuple) else (found.namespace, found.key, found.value)


# ---------------------------------------------------------------------- call by call

_LABELS = st.sampled_from(["users", "ana", "bob", "docs", "A", "a"])
_NAMESPACES = st.lists(_LABELS, min_size=1, max_size=3).map(tuple)
_KEYS = st.sampled_from(["k1", "k2", "a/b", "ü"])
_VALUES = st.fixed_dictionaries(
    {"text": st.sampled_from(["a dog barks", "pizza with anchovies", "the red car", "ein Hund", "x\x00y"])},
    optional={
        "n": st.integers(0, 5),
        "kind": st.sampled_from(["a", "b"]),
        "deep": st.fixed_dictionaries({"x": st.integers(0, 2), "tags": st.just(["t"])}),
        "flag": st.none() | st.booleans(),
    },
)
_FILTERS: Any = st.sampled_from(
    [
        None,
        {"kind": "a"},
        {"n": {"$gte": 2}, "kind": "b"},
        {"n": {"$lt": 3}},
        {"n": 1},
        {"n": 3.0},
        {"n": {"$ne": 1}},
        {"deep": {"x": 1}},
        {"deep": {"tags": ["t"]}},
        {"flag": None},
        {"text": {"$eq": "x\x00y"}},
        {"text": "x\x00y"},
    ]
)
_CONDITIONS = st.lists(
    st.builds(
        MatchCondition,
        st.sampled_from(["prefix", "suffix"]),
        st.lists(_LABELS | st.just("*"), min_size=1, max_size=2).map(tuple),
    ),
    max_size=2,
).map(tuple)
_OPS = st.one_of(
    st.builds(PutOp, _NAMESPACES, _KEYS, _VALUES | st.none(), st.sampled_from([None, None, False]), st.none()),
    st.builds(GetOp, _NAMESPACES, _KEYS),
    st.builds(
        SearchOp,
        st.lists(_LABELS, max_size=2).map(tuple),
        _FILTERS,
        st.just(100),
        st.just(0),
        st.sampled_from([None, "which dog?", "something red"]),
    ),
)


def numbers_only(op: Any, values: Any) -> Any:
    """The operation, unless LangGraph's store fails at it: it compares a missing number."""
    conditions = (getattr(op, "filter", None) or {}).items()
    ordered = [key for key, wanted in conditions if isinstance(wanted, dict) and {"$gte", "$lt"} & set(wanted)]
    return None if any(key not in value for key in ordered for value in values) else op


@given(st.lists(st.lists(_OPS, min_size=1, max_size=3), max_size=6), _CONDITIONS)
def test_it_answers_as_the_in_memory_store(
    alma: ALMA, batches: list[list[Any]], conditions: tuple[MatchCondition, ...]
) -> None:
    memory = alma.for_project(uuid.uuid4().hex)
    ours, theirs = ALMAStore(memory, index={"fields": ["text"]}), same_vectors(memory, fields=["text"])
    values: dict[Any, Any] = {}
    for batch in batches:
        possible = [op for op in batch if numbers_only(op, [v for v in values.values() if v is not None])]
        answers = [None if isinstance(op, PutOp) else theirs.batch([op])[0] for op in possible]
        assert plain(ours.batch(copy.deepcopy(possible))) == plain(answers)
        for op in (op for op in possible if isinstance(op, PutOp)):
            # One by one: it fails at two equal texts in a batch. It would keep the vectors of an item stored again.
            theirs._vectors[op.namespace].pop(op.key, None)
            theirs.batch([op])
        values |= {(op.namespace, op.key): op.value for op in possible if isinstance(op, PutOp)}
    shown = {namespace for (namespace, _), value in values.items() if value is not None}
    for depth in (None, 1, 2):
        for namespace in [*theirs._data]:
            if namespace not in shown:
                del theirs._data[namespace]
        listed = ListNamespacesOp(conditions, depth, 100, 0)
        assert ours.batch([listed]) == theirs.batch([listed])


# ---------------------------------------------------------------------- what LangGraph's own tests of stores ask


def test_items_keep_their_age_and_are_deleted(on_each_database: ALMA) -> None:
    store = ALMAStore(on_each_database)
    store.put(("users", "ana"), "food", {"likes": "pizza"})
    first = store.get(("users", "ana"), "food")
    store.put(("users", "ana"), "food", {"likes": "soup"})
    second = store.get(("users", "ana"), "food")
    assert first is not None
    assert second is not None
    assert (second.value, second.created_at) == ({"likes": "soup"}, first.created_at)
    assert second.updated_at > first.updated_at
    store.delete(("users", "ana"), "food")
    assert store.get(("users", "ana"), "food") is None
    assert store.search(("users",)) == []
    assert store.list_namespaces() == []


def test_searches_come_in_pages_latest_first(on_each_database: ALMA) -> None:
    store = ALMAStore(on_each_database)
    for number in range(7):
        store.put(("notes",), f"n{number}", {"number": number, "even": number % 2 == 0})
    pages = [store.search(("notes",), limit=3, offset=start) for start in (0, 3, 6, 9)]
    assert [[item.value["number"] for item in page] for page in pages] == [[6, 5, 4], [3, 2, 1], [0], []]
    assert [item.key for item in store.search(("notes",), filter={"even": True}, limit=2, offset=1)] == ["n4", "n2"]


def test_a_filter_may_name_a_path(alma: ALMA) -> None:
    store = ALMAStore(alma)
    store.put(("docs",), "nested", {"user": {"access-level": "public"}, "a.b": 1})
    store.put(("docs",), "other", {"user": "public", "a": {"b": 2}})
    for condition, key in (({"user.access-level": "public"}, "nested"), ({"a.b": 1}, "nested"), ({"a.b": 2}, "other")):
        assert [item.key for item in store.search(("docs",), filter=condition)] == [key]


def test_a_query_finds_by_meaning_and_pages_do_not_repeat(on_each_database: ALMA) -> None:
    store = ALMAStore(on_each_database)
    texts = ["the dog barks at night", "pizza with anchovies", "a red car in the street"]
    store.batch([PutOp(("d", "e"), str(n), {"text": text}) for n, text in enumerate(texts)])
    store.put(("d",), "hidden", {"text": "not embedded"}, index=False)
    found = store.search(("d",), query="the dog barks at night")
    assert (found[0].key, found[-1].key, found[-1].score) == ("0", "hidden", None)
    assert found[0].score is not None
    assert found[0].score > (found[1].score or 0)
    pages = [store.search(("d",), query="the dog barks at night", limit=1, offset=n)[0].key for n in range(4)]
    assert pages == [item.key for item in found]


def test_the_fields_that_are_embedded_can_be_chosen(alma: ALMA) -> None:
    store = ALMAStore(alma, index={"fields": ["title", "parts[*].text"]})
    parts = [{"text": "a dog barks"}, {"text": "pizza with anchovies"}]
    store.put(("d",), "both", {"title": "Evening", "parts": parts, "hidden": "the red car"})
    store.put(("d",), "own", {"title": "Evening", "body": "the red car"}, index=["body"])
    best = store.search(("d",), query="pizza with anchovies")[0]
    assert (best.key, round(best.score or 0, 3)) == ("both", 1.0)
    assert store.search(("d",), query="the red car")[0].key == "own"


@pytest.mark.parametrize("index", [{"embed": len, "dims": 3}, {"dims": 3}])
def test_another_embedding_model_is_refused_with_what_to_do(alma: ALMA, index: Any) -> None:
    with pytest.raises(ValidationError, match="choose another one when you open the memory"):
        ALMAStore(alma, index=index)


@pytest.mark.parametrize("namespace", [("a.b",), ("",), ()])
def test_bad_namespaces_are_refused(alma: ALMA, namespace: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        ALMAStore(alma).put(namespace, "key", {"a": 1})


@pytest.mark.parametrize("ttl", [-1, 1e20, float("nan")])
def test_a_bad_time_to_live_is_refused(alma: ALMA, ttl: float) -> None:
    with pytest.raises(ValidationError, match="must be a number of minutes"):
        ALMAStore(alma).put(("a",), "key", {"a": 1}, ttl=ttl)


def test_invalid_json_and_unknown_operators_are_one_sentence(alma: ALMA) -> None:
    store = ALMAStore(alma)
    with pytest.raises(ValidationError, match="must be JSON"):
        store.put(("a",), "key", {"a": object()})
    with pytest.raises(ValidationError, match="must be a dict"):
        store.batch([PutOp(("a",), "key", "text")])  # type: ignore[arg-type]
    store.put(("a",), "key", {"a": 1})
    with pytest.raises(ValidationError, match=r"must be one of \$eq"):
        store.search(("a",), filter={"a": {"$in": [1]}})


# ---------------------------------------------------------------------- time to live


def test_items_expire_unless_they_are_read(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ALMAStore(alma, ttl={"default_ttl": 10})
    start = datetime.now(UTC)

    def after(minutes: float) -> None:
        monkeypatch.setattr(clock, "now", lambda: start + timedelta(minutes=minutes))

    after(0)
    for key in ("read", "searched", "left", "looked at"):
        store.put(("notes", key), key, {"text": key})
    store.put(("notes", "kept"), "kept", {"text": "kept"}, ttl=None)
    after(8)
    store.get(("notes", "read"), "read")
    store.search(("notes", "searched"))
    store.get(("notes", "looked at"), "looked at", refresh_ttl=False)
    after(12)
    assert sorted(item.key for item in store.search(("notes",), refresh_ttl=False)) == ["kept", "read", "searched"]
    assert store.get(("notes", "left"), "left") is None
    assert "left" not in [memory.content for memory in alma.journal.search("left", alma.scope()).memories]
    assert store.sweep_ttl() == 2
    after(30)
    store.put(("notes", "left"), "left", {"text": "again"})
    again = store.get(("notes", "left"), "left")
    assert again is not None
    assert again.created_at == start + timedelta(minutes=30)


# ---------------------------------------------------------------------- as memories


def test_items_are_found_by_the_memory_masked_and_in_its_history(alma: ALMA) -> None:
    store = ALMAStore(alma, user_id="ana", agent="helena")
    store.put(("users", "ana"), "home", {"text": "Ana lives in Lisbon", "password": "hunter2horse!"})
    store.put(("users", "ana"), "home", {"text": "Ana lives in Porto"})
    (found,) = alma.journal.search("Where does Ana live?", alma.scope()).memories
    assert found.content == "Ana lives in Porto"
    assert (found.source_tool, found.source_agent, found.user_id) == ("langgraph", "helena", "ana")
    assert len(History(alma.storage).versions(Memory, found.id, alma.scope())) == 2
    assert "hunter2horse" not in str(History(alma.storage).versions(Memory, found.id, alma.scope()))
    store.delete(("users", "ana"), "home")
    alma.journal.undelete(found.id, alma.scope())
    assert store.get(("users", "ana"), "home") is not None


def test_projects_are_apart_and_memories_of_other_processes_are_seen(sqlite_path: Path) -> None:
    with memory_at(sqlite_path) as one, memory_at(sqlite_path) as other:
        ALMAStore(one).put(("a",), "k", {"n": 1})
        assert ALMAStore(other).get(("a",), "k") is not None
        assert ALMAStore(one.for_project("other")).get(("a",), "k") is None


class Said(TypedDict):
    said: str


def test_a_graph_uses_it_without_blocking(alma: ALMA) -> None:
    def remember(state: Said, runtime: Runtime) -> Said:
        assert runtime.store is not None
        runtime.store.put(("facts",), "said", {"text": state["said"]})
        return state

    graph = StateGraph(Said).add_node("remember", remember).add_edge(START, "remember")
    store = ALMAStore(alma)

    async def talk() -> Any:
        await graph.compile(store=store).ainvoke({"said": "I live in Lisbon"})
        await asyncio.gather(*(store.aput(("many",), str(n), {"n": n}) for n in range(8)))
        return await store.aget(("facts",), "said"), await store.asearch(("many",), limit=20)

    said, many = asyncio.run(talk())
    assert said.value == {"text": "I live in Lisbon"}
    assert len(many) == 8


def test_the_example_remembers_the_run_before(run_example: RunExample) -> None:
    assert "before: nothing" in run_example("langgraph_memory.py")
    assert "before: I am allergic to peanuts." in run_example("langgraph_memory.py")
