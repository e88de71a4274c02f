"""Lists of texts and JSON arrive at PostgreSQL unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.storage.postgres.types import Floats, Texts, listed, register_values

_TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8), min_size=1, max_size=8)


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_dsn) as connection:
        register_values(connection)
        yield connection


def sent(connection: psycopg.Connection[Any], texts: list[str]) -> list[str]:
    [(arrived,)] = connection.execute("SELECT %(texts)s", listed({"texts": texts})).fetchall()
    return list(arrived)


@given(texts=_TEXTS)
def test_a_list_of_texts_arrives_as_it_is(connection: psycopg.Connection[Any], texts: list[str]) -> None:
    assert sent(connection, texts) == texts


@pytest.mark.parametrize("text", ["", "NULL", '"', "\\", 'a","b', "{}", "a,b", " padded ", "\n", "ü€😀"])
def test_what_arrays_are_written_with_is_a_text_like_any_other(connection: psycopg.Connection[Any], text: str) -> None:
    assert sent(connection, [text, "x", text]) == [text, "x", text]


def test_a_text_that_the_server_cannot_hold_is_refused(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.DataError):
        sent(connection, ["a\x00b"])


def test_other_values_are_left_to_the_driver() -> None:
    values = {"none": [], "numbers": [1, 2], "mixed": ["a", None], "text": "a", "texts": ["a"]}
    assert [name for name, value in listed(values).items() if isinstance(value, Texts)] == ["texts"]


@pytest.mark.parametrize("document", ["{}", "[]", '{"a": [1, {}]}', '"{}"', "null", "0"])
def test_json_arrives_as_it_is(connection: psycopg.Connection[Any], document: str) -> None:
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            [(arrived,)] = cursor.execute("SELECT %s::jsonb", (document,)).fetchall()
            assert arrived == json.loads(document)


def test_no_two_records_share_an_empty_document(connection: psycopg.Connection[Any]) -> None:
    [(first, second)] = connection.execute("SELECT '{}'::jsonb, '{}'::jsonb").fetchall()
    assert first is not second


@pytest.mark.parametrize("numbers", [[], [0.1], [1e-300, -2.5, 1 / 3, 12345678.9]])
def test_a_list_of_numbers_arrives_as_it_is(connection: psycopg.Connection[Any], numbers: list[float]) -> None:
    assert connection.execute("SELECT %(numbers)s", {"numbers": Floats(numbers)}).fetchall() == [(numbers,)]
