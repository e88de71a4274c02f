"""The MCP server: operations as tools, with resources and prompts, for clients of language models.

Importing this package loads nothing heavy: the handshake is answered first.
"""

from alma.lazy import loader

# The tools as functions that take the memory first, as in alma-memory.
_FUNCTIONS = ("retrieve", "learn", "add_preference", "add_knowledge", "forget", "stats", "health", "consolidate")
__getattr__ = loader(__name__, {f"alma_{name}": "alma.compat.tools" for name in _FUNCTIONS})
