"""Questions: predicates, orders and pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from alma.errors import (
    NotFoundError,
    ValidationError,
)
from alma.model.learning import Heuristic, Outcome
from alma.model.memory import Memory
from alma.model.query import And, At, Compare, Cursor, Has, In, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.storage_contract.common import EVERYWHERE, NOON, SHOP


class FindingContract:
    """Predicates, orders, limits and pages."""

    def test_what_there_is_is_never_said_not_to_be(self, storage: StorageBackend) -> None:
        storage.has_none(Heuristic, SHOP)
        kept = make.a_heuristic()
        with storage.transaction() as tx:
            tx.has_none(Heuristic, SHOP)
            tx.save(kept)
            assert not tx.has_none(Heuristic, SHOP)
        with storage.snapshot() as tx:
            assert not tx.has_none(Heuristic, SHOP)
            assert tx.find(Heuristic, SHOP) == [kept]

    def test_what_there_is_none_of_is_not_found(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())
        with storage.snapshot() as tx:
            tx.has_none(Outcome, SHOP)
            assert tx.find(Outcome, SHOP) == []
            assert tx.values(Outcome, ("id",), SHOP) == []

    def test_predicates_combine(self, storage: StorageBackend) -> None:
        low, high = make.a_heuristic(confidence=0.2), make.a_heuristic(confidence=0.85, last_validated=NOON)
        storage.save_many([low, high])
        assert storage.find(Heuristic, SHOP, In("confidence", [0.85])) == [high]
        assert storage.find(Heuristic, SHOP, Compare("confidence", "lt", 0.5)) == [low]
        assert storage.find(Heuristic, SHOP, Missing("last_validated")) == [low]
        both = Or(Compare("confidence", "eq", 0.2), And(Compare("confidence", "ge", 0.85)))
        assert storage.count(Heuristic, SHOP, both) == 2
        assert storage.find(Heuristic, SHOP, Or()) == []
        assert storage.find(Heuristic, SHOP, In("id", [])) == []

    def test_what_stands_inside_of_json_is_found(self, storage: StorageBackend) -> None:
        deep = make.a_memory(content_json={"deploy": {"region": 'e"u'}, "n": 1, "done": True, "none": None})
        listed = make.a_memory(content_json={"deploy": {"region": ["us", "asia"]}, "n": [1.5, 2], "done": 1})
        storage.save_many([deep, listed, make.a_memory()])
        for path, value, found in (
            (("deploy", "region"), 'e"u', [deep]),
            (("deploy", "region"), "asia", [listed]),
            ("n", 1.0, [deep]),
            ("n", 2, [listed]),
            ("done", True, [deep]),
            ("done", 1, [listed]),
            ("none", None, [deep]),
            ("absent", None, []),
            (("deploy", "region", "x"), "asia", []),
            ("deploy.region", "asia", []),
        ):
            assert storage.find(Memory, SHOP, At("content_json", path, value)) == found, (path, value)

    def test_objects_inside_of_json_are_found_by_what_they_have(self, storage: StorageBackend) -> None:
        one = make.a_memory(content_json={"items": [{"sku": "x", "n": 2, "in": {"a": [1, 2]}}, {"sku": "y"}]})
        other = make.a_memory(content_json={"items": {"sku": "x", "n": True, "in": None}})
        storage.save_many([one, other, make.a_memory(content_json={"items": [["x"], "x", 2]}), make.a_memory()])
        for value, found in (
            ({"sku": "x"}, [one, other]),
            ({"sku": "x", "n": 2.0}, [one]),
            ({"sku": "y", "n": 2}, []),
            ({"in": {"a": [2]}}, [one]),
            ({"in": {"a": 2}}, []),
            ({"in": None}, [other]),
            ({"n": True}, [other]),
        ):
            seen = storage.find(Memory, SHOP, At("content_json", "items", value))
            assert {each.id for each in seen} == {each.id for each in found}, value

    @pytest.mark.parametrize(
        "place",
        [
            ("content_json", (), 1),
            ("content_json", "a", []),
            ("content_json", "a", {}),
            ("title", "a", 1),
            ("nothing", "a", 1),
        ],
    )
    def test_a_wrong_look_into_json_is_refused(self, storage: StorageBackend, place: tuple[Any, Any, Any]) -> None:
        with pytest.raises(ValidationError):
            storage.find(Memory, SHOP, At(*place))

    def test_instants_compare_as_instants(self, storage: StorageBackend) -> None:
        from datetime import timezone

        outcome = make.an_outcome(timestamp=NOON)
        storage.save(outcome)
        elsewhere = NOON.astimezone(timezone(timedelta(hours=9)))
        assert storage.find(Outcome, SHOP, Compare("timestamp", "eq", elsewhere)) == [outcome]
        assert storage.find(Outcome, SHOP, Compare("timestamp", "gt", NOON - timedelta(microseconds=1))) == [outcome]
        assert storage.find(Outcome, SHOP, Compare("timestamp", "lt", NOON)) == []

    def test_records_come_in_order_with_missing_values_last(self, storage: StorageBackend) -> None:
        early, late = make.a_heuristic(last_validated=NOON), make.a_heuristic(last_validated=NOON + timedelta(days=1))
        never = make.a_heuristic()
        storage.save_many([never, late, early])
        assert storage.find(Heuristic, SHOP, order=[Order("last_validated")]) == [early, late, never]
        assert storage.find(Heuristic, SHOP, order=[Order("last_validated", "desc")]) == [late, early, never]

    def test_ids_break_ties_byte_by_byte(self, storage: StorageBackend) -> None:
        ids = ["b", "B", "a", "ä", "Z", "_", "10", "9", "日"]
        storage.save_many([make.a_heuristic(id=each) for each in ids])
        found = storage.find(Heuristic, SHOP, order=[Order("confidence")])
        assert [heuristic.id for heuristic in found] == sorted(ids, key=str.encode)

    def test_pages_joined_by_cursors_are_the_whole(self, storage: StorageBackend) -> None:
        heuristics = [
            make.a_heuristic(confidence=number % 3 / 2, last_validated=None if number % 4 else NOON)
            for number in range(23)
        ]
        storage.save_many(heuristics)
        order = [Order("last_validated", "desc"), Order("confidence", "desc")]
        whole = storage.find(Heuristic, SHOP, order=order)
        assert list(storage.iterate(Heuristic, SHOP, order=order, page_size=5)) == whole
        third = storage.find(Heuristic, SHOP, order=order, limit=4, after=Cursor.after(whole[7], order))
        assert third == whole[8:12]

    def test_a_limit_may_be_larger_than_any_store(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(embedding=[1, 0, 0, 0]))
        for limit in (2**31, 2**63, 2**70):
            assert len(storage.find(Heuristic, SHOP, limit=limit)) == 1
            assert len(storage.search_text(Heuristic, "form", SHOP, limit=limit)) == 1
            assert len(storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP, limit=limit)) == 1

    def test_a_page_has_room_for_something(self, storage: StorageBackend) -> None:
        with pytest.raises(ValidationError, match=r"query\.page_size must be a whole number of at least 1 \(got 0\)"):
            list(storage.iterate(Heuristic, SHOP, page_size=0))

    def test_predicates_may_have_thousands_of_parts(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(occurrence_count=4_999)
        storage.save_many([heuristic, make.a_heuristic(occurrence_count=5_000)])
        counts = [Compare("occurrence_count", "eq", number) for number in range(5_000)]
        assert storage.find(Heuristic, SHOP, Or(*counts)) == [heuristic]
        grown: Predicate = Or()
        for count in counts:
            grown = Or(grown, count)
        assert storage.find(Heuristic, SHOP, grown) == [heuristic]

    def test_predicates_that_alternate_too_deep_are_refused(self, storage: StorageBackend) -> None:
        predicate: Predicate = Missing("last_validated")
        for _ in range(500):
            predicate = Or(And(predicate, Missing("last_validated")), Compare("confidence", "eq", 1.0))
        with pytest.raises(ValidationError, match="must not be nested deeper than 20 levels"):
            storage.find(Heuristic, SHOP, predicate)

    def test_one_id_may_stand_for_a_list_of_one(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(id="h1")
        storage.save(heuristic)
        assert storage.get_many(Heuristic, "h1", SHOP) == [heuristic]
        assert storage.delete(Heuristic, "h1", SHOP) == 1

    def test_unknown_names_and_wrong_values_are_refused(self, storage: StorageBackend) -> None:
        refused: list[dict[str, Any]] = [
            {"where": Compare("nope", "eq", 1)},
            {"where": Compare("confidence", "eq", "high")},
            {"where": Compare("agent", "lt", "x")},
            {"where": Compare("confidence", "like", 1.0)},  # type: ignore[arg-type]
            {"where": Compare("confidence", "eq", None)},
            {"where": Compare("last_validated", "gt", datetime(2026, 1, 1))},  # noqa: DTZ001
            {"where": Has("agent", "x")},
            {"where": Compare("metadata", "eq", {})},
            {"where": "confidence > 0"},
            {"order": [Order("nope")]},
            {"order": [Order("metadata")]},
            {"order": ["agent"]},
            {"order": [Order("agent", "up")]},  # type: ignore[arg-type]
            {"limit": -1},
            {"after": Cursor((1,), "x")},
            {"after": "x"},
            {"order": Order("agent")},
            {"order": 7},
        ]
        for arguments in refused:
            with pytest.raises(ValidationError):
                storage.find(Heuristic, SHOP, **arguments)

    @pytest.mark.parametrize("ids", [None, 7, [["x"]], [None]])
    def test_what_is_no_list_of_ids_is_refused(self, storage: StorageBackend, ids: Any) -> None:
        calls: list[Callable[[], object]] = [
            lambda: storage.get_many(Heuristic, ids, EVERYWHERE),
            lambda: storage.delete(Heuristic, ids, EVERYWHERE),
            lambda: storage.find(Heuristic, EVERYWHERE, In("id", ids)),
            lambda: storage.write(lambda tx: tx.lock(Heuristic, ids, EVERYWHERE)),
        ]
        for call in calls:
            with pytest.raises(ValidationError):
                call()

    def test_a_text_is_one_id_and_not_a_list_of_letters(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id=key) for key in ("ab", "a", "b")])
        assert [found.id for found in storage.get_many(Heuristic, "ab", EVERYWHERE)] == ["ab"]
        assert storage.write(lambda tx: tx.delete(Heuristic, "ab", EVERYWHERE)) == 1
        assert {found.id for found in storage.find(Heuristic, EVERYWHERE)} == {"a", "b"}

    @pytest.mark.parametrize("kind", ["heuristic", str, None, Record])
    def test_what_is_no_kind_of_record_is_refused(self, storage: StorageBackend, kind: Any) -> None:
        calls: list[Callable[[], object]] = [
            lambda: storage.find(kind, EVERYWHERE),
            lambda: storage.count(kind, EVERYWHERE),
            lambda: storage.get(kind, "x", EVERYWHERE),
            lambda: storage.search_text(kind, "x", EVERYWHERE),
            lambda: storage.delete(kind, ["x"], EVERYWHERE),
            lambda: storage.update(kind, "x", {}, EVERYWHERE),
        ]
        for call in calls:
            with pytest.raises(ValidationError, match="record class"):
                call()

    def test_records_are_fetched_in_the_order_asked_for(self, storage: StorageBackend) -> None:
        one, two = make.a_heuristic(), make.a_heuristic()
        storage.save_many([one, two])
        assert storage.get_many(Heuristic, [two.id, "nobody", one.id, two.id], SHOP) == [two, one]
        with pytest.raises(NotFoundError, match="nobody"):
            storage.require(Heuristic, "nobody", SHOP)

    def test_thousands_of_ids_are_one_question(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        ids = [*(f"absent {number}" for number in range(40_000)), heuristic.id]
        assert storage.get_many(Heuristic, ids, SHOP) == [heuristic]


class SearchContract:
    """Full text and vectors, inside the scope."""

    def test_words_are_found_without_case_and_accents_of_width(self, storage: StorageBackend) -> None:
        memory = make.a_memory(title="Ｌｏｇｉｎ", content="the OAuth token Straße", summary="日本語テスト")
        storage.save(memory)
        for query in ("LOGIN", "oauth", "STRASSE", "本語", "token nowhere"):
            assert [hit.record for hit in storage.search_text(Memory, query, EVERYWHERE)] == [memory]
        assert storage.search_text(Memory, "nowhere", EVERYWHERE) == []

    def test_words_are_found_in_other_forms_and_without_accents(self, storage: StorageBackend) -> None:
        memory = make.a_memory(title="Testing strategies", content="Anna's cafés don't deploy", summary=None)
        storage.save(memory)
        for query in ("test", "a strategy", "ANNA", "cafe", "deployed", "dont"):
            assert [hit.record for hit in storage.search_text(Memory, query, EVERYWHERE)] == [memory], query
        for query in ("don", "t", "caf"):
            assert storage.search_text(Memory, query, EVERYWHERE) == [], query

    def test_words_that_every_text_has_find_nothing_beside_others(self, storage: StorageBackend) -> None:
        storage.save(make.a_memory(title="", content="what is in the box"))
        assert storage.matching_ids(Memory, "what is the weather", EVERYWHERE) == []
        assert len(storage.matching_ids(Memory, "what is", EVERYWHERE)) == 1

    def test_ids_come_with_their_scores_as_records_do(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(content="login " * n + "form") for n in range(1, 6)])
        hits = storage.search_text(Memory, "login forms", EVERYWHERE, limit=3)
        assert storage.matching_ids(Memory, "login forms", EVERYWHERE, limit=3) == [
            (hit.record.id, hit.score) for hit in hits
        ]
        assert all(0 < hit.score < math.inf for hit in hits)

    def test_matches_of_the_same_worth_are_in_the_order_of_their_ids(self, storage: StorageBackend) -> None:
        ids = [f"{n:03d}" for n in range(200)]
        storage.save_many([make.a_heuristic(id=each) for each in reversed(ids)])
        found = storage.matching_ids(Heuristic, "form", SHOP, limit=10)
        assert [key for key, _ in found] == ids[:10]

    def test_a_rare_word_counts_more_than_a_common_one(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(id=f"m{n}", title="", content=f"form number{n}") for n in range(20)])
        assert storage.matching_ids(Memory, "form number7", EVERYWHERE)[0][0] == "m7"

    def test_a_word_that_most_have_still_counts(self, storage: StorageBackend) -> None:
        both = make.a_memory(title="", content="we deploy billing by hand")
        others = [
            make.a_memory(title="", content=f"we deploy {name} at night") for name in ("search", "mail", "images")
        ]
        storage.save_many([make.a_memory(title="", content="billing notes"), *others, both])
        assert storage.matching_ids(Memory, "deploy billing", EVERYWHERE)[0][0] == both.id
        with storage.transaction() as tx:
            assert tx.matching_ids(Memory, "deploy billing", EVERYWHERE)[0][0] == both.id

    def test_a_word_that_all_others_have_finds_the_few_of_a_small_scope(self, storage: StorageBackend) -> None:
        elsewhere = [make.a_memory(project_id="bank", title="", content=f"deploy number {n}") for n in range(60)]
        here = [make.a_memory(title="", content=f"some note of number {n}") for n in range(5)]
        storage.save_many([*elsewhere, *here, make.a_memory(id="m", title="", content="a longer one about a deploy")])
        assert storage.matching_ids(Memory, "deploy note", SHOP)[0][0] == "m"

    def test_words_follow_a_record_that_loses_its_session(self, storage: StorageBackend) -> None:
        storage.save_many([Session(id="s1"), make.a_memory(id="m", session_id="s1", content="moving form")])
        assert len(storage.matching_ids(Memory, "moving", Scope(session_id="s1"))) == 1
        storage.delete(Session, ["s1"], EVERYWHERE)
        assert storage.matching_ids(Memory, "moving", Scope(session_id="s1")) == []
        assert len(storage.matching_ids(Memory, "moving", EVERYWHERE)) == 1
        storage.delete(Memory, ["m"], EVERYWHERE)
        assert storage.matching_ids(Memory, "moving", EVERYWHERE) == []

    def test_a_question_may_be_longer_than_any_text(self, storage: StorageBackend) -> None:
        storage.save(make.a_memory(id="m", content="needle"))
        question = "needle " + " ".join(f"straw{n}" for n in range(5_000))
        assert [key for key, _ in storage.matching_ids(Memory, question, EVERYWHERE)] == ["m"]

    @pytest.mark.parametrize("straws", [100, 10_000])
    def test_a_rare_word_is_found_wherever_it_stands_in_a_long_question(
        self, storage: StorageBackend, straws: int
    ) -> None:
        storage.save_many([make.a_memory(id=f"m{n}", title="", content=f"straw{n} straw{n + 1}") for n in range(90)])
        storage.save(make.a_memory(id="m", title="", content="needle"))
        question = " ".join(f"straw{n}" for n in range(straws)) + " needle"
        assert "m" in dict(storage.matching_ids(Memory, question, EVERYWHERE, limit=100))
        assert storage.word_scores(Memory, question, ["m"], EVERYWHERE).keys() == {"m"}

    def test_the_better_match_comes_first(self, storage: StorageBackend) -> None:
        weak = make.a_memory(content="the login page and much else that has nothing to do with it at all")
        strong = make.a_memory(content="login form validation")
        storage.save_many([weak, strong])
        hits = storage.search_text(Memory, "login form validation", EVERYWHERE)
        assert [hit.record for hit in hits] == [strong, weak]
        assert hits[0].score > hits[1].score

    @pytest.mark.parametrize("query", ["", "   ", "!?", '"', "AND OR NOT", "a*", "NEAR(a b)", "-x", "col:x", "(", "'"])
    def test_no_query_breaks_the_search(self, storage: StorageBackend, query: str) -> None:
        storage.save(make.a_memory())
        storage.search_text(Memory, query, EVERYWHERE)

    def test_text_is_searched_only_where_there_is_some(self, storage: StorageBackend) -> None:
        with pytest.raises(UnsupportedOperation):
            storage.search_text(Session, "x", EVERYWHERE)
        with pytest.raises(ValidationError):
            storage.search_text(Memory, 7, EVERYWHERE)  # type: ignore[arg-type]

    def test_the_nearest_by_cosine_come_first_whatever_their_length(self, storage: StorageBackend) -> None:
        vectors = {"same": [2, 0, 0, 0], "near": [30, 3, 0, 0], "right": [0, 5, 0, 0], "opposite": [-0.1, 0, 0, 0]}
        storage.save_many([make.a_heuristic(id=key, embedding=vector) for key, vector in vectors.items()])
        hits = storage.search_vector(Heuristic, [0.001, 0, 0, 0], SHOP, limit=4)
        assert [hit.record.id for hit in hits] == ["same", "near", "right", "opposite"]
        assert [hit.score for hit in hits] == pytest.approx([1, 0.99504, 0, -1], abs=1e-5)

    def test_zero_and_huge_vectors_are_compared(self, storage: StorageBackend) -> None:
        vectors = {"zero": [0, 0, 0, 0], "huge": [3e38, 0, 0, 0], "tiny": [-1e-38, 0, 0, 0]}
        storage.save_many([make.a_heuristic(id=key, embedding=vector) for key, vector in vectors.items()])
        hits = storage.search_vector(Heuristic, [1e30, 0, 0, 0], SHOP)
        assert [hit.record.id for hit in hits] == ["huge", "zero", "tiny"]
        assert [hit.score for hit in hits] == pytest.approx([1, 0, -1], abs=1e-5)

    def test_a_search_can_be_narrowed(self, storage: StorageBackend) -> None:
        sure = make.a_heuristic(confidence=0.9, embedding=[0, 1, 0, 0])
        unsure = make.a_heuristic(confidence=0.1, embedding=[1, 0, 0, 0])
        storage.save_many([sure, unsure])
        trusted = Compare("confidence", "ge", 0.5)
        assert [h.record for h in storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP, trusted)] == [sure]
        assert [h.record for h in storage.search_text(Heuristic, "form", SHOP, trusted)] == [sure]
        assert storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP, limit=0) == []

    def test_a_search_can_be_narrowed_by_tags_and_lists(self, storage: StorageBackend) -> None:
        plain, tagged = make.a_memory(embedding=[1, 0, 0, 0]), make.a_memory(tags=["x"], embedding=[0, 1, 0, 0])
        storage.save_many([plain, tagged])
        assert [h.record for h in storage.search_vector(Memory, [1, 0, 0, 0], SHOP, Has("tags", "x"))] == [tagged]
        assert [h.record for h in storage.search_text(Memory, "build", SHOP, Has("tags", "x"))] == [tagged]
        patterns = [make.a_pattern(pattern_name=n, memory_ids=[n], embedding=[1, 0, 0, 0]) for n in ("a", "b")]
        storage.save_many(patterns)
        hits = storage.search_vector(ProjectPattern, [1, 0, 0, 0], SHOP, Has("memory_ids", "b"))
        assert [hit.record for hit in hits] == [patterns[1]]

    @pytest.mark.parametrize("vector", [[1, 2, 3], [1, 2, 3, 4, 5]])
    def test_a_vector_of_the_wrong_length_is_refused_before_anything_is_written(
        self, storage: StorageBackend, vector: list[float]
    ) -> None:
        good, bad = make.a_heuristic(embedding=[1, 0, 0, 0]), make.a_heuristic(embedding=vector)
        with pytest.raises(ValidationError, match="4 dimensions"):
            storage.save_many([good, bad])
        with pytest.raises(ValidationError, match="4 dimensions"):
            storage.search_vector(Heuristic, vector, SHOP)
        assert storage.count(Heuristic, EVERYWHERE) == storage.count(AuditEvent, EVERYWHERE) == 0

    @pytest.mark.parametrize(
        "vector",
        [
            "abcd",
            [1, 2, "x", 4],
            [float("nan")] * 4,
            [float("inf"), 0, 0, 0],
            [],
            None,
            {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0},
            {1.0, 2.0, 3.0, 4.0},
        ],
    )
    def test_what_is_no_vector_is_refused(self, storage: StorageBackend, vector: Any) -> None:
        with pytest.raises(ValidationError):
            storage.search_vector(Heuristic, vector, SHOP)

    def test_vectors_of_two_models_never_meet(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.save(heuristic)
        storage.put_vectors(Heuristic, {heuristic.id: [0, 0, 1]}, model="other")
        assert storage.require(Heuristic, heuristic.id, SHOP) == heuristic
        hits = storage.search_vector(Heuristic, [0, 0, 2], SHOP, model="other")
        assert [(hit.record, round(hit.score, 5)) for hit in hits] == [(heuristic, 1.0)]
        with pytest.raises(ValidationError, match="3 dimensions"):
            storage.put_vectors(Heuristic, {heuristic.id: [1, 2]}, model="other")
        with pytest.raises(NotFoundError, match="nobody"):
            storage.put_vectors(Heuristic, {"nobody": [0, 0, 1]}, model="other")

    def test_records_without_a_vector_of_a_model_are_listed_by_id(self, storage: StorageBackend) -> None:
        heuristics = [make.a_heuristic(id=key, embedding=[1, 0, 0, 0]) for key in ("b", "B", "ä", "a", "_")]
        storage.save_many([*heuristics, make.a_heuristic(id="elsewhere", project_id="other")])
        storage.put_vectors(Heuristic, {"a": [0, 0, 1]}, model="other")
        missing = storage.without_vector(Heuristic, "other", SHOP)
        assert [heuristic.id for heuristic in missing] == ["B", "_", "b", "ä"]
        assert set(missing) < set(heuristics)
        assert [each.id for each in storage.without_vector(Heuristic, "other", SHOP, limit=2, after="B")] == ["_", "b"]
        assert storage.without_vector(Heuristic, "other", SHOP, after="ä") == []
        assert storage.count_without_vector(Heuristic, "other", SHOP) == 4
        assert storage.count_without_vector(Heuristic, "other", EVERYWHERE) == 5
        assert storage.count_without_vector(Heuristic, storage.embedding_model, SHOP) == 0
        with pytest.raises(UnsupportedOperation, match="no vectors"):
            storage.without_vector(Session, "other", SHOP)

    def test_where_some_have_only_vectors_of_another_model_a_kind_is_half_moved(self, storage: StorageBackend) -> None:
        own = storage.embedding_model
        storage.save_many([make.a_heuristic(id="a", embedding=[1, 0, 0, 0]), make.a_heuristic(id="b")])
        assert not storage.is_half_moved(Heuristic, own)
        storage.put_vectors(Heuristic, {"b": [0, 0, 1]}, model="other")
        assert storage.is_half_moved(Heuristic, own)
        assert storage.is_half_moved(Heuristic, "other")
        assert not storage.is_half_moved(Memory, own)
        storage.put_vectors(Heuristic, {"a": [0, 0, 1]}, model="other")
        assert not storage.is_half_moved(Heuristic, "other")
        storage.delete(Heuristic, ["b"], SHOP)
        assert not storage.is_half_moved(Heuristic, own)

    def test_a_vector_is_not_stored_for_what_a_record_no_longer_says(self, storage: StorageBackend) -> None:
        same, changed, gone = (make.a_heuristic() for _ in range(3))
        storage.save_many([same, changed, gone])
        storage.update(Heuristic, changed.id, {"strategy": "something else"}, SHOP)
        storage.delete(Heuristic, [gone.id], SHOP)
        texts = {each.id: each.text() for each in (same, changed, gone)}
        stored = storage.put_vectors(Heuristic, {key: [0, 0, 1] for key in texts}, "other", made_from=texts)
        assert stored == 1
        assert [each.id for each in storage.without_vector(Heuristic, "other", SHOP)] == [changed.id]

    def test_new_words_make_the_vectors_of_other_models_void(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.save(heuristic)
        storage.put_vectors(Heuristic, {heuristic.id: [0, 0, 1]}, model="other")
        storage.update(Heuristic, heuristic.id, {"confidence": 0.9}, SHOP)
        assert storage.count_without_vector(Heuristic, "other", SHOP) == 0
        storage.update(Heuristic, heuristic.id, {"strategy": "something else"}, SHOP)
        assert storage.count_without_vector(Heuristic, "other", SHOP) == 1
        assert storage.require(Heuristic, heuristic.id, SHOP).embedding == [1, 0, 0, 0]

    def test_a_store_opened_for_a_model_it_never_saw_names_both(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        assert storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP) == []
        storage.put_vectors(Heuristic, {heuristic.id: [0, 0, 1]}, model="other")
        sentence = f"made by other, but it was opened for {storage.embedding_model}: .*alma reembed"
        with pytest.raises(ModelMismatchError, match=sentence):
            storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP)
        with pytest.raises(ModelMismatchError, match=sentence):
            storage.save(make.a_heuristic(embedding=[1, 0, 0, 0]))
        assert storage.find(Heuristic, SHOP) == [heuristic]
        storage.delete(Heuristic, [heuristic.id], SHOP)
        storage.save(make.a_heuristic(embedding=[1, 0, 0, 0]))
