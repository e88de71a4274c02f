"""Run a real coding assistant with ALMA's hooks and a scripted model; check what it was given and what was learned.

    python bench/assistants.py claude-code "$(which claude)"
    python bench/assistants.py codex "$(which codex)"
    python bench/assistants.py gemini-cli "$(which gemini)"

The model is a small server on this machine that calls a tool, which fails, and then gives one answer, so no key and no
network are needed. The tool lists a folder that does not exist.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from alma import ALMA
from alma.model.learning import Outcome

PLUGIN = Path(__file__).parent.parent / "plugins" / "claude-code"
ANSWER = "I fixed the flaky cart test by waiting for the network to be idle."
ASKED = "Which port does the staging database listen on?"
CALL = "ls /nowhere-bluebird"
_SECONDS = 120
Json = dict[str, Any]


# ---------------------------------------------------------------------- what the model streams


def _anthropic(body: Json) -> Iterator[Json]:
    calls = any(tool.get("name") == "Bash" for tool in body.get("tools", [])) and "tool_result" not in str(body)
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "model": body.get("model", "model"), "stop_reason": None}}
    block: Json = {"type": "text", "text": ""}
    delta: Json = {"type": "text_delta", "text": ANSWER}
    if calls:
        block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": CALL, "description": "list"})}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _openai(body: Json) -> Iterator[Json]:
    said = {"type": "output_text", "text": ANSWER}
    item: Json = {"type": "message", "role": "assistant", "id": "msg_1", "content": [said]}
    if "function_call_output" not in str(body):
        call = {"id": "fc_1", "call_id": "call_1", "name": "exec_command", "arguments": json.dumps({"cmd": CALL})}
        item = {"type": "function_call", **call}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield {"type": "response.created", "response": {"id": "r"}}
    yield {"type": "response.output_item.done", "item": item, "output_index": 0}
    yield {"type": "response.completed", "response": {"id": "r", "usage": usage}}


def _gemini(body: Json) -> Iterator[Json]:
    part: Json = {"text": ANSWER}
    if "run_shell_command" in str(body.get("tools")) and "functionResponse" not in str(body):
        part = {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {"command": CALL}}}
    yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}]}


class _Model(BaseHTTPRequestHandler):
    """Streams answers, and keeps what it was sent."""

    received: list[str]
    answers: Callable[[Json], Iterator[Json]]

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        self.received.append(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in type(self).answers(json.loads(body)):
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())


@contextmanager
def _model(answers: Callable[[Json], Iterator[Json]]) -> Iterator[tuple[str, list[str]]]:
    received: list[str] = []
    handler = type("Model", (_Model,), {"received": received, "answers": staticmethod(answers)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()


# ---------------------------------------------------------------------- the assistants


@dataclass(frozen=True, slots=True)
class Assistant:
    """How an assistant is started, its environment and settings, in which URL is the model's address."""

    answers: Callable[[Json], Iterator[Json]]
    arguments: tuple[str, ...]
    environment: dict[str, str]
    settings: tuple[str, str] | None = None


_CODEX = """\
model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "URL/v1"
wire_api = "responses"
[projects."FOLDER"]
trust_level = "trusted"
"""
_GEMINI = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}

ASSISTANTS = {
    "claude-code": Assistant(
        _anthropic,
        ("--plugin-dir", str(PLUGIN), "--allowedTools", "Bash", "-p", ASKED),
        {"ANTHROPIC_BASE_URL": "URL", "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    ),
    "codex": Assistant(
        _openai,
        ("exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "-s", "danger-full-access", ASKED),
        {"CODEX_HOME": "HOME/codex"},
        ("codex/config.toml", _CODEX),
    ),
    "gemini-cli": Assistant(
        _gemini,
        ("--yolo", "--model", "gemini-2.5-flash", "--prompt", ASKED),
        {"GOOGLE_GEMINI_BASE_URL": "URL", "GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        (".gemini/settings.json", json.dumps(_GEMINI)),
    ),
}


def _run(host: str, program: Path, home: Path, project: Path, url: str) -> None:
    assistant = ASSISTANTS[host]

    def filled(text: str) -> str:
        return text.replace("URL", url).replace("FOLDER", str(project)).replace("HOME", str(home))

    if assistant.settings is not None:
        file = home / assistant.settings[0]
        file.parent.mkdir()
        file.write_text(filled(assistant.settings[1]))
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "ALMA_USER": "ana",
        "ALMA_HOOK_IDLE_SECONDS": "10",
        **{name: filled(value) for name, value in assistant.environment.items()},
    }
    command = [str(program), *assistant.arguments]
    subprocess.run(
        command,
        cwd=project,
        env=environment,
        check=True,
        timeout=_SECONDS,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )


def main() -> int:
    """Run an assistant once, and print what was checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host", choices=ASSISTANTS)
    parser.add_argument("program", type=Path)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        _model(ASSISTANTS[given.host].answers) as (url, received),
    ):
        home, project = Path(folder) / "home", Path(folder) / "project"
        home.mkdir()
        project.mkdir()
        # The plugin brings the hooks of Claude Code.
        hooks = () if given.host == "claude-code" else ("--host", given.host)
        init = [sys.executable, "-m", "alma", "init", *hooks]
        subprocess.run(init, cwd=project, check=True, capture_output=True)
        config = project / ".alma" / "config.yaml"
        with ALMA.from_config(config) as memory:
            note = "The staging database bluebird listens on port 5433."
            memory.journal.create(note, project_id=memory.project_id)
            memory.add_user_preference("ana", "style", "short answers, no emojis")
        _run(given.host, given.program.absolute(), home, project, url)
        spool, ends = project / ".alma" / "hooks" / "spool", time.monotonic() + _SECONDS
        while list(spool.glob("*.json")) and time.monotonic() < ends:
            time.sleep(0.2)
        with ALMA.from_config(config) as memory:
            learned = memory.storage.find(Outcome, memory.scope())
            preferences = memory.storage.get_user_preferences("ana")
    sent = "".join(received)
    failed = [each for each in learned if not each.success]
    checks = {
        "the start of the session hands over preferences": "short answers, no emojis" in sent,
        "the prompt gets what fits it": "port 5433" in sent,
        "what was said is learned": any("network to be idle" in (each.text() or "") for each in learned),
        "a failed tool is learned": [CALL in (each.text() or "") for each in failed] == [True],
        "its task is what the user asked": [each.task_description for each in failed] == [ASKED],
        "what was handed over is not learned back": len(preferences) == 1,
    }
    for what, holds in checks.items():
        print(f"{'yes' if holds else 'NO '}  {what}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
