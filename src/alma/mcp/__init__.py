"""The MCP server: operations as tools, with resources and prompts, for clients of language models.

Importing this package loads nothing heavy: the handshake is answered first.
"""
