"""Integration: hooks for agents that run outside of ALMA, and one module for each framework that ALMA plugs into.

Each module of a framework imports its package, which is an extra of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.compat.helena import HelenaHooks as HelenaHooks
    from alma.compat.victor import VictorHooks as VictorHooks
    from alma.integration.hooks import ClaudeAgentHooks as ClaudeAgentHooks

_AGENTS = ("AgentType", "TaskContext", "TaskOutcome", "AgentIntegration", "create_integration")
_HELENA = ("UITestContext", "UITestOutcome", "create_helena_hooks", "helena_pre_task", "helena_post_task")
_VICTOR = ("APITestContext", "APITestOutcome", "create_victor_hooks", "victor_pre_task", "victor_post_task")
_HOME_OF = {
    "ClaudeAgentHooks": "alma.integration.hooks",
    **dict.fromkeys(_AGENTS, "alma.compat.claude_agents"),
    **dict.fromkeys(("HelenaHooks", *_HELENA, "HELENA_CATEGORIES", "HELENA_FORBIDDEN"), "alma.compat.helena"),
    **dict.fromkeys(("VictorHooks", *_VICTOR, "VICTOR_CATEGORIES", "VICTOR_FORBIDDEN"), "alma.compat.victor"),
}

__all__ = ["ClaudeAgentHooks", "HelenaHooks", "VictorHooks"]

__getattr__ = loader(__name__, _HOME_OF)
