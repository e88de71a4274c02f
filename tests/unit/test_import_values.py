"""Times, tags and vectors in the formats of other systems."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from alma.importers.base import RowRefused
from alma.importers.records import entries, moment, tags, text_of, turn_text, vector

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "2024-05-01T12:00:00Z",
        "2024-05-01T14:00:00+02:00",
        "2024-05-01 12:00:00",
        "2024-05-01T12:00:00.000000",
        "2024/05/01 12:00:00",
        "Wed, 01 May 2024 12:00:00 +0000",
        1714564800,
        1714564800.0,
        "1714564800",
        1714564800000,
        1714564800000000,
        datetime(2024, 5, 1, 12),  # noqa: DTZ001 - a time without a zone is the point
    ],
)
def test_a_time_is_read_however_it_is_written(written: Any) -> None:
    assert moment("created_at", written, UTC) == NOON


def test_a_time_without_a_zone_is_one_of_the_zone_given() -> None:
    assert moment("at", "2024-05-01 20:00", ZoneInfo("Asia/Manila")) == NOON
    assert moment("at", "2024-05-01 12:00Z", ZoneInfo("Asia/Manila")) == NOON
    assert moment("at", None, UTC) is None


@pytest.mark.parametrize("written", ["soon", True, [], {}, "2024-13-01", 1e300, "nan", float("nan")])
def test_an_invalid_time_is_refused(written: Any) -> None:
    with pytest.raises(RowRefused, match="created_at is not a time"):
        moment("created_at", written, UTC)


def test_tags_come_from_lists_json_and_commas() -> None:
    assert tags(["a", "b", "a"]) == tags('["a", "b"]') == tags("a, b,") == ("a", "b")
    assert tags(None) == tags("") == tags([]) == ()
    with pytest.raises(RowRefused):
        tags({"a": 1})


def test_vectors_come_from_lists_json_and_bytes() -> None:
    made = [vector(each) for each in ([1, 2], "[1, 2]", struct.pack("<2f", 1, 2), b"[1, 2]")]
    assert all(each is not None and list(each) == [1, 2] for each in made)
    assert vector(None) is None
    for refused in ([], ["a"], [float("nan")], [True], b"abc", "abc", {"a": 1}, [[1]]):
        with pytest.raises(RowRefused):
            vector(refused)


def test_what_a_value_says_is_found() -> None:
    assert text_of({"text": "hello"}) == text_of({"content": {"text": "hello"}}) == "hello"
    assert text_of([{"text": "one"}, "two"]) == "one\ntwo"
    assert text_of({"role": "CEO"}) == "role: CEO"
    assert turn_text({"role": "user", "timestamp": 5}) == ""
    assert text_of({}) == text_of(None) == ""
    assert entries("history", '{"a": 1}') == [("a", 1)]
