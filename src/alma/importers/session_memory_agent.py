"""SessionMemoryAgent: a row is a session with its conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from alma.errors import ValidationError
from alma.importers.base import Found, Importer, ImportOptions, Item, Rejected, Row, RowRefused
from alma.importers.records import (
    IMPORT,
    build_memory,
    entries,
    first,
    json_object,
    mapping,
    maybe_named,
    mentioned_session,
    moment,
    named,
    speaker_of,
    text_of,
    time_fields,
    time_of,
    turn_text,
)
from alma.model.workspace import Session

_PAIRS = (
    ("user", "assistant"),
    ("user", "response"),
    ("user_input", "response"),
    ("user_input", "assistant_response"),
    ("user_input", "agent_response"),
    ("user_message", "assistant_message"),
    ("user_message", "response"),
    ("input", "output"),
    ("input", "response"),
    ("query", "response"),
    ("question", "answer"),
)
_SAID = ("content", "text", "message", "utterance", "transcript")
_TURN_IDS = ("id", "message_id", "turn_id", "entry_id")
_APART = timedelta(microseconds=1)
_KNOWN = ("session_id", "conversation_history", "session_data", "session_summary", "created_at", "last_interaction")


class SessionMemoryAgent(Importer):
    """session_id, created_at, last_interaction, session_data, session_summary → a session; its history → memories."""

    name = "SessionMemoryAgent"
    key = "session_id"
    fields = frozenset(_KNOWN)
    lists = frozenset({"conversation_history"})

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        if row.under is not None and not row.listed:
            data.setdefault("session_id", row.under)
        data = _as_session(data)
        session_id = named("session_id", data.get("session_id"))
        created = moment("created_at", data.get("created_at"), options.zone)
        changed = moment("last_interaction", data.get("last_interaction"), options.zone)
        turns = list(_turns(data.get("conversation_history")))
        said = [time for time in (_time(turn, options) for _, turn, _ in turns) if time is not None]
        begun = created or min(said, default=None) or changed
        if set(data) <= {"session_id", "conversation_history"}:
            yield mentioned_session(session_id, options, self.name, begun)
        else:
            ended = changed or max(said, default=None) or begun
            yield Item(self._session(session_id, data, options, begun, ended), changed_at=changed)
        yield from self._memories(row, session_id, turns, options, begun, data)

    def _session(
        self,
        session_id: str,
        data: Mapping[str, Any],
        options: ImportOptions,
        begun: datetime | None,
        ended: datetime | None,
    ) -> Session:
        legacy = {name: value for name, value in data.items() if name not in (*_KNOWN, "user_id", "agent_id")}
        known: dict[str, Any] = {IMPORT: {"system": self.name}}
        return Session(
            id=session_id,
            user_id=maybe_named("user_id", data.get("user_id")) or options.user_id,
            project_id=options.project_id,
            agent=maybe_named("agent_id", data.get("agent_id")) or options.agent,
            metadata=json_object("session_data", data.get("session_data")) or {},
            summary=text_of(data.get("session_summary")) or None,
            context_json={**known, "legacy": legacy} if legacy else known,
            **time_fields(begun, ended, active=True),
        )

    def _memories(
        self,
        row: Row,
        session_id: str,
        turns: Sequence[tuple[str, Any, str]],
        options: ImportOptions,
        begun: datetime | None,
        data: Mapping[str, Any],
    ) -> Iterator[Found]:
        last = None if begun is None else begun - _APART
        for number, (legacy_id, turn, speaker) in enumerate(turns):
            try:
                said_at = _required_time(turn, options)
                # Turns without times keep their order with microseconds between them.
                created = last = said_at or (None if last is None else last + _APART)
                yield Item(
                    build_memory(
                        options,
                        system=self.name,
                        speaker=speaker or (speaker_of(turn) if isinstance(turn, Mapping) else ""),
                        said_at=said_at,
                        id=self.derived_id(session_id, legacy_id),
                        external_id=f"{session_id}#{legacy_id}"[:200],
                        session_id=session_id,
                        user_id=maybe_named("user_id", data.get("user_id")),
                        memory_type="conversation",
                        content=turn_text(turn),
                        content_json=dict(turn) if isinstance(turn, Mapping) else {"text": turn},
                        created_at=created,
                    )
                )
            except (RowRefused, ValidationError) as exc:
                yield Rejected(f"{row.where}, conversation_history[{number}]", session_id, str(exc))


def _as_session(data: dict[str, Any]) -> dict[str, Any]:
    """The row as a session; a row that is a single turn becomes a session with one turn."""
    told = ("conversation_history", "session_data", "session_summary", "last_interaction")
    if any(name in data for name in told) or not turn_text({k: v for k, v in data.items() if k in _SAID}).strip():
        return data
    turn = {name: value for name, value in data.items() if name not in ("session_id", "user_id")}
    if first(turn, _TURN_IDS) is None:
        said = json.dumps([str(value) for value in turn.values()])
        turn["id"] = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return {"session_id": data.get("session_id"), "conversation_history": [turn]}


def _turns(value: Any) -> Iterator[tuple[str, Any, str]]:
    """Each turn with its id, and its speaker if an entry holds both sides."""
    for number, (key, entry) in enumerate(entries("conversation_history", value)):
        own = first(entry, _TURN_IDS) if isinstance(entry, Mapping) else None
        name = str(own if own is not None else key if key is not None else number)
        pair = _pair(entry)
        if pair is None:
            yield name, entry, ""
            continue
        rest = {field: value for field, value in entry.items() if field not in pair}
        for field, speaker in zip(pair, ("user", "assistant"), strict=True):
            if text_of(entry[field]).strip():
                yield f"{name}/{speaker}", {**rest, "role": speaker, "content": entry[field]}, speaker


def _pair(entry: Any) -> tuple[str, str] | None:
    if not isinstance(entry, Mapping) or "role" in entry or "content" in entry:
        return None
    return next((pair for pair in _PAIRS if pair[0] in entry and pair[1] in entry), None)


def _time(turn: Any, options: ImportOptions) -> datetime | None:
    try:
        return _required_time(turn, options)
    except RowRefused:
        return None


def _required_time(turn: Any, options: ImportOptions) -> datetime | None:
    return time_of(turn, options.zone) if isinstance(turn, Mapping) else None
