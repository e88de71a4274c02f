"""MCP servers for tests: in this process, or started as clients start them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio
from mcp.client import Client

from alma.mcp.server import Options
from alma.mcp.service import Service

T = TypeVar("T")

# A machine that is busy with other tests takes its time.
SECONDS = 120.0

CONFIGURATION = """\
alma:
  project_id: {project}
  storage: sqlite
  storage_dir: .
  embedding_provider: mock
  agents:
    helena:
      can_learn: [testing]
      cannot_learn: [backend]
    victor: {{}}
"""


def configured(folder: Path, project: str = "demo") -> Path:
    """A configuration with the mock embedder in a folder."""
    file = folder / f"{project}.yaml"
    file.write_text(CONFIGURATION.format(project=project))
    return file


def asked(options: Options, talk: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """What a client learns in a conversation with a server in this process."""

    async def conversation() -> T:
        with Service(options) as service:
            async with Client(service.server(), mode=mode) as client:
                return await talk(client)

    return anyio.run(conversation)


def command(*arguments: str) -> list[str]:
    """How a server is started."""
    return [sys.executable, "-m", "alma.mcp", *arguments]


def initialize(number: int = 1, version: str = "2025-06-18") -> dict[str, Any]:
    """The handshake of a client."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    return {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}


def tool_call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class StdioServer:
    """A server process, spoken to line by line."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None, program: list[str] | None = None):
        self.process = subprocess.Popen(
            program or command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.errors = b""
        self._asked = 1_000_000
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._listen)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_input()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        """Send messages, or lines that are none."""
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next message of the server."""
        line = self.lines.get(timeout=SECONDS)
        assert line is not None, self.errors.decode(errors="replace")
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request; whatever else comes before it is passed over."""
        while (message := self.receive()).get("id") != number:
            pass
        return message

    def greet(self) -> dict[str, Any]:
        """Do what every client does first."""
        self.send(initialize(1))
        answer = self.answer(1)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, number: int, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        self.send(tool_call(number, name, **arguments))
        result: dict[str, Any] = self.answer(number)["result"]
        return result

    def answer_to(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The whole answer to a request."""
        self._asked += 1
        self.send({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        return self.answer(self._asked)

    def close_input(self) -> None:
        """Say that nothing more will come."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def rest(self) -> list[dict[str, Any]]:
        """Whatever else it says until it ends."""
        messages = []
        while (line := self.lines.get(timeout=SECONDS)) is not None:
            messages.append(json.loads(line))
        return messages

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line


class HttpServer:
    """A server process that speaks HTTP on a free port."""

    def __init__(self, *arguments: str, program: list[str] | None = None) -> None:
        self._process = subprocess.Popen(
            program or command("--http", "--port", "0", *arguments),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        self.url = line.rpartition(" ")[2].strip()
        self._log = [line]
        self._thread = threading.Thread(target=lambda: self._log.extend(self._process.stderr or ()))
        self._thread.start()
        if not self.url.startswith("http"):
            self.__exit__()
            raise RuntimeError("".join(self._log))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        self._thread.join()
        if self._process.stderr is not None:
            self._process.stderr.close()

    @property
    def address(self) -> str:
        """The address without the path."""
        return self.url.removesuffix("/mcp")

    @property
    def resident_kb(self) -> int:
        """How much memory it holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    @property
    def returncode(self) -> int | None:
        """The exit code, once it has ended."""
        return self._process.poll()

    def stop(self, number: int) -> None:
        """Send it a signal and wait for its end."""
        self._process.send_signal(number)
        self._process.wait(SECONDS)
