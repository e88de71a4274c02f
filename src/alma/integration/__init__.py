"""Integration: hooks for agents that run outside of ALMA, and one module for each framework that ALMA plugs into.

Each module of a framework imports its package, which is an extra of the same name.
"""

from alma.integration.hooks import ClaudeAgentHooks, HelenaHooks, VictorHooks

__all__ = ["ClaudeAgentHooks", "HelenaHooks", "VictorHooks"]
