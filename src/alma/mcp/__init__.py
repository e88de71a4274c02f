"""The MCP server: what ALMA does, as tools, resources and prompts for the clients of language models.

Nothing is loaded here: a client's greeting is answered before anything heavy is.
"""
