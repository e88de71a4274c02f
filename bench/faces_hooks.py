"""Measure hooks and what MCP costs a model: latency of `alma hook` cold and warm, tokens of tools and answers."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

RUNS = 40
LIMIT_MS = 150
_TASK = "Test the login form of the new shop"
_PROMPTS = (_TASK, "Run the tests of the checkout", "Which port does the staging database listen on?")
_PARTS = ("checkout", "search page", "invoice mailer", "login service", "image cache", "report export", "price feed")
_EVENTS = (
    "We moved the {part} to a queue of {number} workers because requests timed out on Mondays.",
    "The tests of the {part} need the fixture of {number} customers, which takes a minute to load.",
    "Ana reviewed the {part} and asked for shorter functions and {number} more tests.",
    "The {part} logs to /var/log/app-{number}.log and rotates every night.",
    "Deploying the {part} failed in release {number}: the migration locked the table of orders.",
    "We decided to keep the {part} on Python 3.{number} until its dependencies support the next version.",
)


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of one hook: from the start of its process to its end, and the processor's time of it."""

    event: str
    state: str
    p50_ms: float
    p95_ms: float
    processor_ms: float


def latencies(work: Path, runs: int = RUNS) -> list[Latency]:
    """Hooks without a resident process, with one, and the interpreter alone."""
    store = str(work / "hooks.db")
    _fill(store)
    found = [_measured("(python -c pass)", "interpreter", [sys.executable, "-c", "pass"], lambda _: "", {}, runs)]
    environment = {"ALMA_STORE": store, "ALMA_HOOK_RESIDENT": "0"}
    for state in ("cold", "warm"):
        process = _resident(store) if state == "warm" else None
        try:
            for event in ("SessionStart", "UserPromptSubmit", "PostToolUseFailure"):
                program = [str(Path(sys.executable).with_name("alma")), "hook", event]
                found.append(_measured(event, state, program, _payload, environment, runs))
        finally:
            if process is not None:
                process.terminate()
                process.wait()
    return found


def tokens(work: Path) -> dict[str, int]:
    """Tokens of the list of tools, of the instructions, and of typical answers."""
    from alma.mcp.handshake import INSTRUCTIONS
    from alma.mcp.server import Options
    from alma.tokens import count_tokens

    store = str(work / "tokens.db")
    _fill(store)
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "alma_retrieve": ("alma_retrieve", {"task": _TASK, "agent": "claude-code"}),
        "alma_retrieve, details": ("alma_retrieve", {"task": _TASK, "agent": "claude-code", "details": True}),
        "alma_search": ("alma_search", {"query": _PROMPTS[2]}),
        "alma_search, details": ("alma_search", {"query": _PROMPTS[2], "details": True}),
        "alma_learn": ("alma_learn", _outcome(_TASK)),
    }

    async def conversation() -> dict[str, int]:
        from mcp.client import Client

        from alma.mcp.service import Service

        counted = {"instructions": count_tokens(INSTRUCTIONS)}
        for toolset in ("small", "full"):
            with Service(Options(store=store, toolset=toolset)) as service:
                async with Client(service.server()) as client:
                    listed = (await client.list_tools()).model_dump(by_alias=True, exclude_none=True, mode="json")
                    counted[f"tools/list, {toolset}"] = count_tokens(json.dumps(listed["tools"]))
                    for name, (tool, arguments) in calls.items() if toolset == "small" else ():
                        result = await client.call_tool(tool, arguments)
                        text = result.content[0].text  # type: ignore[union-attr]
                        held = result.structured_content if "details" in name else None
                        counted[name] = count_tokens(text if held is None else json.dumps(held))
        return counted

    return anyio.run(conversation)


def _measured(
    event: str,
    state: str,
    program: list[str],
    payload: Callable[[int], str],
    environment: dict[str, str],
    runs: int,
) -> Latency:
    took: list[float] = []
    before = os.times()
    for number in range(runs):
        begun = time.perf_counter()
        env = {**os.environ, **environment}
        subprocess.run(program, input=payload(number), text=True, env=env, check=True, capture_output=True)
        took.append(1_000 * (time.perf_counter() - begun))
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    cut = statistics.quantiles(took, n=20)[-1]
    return Latency(event, state, statistics.median(took), cut, 1_000 * processor / runs)


def _payload(number: int) -> str:
    return json.dumps(
        {
            "session_id": f"{time.time_ns()}",
            "source": "startup",
            "prompt": _PROMPTS[number % len(_PROMPTS)],
            "tool_name": "Bash",
            "tool_input": {"command": "npm test"},
            "error": "Error: no test specified",
        }
    )


def _resident(store: str) -> subprocess.Popen[bytes]:
    from alma.hooks.places import place_of

    place = place_of(None, store, None, {})
    assert place is not None
    options = ["--folder", str(place.folder), *place.arguments]
    process = subprocess.Popen([sys.executable, "-m", "alma.hooks.resident", *options])
    while not place.socket.exists():
        time.sleep(0.05)
    # It first learns from what the cold hooks left.
    while list((place.folder / "spool").glob("*.json")):
        time.sleep(0.05)
    return process


def _outcome(task: str) -> dict[str, Any]:
    return {"agent": "claude-code", "task": task, "outcome": "success", "strategy_used": "test empty fields first"}


def _fill(store: str) -> None:
    from alma import ALMA

    with ALMA.quickstart(store) as memory:
        for form in ("login form", "sign-up form", "login form on mobile"):
            memory.learn(**_outcome(f"Test the {form}"))
        for number, (part, what) in enumerate(product(_PARTS, _EVENTS)):
            memory.journal.create(what.format(part=part, number=number), project_id="default")
        memory.journal.create("The staging database bluebird listens on port 5433.", project_id="default")
        for part in _PARTS:
            memory.add_domain_knowledge("claude-code", part, f"The {part} is owned by the team {part[::-1].title()}.")
        memory.add_user_preference("ana", "style", "short answers, no emojis")


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        work = Path(folder)
        found = {"hooks": [asdict(each) for each in latencies(work, given.runs)], "tokens": tokens(work)}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
