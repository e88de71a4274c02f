"""The graph contract as tests: subclass the suite and add a `graph` fixture.

class TestMyGraph(GraphContract):
    @pytest.fixture
    def graph(self):
        return MyGraph()

One whose graphs several processes share passes `SharedGraphContract` as well, which needs `another`: a function that
opens the same graph once more, or with `project_id` that of another project beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings

from alma.errors import NotFoundError, UniquenessError, ValidationError
from alma.graph.base import Entity, GraphQuery, GraphResult, GraphStore, Relationship
from alma.testing.strategies import json_objects, texts

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)
Another = Callable[..., GraphStore]


def people(graph: GraphStore, *names: str) -> list[str]:
    """People with these names; the name is also the id."""
    return [graph.add_entity(Entity(name, name, "person")) for name in names]


def link(graph: GraphStore, source: str, target: str, kind: str = "knows", confidence: float = 1.0) -> str:
    return graph.add_relationship(
        Relationship(f"{source}-{kind}-{target}", source, target, kind, confidence=confidence)
    )


def ids(result: GraphResult) -> list[str]:
    return [entity.id for entity in result.entities]


class GraphContract:
    """The contract of every graph store."""

    # ------------------------------------------------------------------ entities

    def test_an_entity_comes_back_as_it_was_added(self, graph: GraphStore) -> None:
        alice = Entity("e1", "Alice", "person", {"role": "tester", "deep": [1, {"x": None}], "ä": "日本"}, NOON)
        assert graph.add_entity(alice) == "e1"
        assert graph.get_entity("e1") == alice

    def test_an_unknown_entity_is_not_found(self, graph: GraphStore) -> None:
        assert graph.get_entity("nobody") is None
        assert graph.get_entities(["nobody"]) == []
        assert graph.find_entities("nobody") == []
        assert graph.get_relationships("nobody") == []
        assert not graph.traverse("nobody")
        assert not graph.query(GraphQuery(["nobody"]))

    def test_entities_come_in_the_given_order_each_once(self, graph: GraphStore) -> None:
        people(graph, "a", "b", "c")
        assert [e.id for e in graph.get_entities(["c", "nobody", "a", "c"])] == ["c", "a"]

    def test_two_entities_with_one_name_are_one(self, graph: GraphStore) -> None:
        graph.add_entity(Entity("e1", "Acme Corp", "organization", {"a": 1, "b": 1}, NOON))
        assert graph.add_entity(Entity("e2", " acme  CORP", "Organization", {"b": 2, "c": 3})) == "e1"
        merged = Entity("e1", "Acme Corp", "organization", {"a": 1, "b": 2, "c": 3}, NOON)
        assert graph.get_entity("e1") == graph.get_entity("e2") == merged
        assert graph.find_entities("ACME corp") == [merged]

    def test_the_same_name_of_another_type_is_another_entity(self, graph: GraphStore) -> None:
        graph.add_entity(Entity("e1", "Mercury", "planet"))
        assert graph.add_entity(Entity("e2", "Mercury", "project")) == "e2"
        assert len(graph.find_entities("Mercury")) == 2

    def test_adding_again_changes_nothing(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        link(graph, "a", "b")
        before = graph.traverse("a")
        people(graph, "a", "b")
        link(graph, "a", "b")
        assert graph.traverse("a") == before

    def test_a_known_id_renames_its_entity(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        link(graph, "a", "b")
        assert graph.add_entity(Entity("a", "Anna", "lead", {"x": 1})) == "a"
        found = graph.get_entity("a")
        assert found is not None
        assert (found.name, found.entity_type, found.properties) == ("Anna", "lead", {"x": 1})
        assert graph.find_entities("a", "person") == []
        assert len(graph.get_relationships("a")) == 1

    def test_an_entity_cannot_take_the_name_of_another(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        with pytest.raises(UniquenessError):
            graph.add_entity(Entity("a", "B", "person"))
        found = graph.get_entity("a")
        assert found is not None
        assert found.name == "a"

    @pytest.mark.parametrize("name", ["O'Brien", 'a"b', "日本語", "😀", "`; DROP", "{x: 1}", "x" * 200, "ﷺ" * 150])
    def test_any_text_is_a_name_and_an_id(self, graph: GraphStore, name: str) -> None:
        graph.add_entity(Entity(name, name, "thing", {name: name}))
        graph.add_entity(Entity("other", "other", "thing"))
        graph.add_relationship(Relationship(name, name, "other", "is_not", {name: name}))
        assert [e.id for e in graph.find_entities(name)] == [name]
        assert [r.id for r in graph.get_relationships("other")] == [name]

    # ------------------------------------------------------------------ search

    def test_a_name_is_found_whole_first_then_by_its_words(self, graph: GraphStore) -> None:
        for name in ("Acme Corporation Holding", "acme", "Acme Labs", "Beta Labs"):
            graph.add_entity(Entity(name, name, "organization"))
        found = [e.name for e in graph.find_entities("Acme")]
        assert found == ["acme", "Acme Labs", "Acme Corporation Holding"]
        assert [e.name for e in graph.find_entities("labs acme")] == ["Acme Labs"]

    def test_entities_are_found_by_type(self, graph: GraphStore) -> None:
        people(graph, "b", "a")
        graph.add_entity(Entity("x", "a file", "file"))
        assert [e.id for e in graph.find_entities(entity_type="PERSON")] == ["a", "b"]
        assert [e.id for e in graph.find_entities("a", "person")] == ["a"]
        assert len(graph.find_entities()) == 3

    def test_a_limit_is_respected(self, graph: GraphStore) -> None:
        people(graph, *"abcde")
        assert [e.id for e in graph.find_entities(limit=2)] == ["a", "b"]
        assert graph.find_entities(limit=0) == []

    # ------------------------------------------------------------------ relationships

    def test_a_relationship_comes_back_as_it_was_added(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        told = Relationship("r1", "a", "b", "reviewed", {"evidence": "a reviewed"}, 0.25, NOON)
        assert graph.add_relationship(told) == "r1"
        assert graph.get_relationships("a") == graph.get_relationships("b") == [told]

    def test_ids_may_follow_from_names_and_ends(self, graph: GraphStore) -> None:
        alice, bob = Entity.named("Alice", "person"), Entity.named("Bob", "person")
        for _ in range(2):
            assert [graph.add_entity(each) for each in (alice, bob)] == [alice.id, bob.id]
            knows = Relationship.between(alice, bob, "knows")
            assert graph.add_relationship(knows) == knows.id
        assert len(graph.traverse(alice.id).relationships) == 1

    def test_there_is_never_a_second_edge_of_one_type(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        graph.add_relationship(Relationship("r1", "a", "b", "works_with", {"x": 1, "y": 1}, 0.9, NOON))
        assert graph.add_relationship(Relationship("r2", "a", "b", "Works_With", {"y": 2}, 0.5)) == "r1"
        merged = Relationship("r1", "a", "b", "works_with", {"x": 1, "y": 2}, 0.9, NOON)
        assert graph.get_relationships("a") == [merged]

    def test_another_type_or_the_other_way_round_is_another_edge(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        for source, target, kind in (("a", "b", "knows"), ("a", "b", "likes"), ("b", "a", "knows")):
            link(graph, source, target, kind)
        assert len(graph.get_relationships("a")) == 3

    def test_edges_lead_to_the_entity_that_an_id_was_merged_into(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        graph.add_entity(Entity("a2", "A", "person"))
        graph.add_relationship(Relationship("r1", "a2", "b", "knows"))
        (edge,) = graph.get_relationships("a2")
        assert (edge.source_id, edge.target_id) == ("a", "b")

    def test_no_edge_leads_to_where_it_came_from(self, graph: GraphStore) -> None:
        with pytest.raises(ValidationError):
            Relationship("r1", "a", "a", "knows")
        people(graph, "a")
        graph.add_entity(Entity("a2", "A", "person"))
        with pytest.raises(ValidationError):
            graph.add_relationship(Relationship("r1", "a", "a2", "knows"))
        assert graph.get_relationships("a") == []

    def test_both_ends_of_an_edge_must_exist(self, graph: GraphStore) -> None:
        people(graph, "a")
        for source, target in (("a", "nobody"), ("nobody", "a")):
            with pytest.raises(NotFoundError, match="nobody"):
                link(graph, source, target)
        assert graph.get_relationships("a") == []

    def test_an_id_names_one_edge(self, graph: GraphStore) -> None:
        people(graph, "a", "b", "c")
        graph.add_relationship(Relationship("r1", "a", "b", "knows"))
        with pytest.raises(UniquenessError):
            graph.add_relationship(Relationship("r1", "a", "c", "knows"))
        assert len(graph.get_relationships("a")) == 1

    def test_edges_are_asked_for_by_direction_and_type(self, graph: GraphStore) -> None:
        people(graph, "a", "b", "c")
        link(graph, "a", "b", "knows")
        link(graph, "c", "a", "likes")
        assert [r.target_id for r in graph.get_relationships("a", "out")] == ["b"]
        assert [r.source_id for r in graph.get_relationships("a", "in")] == ["c"]
        assert [r.relation_type for r in graph.get_relationships("a", "both", "LIKES")] == ["likes"]
        assert graph.get_relationships("a", "out", "likes") == []
        assert graph.get_relationships("a", "outgoing") == graph.get_relationships("a", "out") != []
        assert graph.get_relationships("b", "incoming") == graph.get_relationships("b", "in") != []
        with pytest.raises(ValidationError, match="direction"):
            graph.get_relationships("a", "sideways")

    # ------------------------------------------------------------------ deletion

    def test_deleting_an_entity_takes_its_edges_and_its_ids_along(self, graph: GraphStore) -> None:
        people(graph, "a", "b", "c")
        graph.add_entity(Entity("a2", "A", "person"))
        link(graph, "a", "b")
        link(graph, "c", "a")
        link(graph, "b", "c")
        assert graph.delete_entity("a2")
        assert not graph.delete_entity("a")
        assert graph.get_entity("a") is graph.get_entity("a2") is None
        assert (
            [r.id for r in graph.get_relationships("b")]
            == [r.id for r in graph.get_relationships("c")]
            == ["b-knows-c"]
        )
        people(graph, "a2", "a")
        assert [e.id for e in graph.get_entities(["a", "a2"])] == ["a", "a2"]

    def test_an_edge_can_be_deleted_alone(self, graph: GraphStore) -> None:
        people(graph, "a", "b")
        key = link(graph, "a", "b")
        assert graph.delete_relationship(key)
        assert not graph.delete_relationship(key)
        assert graph.get_relationships("a") == []
        link(graph, "a", "b")
        assert len(graph.get_relationships("b")) == 1

    # ------------------------------------------------------------------ traversal

    def test_a_walk_gives_what_is_near_first_with_the_way_there(self, graph: GraphStore) -> None:
        people(graph, *"abcdx")
        for source, target in ("ab", "bc", "cd", "ac"):
            link(graph, source, target)
        found = graph.traverse("a", max_hops=2)
        assert ids(found) == ["a", "b", "c", "d"]
        assert found.paths == {"a": ("a",), "b": ("a", "b"), "c": ("a", "c"), "d": ("a", "c", "d")}
        assert {r.id for r in found.relationships} == {"a-knows-b", "a-knows-c", "b-knows-c", "c-knows-d"}

    def test_a_walk_ends_where_it_is_told_to(self, graph: GraphStore) -> None:
        people(graph, *"abcd")
        for source, target in ("ab", "bc", "cd"):
            link(graph, source, target)
        assert ids(graph.traverse("a", max_hops=0)) == ["a"]
        assert ids(graph.traverse("a", max_hops=1)) == ["a", "b"]
        assert ids(graph.traverse("a", max_hops=9, limit=3)) == ["a", "b", "c"]

    def test_circles_end(self, graph: GraphStore) -> None:
        people(graph, *"abc")
        for source, target in ("ab", "bc", "ca"):
            link(graph, source, target)
        assert ids(graph.traverse("a", max_hops=20)) == ["a", "b", "c"]
        assert len(graph.traverse("a", max_hops=20).relationships) == 3

    def test_a_walk_keeps_to_its_direction_and_its_types(self, graph: GraphStore) -> None:
        people(graph, *"abcd")
        link(graph, "a", "b", "knows")
        link(graph, "c", "a", "knows")
        link(graph, "a", "d", "hates")
        assert ids(graph.traverse("a", direction="out")) == ["a", "b", "d"]
        assert ids(graph.traverse("a", direction="in")) == ["a", "c"]
        assert ids(graph.traverse("a", relation_types=["Knows"])) == ["a", "b", "c"]

    def test_a_query_says_where_to_start_and_what_to_follow(self, graph: GraphStore) -> None:
        people(graph, "alice", "bob")
        for name in ("acme", "beta"):
            graph.add_entity(Entity(name, name, "organization"))
        link(graph, "alice", "acme", "works_at")
        link(graph, "bob", "acme", "works_at", confidence=0.3)
        link(graph, "alice", "beta", "left")
        assert ids(graph.query(GraphQuery(["Acme"]))) == ["acme", "alice", "bob"]
        assert ids(graph.query(GraphQuery(["Acme"], min_confidence=0.5))) == ["acme", "alice"]
        assert ids(graph.query(GraphQuery(["alice"], relation_types=["left"]))) == ["alice", "beta"]
        assert ids(graph.query(GraphQuery(entity_types=["organization"], max_hops=0))) == ["acme", "beta"]
        assert ids(graph.query(GraphQuery(["acme", "bob"], ["person"], max_hops=0))) == ["bob"]
        assert len(graph.query(GraphQuery()).entities) == 4
        assert len(graph.query(GraphQuery(limit=2)).entities) == 2

    def test_nonsense_is_refused(self, graph: GraphStore) -> None:
        for wrong in (
            lambda: Entity("", "a", "person"),
            lambda: Entity("a", " ", "person"),
            lambda: Entity("a", "a", "per`son"),
            lambda: Entity("a", "a", "person", {"x": object()}),
            lambda: Entity("a", "a", "person", {}, datetime(2026, 1, 1)),  # noqa: DTZ001
            lambda: Relationship("r", "a", "b", "knows", confidence=1.5),
            lambda: Relationship("r", "a", "b", "x]->(b) DETACH DELETE b //"),
            lambda: GraphQuery("alice"),
            lambda: GraphQuery(max_hops=-1),
            lambda: GraphQuery(limit=-1),
            lambda: graph.find_entities(limit=-1),
            lambda: graph.find_entities(5),  # type: ignore[arg-type]
            lambda: graph.find_entities(entity_type=["person"]),  # type: ignore[arg-type]
            lambda: graph.get_relationships("alice", relation_type=5),  # type: ignore[arg-type]
            lambda: graph.query("alice"),  # type: ignore[arg-type]
            lambda: graph.add_entity(None),  # type: ignore[arg-type]
            lambda: graph.add_relationship(Entity("a", "a", "person")),  # type: ignore[arg-type]
            lambda: graph.delete_entity(["a"]),  # type: ignore[arg-type]
            lambda: graph.delete_relationship(None),  # type: ignore[arg-type]
        ):
            with pytest.raises(ValidationError):
                wrong()

    def test_threads_may_share_a_graph(self, graph: GraphStore) -> None:
        people(graph, "hub")

        def add(number: int) -> None:
            graph.add_entity(Entity(f"id{number}", f"spoke {number % 5}", "thing", {f"p{number}": number}))
            graph.add_relationship(Relationship(f"r{number}", f"id{number}", "hub", "touches", {f"p{number}": number}))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(20)))
        found = graph.traverse("hub")
        assert len(found.entities) == 6
        assert len(found.relationships) == 5
        spokes = [e for e in found.entities if e.id != "hub"]
        assert sorted(n for e in spokes for n in e.properties.values()) == list(range(20))
        assert sorted(n for r in found.relationships for n in r.properties.values()) == list(range(20))

    @settings(
        max_examples=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.differing_executors,
        ],
    )
    @given(name=texts().filter(lambda text: bool(text.strip())), properties=json_objects())
    def test_whatever_an_entity_says_comes_back(
        self, graph: GraphStore, name: str, properties: dict[str, object]
    ) -> None:
        entity = Entity.named(name, "thing", properties)
        graph.delete_entity(entity.id)
        assert graph.add_entity(entity) == entity.id
        assert graph.get_entity(entity.id) == entity


class SharedGraphContract:
    """The contract of graph stores that several processes share."""

    def test_what_one_adds_the_other_sees(self, graph: GraphStore, another: Another) -> None:
        with another() as other:
            people(graph, "a", "b")
            link(other, "a", "b")
            assert graph.get_relationships("a") == other.get_relationships("a") != []
            other.delete_entity("b")
            assert graph.get_relationships("a") == []

    def test_projects_do_not_see_each_other(self, graph: GraphStore, another: Another) -> None:
        with another(project_id="elsewhere") as other:
            for each, name in ((graph, "a"), (other, "A")):
                each.add_entity(Entity("e1", name, "person"))
                each.add_entity(Entity("e2", "b", "person"))
                each.add_relationship(Relationship("r1", "e1", "e2", "knows"))
            other.add_entity(Entity("e3", "c", "person"))
            assert [e.name for e in graph.find_entities()] == ["a", "b"]
            assert graph.get_entity("e3") is None
            assert other.delete_entity("e1")
            assert not other.get_relationships("e2")
            assert len(graph.traverse("e1").entities) == 2
