"""The greeting: what a person sees when the service has started, and how to reach it from here."""

from __future__ import annotations

from alma.rest.options import ServiceOptions


def greeting(address: str, options: ServiceOptions, has_mcp: bool = True) -> str:
    """How to connect a client to the service at this address."""
    header = " -H 'Authorization: Bearer alma_…'" if options.needs_key else ""
    lines = [
        f"ALMA answers at {address}   (stop it with Ctrl-C)",
        "",
        f"  for people   {address}/docs",
        f"  OpenAPI      {address}/openapi.json",
    ]
    if has_mcp and options.mcp:
        lines += [
            f"  MCP          {address}/mcp",
            "               for example  claude mcp add --transport http alma " + f"{address}/mcp",
        ]
    lines += [
        "",
        "Try it:",
        f"  curl {address}/v1/learn{header} -H 'Content-Type: application/json' \\",
        """    -d '{"agent": "helena", "task": "Test the login form", "outcome": "success",""",
        """         "strategy_used": "wait for the network to be idle"}'""",
        "",
        f"  curl {address}/v1/retrieve{header} -H 'Content-Type: application/json' \\",
        """    -d '{"agent": "helena", "task": "Test the sign-up form"}'""",
        "",
        "From Python:",
        "  from alma.client import Client",
        f'  print(Client("{address}").retrieve("Test the sign-up form", agent="helena").prompt)',
        "",
        _who_is_let_in(options),
    ]
    return "\n".join(lines)


def _who_is_let_in(options: ServiceOptions) -> str:
    if options.needs_key:
        return "Every request needs a key: make one with  alma keys create"
    return "Only this machine reaches it. Once a key was made (alma keys create), every request needs one."
