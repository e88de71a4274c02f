"""Streaming JSON gives the same values as parsing it at once."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.importers import sources
from alma.importers.sources import JsonStream
from alma.testing.strategies import json_objects


def elements(text: str, whole: frozenset[str] = frozenset()) -> list[tuple[str | None, bool, Any]]:
    return list(JsonStream(io.StringIO(text)).elements(whole))


@given(st.lists(json_objects() | st.integers() | st.text() | st.none(), max_size=5), st.integers(1, 9), st.booleans())
def test_an_array_is_the_same_in_pieces_of_any_size(values: list[Any], size: int, pretty: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_CHUNK", size)
        text = json.dumps(values, indent=2 if pretty else None)
        assert elements(text) == [(None, True, value) for value in json.loads(text)]


@given(json_objects(), st.integers(1, 9))
def test_an_object_is_its_members_and_the_elements_of_its_lists(value: dict[str, Any], size: int) -> None:
    expected: list[tuple[str | None, bool, Any]] = []
    for key, member in value.items():
        listed = isinstance(member, list)
        expected.extend((key, listed, each) for each in (member if listed else [member]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_CHUNK", size)
        assert elements(json.dumps(value)) == expected


def test_an_object_that_is_a_row_stays_whole() -> None:
    assert elements('{"id": 1, "tags": [1, 2]}', frozenset({"id"})) == [(None, True, {"id": 1, "tags": [1, 2]})]


@pytest.mark.parametrize("text", ["", "[1, 2", '[{"a": 1]', "[1] 2", '{"a" 1}', "[1,, 2]", "{1: 2}", "nonsense"])
def test_invalid_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="character"):
        elements(text)
