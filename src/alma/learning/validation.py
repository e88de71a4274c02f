"""Validation: what an agent may learn, reports on it, types of tasks, and the words for success and failure."""

from __future__ import annotations

import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from numbers import Real
from typing import Any

from alma.errors import ScopeViolationError, ValidationError
from alma.lazy import lazy_regex
from alma.model.common import checked_part, checked_prose, same_name
from alma.model.scope import MemoryScope
from alma.redaction.redactor import redact_text
from alma.text.tokens import short_text_cache, stored_terms, terms

_log = logging.getLogger("alma.learning")

_SUCCESS = frozenset(
    [
        "success",
        "successful",
        "succeeded",
        "succeed",
        "ok",
        "okay",
        "pass",
        "passed",
        "passing",
        "works",
        "worked",
        "true",
        "yes",
        "done",
        "completed",
        "complete",
        "1",
        "y",
        "win",
        "won",
        "solved",
        "fixed",
        "no error",
        "no errors",
    ]
)
_FAILURE = frozenset(
    [
        "failure",
        "failed",
        "fail",
        "failing",
        "false",
        "no",
        "error",
        "errored",
        "exception",
        "crash",
        "crashed",
        "killed",
        "timeout",
        "timed out",
        "ko",
        "broken",
        "unsuccessful",
        "aborted",
        "0",
        "n",
        "loss",
        "lost",
        "unsolved",
        "not ok",
        "not successful",
        "no success",
        "does not work",
        "doesn't work",
        "did not work",
        "didn't work",
    ]
)
_SIGNS = dict.fromkeys("✓✔✅👍", True) | dict.fromkeys("✗✘❌👎", False)
# Characters around a word that do not change it.
_AROUND = " \t\r\n.!:;,\"'`*\ufe0f"
_SEPARATORS = lazy_regex(r"[\s_\-]+")


def parsed_outcome(outcome: object, subject: str = "learn", field: str = "outcome") -> bool:
    """Whether an outcome is a success: a bool, 1 or 0, or one of the words or signs, in any case."""
    # NumPy has bools of its own.
    if (isinstance(outcome, Real) or type(outcome).__name__ in ("bool", "bool_")) and outcome in (0, 1):
        return bool(outcome)
    told = outcome.value if isinstance(outcome, Enum) else outcome
    read = _read(told) if isinstance(told, str) else None
    if read is None:
        raise ValidationError(subject, field, outcome, 'must be "success" or "failure", or a bool')
    return read


@short_text_cache(256)
def _read(text: str) -> bool | None:
    """The result in a text, if its word and its signs agree."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").casefold()
    verdicts: set[bool | None] = {_SIGNS[sign] for sign in plain if sign in _SIGNS}
    word = _SEPARATORS.sub(" ", "".join(sign for sign in plain if sign not in _SIGNS).strip(_AROUND))
    if word:
        verdicts.add(True if word in _SUCCESS else False if word in _FAILURE else None)
    return verdicts.pop() if len(verdicts) == 1 else None


class ValidationResult(Enum):
    """Why an agent may or may not learn in a domain."""

    ALLOWED = "allowed"
    DENIED_OUT_OF_SCOPE = "denied_out_of_scope"
    DENIED_FORBIDDEN = "denied_forbidden"
    DENIED_UNKNOWN_AGENT = "denied_unknown_agent"
    WARNING_NO_SCOPE = "warning_no_scope"


_ALLOWING = (ValidationResult.ALLOWED, ValidationResult.WARNING_NO_SCOPE)


@dataclass
class ValidationReport:
    """Whether an agent may learn in a domain, and why."""

    result: ValidationResult
    agent: str
    domain: str
    reason: str
    allowed_domains: list[str] = field(default_factory=list)
    forbidden_domains: list[str] = field(default_factory=list)

    @property
    def is_allowed(self) -> bool:
        """Whether the agent may learn there; a warning allows it."""
        return self.result in _ALLOWING

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return {
            "result": self.result.value,
            "agent": self.agent,
            "domain": self.domain,
            "reason": self.reason,
            "is_allowed": self.is_allowed,
            "allowed_domains": self.allowed_domains,
            "forbidden_domains": self.forbidden_domains,
        }


class ScopeValidator:
    """Checks whether an agent may learn something; without any scopes, every agent may learn everything.

    `require` enforces it. `validate` and the other reports only tell, and count how many were allowed or denied: in
    `strict_mode` an agent learns in its domains and in those whose name contains one of theirs, or is part of one,
    otherwise in any that is not forbidden.
    """

    def __init__(
        self,
        scopes: Mapping[str, MemoryScope] | None = None,
        strict_mode: bool = True,
        allow_unknown_agents: bool = False,
    ) -> None:
        self.scopes = _checked_scopes(scopes or {})
        self.strict_mode = strict_mode
        self.allow_unknown_agents = allow_unknown_agents
        self._counts: Counter[str] = Counter()

    def scope_of(self, agent: str) -> MemoryScope:
        """The scope of an agent; an unlimited one without any scopes, otherwise an error."""
        if agent in self.scopes:
            return self.scopes[agent]
        if not self.scopes:
            return _unlimited(agent)
        raise ScopeViolationError(
            "learn", "agent", agent, f"has no scope, so it may not learn; known are {', '.join(self.scopes)}"
        )

    def readable_scope(self, agent: str) -> MemoryScope:
        """The agents from which an agent reads: those it inherits from, if they share with it."""
        own = self.scopes.get(agent) or MemoryScope(agent_name=agent)
        spelled = {same_name(name): name for name in self.scopes} if own.inherit_from else {}
        named = (spelled.get(same_name(name)) for name in own.inherit_from)
        sharing = [name for name in named if name is not None and self.scopes[name].shares_with(agent)]
        return MemoryScope(agent_name=agent, inherit_from=sharing)

    def require(self, agent: str, domain: str | None, text: str = "") -> MemoryScope:
        """The agent's scope, if it may learn in this domain, or without a domain from this text."""
        scope = self.scope_of(agent)
        if domain is not None and checked_prose("learn", "domain", domain).strip():
            self._require_domain(scope, domain)
        else:
            self._require_text(scope, text)
        return scope

    def _require_domain(self, scope: MemoryScope, domain: str) -> None:
        if scope.forbids(domain):
            raise _refusal(domain, f"is among what {scope.agent_name!r} cannot learn")
        if not scope.is_allowed(domain):
            raise _refusal(domain, f"is none of what {scope.agent_name!r} can learn: {', '.join(scope.can_learn)}")

    def _require_text(self, scope: MemoryScope, text: str) -> None:
        """Refuse a text that names a forbidden domain and no allowed one."""
        if not scope.cannot_learn:
            return
        words = set(stored_terms(text))
        if any(_named(name, words) for name in scope.can_learn):
            return
        for name in scope.cannot_learn:
            if _named(name, words):
                raise _refusal(text, f"is about {name}, which {scope.agent_name!r} cannot learn")

    # ------------------------------------------------------------------ reports

    def validate(self, agent: str, domain: str, task_type: str | None = None) -> ValidationReport:
        """The report on this agent and domain; a denial is logged."""
        report = self._report(agent, domain)
        warned = report.result is ValidationResult.WARNING_NO_SCOPE
        self._counts["warnings" if warned else "allowed" if report.is_allowed else "denied"] += 1
        if report.result is not ValidationResult.ALLOWED:
            _log.warning("a scope was checked", extra={"agent": agent, "result": report.result.value})
        return report

    def _report(self, agent: str, domain: str) -> ValidationReport:
        scope = self.scopes.get(agent)
        if scope is None:
            return self._of_unknown(agent, domain)
        lists = (list(scope.can_learn), list(scope.cannot_learn))
        if scope.forbids(domain):
            why = f"the domain {domain!r} is forbidden for the agent {agent!r}"
            return ValidationReport(ValidationResult.DENIED_FORBIDDEN, agent, domain, why, *lists)
        if self.strict_mode and not scope.is_allowed(domain) and not _resembles(domain, scope.can_learn):
            why = f"the domain {domain!r} is not among those of the agent {agent!r}"
            return ValidationReport(ValidationResult.DENIED_OUT_OF_SCOPE, agent, domain, why, *lists)
        return ValidationReport(ValidationResult.ALLOWED, agent, domain, "Learning allowed", *lists)

    def _of_unknown(self, agent: str, domain: str) -> ValidationReport:
        if self.allow_unknown_agents:
            why = f"the agent {agent!r} has no scope"
            return ValidationReport(ValidationResult.WARNING_NO_SCOPE, agent, domain, why)
        why = f"the agent {agent!r} has no scope, and agents without one are not allowed"
        return ValidationReport(ValidationResult.DENIED_UNKNOWN_AGENT, agent, domain, why)

    def validate_batch(self, agent: str, domains: Iterable[str]) -> dict[str, ValidationReport]:
        """The report on each domain."""
        return {domain: self.validate(agent, domain) for domain in domains}

    def is_allowed(self, agent: str, domain: str) -> bool:
        """Whether the agent may learn in the domain."""
        return self.validate(agent, domain).is_allowed

    def get_allowed_domains(self, agent: str) -> set[str]:
        """The domains that the scope of the agent lists; none for an unknown agent."""
        return set(self.scopes[agent].can_learn) if agent in self.scopes else set()

    def get_forbidden_domains(self, agent: str) -> set[str]:
        """The domains that the agent may not learn; none for an unknown agent."""
        return set(self.scopes[agent].cannot_learn) if agent in self.scopes else set()

    def get_stats(self) -> dict[str, Any]:
        """How many reports there were, and how many allowed, denied or warned."""
        total = self._counts.total()
        counts = {name: self._counts[name] for name in ("allowed", "denied", "warnings")}
        rates = {"allow_rate": counts["allowed"] / total, "deny_rate": counts["denied"] / total} if total else {}
        return {"total_validations": total, **counts, "allow_rate": 0.0, "deny_rate": 0.0, **rates}

    def reset_stats(self) -> None:
        """Count from 0 again."""
        self._counts.clear()


@lru_cache(maxsize=1024)
def _unlimited(agent: str) -> MemoryScope:
    return MemoryScope(agent_name=agent)


def _refusal(value: str, reason: str) -> ScopeViolationError:
    # The error truncates what it quotes: a truncated secret would not be recognised in the audit.
    return ScopeViolationError("learn", "domain", redact_text(value).text, reason)


def _named(domain: str, words: set[str]) -> bool:
    """Whether a domain is named, with or without its hyphens: back-end logic is backend_logic."""
    spaced = domain.replace("_", " ")
    return any(set(terms(spelled)) <= words for spelled in {spaced, spaced.replace("-", "")})


def _checked_scopes(scopes: Mapping[str, MemoryScope]) -> dict[str, MemoryScope]:
    given = checked_part("scopes", None, scopes, Mapping, "a dictionary of a MemoryScope for each agent's name")
    for agent, scope in given.items():
        checked_part("scopes", str(agent), scope, MemoryScope, "a MemoryScope, as MemoryScope(agent_name='helena')")
    return dict(given)


def _resembles(domain: str, names: Iterable[str]) -> bool:
    return any(name in domain or domain in name for name in names)


_KEYWORDS: dict[str, list[str]] = {
    "testing": ["test", "validate", "verify", "check", "qa"],
    "form_testing": ["form", "input", "field", "validation"],
    "api_testing": ["api", "endpoint", "rest", "graphql", "request"],
    "database_validation": ["database", "query", "sql", "schema"],
    "ui_testing": ["ui", "component", "button", "click", "element"],
    "performance_testing": ["performance", "load", "stress", "speed"],
    "security_testing": ["security", "auth", "permission", "xss", "injection"],
    "accessibility_testing": ["accessibility", "a11y", "aria", "screen reader"],
}
_GENERAL = "general"


class TaskTypeValidator:
    """Task types by the keywords of a task; of types with as many keywords, the first one."""

    STANDARD_TYPES = _KEYWORDS

    def __init__(self, custom_types: Mapping[str, list[str]] | None = None) -> None:
        self.type_mappings = {**self.STANDARD_TYPES, **(custom_types or {})}
        self._type_of = {word.casefold(): name for name, words in self.type_mappings.items() for word in words}

    def infer_type(self, task_description: str) -> str:
        """The type whose keywords occur most often in the task, or "general"."""
        told = task_description.casefold()
        hits = {name: sum(word in told for word in words) for name, words in self.type_mappings.items()}
        best = max(hits, key=lambda name: hits[name])
        return best if hits[best] else _GENERAL

    def normalize_type(self, task_type: str) -> str:
        """The known type that this one names or has a keyword of, else the type as it is."""
        if task_type.casefold() in self.type_mappings:
            return task_type.casefold()
        words = task_type.casefold().replace("_", " ").replace("-", " ").split()
        return next((self._type_of[word] for word in words if word in self._type_of), task_type)

    def validate_type(self, task_type: str) -> bool:
        """Whether the type is known, by its name or a keyword."""
        return task_type == _GENERAL or self.normalize_type(task_type) in self.type_mappings


def validate_learning_request(
    agent: str, domain: str, scopes: Mapping[str, MemoryScope], strict: bool = True
) -> ValidationReport:
    """The report on one agent and domain."""
    return ScopeValidator(scopes, strict_mode=strict).validate(agent, domain)
