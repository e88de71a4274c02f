"""LangChain: a history of chat messages and a retriever that use ALMA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alma.core import ALMA, checked_memory
from alma.errors import MissingDependencyError, ValidationError
from alma.integration.transcripts import Transcript
from alma.model.common import checked_whole
from alma.model.governance import Attribution
from alma.model.record import Record

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, messages_from_dict
    from langchain_core.retrievers import BaseRetriever

    from alma.integration.langchain_messages import item_of
except ModuleNotFoundError as exc:
    raise MissingDependencyError("langchain-core", "langchain") from exc

__all__ = ["ALMAChatMessageHistory", "ALMARetriever"]

_MOST = 100


class ALMAChatMessageHistory(BaseChatMessageHistory):
    """A `BaseChatMessageHistory` of LangChain, as for `RunnableWithMessageHistory(chain, lambda id: ...)`.

    The conversation is a session of the project; what is said is found like other memories, and secrets are masked.
    What is cleared can be restored until a purge.
    """

    def __init__(self, session_id: str, alma: ALMA, *, user_id: str | None = None, agent: str | None = None) -> None:
        super().__init__()
        self.session_id = session_id
        self._transcript = Transcript(alma, "langchain", {"session_id": session_id}, user_id=user_id, agent=agent)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages in order."""
        return messages_from_dict(self._transcript.items())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, all of them or on error none."""
        self._transcript.add([item_of(message) for message in messages])

    def clear(self) -> None:
        """Take all messages out."""
        self._transcript.clear()


class ALMARetriever(BaseRetriever):
    """A `BaseRetriever` of LangChain: `ALMARetriever(memory=memory, k=4)`.

    It finds the general memories that are relevant to the query; with an `agent` everything that `alma.retrieve` hands
    it, with its strategies and warnings. About things that were never stored it returns nothing.
    """

    memory: Any
    k: int = 5
    agent: str | None = None
    user_id: str | None = None

    def __init__(self, memory: ALMA, **settings: Any) -> None:
        super().__init__(**{"memory": checked_memory("retriever", memory), **settings})
        _checked_k(self.k)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        most = _checked_k(self.k if k is None else k)
        if not isinstance(query, str) or not query.strip():
            raise ValidationError("retriever", "query", query, "must be a text to search for")
        if self.agent is not None:
            found = self.memory.retrieve(query, self.agent, self.user_id, top_k=most)
            return [_document(each, found.explanation_of(each.key).score) for each in found.ranked()[:most]]
        by = Attribution(user_id=self.user_id)
        hits = self.memory.journal.search(query, self.memory.scope(), by=by, limit=most)
        least = self.memory.retrieval.relevance.weak
        return [_document(hit.memory, hit.score) for hit in hits if hit.relevance is None or hit.relevance >= least]


def _checked_k(k: Any) -> int:
    return checked_whole("retriever", "k", k, 1, _MOST)


def _document(record: Record, score: float) -> Document:
    fields = ("title", "memory_type", "tags", "user_id", "session_id", "source_agent", "source_tool", "agent")
    known = {name: getattr(record, name, None) for name in fields}
    about = {name: list(value) if isinstance(value, tuple) else value for name, value in known.items() if value}
    text = getattr(record, "content", None) or record.text()
    return Document(page_content=text, id=str(record.key), metadata={"kind": record.spec.kind, "score": score, **about})
