"""`alma hook EVENT`: read an event from standard input and answer on standard output, whatever happens.

It starts fast: a resident process is asked, and where there is none, the store is read without any model while one
starts in the background. An error is a line in the log; the exit code is always 0, so no session is blocked.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from alma.hooks.files import HookFiles, Session
from alma.hooks.hosts import HANDS_OVER, HOSTS, START, Event, Host, Json, event_of
from alma.hooks.places import Place, place_of

# With what the store read by words takes, a hook stays below 150 ms.
_ANSWER_SECONDS = 0.06
_STARTING_SECONDS = 20.0
_RESIDENT = "ALMA_HOOK_RESIDENT"
_OPTIONS = ("--host", "--config", "--store", "--project", "--agent", "--user")
_RESTARTED = frozenset({"startup", "clear", "compact", "fork", ""})


def main(argv: Sequence[str]) -> int:
    """Answer one event; the exit code is always 0."""
    answer: Json = {}
    try:
        answer = Hook(argv, _payload()).answer()
    except Exception as exc:  # noqa: BLE001 - a hook never disturbs its host
        sys.stderr.write(f"alma hook: {type(exc).__name__}: {' '.join(str(exc).split())}\n")
    with suppress(OSError):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


def _payload() -> Json:
    read = sys.stdin.buffer.read()
    payload = json.loads(read) if read.strip() else {}
    if not isinstance(payload, dict):
        raise TypeError("the event must be a JSON object")
    return payload


class Hook:
    """One event of a session, and what is done about it."""

    def __init__(self, argv: Sequence[str], payload: Json) -> None:
        named, options = _options(argv)
        self._host: Host = HOSTS[options.get("host") or "claude-code"]
        name = named or str(payload.get("hook_event_name", ""))
        self._event = event_of(self._host, name, payload)
        self._name = name
        env = os.environ
        store = options.get("store") or (None if options.get("config") else env.get("ALMA_STORE"))
        config = options.get("config") or (None if store else env.get("ALMA_CONFIG"))
        self._place = place_of(config, store, options.get("project") or env.get("ALMA_PROJECT"), payload)
        self._agent = options.get("agent") or env.get("ALMA_AGENT") or self._host.name
        self._user = options.get("user") or env.get("ALMA_USER") or env.get("USER") or env.get("LOGNAME")

    def answer(self) -> Json:
        """The JSON for the host; empty where there is nothing to say or no memory."""
        event, place = self._event, self._place
        if event is None or place is None:
            return {}
        files = HookFiles(place.folder)
        try:
            if event.act in HANDS_OVER:
                return self._host.answer(self._name, self._context(event, place, files))
            self._keep(event, place, files)
        except Exception as exc:  # noqa: BLE001 - see main
            files.log(f"{self._name}: {type(exc).__name__}: {exc}")
        return {}

    # ------------------------------------------------------------------ handing over

    def _context(self, event: Event, place: Place, files: HookFiles) -> str:
        """The block for the session now; a memory is not repeated unless it changed."""
        session = files.session(event.session)
        if event.act == START:
            return self._started(event, place, files, session)
        if event.prompt and session.prompt:
            # The next prompt may say how the last task went.
            self._spool(event._replace(before=session.prompt), files)
        session.prompt = event.prompt or session.prompt
        texts = []
        if not session.block and not session.shown:
            texts.append(self._found(_start_of(event), place, files, session))
            session.block, session.first = texts[0], list(session.shown)
        texts.append(self._found(event, place, files, session))
        files.save_session(event.session, session)
        return self._marked("\n\n".join(filter(None, texts)))

    def _started(self, event: Event, place: Place, files: HookFiles, session: Session) -> str:
        if event.source not in _RESTARTED and session.shown:
            # The resumed transcript has it.
            return ""
        if event.source == "compact" and session.block:
            # The summary has lost what was shown: the same block again, and later all that fits a prompt.
            block = session.block
            session.shown = {key: mark for key, mark in session.shown.items() if key in session.first}
        else:
            session = Session({})
            block = self._found(event, place, files, session)
            session.block, session.first = block, list(session.shown)
        files.save_session(event.session, session)
        return self._marked(block)

    def _marked(self, text: str) -> str:
        from alma.hooks.texts import marked

        return marked(text, self._agent, self._user)

    def _found(self, event: Event, place: Place, files: HookFiles, session: Session) -> str:
        request = {"event": event.as_json(), "agent": self._agent, "user": self._user, "shown": session.shown}
        found = self._request_resident(request, place, files)
        if found is None:
            found = self._read(event, place, files, session)
        session.shown = {**session.shown, **found.get("shown", {})}
        return str(found.get("text", ""))

    def _read(self, event: Event, place: Place, files: HookFiles, session: Session) -> Json:
        """The store's matches by words, without a model."""
        from alma.hooks.offline import found_offline

        block = found_offline(place, event, self._agent, self._user, session.shown)
        if block is None or not block.text:
            return {}
        # The resident process notes it, so that it is not learned back.
        self._spool(event, files, served=[block.text])
        return {"text": block.text, "shown": dict(block.shown)}

    # ------------------------------------------------------------------ learning

    def _keep(self, event: Event, place: Place, files: HookFiles) -> None:
        """Keep an event to learn from, and wake the resident process."""
        session = files.session(event.session)
        prompt = event.prompt or session.prompt
        self._spool(event._replace(prompt=prompt), files)
        self._request_resident({}, place, files)

    def _spool(self, event: Event, files: HookFiles, **more: object) -> None:
        files.spool({"event": event.as_json(), "agent": self._agent, "user": self._user, **more})

    # ------------------------------------------------------------------ the resident process

    def _request_resident(self, request: Json, place: Place, files: HookFiles) -> Json | None:
        """The answer of the resident process; without one, it is started and None is returned."""
        if not hasattr(socket, "AF_UNIX"):
            return None
        try:
            answer = _exchange(place.socket, request)
        except (FileNotFoundError, ConnectionRefusedError):
            if os.environ.get(_RESIDENT) != "0":
                _start_resident(place, files)
            return None
        except (OSError, ValueError) as exc:
            files.log(f"{self._name}: the resident process did not answer in time: {type(exc).__name__}")
            return None
        return None if "error" in answer else answer


def _exchange(path: Path, request: Json) -> Json:
    seconds = float(os.environ.get("ALMA_HOOK_SECONDS", _ANSWER_SECONDS))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as lines:
            answer = json.loads(lines.readline())
    return answer if isinstance(answer, dict) else {}


def _start_resident(place: Place, files: HookFiles) -> None:
    """Start the resident process in the background, unless one is starting."""
    mark = place.folder / "starting"
    with suppress(OSError):
        if time.time() - mark.stat().st_mtime < _STARTING_SECONDS:
            return
    place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark.touch(mode=0o600)
    idle = os.environ.get("ALMA_HOOK_IDLE_SECONDS")
    import subprocess

    with os.fdopen(os.open(files.log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as log:
        subprocess.Popen(
            [
                *(sys.executable, "-m", "alma.hooks.resident", "--folder", str(place.folder)),
                *place.arguments,
                *(("--idle-seconds", idle) if idle else ()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )


def _start_of(event: Event) -> Event:
    return Event(START, event.name, event.session)


def _options(argv: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The event and the options; an unknown option is an error, as its value would be taken for the event."""
    named, options, left = "", {}, list(argv)
    while left:
        part = left.pop(0)
        option, separator, value = part.partition("=")
        if option in _OPTIONS:
            options[option[2:]] = value if separator else (left.pop(0) if left else "")
        elif part.startswith("-"):
            raise ValueError(f"{part} is not an option; there are {', '.join(_OPTIONS)}")
        else:
            named = named or part
    return named, options
