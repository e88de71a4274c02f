"""Random records, random questions, every store: the answers agree with each other and with plain Python."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.model.kinds import KINDS
from alma.model.query import Cursor, is_after, matches, parsed, sort_key
from alma.model.record import Record
from alma.testing.strategies import orders, predicates, vectors
from alma.text.tokens import query_terms, terms
from tests.agreement.conftest import Stores
from tests.agreement.stores import DIMS, EVERYWHERE, population, refill
from tests.support.examples import examples

SAVEABLE = [cls for cls in KINDS if not cls.spec.append_only]
SEARCHABLE = [cls for cls in SAVEABLE if cls.spec.text]
EMBEDDED = [cls for cls in SAVEABLE if cls.spec.embeds]


def by_kind(kinds: list[type[Record]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("cls", kinds, ids=lambda cls: cls.spec.kind)


@by_kind(list(KINDS))
@examples(10)
@given(data=st.data())
def test_every_record_of_every_kind_comes_back_from_every_store(
    stores: Stores, cls: type[Record], data: st.DataObject
) -> None:
    batch = data.draw(population(cls, size=4))
    for name, store in stores.items():
        refill(store, cls, batch)
        found = store.find(cls, EVERYWHERE)
        if cls.spec.numbered:
            # An id, and an audit event's place in its chain, are what the store gives.
            given_by_store = dict.fromkeys(
                {cls.spec.key, "chain", "chain_position", "chain_hash"} & cls.spec.field_names
            )
            found = [record.replace(**given_by_store) for record in found[len(found) - len(batch) :]]
            assert found == [record.replace(**given_by_store) for record in batch], name
        else:
            assert found == sorted(batch, key=sort_key(())), name


@by_kind(SAVEABLE)
@examples(10)
@given(data=st.data())
def test_every_store_answers_every_question_as_python_does(
    stores: Stores, cls: type[Record], data: st.DataObject
) -> None:
    batch = data.draw(population(cls))
    where = data.draw(predicates(cls.spec, batch))
    order = data.draw(orders(cls.spec))
    limit = data.draw(st.none() | st.integers(0, 4))
    after = data.draw(st.none() | st.sampled_from(batch).map(lambda r: Cursor.after(r, order))) if batch else None
    meant = [record for record in batch if matches(parsed(cls.spec, where), record)]
    count = len(meant)
    meant = sorted((r for r in meant if after is None or is_after(r, after, order)), key=sort_key(order))[:limit]
    for name, store in stores.items():
        refill(store, cls, batch)
        assert store.find(cls, EVERYWHERE, where, order, limit, after) == meant, name
        assert store.count(cls, EVERYWHERE, where) == count, name


@by_kind(SEARCHABLE)
@examples(10)
@given(data=st.data())
def test_every_store_finds_the_same_words(stores: Stores, cls: type[Record], data: st.DataObject) -> None:
    batch = data.draw(population(cls))
    query = data.draw(st.sampled_from(["forms", "LOGIN x1", "テスト", "naive nothing", "the form", "absent", "the"]))
    where = data.draw(predicates(cls.spec, batch))
    wanted = set(query_terms(query))
    meant = {r.key for r in batch if wanted & set(terms(r.text())) and matches(parsed(cls.spec, where), r)}
    for name, store in stores.items():
        refill(store, cls, batch)
        hits = store.search_text(cls, query, EVERYWHERE, where, limit=100)
        assert {hit.record.key for hit in hits} == meant, name
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True), name
        assert all(0 < score < math.inf for score in scores), name


@by_kind(EMBEDDED)
@examples(10)
@given(data=st.data())
def test_every_store_measures_the_same_angles(stores: Stores, cls: type[Record], data: st.DataObject) -> None:
    batch = data.draw(population(cls))
    wanted = data.draw(vectors(DIMS))
    where = data.draw(predicates(cls.spec, batch))
    answers = {}
    for name, store in stores.items():
        refill(store, cls, batch)
        answers[name] = {h.record.key: h.score for h in store.search_vector(cls, wanted, EVERYWHERE, where, limit=100)}
    embedded = {r.key for r in batch if r.embedding is not None and matches(parsed(cls.spec, where), r)}  # type: ignore[attr-defined]
    assert set(answers["sqlite"]) == embedded
    assert answers["files"] == pytest.approx(answers["sqlite"], abs=1e-9)
    assert answers["postgresql"] == pytest.approx(answers["sqlite"], abs=1e-9)
