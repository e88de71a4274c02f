"""Serving: what both HTTP servers, REST and MCP, put before their applications."""
