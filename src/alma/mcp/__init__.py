"""The MCP server: operations as tools, with resources and prompts, for clients of language models.

Importing this package loads nothing heavy: the handshake is answered first.
"""

from alma.lazy import loader

# The server, and its tools and resources as functions that take the memory, as in alma-memory.
_TOOLS = ("retrieve", "learn", "add_preference", "add_knowledge", "forget", "stats", "health", "consolidate")
_RESOURCES = ("list_resources", "get_config_resource", "get_agents_resource")
__getattr__ = loader(
    __name__,
    {
        **{f"alma_{name}": "alma.compat.tools" for name in _TOOLS},
        **dict.fromkeys(_RESOURCES, "alma.compat.resources"),
        "ALMAMCPServer": "alma.mcp.earlier",
    },
)
