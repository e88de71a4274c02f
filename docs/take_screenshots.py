"""Takes the screenshots of the documentation from the demonstration; run by `make screenshots`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from alma import ALMA, clock
from alma.client import Client
from alma.demo import PROJECT, fill
from alma.rest.options import ServiceOptions
from alma.rest.server import create_server
from alma.serving.server import listen

FOLDER = Path(__file__).parent / "images"
UNTIL = datetime(2026, 11, 18, 16, 30, tzinfo=UTC)
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")
_MOST_BYTES = 150_000
_DESKTOP, _PHONE = (1180, 790), (390, 844)
LOOKS = {"": ("light", _DESKTOP), "-dark": ("dark", _DESKTOP), "-phone": ("light", _PHONE)}
"""How each view is seen: colours and size, by the end of the picture's name."""


class Shot(NamedTuple):
    """A picture: its name, and the view."""

    name: str
    view: str


def main() -> None:
    """Take a picture of each view in light, dark and phone width."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with demonstration() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(_ARGUMENTS))
        for shot in shots(address):
            for look in LOOKS:
                take(browser, address, shot.view, look, FOLDER / f"dashboard-{shot.name}{look}.png")
        browser.close()


def shots(address: str) -> Iterator[Shot]:
    """Each view, with something chosen in it."""
    with Client(address) as client:
        entity = client.call("find_nodes", words="PostgreSQL")["nodes"][0]
        lesson = client.call("browse_memories", kind="heuristic")["rows"][1]
    yield Shot("overview", "overview")
    yield Shot("ask", "ask?task=Test+the+login+form+of+the+new+shop&agent=helena")
    yield Shot("browse", "browse")
    yield Shot("memory", f"memory?kind=heuristic&id={lesson['id']}")
    yield Shot("lessons", "lessons")
    yield Shot("time", "time?t=2026-11-06T12:00:00Z")
    yield Shot("graph", f"graph?kind=entity&id={entity['id']}")
    yield Shot("review", "review")
    yield Shot("sessions", "work")
    yield Shot("operations", "operations?tab=audit")


@contextmanager
def demonstration() -> Iterator[str]:
    """The address of a service on the demonstration, for which it is the end of the month."""
    options = ServiceOptions(port=0)
    with (
        TemporaryDirectory() as folder,
        ALMA.quickstart(Path(folder) / "alma.db", PROJECT, maintenance={"enabled": False}) as memory,
        listen(options) as sock,
    ):
        fill(memory, UNTIL)
        with clock.replay(UNTIL):
            ready = threading.Event()
            server = create_server(sock, memory, options, lambda *_: ready.set())
            thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
            thread.start()
            ready.wait()
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
            server.should_exit = True
            thread.join()


def take(browser: Browser, address: str, view: str, look: str, target: Path) -> None:
    """Take a picture of a view once nothing is loading."""
    scheme, (width, height) = LOOKS[look]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.clock.set_fixed_time(UNTIL)
    page.goto(f"{address}/#/{view}")
    page.wait_for_function(
        "() => document.querySelector('h1') && !document.querySelector('.skeleton, [aria-busy=true]')"
    )
    # The graph comes to rest.
    page.wait_for_timeout(2_000 if view.startswith("graph") else 200)
    size = len(page.screenshot(path=target, animations="disabled"))
    if size > _MOST_BYTES:
        raise SystemExit(f"{target.name} has {size:,} bytes: at most {_MOST_BYTES:,} are kept in the repository")
    context.close()


if __name__ == "__main__":
    main()
