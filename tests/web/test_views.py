"""A browser drives every view and every action of the dashboard on a real service."""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from alma import ALMA
from alma.client import Client
from alma.errors import RefusedError
from alma.model.governance import BenefitTrial, Setting
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from tests.web.conftest import OpenPage, asked, settled, show

pytestmark = pytest.mark.slow
Shop = tuple[ALMA, str]


def undo(page: Page) -> None:
    """Undo the last action, and wait for the notice."""
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.locator(".toast").filter(has=page.get_by_role("button", name="Undo")).last.get_by_role(
            "button", name="Undo"
        ).click()
    expect(page.locator(".toast", has_text="Undone.").last).to_be_visible()
    settled(page)


def test_the_overview_shows_what_came_in_and_what_comes_in_now(own_shop: Shop, open_page: OpenPage) -> None:
    _, address = own_shop
    page = open_page(address)
    settled(page)
    assert page.locator(".tile", has_text="Outcomes").locator("b").inner_text() == "184"
    expect(page.get_by_text("2 records are in quarantine")).to_be_visible()
    page.get_by_label("Time range").select_option("7")
    assert "range=7" in page.url
    with Client(address) as client:
        client.learn("helena", "Test the wish list", "success", "press every button once")
    expect(page.locator(".live li").first).to_contain_text("outcome")
    expect(page.locator(".tile", has_text="Outcomes").locator("b")).to_have_text("185")


def test_ask_shows_the_prompt_the_scores_and_what_was_dropped(shop: str, open_page: OpenPage) -> None:
    page = open_page(shop, "#/ask")
    page.get_by_label("Task", exact=True).fill("Test the login form of the new shop")
    page.get_by_label("Agent").fill("helena")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector(".score-bar")
    settled(page)
    prompt = page.locator("pre").first.inner_text()
    assert "test empty fields, an invalid email" in prompt
    with Client(shop) as client:
        assert prompt.strip() == client.retrieve("Test the login form of the new shop", agent="helena").prompt.strip()
    assert page.get_by_text(re.compile(r"about \d+ of 2,000 tokens")).is_visible()
    first = page.locator(".item").first
    terms = [float(each) for each in first.locator(".terms b").all_inner_texts()]
    assert sum(terms) == pytest.approx(float(first.locator(".item-aside b").inner_text()), abs=0.02)
    expect(page.get_by_role("heading", name="Dropped")).to_be_visible()
    page.get_by_placeholder("An id, or words of a memory").fill("money is integers")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("section", has_text="Why not this one?").locator("li").first).to_be_visible()
    page.get_by_role("tab", name="curl").click()
    expect(page.locator("pre", has_text="curl http://127.0.0.1")).to_be_visible()
    page.get_by_role("tab", name="MCP").click()
    expect(page.locator("pre", has_text="tools/call")).to_be_visible()
    with asked(page, "retrieve"):
        page.get_by_label("Token budget").fill("20")
    expect(page.get_by_text(re.compile(r"of 20 tokens"))).to_be_visible()
    with asked(page, "retrieve"):
        page.get_by_label("Compare with another time").last.fill("2020-01-01T00:00")
    expect(page.get_by_text("Only now")).to_be_visible()


def test_the_copied_code_runs(shop: str, open_page: OpenPage, capsys: pytest.CaptureFixture[str]) -> None:
    task = 'Test the "login" form,\nit\'s in Zürich 😀'
    page = open_page(shop, f"#/ask?agent=helena&task={quote(task)}")
    page.wait_for_selector(".score-bar")
    prompt = page.locator("pre").first.inner_text().strip()
    code = page.locator("section", has_text="As code").locator("pre")
    exec(code.inner_text(), {})
    assert capsys.readouterr().out.strip() == prompt
    page.get_by_role("tab", name="curl").click()
    ran = subprocess.run(["bash", "-c", code.inner_text()], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["prompt"].strip() == prompt
    page.get_by_role("tab", name="MCP").click()
    request = json.loads(code.inner_text())
    assert request["params"]["arguments"]["task"] == task


def test_browse_filters_pages_and_acts_on_many(own_shop: Shop, open_page: OpenPage) -> None:
    memory, address = own_shop
    page = open_page(address, "#/browse")
    page.get_by_role("tab", name="Outcomes").click()
    settled(page)
    assert page.locator("tbody tr").count() == 50
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("tbody tr")).to_have_count(100)
    page.get_by_text("Filters").click()
    page.locator("select[name=success]").select_option("no")
    settled(page)
    expect(page.locator("tbody tr .badge.good")).to_have_count(0)
    assert "success=no" in page.url
    page.get_by_role("tab", name="Memories").click()
    settled(page)
    with asked(page, "browse_memories"):
        page.get_by_label("Words").fill("certificate")
    settled(page)
    expect(page.locator("tbody tr").first).to_contain_text("certificate")
    chosen = page.locator("tbody tr").count()
    page.get_by_label("Choose all that are shown").check()
    page.get_by_role("region").get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator(".toast", has_text="pinned")).to_be_visible()
    expect(page.locator("tbody .badge.accent").first).to_be_visible()
    page.get_by_label("Choose all that are shown").check()
    page.get_by_role("region").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("No memory matches")).to_be_visible()
    undo(page)
    expect(page.locator("tbody tr")).to_have_count(chosen)
    assert memory.archive.count(memory.scope(), cause="forgotten") == 0


def test_a_memory_is_corrected_superseded_pinned_rejected_and_brought_back(own_shop: Shop, open_page: OpenPage) -> None:
    memory, address = own_shop
    page = open_page(address, "#/browse?kind=domain_knowledge&words=rate+limit", allow="404")
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="Content")).to_be_visible()
    page.get_by_role("button", name="Correct").click()
    page.get_by_label("Text", exact=True).fill("The rate limit of the public API is 200 requests a minute for each key")
    page.get_by_label("Reason").fill("it was raised")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".content-text")).to_contain_text("200 requests")
    expect(page.locator("ins").first).to_have_text("200")
    expect(page.locator("del").first).to_have_text("100")
    page.locator(".version").last.get_by_role("button", name="Restore this version").click()
    expect(page.locator(".content-text")).to_contain_text("100 requests")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    page.get_by_role("button", name="Supersede").click()
    page.get_by_label("Text", exact=True).fill("The public API has no rate limit since the tenth")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".content-text")).to_contain_text("no rate limit")
    expect(page.get_by_text("supersedes").first).to_be_visible()
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("heading", name="This memory is not there")).to_be_visible()
    with pytest.raises(RefusedError, match="rejected"):
        memory.add_domain_knowledge("victor", "api", "The public API has no rate limit, since the tenth!")
    undo(page)
    expect(page.locator(".content-text")).to_contain_text("no rate limit")
    assert memory.storage.find(Setting, Scope.everywhere()) is not None


def test_a_heuristic_shows_its_confidence_over_time_and_its_evidence(shop: str, open_page: OpenPage) -> None:
    page = open_page(shop, "#/lessons")
    settled(page)
    expect(page.locator(".chart").first).to_be_visible()
    page.get_by_role("button", name="Show how it developed").first.click()
    expect(page.get_by_text(re.compile(r"in a row would bring"))).to_be_visible()
    page.locator(".item-text a").first.click()
    expect(page.get_by_role("heading", name="Confidence")).to_be_visible()
    page.locator("summary", has_text="Evidence").click()
    page.locator("details[open] li a").first.click()
    expect(page.locator("h1 .k-outcome")).to_be_visible()
    show(page, "lessons?tab=antiPatterns", "Lessons")
    expect(page.get_by_text("write latency doubled").first).to_be_visible()


def test_measured_benefit_is_shown_and_what_harms_is_demoted_and_used_again(
    own_shop: Shop, open_page: OpenPage
) -> None:
    memory, address = own_shop
    page = open_page(address, "#/lessons?tab=benefit")
    expect(page.get_by_text("No benefit was measured yet")).to_be_visible()
    harmful, helpful = memory.storage.find(Heuristic, memory.scope(), limit=2)
    memory.storage.save_many(tried(memory.project_id, {harmful.id: -0.4, helpful.id: 0.4}))
    page.reload()
    first = page.locator(".item").first
    expect(first).to_contain_text("harms")
    expect(first.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"−\d+ points, between −\d+ points and −")
    )
    first.get_by_role("button", name="Demote").click()
    expect(first.get_by_role("button", name="Use it again")).to_be_visible()
    show(page, "review?category=harmful", "Review")
    expect(page.locator(".review-item")).to_contain_text("95% interval")
    page.locator(".review-item").get_by_role("button", name="Use it again").click()
    expect(page.get_by_text("Nothing to review")).to_be_visible()


def tried(project_id: str, effects: dict[str, float]) -> list[BenefitTrial]:
    """Tasks with these lessons, each withheld half of the time, whose effects add up."""
    drawn = itertools.cycle(itertools.product((True, False), repeat=len(effects)))
    chances = random.Random(5)
    made = []
    for _ in range(600):
        shown = dict(zip(effects, next(drawn), strict=True))
        chance = 0.5 + sum(effect * shown[key] for key, effect in effects.items())
        arms = {key: {"kind": "heuristic", "shown": is_shown, "propensity": 0.5} for key, is_shown in shown.items()}
        succeeded = chances.random() < chance
        made.append(BenefitTrial(agent="helena", project_id=project_id, arms=arms, success=succeeded))
    return made


def test_one_slider_drives_every_view_and_two_moments_are_compared(shop: str, open_page: OpenPage) -> None:
    page = open_page(shop, "#/time")
    settled(page)
    slider = page.get_by_role("slider")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("PageDown")
        settled(page)
    page.wait_for_selector(".banner")
    assert "t=" in page.url
    page.get_by_role("link", name="Browse", exact=True).click()
    expect(page.get_by_text("You see the store as of")).to_be_visible()
    settled(page)
    assert 0 < page.locator("tbody tr").count() < 24
    page.get_by_role("slider").focus()
    page.keyboard.press("PageDown")
    settled(page)
    shown = page.locator("tbody tr").count()
    page.get_by_role("link", name="Overview", exact=True).click()
    settled(page)
    assert page.locator(".tile", has_text="Memories").locator("b").inner_text() == str(shown)
    page.get_by_role("link", name="Sessions", exact=True).click()
    settled(page)
    assert 0 < page.locator(".span-5 .item").count() < 8
    page.get_by_role("link", name="Review", exact=True).click()
    settled(page)
    assert page.locator(".review-item").count() < 5
    page.get_by_role("link", name="Browse", exact=True).click()
    page.get_by_role("button", name="Back to now").first.click()
    expect(page.locator("tbody tr")).to_have_count(24)
    show(page, "time?tab=changes&from=2000-01-01T00:00:00Z", "Time")
    expect(page.get_by_text("New", exact=True).first).to_be_visible()
    show(page, "time", "Time")
    expect(page.get_by_text("session started").first).to_be_visible()
    before = page.locator(".event").count()
    page.get_by_role("button", name="Show more").click()
    page.wait_for_function("n => document.querySelectorAll('.event').length > n", arg=before)


def test_the_graph_opens_on_demand_and_finds_a_path(shop: str, open_page: OpenPage) -> None:
    page = open_page(shop, "#/graph")
    page.get_by_role("textbox", name="Start at").fill("PostgreSQL")
    page.get_by_role("button", name="Find", exact=True).click()
    page.locator(".choices button", has_text="entity").first.click()
    canvas = page.locator("canvas")
    expect(canvas).to_be_visible()
    expect(canvas).to_have_attribute("aria-label", re.compile(r"\d+ nodes"))
    before = int(canvas.get_attribute("data-nodes") or 0)
    assert before > 2
    page.locator("section", has_text="As a list").locator("button.link").first.click()
    page.get_by_role("button", name="Open its neighbours").click()
    page.wait_for_function("n => Number(document.querySelector('canvas').dataset.nodes) > n", arg=before)
    page.get_by_role("textbox", name="Find paths to").fill("Helena")
    page.get_by_role("button", name="Find a path").click()
    with asked(page, "find_connection"):
        page.locator(".choices button", has_text="entity").first.click()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    shown = int(canvas.get_attribute("data-nodes") or 0)
    page.locator("label.check", has_text="entity").locator("input").uncheck()
    page.wait_for_function("n => Number(document.querySelector('canvas')?.dataset.nodes || 0) < n", arg=shown)


def test_the_review_inbox_is_emptied_with_keys_and_undone(own_shop: Shop, open_page: OpenPage) -> None:
    memory, address = own_shop
    page = open_page(address, "#/review")
    settled(page)
    items = page.locator(".review-item")
    before = items.count()
    assert before >= 5
    rejected = items.first.locator(".item-text").inner_text()
    with asked(page, "reject_records"):
        page.keyboard.press("r")
    expect(items).to_have_count(before - 1)
    with pytest.raises(RefusedError, match="rejected"):
        memory.journal.create(rejected, project_id="shop")
    page.keyboard.press("u")
    expect(items).to_have_count(before)
    # Decided one after the other without waiting, and undone from the newest on.
    for _ in range(2):
        page.keyboard.press("r")
    expect(items).to_have_count(before - 2)
    expect(page.locator(".toast", has_text="Rejected.")).to_have_count(2)
    settled(page)
    for left in (before - 1, before):
        with asked(page, "allow_records"):
            page.keyboard.press("u")
        expect(items).to_have_count(left)
    assert items.first.locator(".item-text").inner_text() == rejected
    page.keyboard.press("a")
    expect(items).to_have_count(before - 1)
    show(page, "review?category=duplicate", "Review")
    if page.locator(".review-item").count():
        for name, said in (("Merge", "Merged."), ("Keep both", "Kept both.")):
            page.get_by_role("button", name=re.compile(name)).first.click()
            expect(page.locator(".toast", has_text=said)).to_be_visible()
            undo(page)
            expect(page.locator(".review-item")).to_have_count(1)
    show(page, "review?category=doubtful", "Review")
    doubtful = page.locator(".review-item").count()
    page.keyboard.press("j")
    page.keyboard.press("e")
    page.get_by_label("Text", exact=True).fill("Customers in Switzerland often pay by invoice")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".review-item")).to_have_count(doubtful - 1)
    show(page, "review?category=contradiction", "Review")
    page.get_by_role("button", name=re.compile("Keep both")).click()
    expect(page.get_by_text("Nothing to review")).to_be_visible()
    settled(page)
    page.keyboard.press("u")
    expect(page.get_by_role("button", name=re.compile("Keep both"))).to_be_visible()


def test_sessions_handoffs_working_memory_and_work_items(own_shop: Shop, open_page: OpenPage) -> None:
    _, address = own_shop
    page = open_page(address, "#/work")
    settled(page)
    expect(page.get_by_text("the sandbox of the parcel service is down")).to_be_visible()
    page.get_by_role("button", name="Release").first.click()
    expect(page.get_by_role("button", name="Release")).to_have_count(2)
    undo(page)
    expect(page.get_by_role("button", name="Release")).to_have_count(3)
    page.get_by_role("button", name="End the session").click()
    expect(page.get_by_role("button", name="End the session")).to_have_count(0)
    undo(page)
    expect(page.get_by_role("button", name="End the session")).to_be_visible()
    page.get_by_role("tab", name="Work items").click()
    page.get_by_label("Title").fill("Measure the wish list")
    page.get_by_role("button", name="Add a work item").click()
    row = page.locator("tr", has_text="Measure the wish list")
    expect(row).to_be_visible()
    with asked(page, "update_work_item"):
        row.locator("select").select_option("done")
    expect(page.get_by_text("3 of 8 done")).to_be_visible()


def test_operations_settings_forgetting_backups_imports_and_audit(
    own_shop: Shop, open_page: OpenPage, tmp_path: Path
) -> None:
    memory, address = own_shop
    page = open_page(address, "#/operations?tab=settings")
    page.get_by_label("max_memories_per_session").fill("50")
    page.get_by_label("max_memories_per_session").press("Tab")
    expect(page.locator(".toast", has_text="Changed.")).to_be_visible()
    assert memory.settings.get("max_memories_per_session") == 50
    undo(page)
    assert memory.settings.get("max_memories_per_session") == 1000
    show(page, "operations?tab=forgetting", "Operations")
    page.get_by_label("Outcomes older than").fill("20")
    page.get_by_role("button", name="Show what would be forgotten").click()
    expect(page.get_by_text("would be forgotten:")).to_be_visible()
    outcomes = memory.get_stats()["outcomes_count"]
    page.get_by_role("button", name="Forget them").click()
    expect(page.locator(".toast", has_text="forgotten")).to_be_visible()
    assert memory.get_stats()["outcomes_count"] < outcomes
    undo(page)
    assert memory.get_stats()["outcomes_count"] == outcomes
    show(page, "operations?tab=backups", "Operations")
    page.get_by_role("button", name="Write a backup").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert next(tmp_path.rglob("backups/alma-*")).stat().st_size > 10_000
    show(page, "operations?tab=imports", "Operations")
    lines = tmp_path / "texts.jsonl"
    lines.write_text('{"content": "The wish list is shared by a link."}\n{"content": "Money is integers."}\n')
    page.get_by_label("File").set_input_files(lines)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("2 stored")).to_be_visible()
    show(page, "operations?tab=audit", "Operations")
    page.get_by_role("button", name="Verify the chains").click()
    expect(page.get_by_text("nothing was changed, removed or inserted")).to_be_visible()
    show(page, "operations?tab=sync", "Operations")
    settled(page)
    show(page, "operations?tab=webhooks", "Operations")
    expect(page.get_by_text("There is no webhook.")).to_be_visible()
    page.get_by_label("Name").fill("deploys")
    page.get_by_label("Address").fill("http://127.0.0.1:9/alma")
    page.get_by_label("created").check()
    page.get_by_role("button", name="Add a webhook").click()
    expect(page.locator(".token")).to_have_text(re.compile("[0-9a-f]{64}"))
    (kept,) = memory.stored_webhooks.configs()
    assert (kept.name, kept.events) == ("deploys", ("created",))
    page.locator("tr", has_text="deploys").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("There is no webhook.")).to_be_visible()
    assert memory.stored_webhooks.configs() == []


def test_the_first_key_signs_the_page_in_and_a_reader_sees_no_buttons_that_write(
    own_shop: Shop, open_page: OpenPage
) -> None:
    _, address = own_shop
    page = open_page(address, "#/operations", allow="401")
    page.get_by_label("Name").fill("owner")
    page.get_by_role("button", name="Create a key").click()
    expect(page.locator(".token")).to_contain_text("alma_")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Name").fill("reader")
    page.get_by_role("button", name="Create a key").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    token = page.locator(".token").inner_text()
    reader = open_page(address, allow="401")
    reader.get_by_label("API key").fill("alma_0123456789ab_" + "x" * 43)
    reader.get_by_role("button", name="Sign in").click()
    expect(reader.get_by_text("This key is unknown")).to_be_visible()
    reader.get_by_label("API key").fill(token)
    reader.get_by_role("button", name="Sign in").click()
    settled(reader)
    expect(reader.get_by_text("read only")).to_be_visible()
    for view in ("browse", "review", "work", "operations", "lessons"):
        show(reader, view)
        names = reader.get_by_role("button").all_inner_texts()
        assert not {"Forget", "Reject", "Pin", "Correct", "Create a key", "Add a work item"} & {
            n.split(" ")[0] for n in names
        }
        expect(reader.get_by_label("Choose all that are shown")).to_have_count(0)
    show(reader, "browse")
    reader.locator("tbody a").first.click()
    expect(reader.get_by_role("heading", name="Content")).to_be_visible()
    settled(reader)
    assert not {"Correct", "Forget", "Reject", "Pin", "Supersede"} & set(reader.get_by_role("button").all_inner_texts())
    page.locator("tr", has_text="reader").get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.locator("tr", has_text="reader")).to_contain_text("revoked")
    reader.get_by_role("link", name="Overview").first.click()
    # The open stream of changes ends, and the page notices.
    expect(reader.get_by_role("heading", name="Sign in")).to_be_visible(timeout=20_000)
