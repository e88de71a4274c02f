"""LlamaIndex: a memory of a conversation, and a memory block with earlier knowledge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from alma.core import checked_memory
from alma.errors import MissingDependencyError, ValidationError
from alma.integration.transcripts import Item, Transcript
from alma.model.common import checked_whole

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemory, BaseMemoryBlock
except ModuleNotFoundError as exc:
    raise MissingDependencyError("llama-index-core", "llama-index") from exc

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["ALMAMemory", "ALMAMemoryBlock"]

_FRAMEWORK = "llama-index"


class ALMAMemory(BaseMemory):
    """A memory of LlamaIndex: `await agent.run("...", memory=ALMAMemory(memory, "chat-1"))`.

    The conversation is a session of the project; what is said is found like other memories, and secrets are masked.
    `limit` is how many of the last messages `get` returns.
    """

    limit: int | None = None
    _transcript: Transcript = PrivateAttr()

    def __init__(
        self,
        alma: ALMA,
        session_id: str,
        *,
        limit: int | None = None,
        user_id: str | None = None,
        agent: str | None = None,
    ) -> None:
        super().__init__(limit=None if limit is None else checked_whole("memory", "limit", limit, 1))
        self._transcript = _transcript(alma, session_id, user_id, agent)

    @classmethod
    def class_name(cls) -> str:
        return "ALMAMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> ALMAMemory:
        """A memory of these arguments; `alma` and `session_id` are needed."""
        for name in ("alma", "session_id"):
            if name not in kwargs:
                raise ValidationError("memory", name, None, "is needed")
        return cls(**kwargs)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002
        """The last messages in order."""
        return [ChatMessage.model_validate(each) for each in self._transcript.items(self.limit)]

    def get_all(self) -> list[ChatMessage]:
        """All messages in order."""
        return [ChatMessage.model_validate(each) for each in self._transcript.items()]

    def put(self, message: ChatMessage) -> None:
        """Add a message at the end."""
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages at the end, all of them or on error none."""
        self._transcript.add([_item(message) for message in messages])

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace all messages; what was there can be restored until a purge."""
        self._transcript.clear()
        self.put_messages(messages)

    def reset(self) -> None:
        """Take all messages out."""
        self._transcript.clear()


class ALMAMemoryBlock(BaseMemoryBlock[str]):
    """Earlier knowledge for a memory: `Memory.from_defaults(memory_blocks=[ALMAMemoryBlock(memory, agent="helena")])`.

    It says what `alma.retrieve` finds for the last message, and keeps what leaves the short-term memory.
    """

    max_tokens: int = 800
    _alma: Any = PrivateAttr()
    _agent: str = PrivateAttr()
    _user_id: str | None = PrivateAttr()

    def __init__(
        self, alma: ALMA, agent: str, *, user_id: str | None = None, name: str = "alma", **settings: Any
    ) -> None:
        super().__init__(**{"name": name, **settings})
        self._alma = checked_memory("memory block", alma)
        self._agent, self._user_id = agent, user_id

    async def _aget(self, messages: Sequence[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [message.content for message in messages or () if message.role == "user" and message.content]
        return await asyncio.to_thread(self._known, said[-1]) if said else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        session = next((message.additional_kwargs.get("session_id") for message in messages), None) or self.name
        transcript = _transcript(self._alma, f"block/{session}", self._user_id, self._agent)
        await asyncio.to_thread(transcript.add, [_item(message) for message in messages])

    def _known(self, task: str) -> str:
        found = self._alma.retrieve(task, self._agent, self._user_id)
        return str(found.to_prompt(max_tokens=self.max_tokens)) if found.total_items else ""


def _transcript(alma: ALMA, session_id: str, user_id: str | None, agent: str | None) -> Transcript:
    return Transcript(alma, _FRAMEWORK, {"session_id": session_id}, user_id=user_id, agent=agent)


def _item(message: ChatMessage) -> Item:
    role = str(message.role.value)
    said, trusted = role in ("user", "assistant"), role not in ("tool", "function")
    return Item(message.model_dump(mode="json"), role, message.content or "", said=said, trusted=trusted)
