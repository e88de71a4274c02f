"""Claude Agent SDK: a session store that keeps transcripts in ALMA."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from alma.core import checked_memory
from alma.errors import MissingDependencyError
from alma.integration.transcripts import Item, Transcript, restored, said_in, session_key, stored
from alma.model.query import And, At, Compare, Predicate
from alma.model.workspace import Session

try:
    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStore,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
        fold_session_summary,
    )
except ModuleNotFoundError as exc:
    raise MissingDependencyError("claude-agent-sdk", "claude-agent-sdk") from exc

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["ALMASessionStore"]

_FRAMEWORK = "claude-agent-sdk"
_SUMMARY = "summary"


class ALMASessionStore(SessionStore):
    """A `SessionStore` of the Claude Agent SDK: `ClaudeAgentOptions(session_store=ALMASessionStore(memory))`.

    What the user and the model say are memories of the project, so later sessions find them; secrets in them are
    masked. Transcripts of subagents are sessions below the main one. What is deleted can be restored until a purge.
    """

    def __init__(self, alma: ALMA, *, user_id: str | None = None, agent: str | None = None) -> None:
        self._alma = checked_memory("session store", alma)
        self._user_id, self._agent = user_id, agent

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries at the end; those whose uuid is known are passed over."""
        await asyncio.to_thread(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The entries in order, or None where there are none."""
        found = await asyncio.to_thread(self._transcript(key).items)
        return cast(list[SessionStoreEntry], found) or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, without those of subagents."""
        found = await asyncio.to_thread(self._sessions, {"project_key": project_key, "subpath": None})
        return [{"session_id": each.metadata["session_id"], "mtime": _milliseconds(each)} for each in found]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The summaries of the sessions of a project, as the SDK folds them."""
        found = await asyncio.to_thread(self._sessions, {"project_key": project_key, "subpath": None})
        return [summary for each in found if (summary := _summary(each)) is not None]

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript, and with the main one those of its subagents."""
        await asyncio.to_thread(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of the transcripts below a session."""
        return [each.metadata["subpath"] for each in await asyncio.to_thread(self._below, key)]

    # ------------------------------------------------------------------ internals

    def _transcript(self, key: Mapping[str, Any]) -> Transcript:
        names = {"project_key": key["project_key"], "session_id": key["session_id"], "subpath": key.get("subpath")}
        above = (key["project_key"], key["session_id"])
        parent = session_key(_FRAMEWORK, self._alma.project_id, above) if key.get("subpath") else None
        return Transcript(self._alma, _FRAMEWORK, names, user_id=self._user_id, agent=self._agent, parent=parent)

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        transcript = self._transcript(key)

        def fold(session: Session) -> Session:
            summary = fold_session_summary(_summary(session), key, entries)
            kept = stored(summary["data"], transcript.redactor)
            return session.replace(context_json={**session.context_json, _SUMMARY: kept})

        transcript.add([_item(entry) for entry in entries], None if key.get("subpath") else fold)

    def _delete(self, key: SessionKey) -> None:
        self._transcript(key).clear()
        for below in () if key.get("subpath") else self._below(key):
            self._transcript(below.metadata).clear()

    def _below(self, key: Mapping[str, Any]) -> Sequence[Session]:
        named = {"project_key": key["project_key"], "session_id": key["session_id"]}
        return [each for each in self._sessions(named) if each.metadata["subpath"] is not None]

    def _sessions(self, names: Mapping[str, str | None]) -> list[Session]:
        of_store: list[Predicate] = [Compare("session_type", "eq", _FRAMEWORK), Compare("is_active", "eq", True)]
        named = (At("metadata", name, value) for name, value in names.items())
        return self._alma.storage.find(Session, self._alma.scope(), And(*of_store, *named))


def _summary(session: Session) -> SessionSummaryEntry | None:
    if _SUMMARY not in session.context_json:
        return None
    data = restored(session.context_json[_SUMMARY])
    return {"session_id": session.metadata["session_id"], "mtime": _milliseconds(session), "data": data}


def _milliseconds(session: Session) -> int:
    return int(session.last_active_at.timestamp() * 1000)


def _item(entry: SessionStoreEntry) -> Item:
    payload: dict[str, Any] = dict(entry)
    message = payload.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = content if isinstance(content, list) else []
    kinds = {block.get("type") for block in blocks if isinstance(block, Mapping)}
    speaker, uuid = payload["type"], payload.get("uuid")
    if "tool_result" in kinds:
        failed = any(block.get("is_error") for block in blocks if isinstance(block, Mapping))
        return Item(payload, "tool", said_in(content), False, False, uuid, succeeded=not failed)
    called = [f"{block['name']} {block.get('input', '')}" for block in blocks if _is_call(block)]
    text = "\n".join((said_in(content if message is not None else payload), *called))
    return Item(payload, speaker, text, said=speaker in ("user", "assistant") and not called, external_id=uuid)


def _is_call(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_use" and "name" in block
