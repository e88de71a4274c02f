"""Reranking: a newer version of a fact comes before the older one; the same text counts once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from alma.model.memory import Memory
from alma.model.record import Record
from alma.retrieval.packing import say_the_same
from alma.retrieval.scoring import ScoredRecord
from alma.retrieval.supersession import newest_first, statements_of
from alma.testing import builders as make
from alma.text.tokens import query_terms

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)


def said(text: str, day: int = 0, score: float = 0.5, speaker: str = "", **changes: object) -> ScoredRecord:
    moment = NOON + timedelta(days=day)
    memory = Memory(content=text, title=speaker, event_time=moment, project_id="p", **changes)  # type: ignore[arg-type]
    return ScoredRecord(memory, {"words": score}, ("words",))


def ranked(query: str, *scored: ScoredRecord) -> list[ScoredRecord]:
    """The records, best first, once newer versions have taken the places of older ones."""
    statements = statements_of(scored, frozenset(query_terms(query)), NOON + timedelta(days=9))
    newest_first(statements, {}, query)
    return sorted(scored, key=lambda each: -each.score)


def same(one: Record, other: Record) -> bool:
    items = [ScoredRecord(each, {"words": 0.5}, ("words",)) for each in (one, other)]
    first, second = statements_of(items, frozenset(), NOON)
    return say_the_same(first, second)


OLD = "The team meets on Monday at ten"
NEW = "The team meets on Friday at ten"
QUESTION = "when does the team meet"


def test_a_newer_version_takes_the_place_of_the_older_one() -> None:
    old, new = said(OLD, day=0, score=0.9), said(NEW, day=1, score=0.8)
    assert ranked(QUESTION, old, new) == [new, old]
    assert old.score == pytest.approx(0.8)
    assert new.score == pytest.approx(0.9, abs=1e-5)


def test_of_three_versions_the_newest_comes_first() -> None:
    oldest, newest = said(OLD, day=0, score=0.9), said(NEW, day=2, score=0.7)
    middle = said("The team meets on Tuesday at ten", day=1, score=0.8)
    assert ranked(QUESTION, oldest, middle, newest)[0] is newest


@pytest.mark.parametrize(
    ("query", "newer", "owner"),
    [
        (QUESTION, said(NEW, day=0, score=0.8), ""),
        (QUESTION, said("The orchestra rehearses in the old hall", day=1, score=0.8), ""),
        (QUESTION, said("The orchestra meets on Friday at ten", day=1, score=0.8), ""),
        ("who won the match", said(NEW, day=1, score=0.8), ""),
        (QUESTION, said(NEW, day=1, score=0.8, speaker="Ben"), "Ana"),
    ],
    ids=["same moment", "other subject", "answers less", "not asked about", "other speaker"],
)
def test_a_version_that_is_not_newer_changes_nothing(query: str, newer: ScoredRecord, owner: str) -> None:
    old = said(OLD, day=0, score=0.9, speaker=owner)
    assert ranked(query, old, newer) == [old, newer]
    assert old.score == 0.9


def test_the_time_that_is_asked_for_keeps_an_older_version_first() -> None:
    old, new = said(OLD, day=0, score=0.9), said(NEW, day=1, score=0.8)
    old.terms["time"] = 0.2
    assert ranked(QUESTION, old, new) == [old, new]


def test_the_same_words_in_another_order_are_no_repetition() -> None:
    assert not same(make.a_memory(content=OLD), make.a_memory(content="At ten: team met, met on Monday"))
    assert same(make.a_memory(content=OLD), make.a_memory(content="the TEAM, meeting on Mondays: at ten!"))


MINUTES = (
    "The platform team walked through every open incident, compared dashboards with customer tickets, measured "
    "how quickly engineers answered pages, discussed which runbooks were outdated, assigned owners for missing "
    "alerts, planned capacity for autumn campaigns, estimated storage growth, verified backups by restoring "
    "samples, rotated credentials, archived unused repositories, cleaned stale branches, documented onboarding "
    "steps, agreed on naming conventions, reviewed vendor invoices, negotiated licence renewals, scheduled "
    "penetration tests, updated diagrams, tagged releases, migrated legacy cron jobs, tuned database indexes, "
    "removed feature flags, and decided that the limit "
)


@pytest.mark.parametrize("minutes", ["The limit ", MINUTES], ids=["short", "long"])
@pytest.mark.parametrize(
    ("end", "other_end"),
    [
        ("is 30", "is 40"),
        ("is set by Anna", "is set by Hanna"),
        ("is enforced", "is not enforced"),
        ("applies with Redis", "applies without Redis"),
        ("is raised", "is lowered"),
        ("costs $5", "costs €5"),
        ("is in /etc/app/conf", "is in /etc/app.conf"),
    ],
)
def test_however_long_a_text_is_one_word_or_sign_may_say_something_else(minutes: str, end: str, other_end: str) -> None:
    assert not same(make.a_memory(content=minutes + end), make.a_memory(content=minutes + other_end))


def test_a_long_text_in_other_letters_is_a_repetition() -> None:
    assert same(make.a_memory(content=f"{MINUTES}holds."), make.a_memory(content=f"{MINUTES}HOLDS"))


def test_what_another_one_said_is_not_a_repetition() -> None:
    assert not same(make.a_memory(title="Ana", content=OLD), make.a_memory(title="Ben", content=OLD))


def test_a_failure_is_not_a_repetition_of_a_success() -> None:
    assert not same(make.an_outcome(success=True), make.an_outcome(success=False))


def test_only_the_best_short_texts_are_compared() -> None:
    many = [said("word " * 1000), *(said(f"statement {number}") for number in range(100))]
    compared = [each.scored for each in statements_of(many, frozenset(), NOON)]
    assert compared == many[1:40]
