"""Reports on what an agent may learn, for programs that ask before they learn; `ScopeValidator.require` enforces it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from alma.model.scope import MemoryScope

_log = logging.getLogger("alma.learning")


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


class ScopeReports:
    """Reports of a validator, and how many of them allowed or denied.

    In strict mode an agent learns in its domains and in those whose name contains one of theirs, or is part of one;
    otherwise in any that is not forbidden.
    """

    scopes: dict[str, MemoryScope]
    strict_mode: bool
    allow_unknown_agents: bool
    _counts: Counter[str]

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
    # The validator is a subclass of the reports here.
    from importlib import import_module

    validator: ScopeReports = import_module("alma.learning.validation").ScopeValidator(scopes, strict_mode=strict)
    return validator.validate(agent, domain)
