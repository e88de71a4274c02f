"""What the dashboard promises: tenants apart, text as text, no obstacle, phone width, little traffic, recovery."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, Response, expect

from alma import ALMA
from alma.access import ApiKeys
from tests.conftest import fresh_database
from tests.faces.rest import served
from tests.support.node import installed
from tests.support.postgres import PostgresServer
from tests.web.conftest import OpenPage, demo_memory, settled, show

pytestmark = pytest.mark.slow
AXE = {"axe-core": "4.11.0"}
FIRST_VIEW_BYTES = 350_000
VIEWS = (
    "overview",
    "ask?task=Test+the+login+form&agent=helena",
    "browse",
    "browse?kind=heuristic&state=active",
    "lessons",
    "lessons?tab=contradictions",
    "lessons?tab=benefit",
    "time",
    "time?tab=changes&from=2000-01-01T00:00:00Z",
    "graph",
    "review",
    "work",
    "work?tab=items",
    *(
        f"operations?tab={name}"
        for name in ("keys", "settings", "forgetting", "backups", "imports", "audit", "webhooks")
    ),
)
HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><b>bold</b></script><script>document.title='taken over'</script>",
    "template": "${alert(1)} {{7*7}} javascript:alert(1) <a href='javascript:alert(1)'>here</a>",
    "bidi": "abc \u202e\u2066 reversed \u2069\u202c end",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈 " * 5 + "Z̸̡̛a̷l̶g̴o̵",
    "rtl": "مرحبا بالعالم، هذا نص من اليمين إلى اليسار — שלום",
    "long": "word" * 250_000,
}


def key_in(page: Page, address: str, token: str) -> None:
    """Sign in with a key."""
    page.get_by_label("API key").fill(token)
    page.get_by_role("button", name="Sign in").click()
    settled(page)


def first_memory(page: Page) -> None:
    show(page, "browse", "Browse")
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="Content")).to_be_visible()
    settled(page)


# ---------------------------------------------------------------------- tenants


@pytest.mark.parametrize(
    ("empty_place", "project", "other"),
    [("sqlite", "atlantis", "babylon"), ("postgresql", "babylon", "atlantis")],
    indirect=["empty_place"],
)
def test_a_tenant_sees_nothing_of_another_in_any_view(
    empty_place: str, project: str, other: str, open_page: OpenPage
) -> None:
    words = {"atlantis": "Zanzibar", "babylon": "Quagga"}
    with demo_memory(empty_place) as memory, served(memory) as address:
        for each, word in words.items():
            live_in(memory.for_project(each), word)
        rights = ("read", "write", "delete", "admin")
        token = ApiKeys(memory.storage).create(project, rights, project_id=project)[1]
        page = open_page(address, allow="40")
        answers: list[str] = []
        page.on("response", partial(note, answers))
        key_in(page, address, token)
        foreign = words[other]
        for view in (*VIEWS, f"browse?words={foreign}", "overview?project=x"):
            show(page, view)
            assert foreign not in page.locator("#content").inner_text()
        show(page, "browse", "Browse")
        expect(page.locator("tbody")).to_contain_text(words[project])
        assert not any(foreign in answer for answer in answers if "words" not in answer)


def live_in(memory: ALMA, word: str) -> None:
    """Something of each kind with a word in it."""
    for number in range(4):
        memory.learn("helena", f"{word} form {number}", "success", f"wait for {word}")
    memory.add_domain_knowledge("helena", "testing", f"{word} is a fact")
    memory.journal.create(f"{word} is remembered", project_id=memory.project_id)
    memory.sessions.create(project_id=memory.project_id, name=f"{word} session", agent="helena")


def note(answers: list[str], answer: Response) -> None:
    """Note the body of an answer of an operation; a stream has no end."""
    if "/v1/operations/" in answer.url and answer.ok:
        answers.append(answer.text())


# ---------------------------------------------------------------------- hostile text


def test_hostile_text_is_shown_as_text(tmp_path: Path, open_page: OpenPage) -> None:
    with demo_memory(tmp_path / "alma.db") as memory, served(memory) as address:
        memory = memory.for_project("shop")
        ids = {
            name: memory.journal.create(text, project_id="shop", title=text[:60]).id for name, text in HOSTILE.items()
        }
        memory.learn("<b>helena</b>", "<img src=x onerror=alert(1)>", "failure", "<script>alert(2)</script>")
        page = open_page(address)
        for view in (
            "overview",
            "browse",
            "browse?kind=outcome",
            "time",
            "ask?task=alert+word&agent=helena",
            "lessons",
        ):
            show(page, view)
            assert (
                page.locator("#content img, #content script, #content b b, #content a[href^=javascript]").count() == 0
            )
        for name, memory_id in ids.items():
            show(page, f"memory?kind=memory&id={memory_id}")
            page.wait_for_selector(".content-text")
            shown = page.locator(".content-text .text").first.text_content() or ""
            assert shown == HOSTILE[name][:20_000], name
            assert page.locator("#content img, #content script").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.get_by_role("button", name="Show the whole text").click()
        assert page.evaluate("document.querySelector('.content-text .text').textContent.length") == len(HOSTILE["long"])
        assert page.title() == "Memory · ALMA"


# ---------------------------------------------------------------------- obstacles and phones


@pytest.mark.parametrize(
    ("scheme", "rules"), [("light", "undefined"), ("dark", "{type: 'rule', values: ['color-contrast']}")]
)
def test_axe_finds_nothing_serious(shop: str, open_page: OpenPage, scheme: str, rules: str) -> None:
    """With dark colours only the contrast is another one."""
    script = (installed(AXE) / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    page = open_page(shop, color_scheme=scheme, bypass_csp=True)
    page.add_script_tag(content=script)
    found = {}
    for view in VIEWS:
        show(page, view)
        found[view] = obstacles(page, rules)
    first_memory(page)
    found["memory"] = obstacles(page, rules)
    assert {view: some for view, some in found.items() if some} == {}


def obstacles(page: Page, rules: str) -> list[str]:
    """What axe finds that is serious or critical."""
    result = page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], runOnly: {rules}}})")
    return [
        f"{each['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:160]}"
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


def test_every_view_fits_a_phone(shop: str, open_page: OpenPage) -> None:
    page = open_page(shop, viewport={"width": 390, "height": 844}, has_touch=True)
    for view in VIEWS:
        show(page, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, view
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Lessons", exact=True).click()
    expect(page.get_by_role("heading", name="Lessons", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Graph", exact=True)).to_be_hidden()


def test_the_keyboard_reaches_everything(shop: str, open_page: OpenPage) -> None:
    page = open_page(shop)
    settled(page)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    show(page, "lessons", "Lessons")
    page.get_by_role("tab", name="Heuristics").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Anti-patterns")).to_be_focused()
    expect(page.get_by_role("tab", name="Anti-patterns")).to_have_attribute("aria-selected", "true")


# ---------------------------------------------------------------------- traffic


def test_the_first_view_transfers_little_and_asks_only_this_service(shop: str, open_page: OpenPage) -> None:
    page = open_page(shop)
    settled(page)
    sizes = page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map(each => each.transferSize)"
    )
    assert 0 < sum(sizes) <= FIRST_VIEW_BYTES
    origins = page.evaluate(
        "[...new Set(performance.getEntriesByType('resource').map(each => new URL(each.name).origin))]"
    )
    assert origins == [shop]


# ---------------------------------------------------------------------- recovery


def test_a_page_says_that_the_service_is_away_and_recovers(own_place: str, open_page: OpenPage) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with service_on(own_place, port):
        page = open_page(address, "#/browse", allow="ERR_CONNECTION_REFUSED")
        settled(page)
    page.get_by_role("tab", name="Heuristics").click()
    expect(page.locator(".banner.bad")).to_contain_text("does not answer")
    with service_on(own_place, port):
        expect(page.locator(".banner.bad")).to_have_count(0, timeout=20_000)
        expect(page.locator(".toast", has_text="answers again")).to_be_visible()
        expect(page.locator("tbody tr").first).to_be_visible()


@contextmanager
def service_on(place: str, port: int) -> Iterator[None]:
    """A service on a port, in this process."""
    with demo_memory(place) as memory, served(memory, port=port):
        yield


# ---------------------------------------------------------------------- PostgreSQL


def test_every_view_stands_on_postgresql(postgres: PostgresServer, demo_database: str, open_page: OpenPage) -> None:
    with fresh_database(postgres, template=demo_database) as dsn, demo_memory(dsn) as memory, served(memory) as address:
        page = open_page(address)
        for view in VIEWS:
            show(page, view)
            assert page.locator(".failure").count() == 0, page.locator(".failure").all_inner_texts()
