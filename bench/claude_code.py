"""Run a real Claude Code with the plugin against a scripted model, and check what it was given and what was learned.

    python bench/claude_code.py "$(which claude)"

The model is a small server on this machine that gives one answer, so no key and no network are needed.
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
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from alma import ALMA

PLUGIN = Path(__file__).parent.parent / "plugins" / "claude-code"
ANSWER = "I fixed the flaky cart test by waiting for the network to be idle."
_SECONDS = 90


class _Model(BaseHTTPRequestHandler):
    """Streams the same answer to every request, and keeps what it was sent."""

    received: list[str]

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        """Answer a request for a message."""
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        self.received.append(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in _events(json.loads(body).get("model", "model")):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def _events(model: str) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


@contextmanager
def _model() -> Iterator[tuple[str, list[str]]]:
    received: list[str] = []
    handler = type("Model", (_Model,), {"received": received})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()


def main() -> int:
    """Run Claude Code once, and print what was checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claude", type=Path)
    claude = parser.parse_args().claude
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, _model() as (url, received):
        project = Path(folder)
        store = project / ".alma" / "alma.db"
        with ALMA.quickstart(store) as memory:
            memory.journal.create("The staging database bluebird listens on port 5433.", project_id="default")
            memory.add_user_preference("ana", "style", "short answers, no emojis")
        environment = {
            **os.environ,
            "HOME": folder,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "ALMA_USER": "ana",
            "ALMA_HOOK_IDLE_SECONDS": "10",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        asked = "Which port does the staging database listen on?"
        command = [str(claude), "-p", asked, "--plugin-dir", str(PLUGIN)]
        subprocess.run(command, cwd=project, env=environment, check=True, timeout=_SECONDS, capture_output=True)
        spool, ends = project / ".alma" / "hooks" / "spool", time.monotonic() + _SECONDS
        while list(spool.glob("*.json")) and time.monotonic() < ends:
            time.sleep(0.2)
        with ALMA.quickstart(store) as memory:
            learned = memory.get_stats()["outcomes_count"]
        sent = "".join(received)
        checks = {
            "the start of the session hands over preferences": "short answers, no emojis" in sent,
            "the prompt gets what fits it": "port 5433" in sent,
            "what was said is learned": learned == 1,
        }
    for what, holds in checks.items():
        print(f"{'yes' if holds else 'NO '}  {what}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
