"""Random memories, relationships and walks: every store reaches the same, and what plain Python reaches."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import EVERYTHING, And, Compare, In, matches
from alma.model.scope import Scope
from tests.agreement.conftest import Stores
from tests.agreement.stores import EVERYWHERE
from tests.support.examples import examples

IDS = ("a", "b", "c", "d", "é", "f")
TYPES = ("builds_on", "supersedes", "relates_to")

memories = st.lists(
    st.builds(
        lambda key, project, active: Memory(id=key, project_id=project, content="x", is_active=active),
        st.sampled_from(IDS),
        st.sampled_from(("shop", "bank")),
        st.sampled_from((True, True, True, False)),
    ),
    min_size=1,
    unique_by=lambda memory: memory.id,
)
edges = st.lists(
    st.tuples(
        st.sampled_from(IDS),
        st.sampled_from(IDS),
        st.sampled_from(TYPES),
        st.sampled_from((0.2, 0.8)),
    ),
    max_size=14,
    unique_by=lambda edge: edge[:3],
)


def plainly(
    known: dict[str, Memory], links: list[MemoryRelationship], starts: list[str], direction: str, depth: int
) -> list[tuple[str, int]]:
    """What is reached, told from all that is known inside the scope."""
    pairs = {(e.from_memory_id, e.to_memory_id) for e in links}
    either_way = {(e.from_memory_id, e.to_memory_id) for e in links if e.relationship_type == "relates_to"}
    pairs |= {(to, source) for source, to in either_way}
    steps = {
        "out": pairs,
        "in": {(to, source) for source, to in pairs},
        "both": pairs | {(to, source) for source, to in pairs},
    }[direction]
    depths = {start: 0 for start in starts if start in known}
    for far in range(1, depth + 1):
        for source, to in steps:
            if depths.get(source) == far - 1 and to in known:
                depths.setdefault(to, far)
    return sorted(((key, far) for key, far in depths.items() if far), key=lambda each: (each[1], each[0]))


@examples(25)
@given(data=st.data())
def test_every_store_reaches_the_same_memories(stores: Stores, data: st.DataObject) -> None:
    batch = data.draw(memories)
    there = {memory.id for memory in batch}
    links = [
        MemoryRelationship(id=f"{n}", from_memory_id=a, to_memory_id=b, relationship_type=kind, strength=strength)
        for n, (a, b, kind, strength) in enumerate(data.draw(edges))
        if a != b and a in there and b in there
    ]
    starts = data.draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=2))
    scope = data.draw(st.sampled_from((EVERYWHERE, Scope(project_id="shop"))))
    where: Any = data.draw(st.sampled_from((EVERYTHING, Compare("is_active", "eq", True))))
    along: Any = data.draw(
        st.sampled_from((EVERYTHING, In("relationship_type", TYPES[:2]), Compare("strength", "ge", 0.5)))
    )
    direction: Any = data.draw(st.sampled_from(("out", "in", "both")))
    depth = data.draw(st.integers(1, 4))
    limit = data.draw(st.sampled_from((1, 3, 100)))
    inside = And(scope.predicate(Memory.spec), where)
    known = {memory.id: memory for memory in batch if matches(inside, memory)}
    meant = plainly(known, [link for link in links if matches(along, link)], starts, direction, depth)[:limit]
    for name, store in stores.items():
        with store.transaction() as tx:
            tx.delete_where(Memory, EVERYWHERE, And())
            tx.save(*batch, *links)
        found = store.reachable(starts, scope, where, along, direction, depth, limit)
        assert [(each.id, each.depth) for each in found] == meant, name


def test_a_large_circle_with_many_chords_is_walked_once(stores: Stores) -> None:
    size = 300
    batch = [Memory(id=f"n{n:03d}", content="x") for n in range(size)]
    pairs = {(n, (n + step) % size) for n, step in itertools.product(range(size), (1, 7, 31))}
    links = [
        MemoryRelationship(from_memory_id=f"n{a:03d}", to_memory_id=f"n{b:03d}", relationship_type="references")
        for a, b in sorted(pairs)
    ]
    answers = {}
    for name, store in stores.items():
        with store.transaction() as tx:
            tx.delete_where(Memory, EVERYWHERE, And())
            tx.save(*batch, *links)
        answers[name] = store.reachable(["n000"], EVERYWHERE, max_depth=16)
    assert answers["sqlite"] == answers["postgresql"] == answers["files"]
    assert len(answers["sqlite"]) == size - 1
