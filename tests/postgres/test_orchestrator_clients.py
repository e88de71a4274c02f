"""A client written for the Memory Orchestrator's document reads and writes under the names that it knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from alma import clock
from alma.maintenance import ColdStorage
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion
from alma.model.query import Compare, Has
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionMemory
from alma.storage.postgres.partitions import partition
from alma.storage.postgresql import PostgreSQLStorage
from tests.conftest import OpenPostgres

EVERYWHERE = Scope.everywhere()
THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
Client = psycopg.Connection[Any]
# One INSERT for each table of the document, with every column that a client may write.
DOCUMENTED: dict[str, dict[str, Any]] = {
    "sessions": {
        "session_id": "s-1",
        "user_id": "u-1",
        "created_at": THEN,
        "updated_at": THEN,
        "ended_at": THEN,
        "metadata": {"device": "kitchen"},
        "summary": "Talked about lunch.",
        "is_archived": True,
        "session_type": "conversation",
    },
    "memory_entries": {
        "memory_id": "m-1",
        "session_id": "s-1",
        "memory_type": "conversation",
        "content": {"text": "Lunch moved to noon", "role": "user", "turn": 3},
        "source_agent": "SessionMemoryAgent",
        "created_at": THEN,
        "updated_at": THEN,
        "expires_at": THEN,
        "priority": 8,
        "is_active": False,
    },
    "memory_tags": {"memory_id": "m-1", "tag": "lunch"},
    "vector_embeddings": {
        "memory_id": "m-1",
        "embedding": "[0.5,0,0,0.5]",
        "embedding_model": "minilm",
        "created_at": THEN,
    },
    "user_profiles": {
        "user_id": "u-1",
        "created_at": THEN,
        "updated_at": THEN,
        "profile_data": {"name": "Ada"},
        "preferences": {"units": "metric"},
        "is_active": False,
    },
    "agent_states": {
        "agent_id": "timer",
        "session_id": "s-1",
        "state_data": {"left": 30},
        "created_at": THEN,
        "updated_at": THEN,
        "expires_at": THEN,
    },
    "memory_relationships": {
        "source_memory_id": "m-1",
        "target_memory_id": "m-2",
        "relationship_type": "reply_to",
        "metadata": {"by": "hand"},
        "created_at": THEN,
    },
}


@pytest.fixture
def store(open_postgres: OpenPostgres) -> PostgreSQLStorage:
    return open_postgres()


@pytest.fixture
def client(store: PostgreSQLStorage, postgres_dsn: str) -> Iterator[Client]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def insert(client: Client, table: str, **values: Any) -> Any:
    """Insert a row as any client would, and return what the document calls its columns."""
    columns = ", ".join(values)
    sent = [json.dumps(value) if isinstance(value, dict) else value for value in values.values()]
    marks = ", ".join("%s" for _ in values)
    row = client.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks}) RETURNING {columns}", sent).fetchone()
    assert row is not None
    return row


def entry(client: Client, memory_id: str, text: str, **values: Any) -> None:
    insert(client, "memory_entries", memory_id=memory_id, memory_type="note", content={"text": text}, **values)


def one(client: Client, query: str) -> Any:
    row = client.execute(query.encode()).fetchone()
    assert row is not None
    return row[0] if len(row) == 1 else row


def assert_whole(store: PostgreSQLStorage) -> None:
    assert AuditTrail(store).verify().ok


def test_every_documented_column_is_written_and_read_back(store: PostgreSQLStorage, client: Client) -> None:
    entry(client, "m-2", "When is lunch?")
    for table, values in DOCUMENTED.items():
        assert insert(client, table, **values) == tuple(values.values()), table
        known = " AND ".join(f"{name} = %s" for name in values if name.endswith("_id"))
        ids = [value for name, value in values.items() if name.endswith("_id")]
        found = client.execute(f"SELECT {', '.join(values)} FROM {table} WHERE {known}", ids).fetchone()
        assert found == tuple(values.values()), table
    assert one(client, "SELECT text_content FROM memory_entries WHERE memory_id = 'm-1'") == "Lunch moved to noon"
    for serial in ("tag_id FROM memory_tags", "embedding_id FROM vector_embeddings", "state_id FROM agent_states"):
        assert one(client, f"SELECT {serial}") >= 1
    assert one(client, "SELECT relationship_id FROM memory_relationships") == 1
    memory = store.require(Memory, "m-1", EVERYWHERE)
    assert (memory.content, memory.content_json, memory.priority) == (
        "Lunch moved to noon",
        {"role": "user", "turn": 3},
        8,
    )
    assert (memory.user_id, memory.session_id, memory.tags) == ("u-1", "s-1", ("lunch",))
    assert [each.model for each in store.vectors_of(Memory, ["m-1"])] == ["minilm"]
    assert_whole(store)


def test_what_is_not_said_has_the_documented_default(client: Client) -> None:
    insert(client, "sessions", session_id="s", session_type="task", metadata=None)
    insert(client, "user_profiles", user_id="u", profile_data=None)
    insert(client, "agent_states", agent_id="timer", state_data={})
    insert(client, "memory_entries", memory_id="m", memory_type="context", content={"room": "kitchen"})
    recent = (
        "created_at BETWEEN now() - interval '1 minute' AND now() + interval '1 minute' AND updated_at = created_at"
    )
    assert one(client, f"SELECT {recent} AND ended_at IS NULL AND NOT is_archived FROM sessions")
    assert one(client, f"SELECT {recent} AND is_active FROM user_profiles")
    assert one(client, f"SELECT {recent} AND expires_at IS NULL AND session_id IS NULL FROM agent_states")
    assert one(client, f"SELECT {recent} AND is_active AND priority = 5 FROM memory_entries")
    # An entry without a text has none, though ALMA finds it by what it says.
    assert one(client, "SELECT content, text_content FROM memory_entries") == ({"room": "kitchen"}, None)


REFUSED = {
    "INSERT INTO memory_entries (memory_type, content, priority) VALUES ('note', '{}', 11)": "priority must be",
    "INSERT INTO memory_entries (memory_type, content) VALUES ('note', '[1]')": "content must be a JSON object",
    "INSERT INTO memory_entries (memory_type) VALUES ('note')": "content must be a JSON object",
    "INSERT INTO memory_entries (content) VALUES ('{}')": "memory_type is required",
    "INSERT INTO memory_entries (memory_type, content) VALUES (' ', '{}')": "memory_type must have 1 to 200",
    "INSERT INTO memory_entries (memory_id, memory_type, content) VALUES ('m', 'note', '{}')": "memory_id 'm'",
    "INSERT INTO memory_entries (session_id, memory_type, content) VALUES ('x', 'note', '{}')": "session_id 'x'",
    "UPDATE memory_entries SET text_content = 'other'": "text_content follows from content",
    "UPDATE memory_entries SET memory_id = 'other'": "memory_id cannot be changed",
    "UPDATE memory_entries SET priority = 0": "priority must be from 1 to 10",
    "INSERT INTO memory_tags (memory_id, tag) VALUES ('x', 'lunch')": "memory_id 'x': there is no memory entry",
    "INSERT INTO memory_tags (memory_id, tag) VALUES ('m', '')": "tag must have 1 to 200 characters",
    "INSERT INTO memory_tags (memory_id, tag) VALUES ('m', 'a'), ('m', 'a')": "unique_memory_tag",
    "INSERT INTO user_profiles (user_id) VALUES ('')": "user_id must have 1 to 200 characters",
    "INSERT INTO user_profiles (user_id, preferences) VALUES ('u', '[]')": "preferences must be a JSON object",
    "INSERT INTO agent_states (agent_id, session_id) VALUES ('a', 'x')": "no session with this id",
    "INSERT INTO memory_relationships (source_memory_id, target_memory_id, relationship_type) VALUES ('m', 'x', '-')": (
        "target_memory_id 'x': there is no memory entry with this id"
    ),
    "INSERT INTO vector_embeddings (memory_id, embedding, embedding_model) VALUES ('x', '[1]', 'y')": "no memory entry",
}


def test_a_refused_statement_says_why_and_changes_nothing(store: PostgreSQLStorage, client: Client) -> None:
    entry(client, "m", "Lunch is at noon")
    before = store.history(Memory, "m", EVERYWHERE)
    for statement, sentence in REFUSED.items():
        with pytest.raises(
            psycopg.errors.IntegrityError if "text_content" not in statement else psycopg.Error
        ) as refused:
            client.execute(statement.encode())
        assert sentence in str(refused.value).splitlines()[0], statement
    assert store.history(Memory, "m", EVERYWHERE) == before
    assert_whole(store)


def test_a_change_keeps_history_words_vectors_marks_and_audit(store: PostgreSQLStorage, client: Client) -> None:
    store.save(Memory(id="m", content="The meeting is on Monday", title="Plan", tags=["work"], embedding=[1, 0, 0, 0]))
    store.register_projection("index", [Memory])
    generation = store.generation()
    client.execute("UPDATE memory_entries SET content = '{\"text\": \"Lunches are at noon\"}' WHERE memory_id = 'm'")
    assert store.generation() != generation
    memory = store.require(Memory, "m", EVERYWHERE)
    assert (memory.title, memory.content, memory.tags, memory.embedding) == (
        "Plan",
        "Lunches are at noon",
        ("work",),
        None,
    )
    assert [key for key, _ in store.matching_ids(Memory, "lunch", EVERYWHERE)] == ["m"]
    assert store.matching_ids(Memory, "meeting", EVERYWHERE) == []
    assert store.count_without_vector(Memory, store.embedding_model, EVERYWHERE) == 1
    assert [mark.record_id for mark in store.pending("index")] == ["m"]
    first, second = store.history(Memory, "m", EVERYWHERE)
    assert (first.content, second.content) == ("The meeting is on Monday", "Lunches are at noon")
    assert (second.change_reason, second.created_by) == ("written by SQL", "postgres")
    assert (second.diff_json or {})["content"] == "The meeting is on Monday"
    (past,) = store.find(Memory, EVERYWHERE, as_of=first.created_at)
    assert (past.content, past.tags) == ("The meeting is on Monday", ("work",))
    assert_whole(store)


def test_tags_are_part_of_the_entry(store: PostgreSQLStorage, client: Client) -> None:
    entry(client, "m", "Lunch is at noon")
    entry(client, "other", "Dinner is late")
    client.execute("INSERT INTO memory_tags (memory_id, tag) VALUES ('m', 'food'), ('m', 'work')")
    client.execute(
        "INSERT INTO memory_tags (memory_id, tag) VALUES ('m', 'work') ON CONFLICT (memory_id, tag) DO NOTHING"
    )
    client.execute("DELETE FROM memory_tags WHERE memory_id = 'm' AND tag = 'work'")
    client.execute("UPDATE memory_tags SET tag = 'meals' WHERE memory_id = 'm'")
    assert store.require(Memory, "m", EVERYWHERE).tags == ("meals",)
    assert [each.id for each in store.find(Memory, EVERYWHERE, Has("tags", "meals"))] == ["m"]
    found = store.search_text(Memory, "lunch", EVERYWHERE, where=Has("tags", "meals"))
    assert [hit.record.id for hit in found] == ["m"]
    tags = [(each.record_json or {}).get("tags") for each in store.history(Memory, "m", EVERYWHERE)]
    assert tags == [None, ["food", "work"], ["food"], ["meals"]]
    assert_whole(store)


def test_a_deleted_entry_leaves_nothing_but_its_history(store: PostgreSQLStorage, client: Client) -> None:
    insert(client, "sessions", session_id="s", session_type="conversation")
    for key in ("m", "n"):
        entry(client, key, "Lunch is at noon", session_id="s")
    insert(client, "memory_tags", memory_id="m", tag="food")
    insert(client, "vector_embeddings", memory_id="m", embedding="[1,0,0,0]", embedding_model="minilm")
    insert(client, "memory_relationships", source_memory_id="m", target_memory_id="n", relationship_type="follow_up")
    store.save(SessionMemory(session_id="s", memory_id="m"))
    client.execute("DELETE FROM memory_entries WHERE memory_id = 'm'")
    assert store.get(Memory, "m", EVERYWHERE) is None
    for table in ("memory_tags", "vector_embeddings", "memory_relationships", "session_memories"):
        assert one(client, f"SELECT count(*) FROM {table}") == 0, table
    ended = store.find(MemoryVersion, EVERYWHERE, Compare("change_type", "eq", "deleted"))
    assert {(each.kind, each.memory_id) for each in ended} >= {("memory", "m")}
    assert {each.kind for each in ended} == {"memory", "memory_relationship"}
    entry(client, "m", "Lunch is back")
    assert [str(each.change_type) for each in store.history(Memory, "m", EVERYWHERE)][-2:] == ["deleted", "restored"]
    assert_whole(store)


def test_a_deleted_session_takes_its_entries_with_it(store: PostgreSQLStorage, client: Client) -> None:
    insert(client, "sessions", session_id="s", session_type="conversation")
    entry(client, "m", "Lunch is at noon", session_id="s")
    insert(client, "memory_tags", memory_id="m", tag="food")
    for agent in ("timer", "lamp"):
        insert(client, "agent_states", agent_id=agent, session_id="s", state_data={"left": 30})
    insert(client, "agent_states", agent_id="lamp", state_data={"left": 1})
    client.execute("DELETE FROM sessions WHERE session_id = 's'")
    assert store.count(Memory, EVERYWHERE) == store.count(Session, EVERYWHERE) == 0
    assert one(client, "SELECT count(*) FROM memory_tags") == 0
    states = client.execute("SELECT agent_id, session_id, state_data FROM agent_states ORDER BY agent_id").fetchall()
    assert states == [("lamp", None, {"left": 1}), ("timer", None, {"left": 30})]
    assert_whole(store)


def test_a_session_that_sql_ends_or_archives_goes_to_cold_storage(
    store: PostgreSQLStorage, client: Client, tmp_path: Path
) -> None:
    insert(client, "sessions", session_id="ended", session_type="task", ended_at=THEN)
    for key in ("later", "archived", "open"):
        insert(client, "sessions", session_id=key, session_type="task", created_at=THEN)
    client.execute("UPDATE sessions SET ended_at = now() - interval '1 day' WHERE session_id = 'later'")
    client.execute("UPDATE sessions SET is_archived = true WHERE session_id = 'archived'")
    active = {each.id: each.is_active for each in store.find(Session, EVERYWHERE)}
    assert active == {"ended": False, "later": False, "archived": True, "open": True}
    assert sorted(ColdStorage(store, Archive(store), tmp_path).due(clock.now())) == ["archived", "ended", "later"]
    client.execute("UPDATE sessions SET ended_at = NULL WHERE session_id = 'ended'")
    assert store.require(Session, "ended", EVERYWHERE).is_active


def test_an_upsert_works_where_a_name_is_a_table_or_a_plain_view(store: PostgreSQLStorage, client: Client) -> None:
    for preference in ("metric", "imperial"):
        client.execute(
            "INSERT INTO user_profiles (user_id, preferences) VALUES ('u', %s) "
            "ON CONFLICT (user_id) DO UPDATE SET preferences = EXCLUDED.preferences",
            [json.dumps({"units": preference})],
        )
        client.execute(
            "INSERT INTO agent_states (agent_id, state_data) VALUES ('timer', %s) "
            "ON CONFLICT (agent_id, session_id) DO UPDATE SET state_data = EXCLUDED.state_data",
            [json.dumps({"units": preference})],
        )
        client.execute(
            "MERGE INTO memory_entries AS t USING (SELECT 'm' AS memory_id, %s::jsonb AS content) AS s "
            "ON t.memory_id = s.memory_id WHEN MATCHED THEN UPDATE SET content = s.content "
            "WHEN NOT MATCHED THEN INSERT (memory_id, memory_type, content) VALUES (s.memory_id, 'note', s.content)",
            [json.dumps({"text": preference})],
        )
    assert one(client, "SELECT preferences FROM user_profiles") == {"units": "imperial"}
    assert one(client, "SELECT state_data FROM agent_states") == {"units": "imperial"}
    assert one(client, "SELECT text_content FROM memory_entries") == "imperial"
    assert len(store.history(Memory, "m", EVERYWHERE)) == 2
    assert_whole(store)


def test_what_alma_writes_is_changed_by_sql_and_the_other_way_round(store: PostgreSQLStorage, client: Client) -> None:
    store.save_many([Memory(id=f"m{i}", content=f"Lunch number {i}", embedding=[1, 0, 0, 0]) for i in range(20)])
    store.save(MemoryRelationship(id="r", from_memory_id="m1", to_memory_id="m2", relationship_type="supports"))
    client.execute("UPDATE memory_entries SET priority = 10 WHERE memory_id = 'm1'")
    client.execute('UPDATE memory_relationships SET metadata = \'{"why": "sql"}\'')
    client.execute("DELETE FROM memory_entries WHERE memory_id LIKE 'm1_'")
    store.update(Memory, "m1", {"content": "Lunch is cancelled"}, EVERYWHERE)
    assert one(client, "SELECT text_content, priority FROM memory_entries WHERE memory_id = 'm1'") == (
        "Lunch is cancelled",
        10,
    )
    assert [each.version_number for each in store.history(Memory, "m1", EVERYWHERE)] == [1, 2, 3]
    assert len(store.history(MemoryRelationship, "r", EVERYWHERE)) == 2
    # A vector lasts while the text is the same.
    assert store.require(Memory, "m2", EVERYWHERE).embedding is not None
    assert_whole(store)


def test_words_are_indexed_by_our_tokenizer_before_long(
    store: PostgreSQLStorage, client: Client, open_postgres: OpenPostgres
) -> None:
    entry(client, "m", "会議は月曜日です and C++")
    client.execute("INSERT INTO memory_tags (memory_id, tag) VALUES ('m', 'work')")
    assert one(client, "SELECT count(*) FROM alma_words_due") == 1
    again = open_postgres()
    assert one(client, "SELECT count(*) FROM alma_words_due") == 0
    assert [key for key, _ in again.matching_ids(Memory, "C++", EVERYWHERE)] == ["m"]
    assert len(again.history(Memory, "m", EVERYWHERE)) == 2


def test_partitioned_entries_accept_the_same_writes(store: PostgreSQLStorage, client: Client) -> None:
    with store.connection() as connection:
        partition(connection, "memories")
    entry(client, "m", "Lunch is at noon")
    with pytest.raises(psycopg.errors.UniqueViolation, match="there is a memory entry"):
        entry(client, "m", "Lunch is at noon")
    with pytest.raises(psycopg.errors.CheckViolation, match="created_at cannot be changed"):
        client.execute("UPDATE memory_entries SET created_at = '2020-01-01'")
    client.execute("UPDATE memory_entries SET priority = 2")
    insert(client, "memory_tags", memory_id="m", tag="food")
    client.execute("DELETE FROM memory_entries")
    assert [str(each.change_type) for each in store.history(Memory, "m", EVERYWHERE)] == [
        "created",
        "updated",
        "updated",
        "deleted",
    ]
    assert one(client, "SELECT count(*) FROM memory_tags") == 0
    assert_whole(store)


def test_rights_on_the_names_are_enough(store: PostgreSQLStorage, client: Client, postgres_dsn: str) -> None:
    names = ", ".join(["memory_entries", "memory_tags", "user_profiles", "sessions"])
    client.execute("DROP ROLE IF EXISTS orchestrator")
    client.execute("CREATE ROLE orchestrator")
    client.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {names} TO orchestrator".encode())
    client.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO orchestrator")
    try:
        client.execute("SET ROLE orchestrator")
        insert(client, "sessions", session_id="s", session_type="conversation")
        entry(client, "m", "Lunch is at noon", session_id="s")
        insert(client, "memory_tags", memory_id="m", tag="food")
        client.execute("DELETE FROM sessions")
        assert one(client, "SELECT count(*) FROM memory_entries") == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("SELECT * FROM audit_log")
    finally:
        client.execute("RESET ROLE")
        client.execute("DROP OWNED BY orchestrator")
        client.execute("DROP ROLE orchestrator")
    assert_whole(store)
