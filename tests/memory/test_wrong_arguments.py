"""Wrong values for ids, attributions or directories are one-sentence errors without side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alma.core import ALMA
from alma.errors import ValidationError
from alma.model.memory import Memory
from alma.model.scope import Scope

SHOP = Scope(project_id="default")
WRONG: Any = None
A_NUMBER: Any = 5


@pytest.fixture
def alma() -> Iterator[ALMA]:
    with ALMA.quickstart("memory://", embedding_provider="mock") as opened:
        yield opened


@pytest.mark.parametrize(
    "call",
    [
        lambda alma, by: alma.journal.delete("m", SHOP, by=by),
        lambda alma, by: alma.journal.undelete("m", SHOP, by=by),
        lambda alma, by: alma.journal.demote("m", SHOP, by=by),
        lambda alma, by: alma.journal.promote(SHOP, by=by),
        lambda alma, by: alma.journal.mark_helpful("m", SHOP, by=by),
        lambda alma, by: alma.journal.record_reads(["m"], by),
        lambda alma, by: alma.relationships.of("m", SHOP, by=by),
        lambda alma, by: alma.relationships.neighbours("m", SHOP, by=by),
    ],
)
@pytest.mark.parametrize("by", [None, "helena"])
def test_who_acts_is_an_attribution(alma: ALMA, call: Callable[[ALMA, Any], object], by: Any) -> None:
    with pytest.raises(ValidationError, match=r"\.by must be an Attribution, for example"):
        call(alma, by)


@pytest.mark.parametrize(
    "call",
    [
        lambda alma: alma.journal.promote(SHOP, memory_ids=A_NUMBER),
        lambda alma: alma.journal.record_reads(A_NUMBER),
        lambda alma: alma.journal.record_reads(["m", A_NUMBER]),
        lambda alma: alma.working.hold("s", A_NUMBER, SHOP),
        lambda alma: alma.archive.find(SHOP, record_ids=A_NUMBER),
        lambda alma: alma.patterns.find_similar_patterns("p", "default", projects=A_NUMBER),
        lambda alma: alma.journal.get_context(SHOP, directory=A_NUMBER),
        lambda alma: alma.journal.get_context(SHOP, directory="x" * 5_000),
        lambda alma: alma.projects.initialize(user_id="u", path="\0"),
        lambda alma: alma.writer.save(WRONG),
    ],
)
def test_an_invalid_id_path_or_record_is_refused(alma: ALMA, call: Callable[[ALMA], object]) -> None:
    with pytest.raises(ValidationError):
        call(alma)


def test_reads_are_counted_also_after_something_was_no_id(alma: ALMA) -> None:
    kept = alma.journal.create("the login form has five fields", project_id="default")
    with pytest.raises(ValidationError, match="record_reads"):
        alma.journal.record_reads([A_NUMBER, kept.id])
    alma.journal.record_reads([kept.id])
    alma.journal.flush()
    assert alma.storage.require(Memory, kept.id, SHOP).access_count == 1


def test_one_relation_may_be_given_by_its_name(alma: ALMA) -> None:
    one = alma.journal.create("the login form has five fields", project_id="default")
    other = alma.journal.create("the sign-up form has six", project_id="default")
    alma.relationships.relate(one.id, other.id, "supports", SHOP)
    found = alma.relationships.of(one.id, SHOP, relations="supports")
    assert [each.memory.id for each in found] == [other.id]
