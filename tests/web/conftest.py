"""One browser and one service on the demonstration, shared by the tests of a process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from alma import ALMA
from alma.demo import PROJECT, fill
from tests.conftest import fresh_database
from tests.faces.rest import served
from tests.support.postgres import PostgresServer

_CHROMIUM = "/usr/bin/chromium"
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_WAIT_MS = 30_000
expect.set_options(timeout=_WAIT_MS)
_IS_SETTLED = """() => {
  const still = document.querySelector('h1') && !document.querySelector('.skeleton, [aria-busy=true]');
  window.quiet = still ? window.quiet + 1 : 0;
  return window.quiet > 9;
}"""


def demo_memory(place: str | Path) -> ALMA:
    """A memory of the demonstration's project."""
    return ALMA.quickstart(place, project_id=PROJECT)


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store with the demonstration; tests that write use a copy."""
    place = tmp_path_factory.mktemp("demo") / "alma.db"
    with demo_memory(place) as memory:
        fill(memory)
    return place


@pytest.fixture(scope="session")
def shop(demo_store: Path) -> Iterator[str]:
    """The address of a service on the demonstration, of which no test changes what another one reads."""
    with demo_memory(demo_store) as memory, served(memory) as address:
        yield address


@pytest.fixture(scope="session")
def demo_database(postgres: PostgresServer) -> str:
    """The name of a PostgreSQL database with the demonstration, to copy."""
    with demo_memory(postgres.create_database("demo", "template1")) as memory:
        fill(memory)
    return "demo"


@pytest.fixture(params=["sqlite", "postgresql"])
def own_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store of each kind with the demonstration, for a test that changes it."""
    if request.param == "sqlite":
        yield str(shutil.copy(request.getfixturevalue("demo_store"), tmp_path / "alma.db"))
        return
    server, template = (request.getfixturevalue(name) for name in ("postgres", "demo_database"))
    with fresh_database(server, template=template) as dsn:
        yield dsn


@pytest.fixture
def empty_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new store of the kind that the test names."""
    if request.param == "sqlite":
        yield str(tmp_path / "alma.db")
        return
    with fresh_database(request.getfixturevalue("postgres")) as dsn:
        yield dsn


@pytest.fixture
def own_shop(own_place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ALMA, str]]:
    """A memory with the demonstration and its service on each store, for a test that changes it."""
    # Without a file, backups are written into the working directory.
    monkeypatch.chdir(tmp_path)
    with demo_memory(own_place) as memory, served(memory) as address:
        yield memory, address


# Playwright runs an event loop in this thread, so that tests of other packages could not call asyncio.run.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    if not Path(_CHROMIUM).exists():
        pytest.fail(
            "The tests of the dashboard need Chromium: install it with  apt-get install chromium", pytrace=False
        )
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=_CHROMIUM, args=list(_ARGUMENTS))
        yield made
        made.close()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens the dashboard in a fresh context; at the end nothing was asked of another host, and no error was logged."""
    problems: list[str] = []
    hosts: set[str] = set()
    contexts = []

    def open_(address: str, view: str = "", allow: str | None = None, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(_WAIT_MS)
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("console", lambda said: problems.append(said.text) if _counts(said.type, said.text, allow) else None)
        hosts.clear()
        page.goto(f"{address}/{view}")
        page.wait_for_selector("h1")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert problems == []
    assert all(host.startswith("127.0.0.1:") for host in hosts), hosts


def _counts(kind: str, text: str, allow: str | None) -> bool:
    return kind == "error" and (allow is None or allow not in text)


def show(page: Page, view: str, title: str | None = None) -> None:
    """Go to a view without loading the page again, and wait until it stands."""
    page.evaluate("hash => { location.hash = hash }", f"#/{view}")
    if title is not None:
        page.wait_for_function("title => document.querySelector('h1')?.textContent.trim() === title", arg=title)
    settled(page)


def settled(page: Page) -> None:
    """Wait until nothing on the page has been loading for some frames, in which a view would have begun to."""
    page.evaluate("window.quiet = 0")
    page.wait_for_function(_IS_SETTLED, polling="raf")


@contextmanager
def asked(page: Page, operation: str) -> Iterator[None]:
    """Wait until an operation that the block starts was answered."""
    with page.expect_response(lambda answer: answer.url.endswith(f"/v1/operations/{operation}")):
        yield
