"""Search by vector (each model apart) and by full text, inside the scope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from alma.errors import (
    ModelMismatchError,
    NotFoundError,
    UnsupportedOperation,
    ValidationError,
)
from alma.model.governance import AuditEvent
from alma.model.learning import Heuristic
from alma.model.memory import Memory, ProjectPattern
from alma.model.query import Compare, Has
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, SHOP


class VectorSearchContract:
    """The nearest records by cosine, inside the scope, for each model separately."""

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
    def test_invalid_vectors_are_refused(self, storage: StorageBackend, vector: Any) -> None:
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

    def test_a_vector_of_an_older_text_is_not_stored(self, storage: StorageBackend) -> None:
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


EAST, NORTH, UP = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]


def found(storage: StorageBackend, vector: Sequence[float], model: str | None = None) -> list[tuple[str, float]]:
    """The ids and rounded cosines of heuristics near a vector."""
    hits = storage.nearest_ids(Heuristic, vector, SHOP, model=model)
    return [(key, round(score, 5)) for key, score in hits]


class PassageContract:
    """A long text is embedded in passages; the best passage counts."""

    def test_a_record_counts_once_with_the_best_of_its_passages(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id="long", embedding=EAST), make.a_heuristic(id="short", embedding=NORTH)])
        storage.put_passages(Heuristic, {"long": [UP, [0, 3, 4, 0]]})
        assert found(storage, UP) == [("long", 1.0), ("short", 0.0)]
        assert found(storage, NORTH) == [("short", 1.0), ("long", 0.6)]
        assert found(storage, EAST) == [("long", 1.0), ("short", 0.0)]

    def test_many_passages_of_one_record_do_not_crowd_out_others(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id=key, embedding=NORTH) for key in ("book", "note", "page")])
        storage.put_passages(Heuristic, {"book": [[1, 0, n / 1000, 0] for n in range(200)]})
        assert [hit.record.id for hit in storage.search_vector(Heuristic, EAST, SHOP, limit=3)] == [
            "book",
            "note",
            "page",
        ]

    def test_a_record_is_read_with_its_own_vector(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=EAST)
        storage.save(heuristic)
        storage.put_passages(Heuristic, {heuristic.id: [UP, NORTH]})
        (hit,) = storage.search_vector(Heuristic, UP, SHOP)
        assert hit.record == storage.require(Heuristic, heuristic.id, SHOP) == heuristic

    def test_passages_are_replaced_and_an_empty_list_removes_them(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.put_passages(Heuristic, {"h": [UP, NORTH]})
        storage.put_passages(Heuristic, {"h": [NORTH]})
        assert found(storage, UP) == [("h", 0.0)]
        assert found(storage, NORTH) == [("h", 1.0)]
        storage.put_passages(Heuristic, {"h": []})
        assert found(storage, NORTH) == [("h", 0.0)]
        assert found(storage, EAST) == [("h", 1.0)]

    def test_a_record_may_have_passages_only(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h"))
        storage.put_passages(Heuristic, {"h": [UP]})
        assert found(storage, UP) == [("h", 1.0)]
        assert storage.require(Heuristic, "h", SHOP).embedding is None

    def test_passages_live_as_long_as_the_embedding_they_were_made_with(self, storage: StorageBackend) -> None:
        kept = make.a_heuristic(id="kept", embedding=EAST)
        storage.save_many([kept, make.a_heuristic(id="new", embedding=EAST), make.a_heuristic(id="no", embedding=EAST)])
        storage.put_passages(Heuristic, {"kept": [UP], "new": [UP], "no": [UP]})
        storage.save_many([kept.replace(confidence=0.9), make.a_heuristic(id="new", embedding=NORTH)])
        storage.save(make.a_heuristic(id="no"))
        assert found(storage, UP) == [("kept", 1.0), ("new", 0.0)]
        storage.update(Heuristic, "kept", {"embedding": NORTH}, SHOP)
        assert found(storage, UP) == [("kept", 0.0), ("new", 0.0)]

    def test_passages_of_another_model_stay_with_that_model(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(id="h", embedding=EAST)
        storage.save(heuristic)
        storage.put_vectors(Heuristic, {"h": [1, 0]}, model="other")
        storage.put_passages(Heuristic, {"h": [[0, 1]]}, model="other")
        storage.save(heuristic.replace(embedding=NORTH))
        assert found(storage, [0, 1], "other") == [("h", 1.0)]
        storage.put_vectors(Heuristic, {"h": [1, 1]}, model="other")
        assert found(storage, [0, 1], "other") == [("h", 1.0)]
        with pytest.raises(ValidationError, match="2 dimensions"):
            storage.put_passages(Heuristic, {"h": [[1, 2, 3]]}, model="other")

    def test_a_deleted_record_leaves_no_passages(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.put_passages(Heuristic, {"h": [UP]})
        storage.delete(Heuristic, ["h"], SHOP)
        storage.save(make.a_heuristic(id="h", embedding=NORTH))
        assert found(storage, UP) == [("h", 0.0)]

    def test_ids_are_found_without_reading_records(self, storage: StorageBackend) -> None:
        storage.save_many(
            [make.a_heuristic(id=str(n), confidence=n / 10, embedding=[1, n, 0, 0]) for n in range(4)]
            + [make.a_heuristic(id="elsewhere", project_id="bank", embedding=EAST)]
        )
        hits = storage.search_vector(Heuristic, EAST, SHOP, Compare("confidence", "ge", 0.1), 2)
        ids = storage.nearest_ids(Heuristic, EAST, SHOP, Compare("confidence", "ge", 0.1), 2)
        assert ids == [(hit.record.id, hit.score) for hit in hits]
        assert [key for key, _ in ids] == ["1", "2"]
        assert storage.nearest_ids(Heuristic, EAST, SHOP, limit=0) == []
        with pytest.raises(UnsupportedOperation):
            storage.nearest_ids(Session, EAST, EVERYWHERE)

    @pytest.mark.parametrize("passages", [[EAST], {"h": EAST}, {"h": "abcd"}, {"h": [[1, 2]]}, {"h": None}])
    def test_invalid_passages_are_refused(self, storage: StorageBackend, passages: Any) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        with pytest.raises(ValidationError):
            storage.put_passages(Heuristic, passages)
        assert found(storage, EAST) == [("h", 1.0)]

    def test_passages_need_a_record_and_a_kind_with_vectors(self, storage: StorageBackend) -> None:
        with pytest.raises(NotFoundError, match="nobody"):
            storage.put_passages(Memory, {"nobody": [EAST]})
        with pytest.raises(UnsupportedOperation):
            storage.put_passages(Session, {"s": [EAST]})

    def test_new_passages_are_a_change_for_the_indexes(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.register_projection("index", [Heuristic])
        storage.put_passages(Heuristic, {"h": [UP]})
        assert [mark.record_id for mark in storage.pending("index")] == ["h"]


class WordSearchContract:
    """Words in every script and form, the better match first."""

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
    def test_a_rare_word_is_found_anywhere_in_a_long_query(self, storage: StorageBackend, straws: int) -> None:
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

    def test_words_of_scripts_without_spaces_are_found_inside_of_sentences(self, storage: StorageBackend) -> None:
        texts = {"ja": "子猫が好きです", "zh": "我每天喝茶", "ko": "집에서 회의를 했습니다", "th": "อากาศร้อน"}
        storage.save_many([make.a_memory(id=key, content=text) for key, text in texts.items()])
        for question, found in {
            "猫": "ja",
            "好き": "ja",
            "茶": "zh",
            "집": "ko",
            "회의는": "ko",
            "อากาศ": "th",
        }.items():
            assert [key for key, _ in storage.matching_ids(Memory, question, SHOP)] == [found], question

    def test_long_text_of_many_different_characters_is_kept_and_found(self, storage: StorageBackend) -> None:
        rare = "".join(chr(0x20000 + number * 7 % 40_000) for number in range(100_000))
        memory = make.a_memory(content=rare)
        storage.save(memory)
        assert storage.require(Memory, memory.id, SHOP) == memory
        assert [key for key, _ in storage.matching_ids(Memory, rare[500:510], SHOP)] == [memory.id]

    def test_the_end_of_the_longest_text_is_found(self, storage: StorageBackend) -> None:
        filling = " ".join(f"word{number % 5_000}" for number in range(115_000))
        storage.save(make.a_memory(id="long", content=f"{filling} the zeppelin landed"))
        storage.save(make.a_memory(id="short", content="nothing flies"))
        assert [key for key, _ in storage.matching_ids(Memory, "zeppelin", SHOP)] == ["long"]
        storage.update(Memory, "long", {"content": filling}, SHOP)
        assert storage.matching_ids(Memory, "zeppelin", SHOP) == []
        assert [key for key, _ in storage.matching_ids(Memory, "word4999", SHOP)] == ["long"]

    def test_pictures_are_found(self, storage: StorageBackend) -> None:
        texts = {
            "lunch": "Lunch was great 🍕",
            "launch": "It went well 🚀🚀",
            "trip": "Off to 🇪🇸 👍🏽",
            "plain": "Lunch",
        }
        storage.save_many([make.a_memory(id=key, content=text) for key, text in texts.items()])
        for question, found in {"🍕": ["lunch"], "🚀": ["launch"], "🇪🇸": ["trip"], "👍": ["trip"], "🇩🇪🦄": []}.items():
            assert [key for key, _ in storage.matching_ids(Memory, question, SHOP)] == found, question
        storage.update(Memory, "lunch", {"content": "Lunch was great"}, SHOP)
        assert storage.matching_ids(Memory, "🍕", SHOP) == []

    def test_names_with_signs_differ_from_single_letters(self, storage: StorageBackend) -> None:
        texts = {
            "c": "Written in C.",
            "cpp": "Written in C++.",
            "sharp": "Written in C#, naïvely.",
            "f": "Written in F#",
        }
        storage.save_many([make.a_memory(id=key, content=text) for key, text in texts.items()])
        for question, found in {"C": "c", "c++": "cpp", "C#?": "sharp", "Ｆ＃": "f"}.items():
            assert [key for key, _ in storage.matching_ids(Memory, question, SHOP)] == [found], question

    def test_a_word_is_found_in_however_many_pieces_it_is_written(self, storage: StorageBackend) -> None:
        texts = {
            "name": "call getUserName",
            "mail": "an e-mail for أحمد",
            "sum": "it was 1,000 at Acme™",
            "other": "user",
        }
        storage.save_many([make.a_memory(id=key, content=text) for key, text in texts.items()])
        asked = {"name": "name", "get_username": "name", "email": "mail", "E-Mail": "mail", "احمد": "mail"}
        for question, found in {**asked, "1000": "sum", "١٠٠٠": "sum", "acme": "sum"}.items():
            assert [key for key, _ in storage.matching_ids(Memory, question, SHOP)] == [found], question
        storage.update(Memory, "name", {"content": "rewritten"}, SHOP)
        assert [key for key, _ in storage.matching_ids(Memory, "getUserName user name", SHOP)] == ["other"]
