"""The shared part of the HTTP servers of REST and MCP: connection limits, rate limits, timeouts and log throttling."""
