"""The REST service: every operation over HTTP."""
