"""`python -m alma.mcp` runs the MCP server."""

from alma.mcp.server import main

if __name__ == "__main__":
    main()
