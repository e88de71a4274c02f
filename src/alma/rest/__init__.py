"""The REST service: every operation over HTTP, for programs that bring a key."""
