"""`python -m alma.mcp` is the MCP server."""

from alma.mcp.server import main

if __name__ == "__main__":
    main()
