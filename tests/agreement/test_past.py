"""Random writes, random questions about the past: every store answers as its own answers then were."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from alma import clock
from alma.model.memory import Memory
from alma.model.query import And, Compare, Cursor, Has, In, Order
from alma.model.record import Record
from alma.model.scope import Scope
from tests.agreement.conftest import Stores
from tests.agreement.stores import EVERYWHERE
from tests.support.examples import examples

IDS = ("a", "b", "c", "d")
SHOP = Scope(project_id="shop")
ORDER = (Order("importance_score", "desc"),)

saves = st.builds(
    lambda key, word, weight, tags: Memory(
        id=key, project_id="shop", content=word, importance_score=weight, tags=tags, embedding=[0.1, 0.2, 0.3]
    ),
    st.sampled_from(IDS),
    st.sampled_from(("tea", "coffee", "milk")),
    st.sampled_from((0.2, 0.5, 0.9)),
    st.sampled_from(((), ("x",), ("x", "y"))),
)
steps = st.lists(saves | st.sampled_from(IDS), min_size=1, max_size=8)
questions = st.sampled_from(
    (
        And(),
        Compare("content", "eq", "tea"),
        Has("tags", "x"),
        In("id", IDS[:2]),
        Compare("importance_score", "ge", 0.5),
    )
)


def bare(records: list[Any]) -> list[Record]:
    return [record.replace(embedding=None) for record in records]


@examples(6)
@given(history=steps, where=questions, limit=st.sampled_from((None, 1, 2)))
def test_the_past_answers_as_the_present_did_then(
    stores: Stores, history: list[Memory | str], where: Any, limit: int | None
) -> None:
    for name, store in stores.items():
        store.delete_where(Memory, EVERYWHERE, And())
        then: list[tuple[datetime, list[Record], list[Record]]] = []
        for step in history:
            if isinstance(step, str):
                store.delete(Memory, [step], EVERYWHERE)
            else:
                store.save(step)
            answer = bare(store.find(Memory, SHOP, where, ORDER, limit))
            behind = Cursor.after(answer[0], ORDER) if answer else None
            page = bare(store.find(Memory, SHOP, where, ORDER, limit, behind)) if behind else []
            then.append((clock.now(), answer, page))
        for moment, answer, page in then:
            assert store.find(Memory, SHOP, where, ORDER, limit, as_of=moment) == answer, name
            if answer:
                behind = Cursor.after(answer[0], ORDER)
                assert store.find(Memory, SHOP, where, ORDER, limit, behind, as_of=moment) == page, name
            for key in IDS:
                alone = store.get(Memory, key, SHOP, as_of=moment)
                assert alone == next(iter(store.find(Memory, SHOP, In("id", [key]), as_of=moment)), None), name
