"""Patterns: what recurs in a project, across a user's projects, and what is missing; the same every time."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from alma.embeddings.base import EmbeddingProvider
from alma.memory.gaps import ContextGaps
from alma.memory.mining import Facts, commands, mine
from alma.memory.patterns import Patterns
from alma.memory.relationships import Relationships
from alma.model.memory import Memory, ProjectPattern
from alma.model.query import Order
from alma.model.scope import Scope
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.relations.said import EVERYWHERE, START, said, two_timeouts

SHOP = Scope(project_id="shop")


def patterns(store: StorageBackend, kind: str | None = None) -> list[ProjectPattern]:
    found = store.find(ProjectPattern, EVERYWHERE, order=[Order("pattern_name")])
    return [each for each in found if kind is None or each.pattern_type == kind]


# ---------------------------------------------------------------------- mining


def test_a_problem_solved_twice_the_same_way_is_a_pattern(store: StorageBackend) -> None:
    two_timeouts(store)
    Patterns(store).mine("shop")
    (found,) = patterns(store, "error_solution")
    assert (found.usage_count, found.success_rate) == (2, 1.0)
    assert found.memory_ids == ("e1", "e2", "f1", "f2")
    assert found.pattern_data_json["solution"] == "Retry the payment gateway with backoff"
    assert "TimeoutError" in found.pattern_name


def test_a_solution_that_did_not_last_lowers_the_success_rate(store: StorageBackend) -> None:
    two_timeouts(store)
    said(store, "e3", "TimeoutError calling the payment gateway again", "error", session_id="s2")
    said(store, "better", "Raise the limit")
    Patterns(store).mine("shop")
    assert patterns(store, "error_solution")[0].success_rate == 0.5
    Relationships(store).relate("better", "f1", "supersedes", SHOP)
    Patterns(store).mine("shop")
    assert patterns(store, "error_solution")[0].success_rate == 0.0


def test_related_solutions_count_without_a_session(store: StorageBackend) -> None:
    for n in (1, 2):
        said(store, f"e{n}", "Disk full on the build host", "error")
        said(store, f"f{n}", "Prune the docker images", "solution")
        Relationships(store).relate(f"f{n}", f"e{n}", "resolves", SHOP)
    Patterns(store).mine("shop")
    assert [each.usage_count for each in patterns(store, "error_solution")] == [2]


def test_repeated_decisions_conventions_and_commands_are_patterns(store: StorageBackend) -> None:
    said(store, "d1", "Use Postgres for the order service", "decision")
    said(store, "d2", "Use Postgres for the invoice service", "decision")
    said(store, "c1", "We talked for long. Always write tests before the code.")
    said(store, "c2", "Reminder: always write the tests before code!")
    said(store, "k1", "run `pytest tests/unit -q` first")
    said(store, "k2", "the build failed on `pytest tests/unit`", "error")
    Patterns(store).mine("shop")
    assert [each.pattern_name for each in patterns(store, "decision")] == ["Use Postgres for the order service"]
    (convention,) = patterns(store, "convention")
    assert convention.memory_ids == ("c1", "c2")
    (command,) = patterns(store, "command")
    assert (command.pattern_name, command.usage_count, command.success_rate) == ("pytest", 2, 0.5)


def test_what_was_done_several_times_is_a_pattern_with_how_it_went(store: StorageBackend) -> None:
    for n, went in enumerate(("it worked well", "it failed with deadlocks", "it failed at first, but worked later")):
        said(store, f"r{n}", f"The repository layer hides data access in module {n}: {went}", "pattern")
    for key, went in (("b1", "success"), ("b2", "FAILED")):
        text, outcome = f"Blue-green deployment of the shop, run {key}", {"outcome": went}
        said(store, key, text, "insight", content_json=outcome, category="deployment")
    said(store, "n1", "Blue-green deployment of the shop", "note")
    Patterns(store).mine("shop")
    (layer,) = patterns(store, "practice")
    assert (layer.usage_count, layer.success_rate) == (3, 0.6667)
    assert layer.memory_ids == ("r0", "r1", "r2")
    (deployment,) = patterns(store, "deployment")
    assert (deployment.memory_ids, deployment.success_rate) == (("b1", "b2"), 0.5)
    assert deployment.pattern_data_json["failed_ids"] == ["b2"]


def test_a_practice_is_known_wherever_it_was_tried(store: StorageBackend) -> None:
    for key, text in (
        ("a", "Retry with exponential backoff when the payment API returns 503 worked well"),
        ("b", "Used retry with exponential backoff for the mail API, success"),
        ("c", "Retrying with exponential backoff on the SMS API failed because of rate limits"),
        ("other", "Contract tests between the mail service and the shop caught two bugs"),
    ):
        said(store, key, text, "pattern", category="api")
    Patterns(store).mine("shop")
    (found,) = store.find(ProjectPattern, SHOP)
    assert (found.pattern_type, found.usage_count, found.success_rate) == ("api", 3, 0.6667)
    assert set(found.memory_ids) == {"a", "b", "c"}


def test_a_problem_is_solved_by_what_names_the_same_error_in_the_same_place(store: StorageBackend) -> None:
    for n, part in enumerate(("an empty basket", "a closed basket")):
        said(store, f"e{n}", f"KeyError in src/cart.py for {part}", "error")
        said(store, f"f{n}", f"Checking for {part} fixed the KeyError in src/cart.py", "solution")
    said(store, "open", "KeyError in src/prices.py", "error")
    Patterns(store).mine("shop")
    (found,) = store.find(ProjectPattern, SHOP)
    assert (found.pattern_type, found.usage_count) == ("error_solution", 2)
    unsolved = [gap for gap in ContextGaps(store).suggest_context_gaps(SHOP) if gap.kind == "unsolved_problem"]
    assert [gap.memory_ids for gap in unsolved] == [("open",)]


def test_mining_twice_changes_nothing(store: StorageBackend, local: EmbeddingProvider) -> None:
    two_timeouts(store)
    miner = Patterns(store, local, MemoryWriter(store, local))
    first = miner.mine("shop")
    before = patterns(store)
    again = miner.mine("shop")
    assert len(first.created) == len(again.unchanged) > 0
    assert again.created == again.updated == again.removed == ()
    assert patterns(store) == before
    assert before[0].embedding is not None


def test_what_comes_later_is_added_to_what_was_mined(store: StorageBackend) -> None:
    two_timeouts(store)
    miner = Patterns(store)
    miner.mine("shop")
    (before,) = patterns(store, "error_solution")
    said(store, "e3", "TimeoutError calling the payment gateway, attempt 3", "error", session_id="s3")
    said(store, "f3", "Retry the payment gateway with backoff", "solution", session_id="s3")
    report = miner.mine("shop")
    (after,) = patterns(store, "error_solution")
    assert (after.id, after.created_at, after.usage_count) == (before.id, before.created_at, 3)
    assert before.id in report.updated
    store.delete(Memory, ["f2", "f3"], SHOP)
    assert before.id in miner.mine("shop").removed
    assert patterns(store, "error_solution") == []


def test_the_order_in_which_memories_come_does_not_matter() -> None:
    kinds = ("error", "solution", "decision", "note")
    words = ("cache", "login", "deploy", "index", "always", "timeout")
    rng = random.Random(7)
    memories = [
        make.a_memory(
            id=f"m{n:02d}",
            content=" ".join(rng.choices(words, k=4)),
            memory_type=rng.choice(kinds),
            session_id=f"s{n % 4}",
            created_at=START + timedelta(minutes=n // 2),
        )
        for n in range(40)
    ]
    meant = mine(memories, Facts())
    assert meant
    for seed in range(3):
        shuffled = memories.copy()
        random.Random(seed).shuffle(shuffled)
        assert mine(shuffled, Facts()) == meant


def test_patterns_made_by_hand_are_left_alone(store: StorageBackend) -> None:
    by_hand = make.a_pattern(id="mine", pattern_type="command", pattern_name="git push")
    store.save(by_hand)
    said(store, "k1", "`git push`")
    said(store, "k2", "`git push`")
    Patterns(store).mine("shop")
    store.delete(Memory, ["k1", "k2"], SHOP)
    Patterns(store).mine("shop")
    assert patterns(store) == [by_hand]


def test_private_memories_and_other_projects_stay_out_of_patterns(store: StorageBackend) -> None:
    two_timeouts(store, is_private=True)
    said(store, "x", "`git push`", project_id="bank")
    said(store, "y", "`git push`")
    Patterns(store).mine("shop")
    assert patterns(store) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`docker compose up -d`", {"docker compose up": "docker compose up -d"}),
        ("$ sudo apt-get install jq", {"apt-get install jq": "sudo apt-get install jq"}),
        ("the `TypeError` in `main.py`", {}),
        ("`make` it", {"make": "make"}),
    ],
)
def test_commands_are_known_by_their_tool(text: str, found: dict[str, str]) -> None:
    assert commands(text) == found


# ---------------------------------------------------------------------- across projects


def test_similar_patterns_are_found_in_the_users_other_projects(store: StorageBackend) -> None:
    store.save_many([make.a_project(id="shop", name="shop"), make.a_project(id="bank", name="bank")])
    store.save(make.a_project(id="spy", name="spy", user_id="eve"))
    text = "retry the gateway with backoff"
    for project in ("shop", "bank", "spy"):
        store.save(
            make.a_pattern(id=f"p-{project}", project_id=project, pattern_name="retry", pattern_description=text)
        )
    store.save(make.a_pattern(id="other", project_id="bank", pattern_name="tabs", pattern_description="indent by four"))
    found = Patterns(store).find_similar_patterns("p-shop", "shop", user_id="ana")
    assert [(each.pattern.id, each.similarity) for each in found] == [("p-bank", 1.0)]
    assert "backoff" in found[0].shared_words
    alone = Patterns(store).find_similar_patterns("backoff of the gateway", "shop")
    assert [each.pattern.id for each in alone] == ["p-shop"]


def test_similar_patterns_are_found_by_meaning(store: StorageBackend, local: EmbeddingProvider) -> None:
    writer = MemoryWriter(store, local)
    writer.save(make.a_pattern(id="a", project_id="bank", pattern_name="x", pattern_description="write tests first"))
    writer.save(make.a_pattern(id="b", project_id="bank", pattern_name="y", pattern_description="paint walls green"))
    found = Patterns(store, local).find_similar_patterns(
        "test-driven development", "shop", projects=["bank"], min_similarity=0.25
    )
    assert [each.pattern.id for each in found] == ["a"]


def test_insights_come_from_several_projects_of_one_user(store: StorageBackend) -> None:
    for project in ("shop", "bank"):
        said(store, f"e-{project}", "TimeoutError calling the gateway", "error", session_id=project, project_id=project)
        said(store, f"f-{project}", "Retry calls of the gateway", "solution", session_id=project, project_id=project)
    said(store, "d1", "The cart is blue", "decision", project_id="shop")
    said(store, "d2", "Accounts close on Sundays", "decision", project_id="bank")
    said(store, "bob1", "Always encrypt the backups", project_id="shop", user_id="bob")
    said(store, "bob2", "Always encrypt backups", project_id="bank", user_id="bob")
    (insight,) = Patterns(store).get_cross_project_insights("ana")
    assert insight.projects == ("bank", "shop")
    assert insight.evidence == {"bank": ("e-bank", "f-bank"), "shop": ("e-shop", "f-shop")}
    assert (insight.pattern_type, insight.success_rate, insight.usage_count) == ("error_solution", 1.0, 2)
    assert [each.pattern_type for each in Patterns(store).get_cross_project_insights("bob")] == ["convention"]
    assert Patterns(store).get_cross_project_insights("eve") == []


def test_what_recurs_in_one_project_alone_is_not_an_insight(store: StorageBackend) -> None:
    two_timeouts(store)
    assert Patterns(store).get_cross_project_insights("ana") == []
