"""Relationships: said, said again, detected, followed; and never across a scope."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest

from alma.clock import now
from alma.errors import NotFoundError, ValidationError
from alma.memory.relationships import Relationships
from alma.model.governance import Attribution
from alma.model.memory import Memory, MemoryRelationship
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.support.together import together

EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")


@pytest.fixture
def relationships(store: StorageBackend) -> Relationships:
    return Relationships(store)


def memories(store: StorageBackend, *ids: str, **values: object) -> None:
    store.save_many([make.a_memory(**{"id": each, "content": f"what {each} says", **values}) for each in ids])


def rows(store: StorageBackend) -> list[tuple[str, str, str]]:
    found = store.find(MemoryRelationship, EVERYWHERE)
    return sorted((edge.from_memory_id, edge.relationship_type, edge.to_memory_id) for edge in found)


# ---------------------------------------------------------------------- saying


@pytest.mark.parametrize(
    ("relation", "from_the_other_end"),
    [
        ("resolves", "resolved_by"),
        ("supersedes", "superseded_by"),
        ("builds_on", "built_on_by"),
        ("reply_to", "has_reply"),
        ("references", "referenced_by"),
        ("follow_up", "followed_up_by"),
        ("temporal_before", "temporal_after"),
        ("relates_to", "relates_to"),
        ("contradicts", "contradicts"),
        ("same_context", "same_context"),
        ("depends_on", "depends_on"),
    ],
)
def test_a_relation_and_its_inverse_are_one_row_told_from_two_ends(
    store: StorageBackend, relationships: Relationships, relation: str, from_the_other_end: str
) -> None:
    memories(store, "a", "b")
    relationships.relate("b", "a", relation, SHOP)
    assert [(each.relation, each.memory.id) for each in relationships.of("b", SHOP)] == [(relation, "a")]
    assert [(each.relation, each.memory.id) for each in relationships.of("a", SHOP)] == [(from_the_other_end, "b")]
    if relation != "depends_on":
        relationships.relate("a", "b", from_the_other_end, SHOP)
    assert len(rows(store)) == 1


def test_saying_it_again_makes_it_stronger_and_never_a_duplicate(
    store: StorageBackend, relationships: Relationships
) -> None:
    memories(store, "a", "b")
    first = relationships.relate("a", "b", "builds_on", SHOP, strength=0.4, context="the first draft")
    again = relationships.relate("a", "b", "Builds On", SHOP)
    assert (first.id, first.strength, again.strength) == (again.id, 0.4, 0.7)
    updated = relationships.relate("a", "b", "builds-on", SHOP, strength=0.2, context="less than thought")
    assert (updated.strength, updated.context) == (0.2, "less than thought")
    assert rows(store) == [("a", "builds_on", "b")]


def test_who_said_it_is_kept(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a", "b")
    said = relationships.relate("a", "b", "references", SHOP, by=Attribution(user_id="ana"))
    assert (said.created_by, said.auto_detected) == ("ana", False)


def test_a_memory_is_not_related_to_itself(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a")
    for relation in ("relates_to", "resolved_by", "mine"):
        with pytest.raises(ValidationError, match="must differ"):
            relationships.relate("a", "a", relation, SHOP)


def test_nothing_supersedes_what_superseded_it(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a", "b", "c")
    relationships.relate("b", "a", "supersedes", SHOP)
    relationships.relate("c", "b", "supersedes", SHOP)
    with pytest.raises(ValidationError, match="cycle"):
        relationships.relate("a", "c", "supersedes", SHOP)
    with pytest.raises(ValidationError, match="cycle"):
        relationships.relate("c", "a", "superseded_by", SHOP)
    relationships.relate("c", "b", "supersedes", SHOP)


@pytest.mark.parametrize("name", ["", "1st", "a'b", "x" * 65, "; DROP TABLE memories"])
def test_a_relation_needs_a_proper_name(store: StorageBackend, relationships: Relationships, name: str) -> None:
    memories(store, "a", "b")
    with pytest.raises(ValidationError, match="letters, digits and underscores"):
        relationships.relate("a", "b", name, SHOP)


def test_a_relationship_can_be_taken_back_from_either_end(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a", "b")
    relationships.relate("a", "b", "resolves", SHOP)
    assert relationships.unrelate("b", "a", "resolved_by", SHOP)
    assert not relationships.unrelate("a", "b", "resolves", SHOP)
    assert rows(store) == []


def test_two_writers_of_the_same_relationship_make_one(database: StorageBackend) -> None:
    memories(database, "a", "b")
    relationships = Relationships(database)
    assert together(*[lambda: relationships.relate("a", "b", "builds_on", SHOP)] * 4) == []
    assert rows(database) == [("a", "builds_on", "b")]


# ---------------------------------------------------------------------- scope


def test_both_ends_must_be_seen(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a")
    memories(store, "theirs", project_id="bank")
    memories(store, "private", is_private=True, user_id="bob")
    memories(store, "deleted", is_active=False)
    memories(store, "expired", expires_at=now() - timedelta(days=1))
    for other in ("theirs", "private", "deleted", "expired", "nowhere"):
        for ends in (("a", other), (other, "a")):
            with pytest.raises(NotFoundError):
                relationships.relate(*ends, "relates_to", SHOP)
    assert rows(store) == []


def test_what_a_scope_does_not_show_is_neither_told_nor_walked_through(
    store: StorageBackend, relationships: Relationships
) -> None:
    memories(store, "a", "c")
    memories(store, "b", project_id="bank")
    relationships.relate("a", "b", "builds_on", EVERYWHERE)
    relationships.relate("b", "c", "builds_on", EVERYWHERE)
    assert relationships.of("a", SHOP) == []
    assert relationships.neighbours("a", SHOP, max_depth=3) == []
    assert relationships.paths("a", "c", SHOP) == []
    assert [path.memory_ids for path in relationships.paths("a", "c", EVERYWHERE)] == [("a", "b", "c")]
    with pytest.raises(NotFoundError):
        relationships.of("b", SHOP)


def test_a_user_sees_what_is_private_to_them(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a")
    memories(store, "diary", is_private=True)
    relationships.relate("a", "diary", "references", Scope(user_id="ana"))
    assert [each.memory.id for each in relationships.of("a", Scope(user_id="ana"))] == ["diary"]
    assert relationships.of("a", SHOP) == []


# ---------------------------------------------------------------------- following


def test_neighbours_come_nearest_first_with_the_last_step(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a", "b", "c", "d")
    relationships.relate("b", "a", "resolves", SHOP)
    relationships.relate("c", "b", "builds_on", SHOP)
    relationships.relate("a", "d", "contradicts", SHOP, strength=0.3)
    found = relationships.neighbours("a", SHOP, max_depth=2)
    assert [(n.memory.id, n.depth, n.relation, n.before_id) for n in found] == [
        ("b", 1, "resolved_by", "a"),
        ("d", 1, "contradicts", "a"),
        ("c", 2, "built_on_by", "b"),
    ]
    assert [n.memory.id for n in relationships.neighbours("a", SHOP, max_depth=2, min_strength=0.5)] == ["b", "c"]
    assert [n.memory.id for n in relationships.neighbours("a", SHOP, relations=["resolved_by"])] == ["b"]


def test_a_direction_means_what_the_asked_relation_says(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "new", "old")
    relationships.relate("new", "old", "supersedes", SHOP)

    def led(start: str, relation: str, direction: str) -> list[str]:
        found = relationships.neighbours(start, SHOP, relations=[relation], direction=direction)  # type: ignore[arg-type]
        return [neighbour.memory.id for neighbour in found]

    assert led("new", "supersedes", "out") == ["old"]
    assert led("new", "supersedes", "in") == []
    assert led("old", "superseded_by", "out") == ["new"]
    assert led("old", "supersedes", "in") == ["new"]


def test_what_holds_both_ways_is_followed_both_ways(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a", "b")
    relationships.relate("b", "a", "contradicts", SHOP)
    for start, end in (("a", "b"), ("b", "a")):
        assert [n.memory.id for n in relationships.neighbours(start, SHOP, direction="out")] == [end]


def test_paths_come_shortest_first_and_pass_nothing_twice(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a", "b", "c", "d", "alone")
    for one, other in (("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("b", "c"), ("d", "a")):
        relationships.relate(one, other, "references", SHOP, strength=0.5)
    ways = [path.memory_ids for path in relationships.paths("a", "d", SHOP, direction="out", max_depth=4)]
    assert ways == [("a", "b", "d"), ("a", "c", "d"), ("a", "b", "c", "d")]
    assert relationships.paths("a", "d", SHOP, direction="out")[0].strength == 0.25
    assert str(relationships.paths("d", "a", SHOP, direction="out")[0]) == "d –references→ a"
    assert relationships.paths("a", "alone", SHOP) == relationships.paths("a", "d", SHOP, direction="out", max_depth=1)
    assert len(relationships.paths("a", "d", SHOP, limit=1)) == 1


def test_a_dense_web_is_answered_in_time(store: StorageBackend, relationships: Relationships) -> None:
    ids = [f"n{n:02d}" for n in range(40)]
    memories(store, *ids)
    store.save_many(
        [
            MemoryRelationship(from_memory_id=one, to_memory_id=other, relationship_type="references")
            for one in ids
            for other in ids
            if one < other
        ]
    )
    assert len(relationships.paths("n00", "n39", SHOP, max_depth=8, limit=20)) == 20


@pytest.mark.parametrize("depth", [0, 17, True, "2"])
def test_a_depth_must_make_sense(store: StorageBackend, relationships: Relationships, depth: int) -> None:
    memories(store, "a")
    with pytest.raises(ValidationError, match="from 1 to 16"):
        relationships.neighbours("a", SHOP, max_depth=depth)


def test_a_deleted_memory_takes_its_relationships_with_it(store: StorageBackend, relationships: Relationships) -> None:
    memories(store, "a", "b")
    relationships.relate("a", "b", "references", SHOP)
    store.delete(Memory, ["b"], EVERYWHERE)
    assert rows(store) == []


def test_a_user_relates_their_private_memory_to_what_others_share(
    store: StorageBackend, relationships: Relationships
) -> None:
    ana, bob = Attribution(user_id="ana"), Attribution(user_id="bob")
    memories(store, "private", user_id="bob", is_private=True)
    memories(store, "shared", "further", user_id="ana")
    relationships.relate("private", "shared", "references", SHOP, by=bob)
    relationships.relate("further", "private", "references", SHOP, by=bob)
    assert [each.memory.id for each in relationships.of("shared", SHOP, by=bob)] == ["private"]
    assert [each.memory.id for each in relationships.neighbours("shared", SHOP, max_depth=2, by=bob)] == [
        "private",
        "further",
    ]
    assert len(relationships.paths("further", "shared", SHOP, by=bob)) == 1
    for anybody in (ana, Attribution()):
        assert relationships.of("shared", SHOP, by=anybody) == []
        assert relationships.neighbours("shared", SHOP, max_depth=2, by=anybody) == []
        assert relationships.paths("further", "shared", SHOP, by=anybody) == []
        with pytest.raises(NotFoundError):
            relationships.unrelate("private", "shared", "references", SHOP, by=anybody)
        with pytest.raises(NotFoundError):
            relationships.detect("private", SHOP, by=anybody)
    # A scope that names a user does not make the caller that user.
    with pytest.raises(NotFoundError):
        relationships.of("private", Scope(project_id="shop", user_id="bob"), by=ana)


def test_what_has_expired_meanwhile_is_not_detected(store: StorageBackend, relationships: Relationships) -> None:
    moment = now()
    memories(store, "over", content="Login fails", title="#12 login", expires_at=moment - timedelta(minutes=1))
    memories(store, "fix", content="This fixes #12", updated_at=moment - timedelta(hours=1))
    assert relationships.detect("fix", SHOP) == []


def test_a_long_chain_makes_no_circle_either(store: StorageBackend, relationships: Relationships) -> None:
    chain = [f"v{number:02}" for number in range(36)]
    memories(store, *chain)
    for older, newer in pairwise(chain):
        relationships.relate(newer, older, "supersedes", SHOP)
    with pytest.raises(ValidationError, match="cycle"):
        relationships.relate(chain[0], chain[-1], "supersedes", SHOP)


def test_two_writers_at_once_make_no_circle(store: StorageBackend, relationships: Relationships) -> None:
    for number in range(5):
        one, other = f"one{number}", f"other{number}"
        memories(store, one, other)
        (refused,) = together(
            partial(relationships.relate, one, other, "supersedes", SHOP),
            partial(relationships.relate, other, one, "supersedes", SHOP),
        )
        assert "cycle" in str(refused)
