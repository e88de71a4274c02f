"""Scope: whose memories a read may see; mandatory everywhere and closed unless opened by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alma.errors import ScopeViolationError, ValidationError
from alma.model.common import checked_name
from alma.model.query import And, Compare, In, Predicate
from alma.model.record import RecordSpec

_COLUMNS = ("user_id", "project_id", "session_id", "agent")


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the store a call may see: every given name must match, and at least one must be given.

    `agent` may be several agents. `Scope.everywhere()` is the only way to see all, so that it is always on purpose.
    """

    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    agent: str | Sequence[str] | None = None
    unlimited: bool = False

    def __post_init__(self) -> None:
        if self.agent is not None and not isinstance(self.agent, str):
            object.__setattr__(self, "agent", tuple(self.agent))
        given = [name for name in _COLUMNS if getattr(self, name) is not None]
        if not given and not self.unlimited:
            raise ScopeViolationError("scope", None, self, f"must name at least one of {', '.join(_COLUMNS)}")
        for name in given:
            self._check(name)

    @classmethod
    def everywhere(cls) -> Scope:
        """The whole store: for maintenance, migration and administration."""
        return cls(unlimited=True)

    def predicate(self, spec: RecordSpec) -> Predicate:
        """What records of this kind must fulfil to lie inside; a name the kind does not have fails closed."""
        parts: list[Predicate] = []
        for name in _COLUMNS:
            value = getattr(self, name)
            if value is None:
                continue
            if name not in spec.by_name:
                raise ScopeViolationError(spec.kind, None, self, f"cannot be scoped by {name}, it has no such field")
            parts.append(In(name, value) if isinstance(value, tuple) else Compare(name, "eq", value))
        return parts[0] if len(parts) == 1 else And(*parts)

    def _check(self, name: str) -> None:
        value = getattr(self, name)
        for text in value if isinstance(value, tuple) else (value,):
            try:
                checked_name("scope", name, text)
            except ValidationError as exc:
                raise ScopeViolationError("scope", name, text, exc.reason) from None
