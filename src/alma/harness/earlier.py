"""The arguments and calls of alma-memory 0.4 on the parts of a harness."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from alma.arguments import renamed
from alma.model.drafts import section

if TYPE_CHECKING:
    from alma.model.scope import MemoryScope

tool_arguments = renamed({"parameters": None, "examples": None})
setting_arguments = renamed({"global_constraints": "constraints", "environment_vars": None})
context_arguments = renamed({"timestamp": None})
agent_arguments = renamed({"default_actions": None})
schema_arguments = renamed(
    {
        "learnable_categories": "learnable",
        "forbidden_categories": "forbidden",
        "heuristic_templates": None,
        "outcome_fields": None,
        "metadata_schema": None,
    }
)


def _written(**part: Any) -> str:
    # The prompt is written from these parts, so it cannot be imported by them.
    return str(import_module("alma.harness.runner").written_prompt(**part))


class EarlierSetting:
    """What a setting was asked for under other names."""

    __slots__ = ()

    @property
    def global_constraints(self: Any) -> Sequence[str]:
        """What holds in every run."""
        return self.constraints  # type: ignore[no-any-return]

    def to_prompt(self) -> str:
        """Its part of a prompt."""
        return _written(setting=self)


class EarlierContext:
    """What a context was asked for under other names."""

    __slots__ = ()

    def to_prompt(self) -> str:
        """Its part of a prompt."""
        return _written(context=self)


class EarlierAgent:
    """What an agent was asked for under other names."""

    __slots__ = ()

    def to_prompt(self) -> str:
        """Its part of a prompt."""
        return _written(agent=self)


class EarlierSchema:
    """What a memory schema was asked for under other names."""

    __slots__ = ()

    @property
    def learnable_categories(self: Any) -> Sequence[str]:
        """What may be learned."""
        return self.learnable  # type: ignore[no-any-return]

    @property
    def forbidden_categories(self: Any) -> Sequence[str]:
        """What may not be learned."""
        return self.forbidden  # type: ignore[no-any-return]

    def to_scope(self: Any, agent_name: str) -> MemoryScope:
        """The scope of an agent with this schema."""
        return self.scope_of(agent_name)  # type: ignore[no-any-return]

    def to_prompt(self: Any) -> str:
        """The domain and what may be learned in it."""
        lines = [f"## Memory Schema: {self.domain}", *([self.description] if self.description else [])]
        return "\n".join([*lines, *section("Learnable Categories", self.learnable)])
