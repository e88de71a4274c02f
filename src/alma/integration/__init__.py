"""Integration: hooks for agents that run outside of ALMA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.integration.claude_agents import ClaudeAgentHooks as ClaudeAgentHooks
    from alma.integration.claude_agents import HelenaHooks as HelenaHooks
    from alma.integration.claude_agents import VictorHooks as VictorHooks

_HOME_OF = dict.fromkeys(("ClaudeAgentHooks", "HelenaHooks", "VictorHooks"), "alma.integration.claude_agents")

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
