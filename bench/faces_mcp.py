"""Measure the MCP server: cold start to its first answer, and requests per second over both transports."""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio

_PARAMS = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _PARAMS}).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class ColdStart:
    """From the start of a process to its answer to `initialize`."""

    seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Load:
    """Throughput of concurrent clients."""

    transport: str
    tool: str
    clients: int
    per_second: float
    p50_ms: float
    p99_ms: float
    errors: int


def cold_initialize(arguments: Sequence[str] = ()) -> ColdStart:
    """Start a server and time its answer to the handshake."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "alma.mcp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(_INITIALIZE)
    process.stdin.flush()
    answer = process.stdout.readline()
    seconds, processor = time.perf_counter() - started, _processor_seconds(process.pid)
    process.stdin.close()
    process.wait()
    process.stdout.close()
    assert b'"serverInfo"' in answer
    return ColdStart(seconds, processor)


def throughput(arguments: Sequence[str], transport: str, clients: int, seconds: float = 5.0) -> list[Load]:
    """Throughput of concurrent clients for each tool: over HTTP with one server, over stdio with one server each."""

    async def measured() -> list[Load]:
        async with AsyncExitStack() as stack:
            connected = await _connected(stack, arguments, transport, clients)
            return [await _loaded(connected, transport, tool, seconds) for tool in ("alma_retrieve", "alma_learn")]

    return anyio.run(measured)


def _processor_seconds(pid: int) -> float:
    fields = re.sub(r"^.*\) ", "", Path(f"/proc/{pid}/stat").read_text()).split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _connected(stack: AsyncExitStack, arguments: Sequence[str], transport: str, clients: int) -> list[Any]:
    from mcp import StdioServerParameters
    from mcp.client import Client

    if transport == "stdio":
        target: Any = StdioServerParameters(
            command=sys.executable, args=["-m", "alma.mcp", *arguments], env=dict(os.environ)
        )
    else:
        process = subprocess.Popen(
            [sys.executable, "-m", "alma.mcp", *arguments, "--http", "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        assert process.stderr is not None
        target = process.stderr.readline().rpartition(" ")[2].strip()
    return [await stack.enter_async_context(Client(target)) for _ in range(clients)]


async def _loaded(clients: Sequence[Any], transport: str, tool: str, seconds: float) -> Load:
    took: list[float] = []
    errors = 0
    for client in clients:
        await client.call_tool(tool, _arguments(tool, 0))
    ends = time.perf_counter() + seconds

    async def ask(client: Any) -> None:
        nonlocal errors
        number = 0
        while (begun := time.perf_counter()) < ends:
            number += 1
            result = await client.call_tool(tool, _arguments(tool, number))
            took.append(time.perf_counter() - begun)
            errors += result.is_error

    async with anyio.create_task_group() as tasks:
        for client in clients:
            tasks.start_soon(ask, client)
    ordered = sorted(took)
    return Load(
        transport,
        tool,
        len(clients),
        round(len(took) / seconds, 1),
        round(statistics.median(ordered) * 1_000, 1),
        round(ordered[int(len(ordered) * 0.99)] * 1_000, 1),
        errors,
    )


def _arguments(tool: str, number: int) -> dict[str, Any]:
    task = f"Export the report number {number % 20}"
    if tool == "alma_learn":
        return {"agent": "helena", "task": task, "outcome": "success", "strategy_used": f"strategy {number % 7}"}
    return {"agent": "helena", "task": task}


def main() -> None:
    """Print the numbers as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--transport", choices=("stdio", "http"), nargs="*", default=["stdio", "http"])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        config.write_text("alma:\n  project_id: bench\n  storage: sqlite\n  storage_dir: .\n")
        starts = [cold_initialize(["--config", str(config)]) for _ in range(5)]
        print(json.dumps({"cold_initialize": asdict(min(starts, key=lambda start: start.seconds))}))
        for transport in chosen.transport:
            for clients in chosen.clients:
                for load in throughput(["--config", str(config)], transport, clients, chosen.seconds):
                    print(json.dumps(asdict(load)), flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"processor_seconds_of_servers": round(used.ru_utime + used.ru_stime, 1)}))


if __name__ == "__main__":
    main()
