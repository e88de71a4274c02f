"""Random records and questions on Azure Cosmos DB: its answers are those of plain Python and of the other stores."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.model.kinds import KINDS
from alma.model.learning import DomainKnowledge
from alma.model.memory import Memory
from alma.model.query import Cursor, is_after, matches, parsed, sort_key
from alma.model.record import Record
from alma.storage.base import StorageBackend
from alma.testing.strategies import orders, predicates, vectors
from tests.agreement.conftest import Stores
from tests.agreement.stores import DIMS, EVERYWHERE, population, refill
from tests.support.examples import examples

KEPT = [cls for cls in KINDS if not cls.spec.append_only]


@examples(8)
@given(data=st.data())
def test_every_kind_comes_back_and_every_question_is_answered(
    cosmos_store: StorageBackend, data: st.DataObject
) -> None:
    cls: type[Record] = data.draw(st.sampled_from(KEPT))
    batch = data.draw(population(cls))
    refill(cosmos_store, cls, batch)
    assert cosmos_store.find(cls, EVERYWHERE) == sorted(batch, key=sort_key(()))
    for _ in range(2):
        where = data.draw(predicates(cls.spec, batch))
        order = data.draw(orders(cls.spec))
        limit = data.draw(st.none() | st.integers(0, 4))
        after = data.draw(st.none() | st.sampled_from(batch)) if batch else None
        cursor = None if after is None else Cursor.after(after, order)
        meant = [record for record in batch if matches(parsed(cls.spec, where), record)]
        assert cosmos_store.count(cls, EVERYWHERE, where) == len(meant)
        meant = sorted((r for r in meant if cursor is None or is_after(r, cursor, order)), key=sort_key(order))[:limit]
        assert cosmos_store.find(cls, EVERYWHERE, where, order, limit, cursor) == meant


@pytest.mark.parametrize("cls", [Memory, DomainKnowledge], ids=lambda cls: cls.spec.kind)
@examples(2)
@given(data=st.data())
def test_cosmos_finds_what_the_other_stores_find(
    stores: Stores, cosmos_store: StorageBackend, cls: type[Record], data: st.DataObject
) -> None:
    batch = data.draw(population(cls))
    where = data.draw(predicates(cls.spec, batch))
    wanted = data.draw(vectors(DIMS))
    query = data.draw(st.sampled_from(["forms", "LOGIN x1", "テスト", "naive nothing", "the form"]))
    answers: dict[str, Any] = {}
    for name, store in {**stores, "cosmos": cosmos_store}.items():
        refill(store, cls, batch)
        found: list[Any] = [store.find(cls, EVERYWHERE, where), store.count(cls, EVERYWHERE, where)]
        if cls.spec.text:
            found.append({key for key, _ in store.matching_ids(cls, query, EVERYWHERE, where, limit=100)})
        if cls.spec.embeds:
            nearest = store.nearest_ids(cls, wanted, EVERYWHERE, where, limit=100)
            found += [dict(nearest).keys(), dict(nearest)]
        answers[name] = found
    assert answers["cosmos"][:4] == answers["sqlite"][:4] == answers["postgresql"][:4] == answers["files"][:4]
    for name in ("sqlite", "postgresql", "files") if cls.spec.embeds else ():
        assert answers["cosmos"][4] == pytest.approx(answers[name][4], abs=1e-6), name
