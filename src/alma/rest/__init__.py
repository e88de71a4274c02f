"""The REST service: every operation over HTTP, with API keys."""
