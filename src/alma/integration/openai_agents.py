"""OpenAI Agents SDK: a session that keeps its conversation in ALMA."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from alma.errors import MissingDependencyError
from alma.integration.transcripts import Item, Transcript, said_in

try:
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
except ModuleNotFoundError as exc:
    raise MissingDependencyError("openai-agents", "openai-agents") from exc

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

    from alma.core import ALMA


__all__ = ["ALMASession"]


class ALMASession(SessionABC):
    """A `Session` of the OpenAI Agents SDK: `Runner.run(agent, input, session=ALMASession("chat-1", memory))`.

    The items are memories of the project, so every agent of it finds what was said; secrets in them are masked. What is
    popped or cleared can be restored until a purge.
    """

    def __init__(
        self,
        session_id: str,
        alma: ALMA,
        *,
        user_id: str | None = None,
        agent: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self._transcript = Transcript(alma, "openai-agents", {"session_id": session_id}, user_id=user_id, agent=agent)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order: the last ones with a limit, which `session_settings` may give, else all.

        A negative limit is none, as for the SQLite session of the SDK.
        """
        most = resolve_session_limit(limit, self.session_settings)
        if most == 0:
            return []
        most = None if most is not None and most < 0 else most
        return cast("list[TResponseInputItem]", await asyncio.to_thread(self._transcript.items, most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, all of them or on error none."""
        await asyncio.to_thread(self._transcript.add, [_item(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Take out the last item, and return it."""
        return cast("TResponseInputItem | None", await asyncio.to_thread(self._transcript.pop))

    async def clear_session(self) -> None:
        """Take out all items."""
        await asyncio.to_thread(self._transcript.clear)


def _succeeded(payload: Mapping[str, Any]) -> bool | None:
    """What an output says of its call: the exit codes of a shell, or the status of a patch; None for functions."""
    output = payload.get("output")
    outcomes = [each.get("outcome") for each in output if isinstance(each, Mapping)] if isinstance(output, list) else []
    ended = [each for each in outcomes if isinstance(each, Mapping)]
    if ended:
        return all(each.get("exit_code") == 0 for each in ended)
    return payload.get("status") != "failed" if payload.get("type") == "apply_patch_call_output" else None


def _item(item: Mapping[str, Any]) -> Item:
    payload = dict(item)
    kind = str(payload.get("type") or "message")
    if kind == "message":
        return Item(payload, str(payload.get("role") or ""), said_in(payload.get("content")))
    if kind.endswith("_output"):
        output = payload.get("output")
        return Item(payload, "tool", said_in(output), said=False, trusted=False, succeeded=_succeeded(payload))
    if "name" in payload:
        return Item(payload, kind, f"{payload['name']} {payload.get('arguments') or ''}", said=False)
    return Item(payload, kind, said_in(payload), said=False)
