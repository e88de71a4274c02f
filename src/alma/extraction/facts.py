"""Facts found in conversations: what one is, where it was said, and what finds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from alma.errors import ValidationError
from alma.redaction.redactor import Redactor, masking
from alma.text.tokens import query_terms, terms

USERS = ("user", "human", "customer")
"""The roles whose words are a user's own."""

ASSISTANTS = ("assistant", "ai", "model")
"""The roles whose words are the agent's own."""

INSTRUCTORS = ("system", "developer")
"""The roles that say what the agent is to do; that is given, and nothing to learn."""

# The parts of a message that are the words of whoever sent it, and not what a tool handed over in it.
_OWN_PARTS = (None, "text", "input_text", "output_text")

TEXTS = ("content", "task", "strategy", "reason", "alternative", "category", "corrects", "supersedes")
"""What a fact says, beside the words it was read from."""
BY_USER = "user_stated"
BY_AGENT = "inferred"
_TOOLS = ("tool", "function")
_UNKNOWN = "unknown"


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

    @property
    def by_stranger(self) -> bool:
        """Whether a tool, a page or anybody else says it than the user, the agent and who instructs it."""
        return self.role not in (*USERS, *ASSISTANTS, *INSTRUCTORS)


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
    sentence that it stood in. `masked` says which secrets were taken out of it.
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
    masked: tuple[str, ...] = ()

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
    """The facts of a conversation in the order they were said, and the proposals that were not believed.

    `degraded` says why another extractor had to do than the one that was asked. `masked` says which secrets a model was
    not shown, and in which message they stood.
    """

    facts: tuple[ExtractedFact, ...] = ()
    refused: tuple[Refusal, ...] = ()
    extractor: str = "rules"
    degraded: str | None = None
    masked: tuple[str, ...] = ()

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

    def shown_without_secrets(self, redactor: Redactor | None) -> FactExtractor:
        """The extractor that shows others only what this redactor leaves; one that shows nobody anything is it."""
        return self


def conversation(messages: Iterable[Mapping[str, Any] | Turn]) -> list[Turn]:
    """The turns of a conversation; content may be text, or a list of parts of which the text is read."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise ValidationError("conversation", None, messages, "must be a list of messages with role and content")
    return [_turn(each) for each in messages]


def _turn(message: Any) -> Turn:
    if isinstance(message, Turn):
        return Turn(message.role.strip().lower(), message.content)
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
        parts = (_own_words(part) if isinstance(part, Mapping) else part for part in content)
        return "\n".join(part for part in parts if isinstance(part, str))
    raise ValidationError("conversation", "content", content, "must be text or a list of parts")


def _own_words(part: Mapping[str, Any]) -> Any:
    return part.get("text") if part.get("type") in _OWN_PARTS else None


def clean_fact(fact: ExtractedFact, redactor: Redactor | None) -> ExtractedFact:
    """The fact with every secret masked, and what was masked; where its evidence stands is as it was."""
    if redactor is None:
        return fact
    told = {name: redactor.redact(text, name) for name in TEXTS if (text := getattr(fact, name))}
    quoted = redactor.redact(fact.evidence.text)
    found = {**told, "evidence": quoted}
    now = (f"{name}: {each.kind}" for name, clean in found.items() for each in clean.findings)
    masked = dict.fromkeys((*fact.masked, *now))
    if not masked:
        return fact
    changes: dict[str, Any] = {name: clean.text for name, clean in told.items()}
    return replace(fact, evidence=replace(fact.evidence, text=quoted.text), masked=tuple(masked), **changes)


def clean_refusal(refusal: Refusal, redactor: Redactor | None) -> Refusal:
    """The refusal with every secret masked."""
    mask = masking(redactor)
    return Refusal(mask(refusal.proposal), mask(refusal.reason))


def source_of(fact: ExtractedFact, turns: Sequence[Turn]) -> str:
    """Where a fact comes from: its user, the agent, or a stranger, whose words an agent may only have passed on.

    The role of a stranger may be called anything, also what only the trusted are called, so it is not taken over.
    """
    stranger = _stranger(fact, turns)
    if stranger is not None:
        return stranger.role if stranger.role in _TOOLS else _UNKNOWN
    return BY_USER if fact.evidence.role in USERS else BY_AGENT


def own_turns(turns: Iterable[Turn]) -> list[Turn]:
    """What is said by nobody but the user, the agent and who instructs it."""
    return [turn for turn in turns if not turn.by_stranger]


def _stranger(fact: ExtractedFact, turns: Sequence[Turn]) -> Turn | None:
    """The turn of a stranger that says the fact, or had a word of it before everybody else."""
    said = Turn(fact.evidence.role, fact.evidence.text)
    if said.by_stranger:
        return said
    wanted = set(query_terms(" ".join(filter(None, (fact.content, fact.task, fact.strategy, fact.reason)))))
    if fact.evidence.role in USERS:
        # A user may repeat what a tool said, and then says so.
        wanted -= {word for turn in turns if turn.role in USERS for word in terms(turn.content)}
    for turn in turns:
        heard = wanted.intersection(terms(turn.content))
        if heard and turn.by_stranger:
            return turn
        wanted -= heard
    return None
