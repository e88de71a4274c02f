"""The resident process of a memory: answers hooks on a Unix socket, learns from spooled events, and ends when idle."""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from alma.closeable import Closeable
from alma.core import ALMA, DEFAULT_PROJECT
from alma.errors import ALMAError
from alma.hooks.files import HookFiles
from alma.hooks.hosts import Event, Json
from alma.hooks.learning import HookService
from alma.hooks.places import Place, place_of

IDLE_SECONDS = 900.0
_LONGEST_REQUEST = 1 << 20
_REQUEST_SECONDS = 5.0
_TICK_SECONDS = 5.0
_log = logging.getLogger("alma.hooks")


class HookListener(Closeable):
    """Answers the hooks of one memory in threads, until it is closed."""

    def __init__(self, alma: ALMA, place: Place) -> None:
        self._files = HookFiles(place.folder)
        self._service = HookService(alma, self._files)
        self._path = place.socket
        self._ended = threading.Event()
        self._woken = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._threads = [
            threading.Thread(target=self._accept, name="alma-hooks", daemon=True),
            threading.Thread(target=self._learn, name="alma-hooks-learning", daemon=True),
        ]
        self._inode = 0
        self._last_used = 0.0

    def start(self) -> None:
        """Load the models, then listen, and learn from the events in the queue."""
        self._service.warm_up()
        self._path.unlink(missing_ok=True)
        self._socket.bind(str(self._path))
        self._inode = self._path.stat().st_ino
        self._socket.listen(64)
        self._woken.set()
        for thread in self._threads:
            thread.start()

    def wait_until_idle(self, seconds: float) -> None:
        """Return after this time without a request, or when another process has taken the socket."""
        self._last_used = time.monotonic()
        while time.monotonic() - self._last_used < seconds and self._is_own():
            self._ended.wait(min(seconds, _TICK_SECONDS))

    def close(self) -> None:
        """Stop listening and finish what is being learned."""
        self._ended.set()
        self._woken.set()
        if self._is_own():
            self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._threads[1].is_alive():
            self._threads[1].join(_REQUEST_SECONDS)

    def _is_own(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._last_used = time.monotonic()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(_REQUEST_SECONDS)
            with connection.makefile("rb") as lines:
                line = lines.readline(_LONGEST_REQUEST)
            connection.sendall(json.dumps(self._answer(line)).encode() + b"\n")

    def _answer(self, line: bytes) -> Json:
        try:
            request = json.loads(line)
            self._woken.set()
            if "event" not in request:
                return {}
            found = self._service.found(
                Event(**request["event"]), request["agent"], request.get("user"), request["shown"]
            )
        except (ALMAError, ValueError, TypeError, KeyError) as exc:
            self._files.log(f"a hook was not answered: {type(exc).__name__}: {exc}")
            return {"error": str(exc)}
        return {"text": found.text, "shown": dict(found.shown), "tokens": found.tokens}

    def _learn(self) -> None:
        while not self._ended.is_set():
            self._woken.wait()
            self._woken.clear()
            for file, waiting in self._files.waiting():
                if self._ended.is_set():
                    return
                self._last_used = time.monotonic()
                self._learn_one(file, waiting)

    def _learn_one(self, file: Path, waiting: Json) -> None:
        try:
            self._service.learn(waiting)
        except Exception as exc:  # noqa: BLE001 - an event that cannot be understood must not stop the others
            self._files.log(f"an event was not learned from: {type(exc).__name__}: {exc}")
        file.unlink(missing_ok=True)


@contextmanager
def answering_hooks(alma: ALMA, config: str | Path | None, store: str | None, project: str | None) -> Iterator[None]:
    """Answer the hooks of a memory that a service has open, as the resident process would."""
    place = place_of(None if config is None else str(config), store, project, {})
    if place is None or not hasattr(socket, "AF_UNIX"):
        yield
        return
    listener = HookListener(alma, place)
    # In the background: the service answers other requests while the models are loaded.
    starting = threading.Thread(target=_start, args=(listener,), name="alma-hooks-start", daemon=True)
    starting.start()
    try:
        yield
    finally:
        starting.join()
        listener.close()


def _start(listener: HookListener) -> None:
    try:
        listener.start()
    except OSError as exc:
        _log.warning("hooks are not answered by this service", extra={"reason": str(exc)})


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether this process is the only one of its memory, for as long as it runs."""
    import fcntl

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(folder / "resident.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def open_memory(place: Place) -> ALMA:
    """Open the memory of a place."""
    if place.config is None:
        return ALMA.quickstart(place.store, place.project or DEFAULT_PROJECT)
    memory = ALMA.from_config(place.config)
    return memory if place.project is None else memory.for_project(place.project)


def main() -> int:
    """Serve the hooks of a memory until nothing was asked for a while."""
    parser = argparse.ArgumentParser(prog="python -m alma.hooks.resident", description=main.__doc__)
    parser.add_argument("--folder", required=True, type=Path)
    for option in ("--config", "--store", "--project"):
        parser.add_argument(option)
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS)
    given = parser.parse_args()
    place = Place(given.folder, given.config, given.store, given.project)
    files = HookFiles(place.folder)
    with _alone(place.folder) as alone:
        if not alone:
            return 0
        try:
            with open_memory(place) as memory, HookListener(memory, place) as listener:
                listener.start()
                files.drop_old_sessions()
                listener.wait_until_idle(given.idle_seconds)
        except (ALMAError, OSError) as exc:
            files.log(f"the resident process ended: {exc}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
