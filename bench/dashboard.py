"""Measure the dashboard in Chromium on a large store: the first content, and the time of every interaction.

    python bench/dashboard.py                          # 100,000 memories, a few minutes
    python bench/dashboard.py --memories 1000000 --store /tmp/bench/dashboard.db

The store is made once and used again if it is there: general memories of a year, a tenth as many outcomes, a hundredth
as many facts and heuristics, without vectors (--vectors gives them random ones). The service runs in a process of its
own, without maintenance; --fill makes the store only. An interaction is what a person does, from the click until
nothing on the page is loading; each is repeated, and its median, its 95th percentile and the processor time of the
service are printed. The promise: first content within 1 s, interactions within 200 ms at p95. A graph of 5,000 nodes is
drawn until it rests (--graph does only that, on a store without memories).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from alma import clock
from alma.bootstrap import open_storage
from alma.clock import now
from alma.model.learning import DomainKnowledge, Heuristic, Outcome
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope

_PROJECT = "bench"
_BATCH = 5_000
_DAYS = 365
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
_SERVE = """
import sys
from alma import ALMA
from alma.rest.options import ServiceOptions
from alma.rest.server import create_server
from alma.serving.server import listen
options = ServiceOptions(port=0)
with ALMA.quickstart(sys.argv[1], "bench", maintenance={"enabled": False}) as memory, listen(options) as sock:
    address = f"http://127.0.0.1:{sock.getsockname()[1]}"
    create_server(sock, memory, options, lambda *_: print(address, flush=True)).run(sockets=[sock])
"""
_GRAPH_NODES, _GRAPH_EDGES = 5_000, 7_500
_DRAW = """
async ([count, links]) => {
  const base = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
  const [{ GraphCanvas, Layout }, { html, render }] = await Promise.all(['graphview.js', 'html.js'].map(
    (name) => import(base + name)));
  const key = (number) => `memory:${number}`;
  const named = (_, i) => ({ key: key(i), id: String(i), kind: 'memory', label: `memory ${i}` });
  const nodes = Array.from({ length: count }, named);
  // A tree of groups, and links across: the same graph every time.
  let seed = 7;
  const drawn = (below) => (seed = (seed * 48271) % 2147483647) % below;
  const edges = Array.from({ length: links }, (_, i) => {
    const source = i + 1 < count ? i + 1 : drawn(count);
    return { source: key(source), target: key(i + 1 < count ? drawn(source) : drawn(count)), relation: 'relates_to' };
  });
  const work = [];
  const step = Layout.prototype.step, frame = window.requestAnimationFrame;
  window.requestAnimationFrame = (draw) => frame((at) => {
    const begun = performance.now();
    draw(at);
    work.push(performance.now() - begun);
  });
  const rests = new Promise((done) => {
    Layout.prototype.step = function () {
      const moves = step.call(this);
      if (!moves && this.nodes.size === count) done();
      return moves;
    };
  });
  const place = document.body.appendChild(document.createElement('div'));
  place.className = 'graph-area';
  const begun = performance.now();
  render(html`<${GraphCanvas} nodes=${nodes} edges=${edges} label="graph" />`, place);
  await rests;
  const seconds = (performance.now() - begun) / 1000;
  Object.assign(Layout.prototype, { step }), Object.assign(window, { requestAnimationFrame: frame });
  work.sort((one, other) => one - other);
  const share = (part) => Math.round(work[Math.floor(part * (work.length - 1))] * 10) / 10;
  return { nodes: count, edges: links, frame_ms: share(0.5), frame_p95_ms: share(0.95), frames: work.length,
    rest_s: Math.round(seconds * 10) / 10 };
}
"""
_SENTENCE = (
    "order cart checkout payment refund invoice search index cache deploy release alert backup restore session login "
    "form page phone layout query plan column lock retry timeout queue worker token secret locale currency tax parcel"
)
_WORDS = _SENTENCE.split()
_STANDS = "() => document.querySelector('h1') && !document.querySelector('.skeleton, [aria-busy=true]')"
_LAST_WEEK = (now() - timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
_TIMES = ("created_at", "timestamp", "last_verified")
_TYPES = ("decision", "note", "error", "solution", "progress", "insight")


def main() -> None:
    """Make the store, drive the page, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--store", default="/tmp/alma-bench-dashboard.db")
    parser.add_argument("--vectors", action="store_true", help="give every record a random vector")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fill", action="store_true", help="make the store and measure nothing")
    parser.add_argument("--graph", action="store_true", help="measure the graph alone")
    given = parser.parse_args()
    if given.graph:
        with (
            tempfile.TemporaryDirectory() as folder,
            service(f"{folder}/alma.db") as (address, _),
            chromium() as browser,
        ):
            show(graph_at_rest(browser, address))
        return
    filled(given.store, given.memories, vectors=given.vectors)
    if given.fill:
        return
    with service(given.store) as (address, process):
        result = measured(address, process, given.rounds)
    target = Path(__file__).parent / "results" / "dashboard.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"memories": given.memories, **result}, indent=2) + "\n")
    show(result)


# ---------------------------------------------------------------------- the store


def filled(place: str, memories: int, *, vectors: bool) -> None:
    """Write the records, unless the store has them already."""
    with open_storage(place) as storage:
        have = storage.count(Memory, Scope(project_id=_PROJECT))
        if have >= memories:
            return
        rng = random.Random(have)
        numbers = np.random.default_rng(have)
        began, end = time.perf_counter(), now()
        for start in range(have, memories, _BATCH):
            some: list[Record] = []
            day = _DAYS * (1 - start / memories)
            for number in range(start, min(memories, start + _BATCH)):
                some += records(number, rng, end - timedelta(days=day - _DAYS * rng.random() * _BATCH / memories))
            if vectors:
                drawn = numbers.standard_normal((len(some), storage.embedding_dim)).astype(np.float32)
                some = [record.replace(embedding=vector) for record, vector in zip(some, drawn, strict=True)]
            # Recorded when they were created, so that the store has a past.
            with clock.replay(max(some_time(record) for record in some)):
                storage.save_many(some)
            rate = (start + _BATCH - have) / (time.perf_counter() - began)
            print(f"\r{min(memories, start + _BATCH):,} memories, {rate:,.0f}/s", end="", file=sys.stderr)
        print(file=sys.stderr)


def some_time(record: Record) -> datetime:
    """When a record was created."""
    at: datetime = next(getattr(record, name) for name in _TIMES if hasattr(record, name))
    return at


def records(number: int, rng: random.Random, at: datetime) -> Iterator[Record]:
    """A memory, and now and then a record of another kind."""
    agent = f"agent-{rng.randrange(20)}"
    text = " ".join(rng.choices(_WORDS, k=14))
    yield Memory(
        project_id=_PROJECT,
        source_agent=agent,
        title=" ".join(text.split()[:4]),
        content=f"{text} {number}",
        memory_type=rng.choice(_TYPES),
        tags=(rng.choice(_WORDS),),
        importance_score=rng.random(),
        created_at=at,
        updated_at=at,
    )
    if number % 10 == 0:
        yield Outcome(
            agent=agent,
            project_id=_PROJECT,
            task_description=f"{text} {number}",
            strategy_used=" ".join(text.split()[:6]),
            success=rng.random() < 0.8,
            timestamp=at,
        )
    if number % 100 == 0:
        yield DomainKnowledge(agent=agent, project_id=_PROJECT, domain=text.split()[0], fact=text, last_verified=at)
        yield Heuristic(
            agent=agent,
            project_id=_PROJECT,
            condition=text,
            strategy=" ".join(text.split()[:6]),
            confidence=rng.random(),
            created_at=at,
        )


# ---------------------------------------------------------------------- the page


@contextmanager
def service(place: str) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a service on the store, and its process."""
    with subprocess.Popen([sys.executable, "-c", _SERVE, place], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), psutil.Process(process.pid)
        process.terminate()


def measured(address: str, process: psutil.Process, rounds: int) -> dict[str, object]:
    """The first content in milliseconds, the times of each interaction, and the service's processor time for it."""
    with chromium() as browser:
        first = [first_content(browser.new_context().new_page(), address) for _ in range(max(3, rounds // 3))]
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.wait_for_function(_STANDS)
        times = {name: [timed(page, process, act) for _ in range(rounds)] for name, act in INTERACTIONS.items()}
        graph = graph_at_rest(browser, address)
    every = [wall for some in times.values() for wall, _ in some]
    return {
        "first_content_ms": {"median": round(statistics.median(first)), "worst": round(max(first))},
        "interactions_p95_ms": round(percentile(every)),
        "interactions": {
            name: {
                "median_ms": round(statistics.median(wall for wall, _ in some)),
                "p95_ms": round(percentile([wall for wall, _ in some])),
                "service_cpu_ms": round(statistics.mean(cpu for _, cpu in some)),
            }
            for name, some in times.items()
        },
        "graph": graph,
    }


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(_ARGUMENTS))
        yield browser
        browser.close()


def graph_at_rest(browser: Browser, address: str) -> dict[str, object]:
    """Draw a graph of 5,000 nodes: milliseconds of script for a frame, and frames and seconds until it rests."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.wait_for_function(_STANDS)
    result: dict[str, object] = page.evaluate(_DRAW, [_GRAPH_NODES, _GRAPH_EDGES])
    page.close()
    return result


def first_content(page: Page, address: str) -> float:
    """Milliseconds until the first memories or numbers are on the page, with an empty cache of the browser."""
    page.goto(address, wait_until="commit")
    page.wait_for_selector(".tile b, .empty")
    shown: float = page.evaluate("performance.now()")
    page.close()
    return shown


def timed(page: Page, process: psutil.Process, act: Act | tuple[Act, Act]) -> tuple[float, float]:
    """Milliseconds of an interaction, until nothing is loading, and of the processor time of the service."""
    before, act = act if isinstance(act, tuple) else (to("operations?tab=settings", "table"), act)
    before(page)
    page.wait_for_function(_STANDS)
    began, worked = time.perf_counter(), sum(process.cpu_times()[:2])
    act(page)
    page.wait_for_function(_STANDS, polling=10)
    return (time.perf_counter() - began) * 1_000, (sum(process.cpu_times()[:2]) - worked) * 1_000


def to(view: str, waits: str) -> Callable[[Page], None]:
    """Going to a view, until its content is there."""

    def act(page: Page) -> None:
        page.evaluate("hash => { location.hash = hash }", f"#/{view}")
        page.wait_for_selector(waits)

    return act


def first(view: str, link: str, waits: str) -> tuple[Callable[[Page], None], Callable[[Page], None]]:
    """A view that is opened before the time is taken, and the click on its first link or button."""

    def act(page: Page) -> None:
        page.locator(link).first.click()
        page.wait_for_selector(waits)

    return to(view, link), act


def graph_search(page: Page) -> None:
    """Words of a memory, and the first of what is found."""
    page.get_by_role("textbox", name="Start at").fill("refund parcel locale")
    page.get_by_role("button", name="Find", exact=True).click()
    page.locator(".choices button").first.click()
    page.wait_for_selector("canvas")


Act = Callable[[Page], None]
INTERACTIONS: dict[str, Act | tuple[Act, Act]] = {
    "overview": to("overview", ".tile b"),
    "browse": to("browse", "tbody tr"),
    "browse by agent": to("browse?agent=agent-3", "tbody tr"),
    "browse by type": to("browse?type=decision", "tbody tr"),
    "browse by tag": to("browse?tag=cart", "tbody tr"),
    "browse by words": to("browse?words=refund+parcel+locale", "tbody tr"),
    "browse archived": to("browse?state=archived", "span[role=status], .empty"),
    "browse not trusted": to("browse?trust=untrusted", "span[role=status], .empty"),
    "browse outcomes": to("browse?kind=outcome", "tbody tr"),
    "browse failed outcomes": to("browse?kind=outcome&success=no", "tbody tr"),
    "browse heuristics": to("browse?kind=heuristic", "tbody tr"),
    "lessons": to("lessons", ".chart svg"),
    "timeline": to("time", ".event"),
    "graph start": to("graph", "canvas, .empty"),
    "sessions": to("work", ".tabs"),
    "audit log": to("operations?tab=audit", "tbody tr"),
    "overview of a year": to("overview?range=365", ".tile b"),
    "browse as of last week": to(f"browse?t={_LAST_WEEK}", "tbody tr"),
    "overview as of last week": to(f"overview?t={_LAST_WEEK}", ".tile b"),
    "next page": first("browse", "text=Show more", "tbody tr:nth-child(60)"),
    "page of a memory": first("browse", "tbody a", ".content-text"),
    "page of a heuristic": first("browse?kind=heuristic", "tbody a", ".content-text"),
    "what changed in a week": to("time?tab=changes", ".item"),
    "review": to("review", ".review-item, .empty"),
    "graph search": (to("graph", ".empty"), graph_search),
    "ask": to("ask?agent=agent-3&task=refund+of+the+parcel+with+a+locale", "pre"),
}


def percentile(times: list[float]) -> float:
    """The 95th percentile."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]


def show(result: dict[str, object]) -> None:
    """Print the results."""
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
