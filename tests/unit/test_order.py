"""Order: a newer statement about the same thing comes before the one it overrules, a repetition counts once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from alma.retrieval.order import named_first, newest_first, repeats, same_thing
from alma.retrieval.statements import Statement, cut
from alma.text.tokens import query_terms

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)


def said(
    text: str,
    day: int | None = 0,
    score: float = 0.5,
    owner: str = "",
    voice: str = "",
    id: str | None = None,  # noqa: A002
) -> Statement:
    moment = None if day is None else NOON + timedelta(days=day)
    return Statement(id or text, owner, text, moment, score, voice=voice)


def overruled(question: str, *statements: Statement, **weights: float) -> list[tuple[str, str]]:
    """Which statements are overruled by which, for a question."""
    found: list[tuple[str, str]] = []
    asked = frozenset(query_terms(question))
    newest_first(cut(statements, asked), weights, lambda older, newer: found.append((older.id, newer.id)))
    return found


OLD = "The team meets on Monday at ten"
NEW = "The team meets on Friday at ten"
QUESTION = "when does the team meet"


def test_a_newer_statement_about_the_same_thing_outranks_the_older() -> None:
    assert overruled(QUESTION, said(OLD, day=0, score=0.9), said(NEW, day=1, score=0.8)) == [(OLD, NEW)]


def test_the_order_they_are_given_in_does_not_matter() -> None:
    assert overruled(QUESTION, said(NEW, day=1, score=0.8), said(OLD, day=0, score=0.9)) == [(OLD, NEW)]


def test_a_newer_statement_that_is_ahead_already_stays_there() -> None:
    assert overruled(QUESTION, said(OLD, day=0, score=0.8), said(NEW, day=1, score=0.9)) == []


def test_statements_of_the_same_moment_do_not_overrule_each_other() -> None:
    assert overruled(QUESTION, said(OLD, score=0.9), said(NEW, score=0.8)) == []


def test_statements_without_a_moment_overrule_nothing() -> None:
    assert overruled(QUESTION, said(OLD, day=0, score=0.9), said(NEW, day=None, score=0.8)) == []


def test_statements_about_different_subjects_do_not_swap() -> None:
    other = said("The orchestra rehearses in the old hall", day=1, score=0.8)
    assert overruled(QUESTION, said(OLD, day=0, score=0.9), other) == []


def test_a_statement_that_answers_less_of_the_question_does_not_overrule() -> None:
    partly = said("The orchestra meets on Friday at ten", day=1, score=0.8)
    assert overruled(QUESTION, said(OLD, day=0, score=0.9), partly) == []


def test_statements_that_share_nothing_with_the_question_do_not_swap() -> None:
    assert overruled("who won the match", said(OLD, day=0, score=0.9), said(NEW, day=1, score=0.8)) == []


def test_what_two_people_say_of_themselves_is_not_the_same_thing() -> None:
    ana = said("I live in Lisbon now", day=0, score=0.9, owner="Ana")
    ben = said("I live in Berlin now", day=1, score=0.8, owner="Ben")
    assert overruled("where do you live", ana, ben) == []


def test_of_three_statements_the_newest_overrules_both() -> None:
    oldest = said(OLD, day=0, score=0.9)
    middle = said("The team meets on Tuesday at ten", day=1, score=0.8)
    newest = said(NEW, day=2, score=0.7)
    assert overruled(QUESTION, oldest, middle, newest) == [
        (oldest.id, middle.id),
        (oldest.id, newest.id),
        (middle.id, newest.id),
    ]


def test_a_word_that_says_little_does_not_make_another_subject() -> None:
    older, newer = said("The team meets on Monday", day=0), said("Our team meets on Monday morning", day=1)
    asked = frozenset(query_terms("team meets morning"))
    older, newer = cut([older, newer], asked)
    assert same_thing(older, newer, {"team": 5.0, "meet": 5.0, "morn": 0.01})
    assert not same_thing(older, newer, {"team": 5.0, "meet": 5.0, "morn": 5.0})


def test_a_statement_without_words_is_about_nothing() -> None:
    one, other = cut([said("!?", day=0), said("…", day=1)], frozenset())
    assert not same_thing(one, other, {})
    assert not repeats(one, other)


def test_the_same_words_in_another_form_are_a_repetition() -> None:
    one, other = cut(
        [said("The team meets on Monday."), said("the TEAM met, meets on mondays; on Monday")], frozenset()
    )
    assert not repeats(one, other)
    one, other = cut([said("The team meets on Monday."), said("the TEAM, meeting on Mondays!")], frozenset())
    assert repeats(one, other)


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
    one, other = cut([said(minutes + end), said(minutes + other_end, id="other")], frozenset())
    assert not repeats(one, other)


def test_a_long_text_in_other_letters_is_a_repetition() -> None:
    one, other = cut([said(f"{MINUTES}holds."), said(f"{MINUTES}HOLDS", id="again")], frozenset())
    assert repeats(one, other)


def test_what_another_one_said_is_no_repetition() -> None:
    one, other = cut([said(OLD, voice="Ana"), said(OLD, voice="Ben", id="again")], frozenset())
    assert not repeats(one, other)


def test_long_texts_are_no_statements() -> None:
    assert [statement.id for statement in cut([said("word " * 1000), said("short")], frozenset())] == ["short"]


def test_only_the_best_are_compared() -> None:
    many = [said(f"statement {number}") for number in range(100)]
    assert [statement.id for statement in cut(many, frozenset())] == [statement.id for statement in many[:40]]


def test_what_has_the_name_in_a_question_stands_before_what_is_alike() -> None:
    question = "how many chairs are in room 4"
    four, seven = said("Room 4 has 2 chairs", score=0.8), said("Room 7 has 4 chairs", day=1, score=0.9)
    statements = cut([four, seven], frozenset(query_terms(question)), question)
    found: list[tuple[str, str]] = []
    named_first(statements, {}, lambda having, lacking: found.append((having.id, lacking.id)))
    assert found == [(four.id, seven.id)]
    assert not same_thing(four, seven, {})


def test_a_number_behind_a_function_word_names_nothing() -> None:
    question = "how many chairs were there in 2024"
    [one] = cut([said("In 2024 there were chairs")], frozenset(query_terms(question)), question)
    assert one.named == frozenset()
