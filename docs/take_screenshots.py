"""Takes the screenshots of the documentation from the demonstration; run by `make screenshots`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from alma import ALMA
from alma.demo import PROJECT, fill

FOLDER = Path(__file__).parent / "images"
UNTIL = datetime(2026, 11, 18, 16, 30, tzinfo=UTC)
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")
_DESKTOP, _PHONE = (1280, 860), (390, 844)


class Shot(NamedTuple):
    """A picture: the view, and how it is seen."""

    name: str
    view: str
    scheme: str = "light"
    size: tuple[int, int] = _DESKTOP


KEPT = (
    Shot("overview", "overview"),
    Shot("ask", "ask?task=Test+the+login+form+of+the+new+shop&agent=helena"),
    Shot("lessons-dark", "lessons", "dark"),
    Shot("review", "review"),
    Shot("phone", "overview", size=_PHONE),
)
VIEWS = (
    "overview",
    "ask?task=Test+the+login+form&agent=helena",
    "browse",
    "lessons",
    "time",
    "graph",
    "review",
    "work",
)
EVERY = tuple(
    Shot(f"{view.split('?')[0]}-{scheme}-{size[0]}", view, scheme, size)
    for view in (*VIEWS, "work?tab=items", "operations?tab=audit")
    for scheme, size in (("light", _DESKTOP), ("dark", _DESKTOP), ("light", _PHONE))
)
"""Each view in light, dark and phone width, for `--every FOLDER`."""


def main() -> None:
    """Take the pictures that are kept, or with `--every FOLDER` those of every view."""
    every = sys.argv[1:2] == ["--every"]
    folder = Path(sys.argv[2]) if every else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with demonstration() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(_ARGUMENTS))
        for shot in EVERY if every else KEPT:
            take(browser, address, shot, folder / f"dashboard-{shot.name}.png")
        browser.close()


@contextmanager
def demonstration() -> Iterator[str]:
    """The address of a service on the demonstration."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "alma.db"
        with ALMA.quickstart(store, PROJECT) as memory:
            fill(memory, UNTIL)
        command = [sys.executable, "-m", "alma.rest", "--store", str(store), "--project", PROJECT, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            assert service.stdout is not None
            yield next(word for word in service.stdout.readline().split() if word.startswith("http"))
            service.terminate()


def take(browser: Browser, address: str, shot: Shot, target: Path) -> None:
    """Take a picture of a view once nothing is loading."""
    width, height = shot.size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=shot.scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.clock.set_fixed_time(UNTIL)
    page.goto(f"{address}/#/{shot.view}")
    page.wait_for_function(
        "() => document.querySelector('h1') && !document.querySelector('.skeleton, [aria-busy=true]')"
    )
    page.screenshot(path=target, animations="disabled")
    context.close()


if __name__ == "__main__":
    main()
