"""Importers: other systems' rows arrive as the mapping tables say, and say why where they cannot."""

from __future__ import annotations

import json
import signal
import sqlite3
import struct
import subprocess
import sys
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from alma.bootstrap import open_storage
from alma.embeddings.mock import MockEmbedder
from alma.errors import ConfigurationError
from alma.importers import ImportOptions, import_into
from alma.importers.base import ImportReport
from alma.memory.relationships import Relationships
from alma.model.governance import AuditEvent
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion
from alma.model.query import Compare, Order
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Session, User
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend
from alma.storage.document import to_document
from alma.testing import builders as make
from alma.transfer.parcels import TRAVELLING
from tests.support.together import together
from tests.transfer.conftest import OpenStore

EVERYWHERE = Scope.everywhere()

SESSION = {
    "session_id": "sess-1",
    "conversation_history": [
        {"role": "user", "content": "turn on the lamp", "timestamp": "2024-05-01T10:00:00"},
        {"role": "assistant", "content": "the lamp is on", "timestamp": "2024-05-01T10:00:05"},
        "and good night",
    ],
    "session_data": {"device": "kitchen"},
    "session_summary": "The user lit the kitchen.",
    "created_at": "2024-05-01 09:59:00",
    "last_interaction": "2024-05-01T10:05:00+02:00",
}
CONTEXT = {
    "context_id": "ctx-1",
    "session_id": "sess-1",
    "context_data": {"text": "the user prefers dim light", "room": "kitchen"},
    "embedding": [0.5, 0.5, 0.5, 0.5],
    "created_at": "2024-05-01T10:00:00Z",
    "expires_at": 1893456000,
    "source_agent": "light_agent",
    "tags": ["light", "mood"],
}
USER = {
    "user_id": "tony",
    "preferences": {"voice": "british"},
    "entity_knowledge": {"Pepper": {"role": "CEO"}, "arc reactor": "needs palladium"},
    "interaction_history": [{"text": "played some music", "timestamp": 1714557600000}],
    "skill_states": {"weather": {"city": "Malibu"}, "music": {"volume": 11}},
}


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, new_store: OpenStore) -> StorageBackend:
    return new_store(request.param)


def as_json(path: Path, rows: list[Any]) -> Path:
    path.write_text(json.dumps(rows))
    return path


def as_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


def as_database(path: Path, rows: list[Any]) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        columns = list(rows[0])
        connection.execute(f"CREATE TABLE legacy ({', '.join(columns)})")
        for row in rows:
            values = [json.dumps(v) if isinstance(v, dict | list) else v for v in row.values()]
            connection.execute(f"INSERT INTO legacy VALUES ({', '.join('?' * len(columns))})", values)
        connection.commit()
    return path


def as_dump(path: Path, rows: list[Any]) -> Path:
    with closing(sqlite3.connect(as_database(path.with_suffix(".tmp"), rows))) as connection:
        path.write_text("".join(f"{line}\n" for line in connection.iterdump()))
    return path


def everything(storage: StorageBackend) -> list[Any]:
    """What a second run must not change, history and audit included."""
    found: list[Any] = [storage.find(cls, EVERYWHERE) for cls in TRAVELLING]
    vectors = storage.vectors_of(Memory, [memory.id for memory in storage.find(Memory, EVERYWHERE)])
    return [*found, vectors, storage.find(MemoryVersion, EVERYWHERE), storage.count(AuditEvent, EVERYWHERE)]


WRITTEN = [as_json, as_lines, as_database, as_dump]


@pytest.mark.parametrize("write", WRITTEN)
def test_a_session_of_the_session_memory_agent_arrives_as_its_table_says(
    write: Any, new_store: OpenStore, tmp_path: Path
) -> None:
    store = new_store("sqlite")
    report = import_into(store, write(tmp_path / "legacy", [SESSION]), "session-memory-agent")
    session = store.require(Session, "sess-1", EVERYWHERE)
    assert (session.metadata, session.summary) == ({"device": "kitchen"}, "The user lit the kitchen.")
    assert session.created_at == datetime(2024, 5, 1, 9, 59, tzinfo=UTC)
    assert session.updated_at == datetime(2024, 5, 1, 8, 5, tzinfo=UTC)
    turns = sorted(store.find(Memory, Scope(session_id="sess-1")), key=lambda turn: turn.created_at)
    assert [turn.content for turn in turns] == ["turn on the lamp", "the lamp is on", "and good night"]
    assert {turn.memory_type for turn in turns} == {"conversation"}
    assert turns[0].title == "user (1 May 2024)"
    assert (report.new["session"], report.new["memory"], report.rejected) == (1, 3, [])


@pytest.mark.parametrize("write", WRITTEN)
def test_a_context_arrives_with_its_tags_times_and_vector(write: Any, new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    options = ImportOptions(embedding_model="ada")
    import_into(store, write(tmp_path / "legacy", [CONTEXT]), "contextual-memory", options=options)
    memory = store.require(Memory, "ctx-1", EVERYWHERE)
    assert memory.content == "the user prefers dim light"
    assert memory.content_json == CONTEXT["context_data"]
    assert (memory.tags, memory.source_agent, memory.external_id) == (("light", "mood"), "light_agent", "ctx-1")
    assert memory.created_at == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert memory.expires_at == datetime(2030, 1, 1, tzinfo=UTC)
    assert memory.session_id == store.require(Session, "sess-1", EVERYWHERE).id
    ((key, model, part, vector),) = store.vectors_of(Memory, ["ctx-1"])
    assert (key, model, part, list(vector)) == ("ctx-1", "ada", 0, [0.5] * 4)
    store.save(make.a_memory(id="own", embedding=[1, 0, 0]))
    assert [hit.record.id for hit in store.search_vector(Memory, [1, 0, 0], EVERYWHERE)] == ["own"]


@pytest.mark.parametrize("write", WRITTEN)
def test_a_user_of_jarvis_arrives_as_its_table_says(write: Any, new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    import_into(store, write(tmp_path / "legacy", [USER]), "jarvis")
    user = store.require(User, "tony", EVERYWHERE)
    assert user.preferences_json == {"voice": "british"}
    by_type: dict[str, list[Memory]] = {}
    for memory in store.find(Memory, Scope(user_id="tony")):
        by_type.setdefault(memory.memory_type, []).append(memory)
    assert sorted(memory.title for memory in by_type["entity"]) == ["Pepper", "arc reactor"]
    assert "palladium" in next(m.content for m in by_type["entity"] if m.title == "arc reactor")
    assert [memory.content for memory in by_type["interaction"]] == ["played some music"]
    assert by_type["interaction"][0].created_at == datetime(2024, 5, 1, 10, tzinfo=UTC)
    states = {state.agent_id: state.state_data for state in store.find(AgentState, EVERYWHERE)}
    assert states == USER["skill_states"]


def test_two_users_with_the_same_skill_keep_a_state_each(store: StorageBackend, tmp_path: Path) -> None:
    rows = [USER, {"user_id": "bruce", "skill_states": {"weather": {"city": "Gotham"}}}]
    path = as_json(tmp_path / "users.json", rows)
    report = import_into(store, path, "jarvis")
    states = store.find(AgentState, EVERYWHERE, Compare("agent_id", "eq", "weather"))
    assert sorted(state.state_data["city"] for state in states) == ["Gotham", "Malibu"]
    assert report.rejected == []
    before = everything(store)
    import_into(store, path, "jarvis")
    assert everything(store) == before


@pytest.mark.parametrize(
    ("system", "rows"), [("session-memory-agent", [SESSION]), ("contextual-memory", [CONTEXT]), ("jarvis", [USER])]
)
def test_importing_twice_leaves_the_same_store(
    system: str, rows: list[Any], store: StorageBackend, tmp_path: Path
) -> None:
    path = as_lines(tmp_path / "legacy.jsonl", rows)
    import_into(store, path, system)
    before = everything(store)
    again = import_into(store, path, system)
    assert everything(store) == before
    assert (again.new, again.changed, again.rejected) == ({}, {}, [])


def test_a_session_that_was_only_named_is_completed_by_who_knows_it(store: StorageBackend, tmp_path: Path) -> None:
    import_into(store, as_json(tmp_path / "contexts.json", [CONTEXT]), "contextual-memory")
    assert store.require(Session, "sess-1", EVERYWHERE).summary is None
    import_into(store, as_json(tmp_path / "sessions.json", [SESSION]), "session-memory-agent")
    assert store.require(Session, "sess-1", EVERYWHERE).summary == "The user lit the kitchen."
    import_into(store, as_json(tmp_path / "contexts.json", [CONTEXT]), "contextual-memory")
    assert store.require(Session, "sess-1", EVERYWHERE).summary == "The user lit the kitchen."


def test_what_cannot_come_is_named_with_its_reason_and_the_rest_comes(store: StorageBackend, tmp_path: Path) -> None:
    good = [{**CONTEXT, "context_id": f"ctx-{n}"} for n in range(5)]
    bad = [
        "{not json\n",
        {**CONTEXT, "context_id": None},
        {**CONTEXT, "context_id": "no-data", "context_data": None},
        {**CONTEXT, "context_id": "bad-date", "created_at": "the day before yesterday"},
        {**CONTEXT, "context_id": "short", "embedding": [1.0, 2.0]},
        {**CONTEXT, "context_id": "words", "embedding": ["a", "b", "c", "d"]},
        {**CONTEXT, "context_id": "long", "source_agent": "x" * 300},
        [1, 2],
        {**CONTEXT, "context_id": "ctx-1", "context_data": {"text": "something else"}},
        '{"context_id": "deep", "context_data": ' + "[" * 5000 + "]" * 5000 + "}\n",
        '{"context_id": "\\udcff", "context_data": {"text": "half a character in its id"}}\n',
    ]
    path = as_lines(tmp_path / "contexts.jsonl", [good[0], bad[4], *good[1:], *bad[:4], *bad[5:]])
    report = import_into(store, path, "contextual-memory")
    assert {memory.id for memory in store.find(Memory, EVERYWHERE)} == {row["context_id"] for row in good}
    reasons = {rejected.where: rejected.reason for rejected in report.rejected}
    expected = {
        "line 2": "embedding has 2 dimensions",
        "line 7": "malformed JSON",
        "line 8": "context_id is missing",
        "line 9": "context_data is missing",
        "line 10": "created_at is not a time",
        "line 11": "embedding must be a sequence of numbers",
        "line 12": "at most 200 characters",
        "line 13": "not an object",
        "line 14": "an earlier row",
        "line 15": "nested too deeply",
        "line 16": "valid Unicode",
    }
    assert set(reasons) == set(expected)
    assert all(text in reasons[where] for where, text in expected.items())


def test_an_entry_that_cannot_come_does_not_keep_its_session_away(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    turns = [{"role": "user", "content": "hello"}, {"role": "user"}, {"content": "x", "timestamp": "soon"}, 5]
    row = {"session_id": 7, "conversation_history": turns, "created_at": 1714557600}
    report = import_into(store, as_json(tmp_path / "s.json", [row]), "session-memory-agent")
    assert {memory.content for memory in store.find(Memory, Scope(session_id="7"))} == {"hello", "5"}
    assert [rejected.where for rejected in report.rejected] == [
        "item 1, conversation_history[1]",
        "item 1, conversation_history[2]",
    ]


def test_times_without_a_zone_are_those_of_the_zone_given(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    row = {**CONTEXT, "created_at": "2024-07-01 12:00:00"}
    options = ImportOptions(zone=ZoneInfo("Asia/Manila"))
    import_into(store, as_json(tmp_path / "c.json", [row]), "contextual-memory", options=options)
    assert store.require(Memory, "ctx-1", EVERYWHERE).created_at == datetime(2024, 7, 1, 4, tzinfo=UTC)


def test_an_embedding_may_be_bytes_in_a_database(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    row = {**CONTEXT, "embedding": struct.pack("<4f", 1, 2, 3, 4), "embedding_model": "bge"}
    import_into(store, as_database(tmp_path / "c.db", [row]), "contextual-memory")
    assert [(part.model, list(part.vector)) for part in store.vectors_of(Memory, ["ctx-1"])] == [("bge", [1, 2, 3, 4])]


def test_a_vector_of_the_stores_own_model_is_searched(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite", 4, embedding_model="ada")
    options = ImportOptions(embedding_model="ada")
    import_into(store, as_json(tmp_path / "c.json", [CONTEXT]), "contextual-memory", options=options)
    assert [hit.record.id for hit in store.search_vector(Memory, [1, 1, 1, 1], EVERYWHERE)] == ["ctx-1"]


def test_with_an_embedder_everything_gets_a_vector_of_the_stores_model(new_store: OpenStore, tmp_path: Path) -> None:
    embedder = MockEmbedder(dimension=8)
    store = new_store("sqlite", 8, embedding_model=embedder.model)
    import_into(store, as_json(tmp_path / "s.json", [SESSION]), "session-memory-agent", embedder=embedder)
    assert store.count_without_vector(Memory, embedder.model, EVERYWHERE) == 0
    with pytest.raises(ConfigurationError, match="'mock-8' with 8 dimensions"):
        import_into(store, tmp_path / "s.json", "session-memory-agent", embedder=MockEmbedder(dimension=16))


@pytest.mark.parametrize(
    "shape",
    [
        {"contexts": [CONTEXT]},
        {"ctx-1": {name: value for name, value in CONTEXT.items() if name != "context_id"}},
        CONTEXT,
        {"version": 1, "data": [CONTEXT]},
    ],
)
def test_json_may_have_any_usual_shape(shape: Any, new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    (tmp_path / "c.json").write_text(json.dumps(shape, indent=2))
    import_into(store, tmp_path / "c.json", "contextual_memory_pc2")
    assert store.get(Memory, "ctx-1", EVERYWHERE) is not None


def test_json_that_breaks_off_gives_what_came_before(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    text = json.dumps([{**CONTEXT, "context_id": f"c{n}"} for n in range(3)])
    (tmp_path / "c.json").write_text(text[:-20])
    report = import_into(store, tmp_path / "c.json", "contextual-memory")
    assert store.count(Memory, EVERYWHERE) == 2
    assert [rejected.where for rejected in report.rejected] == ["item 3"]


def test_a_flat_list_of_turns_becomes_sessions_with_their_turns(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    turns = [
        {"session_id": "s", "role": "user", "content": text, "timestamp": f"2024-01-01T10:00:0{n}"}
        for n, text in enumerate(("one", "two", "one"))
    ]
    path = as_lines(tmp_path / "turns.jsonl", turns)
    for _ in range(2):
        report = import_into(store, path, "session-memory-agent")
        assert report.rejected == []
        said = store.find(Memory, Scope(session_id="s"), order=[Order("created_at")])
        assert [memory.content for memory in said] == ["one", "two", "one"]
    assert store.count(Session, EVERYWHERE) == 1


def test_facts_about_the_file_are_no_rows(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    (tmp_path / "m.json").write_text(json.dumps({"count": 1, "page": {"next": None}, "results": [MEM0]}))
    report = import_into(store, tmp_path / "m.json", "mem0")
    assert (report.new["memory"], report.rejected) == (1, [])


def test_lists_may_be_tables_of_their_own(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    path = tmp_path / "legacy.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE sessions (session_id, session_summary, created_at);"
            "INSERT INTO sessions VALUES ('s', 'a talk', '2024-01-01');"
            "CREATE TABLE conversation_history (session_id, role, content, timestamp);"
            "INSERT INTO conversation_history VALUES ('s', 'user', 'one', '2024-01-01 10:00:00');"
            "INSERT INTO conversation_history VALUES ('s', 'assistant', 'two', '2024-01-01 10:00:01');"
        )
    import_into(store, path, "session-memory-agent")
    assert store.require(Session, "s", EVERYWHERE).summary == "a talk"
    assert {memory.content for memory in store.find(Memory, Scope(session_id="s"))} == {"one", "two"}


def test_a_dump_cannot_reach_another_file(new_store: OpenStore, tmp_path: Path) -> None:
    (tmp_path / "evil.sql").write_text(f"ATTACH '{tmp_path / 'other.db'}' AS other;\nCREATE TABLE other.t (x);\n")
    with pytest.raises(ConfigurationError, match="cannot be run"):
        import_into(new_store("sqlite"), tmp_path / "evil.sql", "contextual-memory")
    assert not (tmp_path / "other.db").exists()


def test_a_dry_run_counts_and_writes_nothing(store: StorageBackend, tmp_path: Path) -> None:
    path = as_lines(tmp_path / "c.jsonl", [{**CONTEXT, "context_id": f"c{n}"} for n in range(5)])
    before = everything(store)
    report = import_into(store, path, "contextual-memory", dry_run=True, batch_size=2)
    assert (report.new["memory"], report.new["session"], report.dry_run) == (5, 1, True)
    assert everything(store) == before


def test_an_id_that_belongs_to_something_else_is_not_overwritten(store: StorageBackend, tmp_path: Path) -> None:
    store.save(make.a_memory(id="ctx-1", content="ours"))
    report = import_into(store, as_json(tmp_path / "c.json", [CONTEXT]), "contextual-memory")
    assert "taken" in report.rejected[0].reason
    assert store.require(Memory, "ctx-1", EVERYWHERE).content == "ours"


def test_what_was_changed_here_since_is_not_undone_by_importing_again(store: StorageBackend, tmp_path: Path) -> None:
    path = as_json(tmp_path / "c.json", [CONTEXT])
    import_into(store, path, "contextual-memory")
    store.update(Memory, "ctx-1", {"content": "the user now likes it bright"}, EVERYWHERE)
    import_into(store, path, "contextual-memory")
    assert store.require(Memory, "ctx-1", EVERYWHERE).content == "the user now likes it bright"


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_run_that_was_killed_is_repeated_without_loss_or_doubles(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place = str(tmp_path / "alma.db") if kind == "sqlite" else request.getfixturevalue("postgres_dsn")
    rows = [{**CONTEXT, "context_id": f"c{n:05}", "embedding": None} for n in range(6000)]
    path = as_lines(tmp_path / "c.jsonl", rows)
    code = (
        "import sys\nfrom alma.bootstrap import open_storage\nfrom alma.importers import import_into\n"
        "store = open_storage(sys.argv[1])\n"
        "tell = lambda progress: print(progress.rows, flush=True)\n"
        "import_into(store, sys.argv[2], 'contextual-memory', batch_size=200, on_progress=tell)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, place, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with open_storage(place) as store:
        came = store.count(Memory, EVERYWHERE)
        assert 0 < came < 6000
        report = import_into(store, path, "contextual-memory")
        assert {memory.id for memory in store.iterate(Memory, EVERYWHERE)} == {row["context_id"] for row in rows}
        assert report.new["memory"] + came == 6000
        assert store.count(MemoryVersion, EVERYWHERE) == 6000


MEM0 = {
    "id": "8b1c", "memory": "likes green tea", "hash": "abc", "metadata": {"category": "food"}, "user_id": "ana",
    "agent_id": "barista", "run_id": "run-1", "created_at": "2024-05-01T10:00:00-07:00",
    "updated_at": "2024-05-02T10:00:00-07:00", "categories": ["drinks"],
}  # fmt: skip


@pytest.mark.parametrize("shape", [[MEM0], {"results": [MEM0], "relations": []}])
def test_mem0_memories_arrive_with_all_that_they_carry(shape: Any, store: StorageBackend, tmp_path: Path) -> None:
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps(shape))
    import_into(store, path, "mem0")
    (memory,) = store.find(Memory, Scope(user_id="ana"))
    assert (memory.content, memory.source_agent, memory.session_id) == ("likes green tea", "barista", "run-1")
    assert (memory.external_id, memory.category, memory.tags) == ("8b1c", "food", ("drinks",))
    assert memory.context_json["import"]["hash"] == "abc"
    assert memory.context_json["metadata"] == {"category": "food"}
    assert memory.created_at == datetime(2024, 5, 1, 17, tzinfo=UTC)
    changed = json.dumps([{**MEM0, "memory": "likes black tea", "updated_at": "2024-06-01T00:00:00Z"}])
    path.write_text(changed)
    assert import_into(store, path, "mem0").changed["memory"] == 1
    assert store.find(Memory, Scope(user_id="ana"))[0].content == "likes black tea"


def test_mem0_relations_become_entities_and_relationships(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    relations = [{"source": "ana", "relationship": "drinks", "target": "tea"}, {"source": "ana"}]
    (tmp_path / "m.json").write_text(json.dumps({"results": [MEM0], "relations": relations}))
    report = import_into(store, tmp_path / "m.json", "mem0")
    assert [link.relationship_type for link in store.find(MemoryRelationship, EVERYWHERE)] == ["drinks"]
    assert len(report.rejected) == 1


GRAPH = [
    {"type": "relation", "from": "Ana", "to": "Acme", "relationType": "works_at"},
    {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["speaks Czech", "likes tea"]},
    {"type": "entity", "name": "Acme", "entityType": "company", "observations": []},
    {"type": "relation", "from": "Ana", "to": "Nobody", "relationType": "knows"},
    {"type": "relation", "from": "Ana", "to": "Ana", "relationType": "is"},
    {"type": "thing"},
]


def test_the_mcp_servers_graph_becomes_memories_and_relationships(store: StorageBackend, tmp_path: Path) -> None:
    path = as_lines(tmp_path / "memory.json", GRAPH)
    report = import_into(store, path, "mcp-memory", options=ImportOptions(project_id="shop"))
    found = {memory.title: memory for memory in store.find(Memory, Scope(project_id="shop"))}
    assert found["Ana"].content == "speaks Czech\nlikes tea"
    assert (found["Acme"].content, found["Acme"].category) == ("Acme", "company")
    (link,) = store.find(MemoryRelationship, EVERYWHERE)
    assert (link.from_memory_id, link.to_memory_id) == (found["Ana"].id, found["Acme"].id)
    assert {rejected.where for rejected in report.rejected} == {"line 4", "line 5", "line 6"}
    before = everything(store)
    import_into(store, path, "mcp-memory", options=ImportOptions(project_id="shop"))
    assert everything(store) == before


def message(key: str, role: str, text: Any, parent: str | None, children: list[str], **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]} if isinstance(text, str) else text
    inside = {"id": key, "author": {"role": role}, "create_time": 1714557600.5, "content": content, **more}
    return {"id": key, "message": inside, "parent": parent, "children": children}


CHATGPT = {
    "id": "conv-1",
    "title": "Trip to Brno",
    "create_time": 1714557600.0,
    "update_time": 1714561200.0,
    "current_node": "a2",
    "mapping": {
        "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
        "s": message("s", "system", "", "root", ["u1"]),
        "u1": message("u1", "user", "where to eat?", "s", ["a1", "t1"]),
        "a1": message("a1", "assistant", "an answer that was regenerated", "u1", []),
        "t1": message("t1", "assistant", {"content_type": "code", "text": "f()"}, "u1", ["t2"], recipient="browser"),
        "t2": message("t2", "tool", "a page", "t1", ["a2"]),
        "a2": message("a2", "assistant", {"content_type": "multimodal_text", "parts": [{"a": 1}, "at Eggo"]}, "t2", []),
    },
}  # fmt: skip
CLAUDE = {
    "uuid": "c-1",
    "name": "A poem",
    "created_at": "2024-05-01T10:00:00.000000Z",
    "updated_at": "2024-05-01T11:00:00.000000Z",
    "account": {"uuid": "acc"},
    "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "write a poem", "created_at": "2024-05-01T10:00:01Z"},
        {
            "uuid": "m2",
            "sender": "assistant",
            "text": "",
            "content": [{"type": "tool_use", "name": "x"}, {"type": "text", "text": "roses are red"}],
            "created_at": "2024-05-01T10:00:02Z",
        },
        {"uuid": "m3", "sender": "human", "text": "", "content": [], "created_at": "2024-05-01T10:00:03Z"},
    ],
}


def test_the_current_branch_of_a_chatgpt_conversation_comes(store: StorageBackend, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", json.dumps([CHATGPT]))
    report = import_into(store, path, "chatgpt", options=ImportOptions(user_id="ana", project_id="trips"))
    (session,) = store.find(Session, Scope(user_id="ana"))
    assert (session.name, session.created_at) == ("Trip to Brno", datetime(2024, 5, 1, 10, tzinfo=UTC))
    turns = sorted(store.find(Memory, Scope(session_id=session.id)), key=lambda turn: turn.context_json["position"])
    assert [(turn.title.split()[0], turn.content) for turn in turns] == [
        ("user", "where to eat?"),
        ("assistant", "at Eggo"),
    ]
    assert report.left_out == {"system messages": 1, "calls of tools": 1, "tool messages": 1}
    before = everything(store)
    import_into(store, path, "chatgpt", options=ImportOptions(user_id="ana", project_id="trips"))
    assert everything(store) == before


def test_a_claude_conversation_comes_with_its_words(store: StorageBackend, tmp_path: Path) -> None:
    report = import_into(store, as_json(tmp_path / "conversations.json", [CLAUDE, {"uuid": "x"}]), "claude")
    (session,) = store.find(Session, EVERYWHERE)
    assert session.name == "A poem"
    said = {memory.external_id: memory.content for memory in store.find(Memory, Scope(session_id=session.id))}
    assert said == {"m1": "write a poem", "m2": "roses are red"}
    assert report.left_out == {"messages without text": 1}
    assert [rejected.id for rejected in report.rejected] == ["x"]


def test_an_unknown_system_and_a_missing_file_are_named(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    with pytest.raises(ConfigurationError, match="choose session-memory-agent"):
        import_into(store, tmp_path, "siri")
    with pytest.raises(ConfigurationError, match="there is no file"):
        import_into(store, tmp_path / "nothing", "mem0")


def test_what_came_is_retrieved_like_what_was_remembered_here(new_store: OpenStore, tmp_path: Path) -> None:
    embedder = MockEmbedder(dimension=8)
    store = new_store("sqlite", 8, embedding_model=embedder.model)
    options = ImportOptions(project_id="trips", user_id="ana")
    import_into(store, as_json(tmp_path / "c.json", [CHATGPT]), "chatgpt", options=options, embedder=embedder)
    engine = RetrievalEngine(store, embedder)
    found = engine.retrieve("where can we eat?", "helena", "trips", user_id="ana")
    engine.close()
    assert "where to eat?" in [memory.content for memory in found.memories]


def test_secrets_are_masked_and_their_vectors_left_behind(store: StorageBackend, tmp_path: Path) -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    told = {"text": f"log in with {key}", "room": "kitchen"}
    late = {"context_id": "ctx-3", "context_data": {"text": "x"}, "created_at": f"after {key}"}
    rows = [CONTEXT, {**CONTEXT, "context_id": "ctx-2", "context_data": told, "tags": [key]}, late]
    report = import_into(store, as_lines(tmp_path / "rows.jsonl", rows), "contextual-memory")
    stored = store.require(Memory, "ctx-2", EVERYWHERE)
    assert stored.content == "log in with [redacted:github_token]"
    assert key not in json.dumps([to_document(stored), report.to_dict()])
    assert report.masked == {"github_token": 3}
    assert report.vectors == {"contextual_memory_pc2": 1}
    again = import_into(store, tmp_path / "rows.jsonl", "contextual-memory")
    assert not again.new
    assert not again.changed
    assert [each.id for each in again.rejected] == ["ctx-3"]


def test_who_wants_to_keep_secrets_says_so(store: StorageBackend, tmp_path: Path) -> None:
    row = {**CONTEXT, "context_data": {"text": "the password is hunter2x"}}
    import_into(store, as_lines(tmp_path / "rows.jsonl", [row]), "contextual-memory", redactor=None)
    assert store.require(Memory, "ctx-1", EVERYWHERE).content == "the password is hunter2x"


def test_a_turn_that_says_nothing_is_reported(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    row = {"session_id": "s", "conversation_history": [{"role": "user", "content": ""}, {"role": "user", "text": "hi"}]}
    report = import_into(store, as_json(tmp_path / "legacy", [row]), "session-memory-agent")
    assert [memory.content for memory in store.find(Memory, EVERYWHERE)] == ["hi"]
    assert [(each.where, each.reason) for each in report.rejected] == [
        ("item 1, conversation_history[0]", "it has no text")
    ]


@pytest.mark.parametrize(
    ("system", "one", "other"),
    [
        (
            "session-memory-agent",
            {"session_id": "s", "session_summary": "a", "session_data": {"x": 1}},
            {"session_id": "s", "session_summary": "b"},
        ),
        ("jarvis", {"user_id": "u", "preferences": {"a": 1}}, {"user_id": "u", "preferences": {"a": 2}}),
        (
            "contextual-memory",
            {"context_id": "c", "context_data": {"text": "t"}, "tags": ["a"]},
            {"context_id": "c", "context_data": {"text": "t"}, "tags": ["b"]},
        ),
    ],
)
def test_a_second_row_with_an_id_that_says_something_else_is_reported(
    store: StorageBackend, tmp_path: Path, system: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    source = as_json(tmp_path / "legacy", [one, other, one])
    for _ in range(2):
        report = import_into(store, source, system)
        assert [each.where for each in report.rejected] == ["item 2"]


def test_several_facts_about_one_entity_all_arrive(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    facts = [{"entity": "Rex", "fact": "likes walks"}, {"entity": "Rex", "fact": "fears cats"}]
    for _ in range(2):
        source = as_json(tmp_path / "legacy", [{"user_id": "u", "entity_knowledge": facts}])
        assert import_into(store, source, "jarvis").rejected == []
        assert {memory.content for memory in store.find(Memory, EVERYWHERE)} == {"Rex: likes walks", "Rex: fears cats"}


def test_relations_arrive_under_names_that_can_be_asked_for(store: StorageBackend, tmp_path: Path) -> None:
    names = ("Ana", "ACME", "the bug", "the fix")
    lines: list[Any] = [
        {"type": "entity", "name": name, "entityType": "thing", "observations": ["x"]} for name in names
    ]
    for source, relation, target in (
        ("Ana", "Works at", "ACME"),
        ("ACME", "beschäftigt", "Ana"),
        ("the bug", "resolved by", "the fix"),
        ("the bug", "resolved by", "nothing"),
        ("Ana", "knows", "Ana"),
    ):
        lines.append({"type": "relation", "from": source, "relationType": relation, "to": target})
    report = import_into(
        store, as_lines(tmp_path / "legacy", lines), "mcp-memory", options=ImportOptions(project_id="p")
    )
    assert [each.reason for each in report.rejected] == [
        "it relates 'Ana' to itself",
        "there is no memory for 'nothing'",
    ]
    ids = {memory.title: memory.id for memory in store.find(Memory, EVERYWHERE)}
    relationships, here = Relationships(store), Scope(project_id="p")
    (job,) = relationships.of(ids["Ana"], here, relations=["works at"])
    assert (job.memory.title, job.edge.metadata["relation"]) == ("ACME", "Works at")
    assert [each.memory.title for each in relationships.of(ids["ACME"], here, relations=["beschäftigt"])] == ["Ana"]
    assert [each.memory.title for each in relationships.of(ids["the fix"], here, relations=["resolves"])] == ["the bug"]
    # A relation created here is the same as the imported one.
    relationships.relate(ids["the fix"], ids["the bug"], "resolves", here)
    assert import_into(store, tmp_path / "legacy", "mcp-memory").new == {}


def test_what_was_pasted_into_a_conversation_arrives(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    message = {"uuid": "m", "text": "", "sender": "human", "created_at": "2024-05-01T10:00:00Z", "content": []}
    pasted = {"file_name": "", "extracted_content": "a long text that was pasted"}
    conversation = {"uuid": "c", "name": "n", "chat_messages": [{**message, "attachments": [pasted]}]}
    import_into(store, as_json(tmp_path / "legacy", [conversation]), "claude", options=ImportOptions(user_id="ana"))
    assert [memory.content for memory in store.find(Memory, EVERYWHERE)] == ["a long text that was pasted"]


def test_a_conversation_without_any_time_is_not_dated(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    message = {"id": "m", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hello"]}}
    conversation = {"id": "c", "title": "t", "mapping": {"m": {"id": "m", "children": [], "message": message}}}
    import_into(store, as_json(tmp_path / "legacy", [conversation]), "chatgpt", options=ImportOptions(user_id="ana"))
    (memory,) = store.find(Memory, EVERYWHERE)
    assert (memory.title, memory.event_time) == ("user", None)


def test_two_imports_of_a_file_at_once_store_every_row_once(place: str, tmp_path: Path) -> None:
    rows = [
        {"context_id": f"c{n}", "context_data": {"text": f"light {n}"}, "session_id": f"s{n % 3}"} for n in range(90)
    ]
    source = as_json(tmp_path / "legacy", rows)
    reports: list[ImportReport] = []

    def run() -> None:
        with open_storage(place) as storage:
            reports.append(import_into(storage, source, "contextual-memory", batch_size=10))

    open_storage(place).close()
    assert together(run, run) == []
    assert (
        sum(report.new["memory"] for report in reports) == sum(report.unchanged["memory"] for report in reports) == 90
    )
    # Each session once, however many rows name it.
    assert sum(report.new["session"] for report in reports) == sum(r.unchanged["session"] for r in reports) == 3
    with open_storage(place) as storage:
        assert storage.count(MemoryVersion, EVERYWHERE, Compare("kind", "eq", "memory")) == 90
