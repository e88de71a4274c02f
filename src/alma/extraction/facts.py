"""Facts extracted from conversations: types, evidence, domains and categories, and the extractor port."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from alma.errors import ValidationError
from alma.model.scope import MemoryScope
from alma.redaction.redactor import Redactor, masking
from alma.text.tokens import query_terms, terms

USERS = ("user", "human", "customer")
"""The roles of a user."""

ASSISTANTS = ("assistant", "ai", "model")
"""The roles of the agent."""

INSTRUCTORS = ("system", "developer")
"""The roles that instruct the agent, from which nothing is learned."""

# The parts of a message that its sender wrote, as opposed to tool results.
_OWN_PARTS = (None, "text", "input_text", "output_text")

TEXTS = ("content", "task", "strategy", "reason", "alternative", "category", "corrects", "supersedes")
"""The text fields of a fact, besides its evidence."""
BY_USER = "user_stated"
BY_AGENT = "inferred"
_TOOLS = ("tool", "function")
_UNKNOWN = "unknown"


class FactType(StrEnum):
    """The kind of memory that a fact becomes."""

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
    def is_untrusted(self) -> bool:
        """Whether the role is untrusted: not the user, the agent or its instructor."""
        return self.role not in (*USERS, *ASSISTANTS, *INSTRUCTORS)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The quotation that a fact was read from: message, place and role."""

    text: str
    role: str
    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A statement of a conversation that is worth learning.

    An outcome, a heuristic and an anti-pattern have a `strategy`; `task` is what it was tried for, `reason` why it
    failed, `alternative` what to do instead. `corrects` is an earlier statement that is wrong, `supersedes` the
    whole sentence that contains it. `masked` names the secrets that were masked in it.
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
    """A proposed fact that was dropped, and why."""

    proposal: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """The facts of a conversation in order, and the proposals that were dropped.

    `degraded` says why another extractor was used than the configured one. `masked` names the secrets that the model
    did not see, each with its message.
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

    Every fact quotes the conversation. Messages that are not a conversation are a `ValidationError`;
    a service that does not answer is an `ExtractionError`. Any text in any language is read without an error.
    """

    @abstractmethod
    def extract(self, messages: Iterable[Mapping[str, Any] | Turn]) -> ExtractionResult:
        """The facts of a conversation, given as messages with `role` and `content`."""

    def shown_without_secrets(self, redactor: Redactor | None) -> FactExtractor:
        """The extractor that sends only redacted text to a provider; one without a provider is itself."""
        return self


def conversation(messages: Iterable[Mapping[str, Any] | Turn]) -> list[Turn]:
    """The turns of a conversation; content may be text, or a list of parts."""
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
    """The fact with its secrets masked; the place of its evidence is unchanged."""
    if redactor is None:
        return fact
    texts = {name: redactor.redact(text, name) for name in TEXTS if (text := getattr(fact, name))}
    quoted = redactor.redact(fact.evidence.text)
    found = {**texts, "evidence": quoted}
    now = (f"{name}: {each.kind}" for name, clean in found.items() for each in clean.findings)
    masked = dict.fromkeys((*fact.masked, *now))
    if not masked:
        return fact
    changes: dict[str, Any] = {name: clean.text for name, clean in texts.items()}
    return replace(fact, evidence=replace(fact.evidence, text=quoted.text), masked=tuple(masked), **changes)


def clean_refusal(refusal: Refusal, redactor: Redactor | None) -> Refusal:
    """The refusal with its secrets masked."""
    mask = masking(redactor)
    return Refusal(mask(refusal.proposal), mask(refusal.reason))


def source_of(fact: ExtractedFact, turns: Sequence[Turn]) -> str:
    """The source of a fact: the user, the agent, or an untrusted one whose words the agent passed on.

    The role of a stranger may be called anything, also what only the trusted are called, so it is not taken over.
    """
    untrusted = _untrusted_turn(fact, turns)
    if untrusted is not None:
        return untrusted.role if untrusted.role in _TOOLS else _UNKNOWN
    return BY_USER if fact.evidence.role in USERS else BY_AGENT


def own_turns(turns: Iterable[Turn]) -> list[Turn]:
    """The turns of the user, the agent and its instructor."""
    return [turn for turn in turns if not turn.is_untrusted]


def _untrusted_turn(fact: ExtractedFact, turns: Sequence[Turn]) -> Turn | None:
    """The untrusted turn that states the fact, or that used one of its words first."""
    said = Turn(fact.evidence.role, fact.evidence.text)
    if said.is_untrusted:
        return said
    wanted = set(query_terms(" ".join(filter(None, (fact.content, fact.task, fact.strategy, fact.reason)))))
    if fact.evidence.role in USERS:
        # Words that the user also said are the user's.
        wanted -= {word for turn in turns if turn.role in USERS for word in terms(turn.content)}
    for turn in turns:
        heard = wanted.intersection(terms(turn.content))
        if heard and turn.is_untrusted:
            return turn
        wanted -= heard
    return None


_WORDS_OF = {
    "testing": "test tests testing tested tester validation validate assert assertion flaky fixture mock "
    "coverage suite "
    "pytest jest cypress playwright selenium regression e2e",
    "selectors": "selector selectors css xpath locator locators dom testid data-testid element elements",
    "frontend": "frontend front-end ui ux react vue angular component components form forms page pages button browser "
    "css html layout render",
    "backend": "backend back-end server service microservice worker queue controller business logic",
    "api": "api apis endpoint endpoints rest graphql grpc request response http webhook payload route",
    "database": "database databases db sql query queries table tables schema index postgres postgresql mysql sqlite "
    "mongodb redis migration migrations orm transaction",
    "authentication": "auth authentication login log-in oauth oidc saml jwt token tokens password session sso mfa 2fa",
    "deployment": "deploy deployment release releases docker kubernetes k8s helm terraform ci cd pipeline staging "
    "production environment rollback container",
    "performance": "performance slow fast latency cache caching memory cpu throughput timeout timeouts",
    "security": "security vulnerability encryption encrypted secret secrets xss csrf injection permission permissions",
    "tooling": "git branch commit lint linter formatter editor ide npm pip build make compiler",
    "documentation": "documentation docs readme changelog comment comments docstring",
}
_CATEGORIES = {
    "code_style": "tabs spaces indent indentation semicolons style naming camelcase snake_case hints typed types "
    "typescript docstring docstrings comments formatting lint quotes function functions class classes code",
    "testing": "test tests testing coverage pytest jest sleep fixture fixtures mock mocks assert",
    "communication": "answer answers reply replies short shorter concise brief verbose verbosity detailed "
    "detail explain "
    "explanation explanations language english german emoji emojis tone formal informal polite bullet bullets output "
    "summary summaries call name",
    "interface": "dark light mode theme font keyboard shortcut shortcuts mouse screen layout color colour",
    "workflow": "commit commits branch branches merge deploy push review pr pull request ask confirm approval before "
    "schedule meeting meetings morning",
    "tools": "use using library libraries framework tool tools editor vim vscode npm yarn pip poetry docker",
}
_FILLERS = "pattern strategi strategy logic rule practic data general knowledg manag handl method techniqu"
_FILLER_NAMES = frozenset(_FILLERS.split())
GENERAL = "general"


def domain_of(text: str, scope: MemoryScope | None = None) -> str:
    """The domain of a text: one that the scope names, else one of the built-in ones.

    Where an allowed and a forbidden domain fit equally well, the forbidden one has it.
    """
    words = set(terms(text))
    if scope is not None:
        named = [(_score(name, words), forbidden, name) for name, forbidden in _named(scope)]
        best = max(named, default=(0, False, ""))
        if best[0] > 0:
            return best[2]
    return _best(_WORDS_OF, words)


def category_of(text: str) -> str:
    """The category of a preference."""
    return _best(_CATEGORIES, set(terms(text)))


def _named(scope: MemoryScope) -> Iterable[tuple[str, bool]]:
    yield from ((name, False) for name in scope.can_learn)
    yield from ((name, True) for name in scope.cannot_learn)


def _score(domain: str, words: set[str]) -> int:
    """The number of words that belong to a domain; its name counts double."""
    telling = [name for name in terms(re.sub(r"[_-]+", " ", domain)) if name not in _FILLER_NAMES]
    own = len(words & set(telling)) * 2
    groups = [group for name, group in _groups(frozenset(_WORDS_OF.items())) if set(terms(name)) & set(telling)]
    return own + sum(len((words & group) - set(telling)) for group in groups)


def _best(table: dict[str, str], words: set[str]) -> str:
    scores = [(len(words & group), name) for name, group in _groups(frozenset(table.items()))]
    most = max(score for score, _ in scores)
    # In a tie, the first one of the table.
    return next(name for name in table if (most, name) in scores) if most else GENERAL


@cache
def _groups(table: frozenset[tuple[str, str]]) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((name, frozenset(terms(words))) for name, words in table)
