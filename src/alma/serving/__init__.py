"""What the HTTP servers of REST and MCP share: connection limits, rate limits, timeouts and log throttling."""
