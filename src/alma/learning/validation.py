"""Validation: what an agent may learn, and the words for success and failure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from numbers import Real

from alma.errors import ScopeViolationError, ValidationError
from alma.learning.scope_reports import ScopeReports
from alma.learning.scope_reports import TaskTypeValidator as TaskTypeValidator
from alma.learning.scope_reports import ValidationReport as ValidationReport
from alma.learning.scope_reports import ValidationResult as ValidationResult
from alma.learning.scope_reports import validate_learning_request as validate_learning_request
from alma.model.common import checked_part, checked_prose, same_name
from alma.model.scope import MemoryScope
from alma.redaction.redactor import redact_text
from alma.text.tokens import short_text_cache, stored_terms, terms

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
_SEPARATORS = re.compile(r"[\s_\-]+")


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


class ScopeValidator(ScopeReports):
    """Checks whether an agent may learn something; without any scopes, every agent may learn everything.

    `validate` and the other reports only tell; `strict_mode` and `allow_unknown_agents` are theirs.
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
        self._counts = Counter()

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
