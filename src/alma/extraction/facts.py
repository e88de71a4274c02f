"""Facts found in conversations: what one is, where it was said, and what finds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from alma.errors import ValidationError

USERS = ("user", "human", "customer")
"""The roles whose words are a user's own."""


class FactType(StrEnum):
    """What a fact becomes when it is learned."""

    HEURISTIC = "heuristic"
    ANTI_PATTERN = "anti_pattern"
    OUTCOME = "outcome"
    PREFERENCE = "preference"
    DOMAIN_KNOWLEDGE = "domain_knowledge"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The words a fact was read from: which message, where in it, and who said them."""

    text: str
    role: str
    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """Something a conversation says that is worth knowing later.

    An outcome, a heuristic and an anti-pattern have a `strategy`; `task` is what it was tried for, `reason` why it
    failed, `alternative` what to do instead. `corrects` is what was said before and is wrong, `supersedes` the whole
    sentence that it stood in.
    """

    fact_type: FactType
    content: str
    confidence: float
    evidence: Evidence
    task: str | None = None
    strategy: str | None = None
    success: bool | None = None
    reason: str | None = None
    alternative: str | None = None
    category: str | None = None
    corrects: str | None = None
    supersedes: str | None = None

    @property
    def source_text(self) -> str:
        """The words it was read from."""
        return self.evidence.text


@dataclass(frozen=True, slots=True)
class Refusal:
    """A fact that was proposed and not taken, and why."""

    proposal: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """The facts of a conversation in the order they were said, and the proposals that were not believed."""

    facts: tuple[ExtractedFact, ...] = ()
    refused: tuple[Refusal, ...] = ()
    extractor: str = "rules"

    def of_type(self, fact_type: FactType) -> list[ExtractedFact]:
        """The facts of one type."""
        return [fact for fact in self.facts if fact.fact_type is fact_type]

    def __len__(self) -> int:
        return len(self.facts)


class FactExtractor(ABC):
    """Finds facts in conversations: proposes, and decides nothing.

    Every fact quotes words that stand in the conversation. Messages that are no conversation are a `ValidationError`;
    a service that does not answer is an `ExtractionError`. Any text in any language is read without an error.
    """

    @abstractmethod
    def extract(self, messages: Iterable[Mapping[str, Any] | Turn]) -> ExtractionResult:
        """The facts of a conversation, given as messages with `role` and `content`."""


def conversation(messages: Iterable[Mapping[str, Any] | Turn]) -> list[Turn]:
    """The turns of a conversation; content may be text, or a list of parts of which the text is read."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise ValidationError("conversation", None, messages, "must be a list of messages with role and content")
    return [each if isinstance(each, Turn) else _turn(each) for each in messages]


def _turn(message: Any) -> Turn:
    if not isinstance(message, Mapping):
        raise ValidationError("conversation", None, message, "must be a list of messages with role and content")
    role = message.get("role")
    if not isinstance(role, str) or not role.strip():
        raise ValidationError("conversation", "role", role, "must say who speaks, for example user or assistant")
    return Turn(role.strip().lower(), _text(message.get("content")))


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "\n".join(part for part in parts if isinstance(part, str))
    raise ValidationError("conversation", "content", content, "must be text or a list of parts")
