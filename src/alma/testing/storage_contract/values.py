"""Queries that read no whole records: single fields, word weights, the generation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from alma.errors import ScopeViolationError, UnsupportedOperation, ValidationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory, ProjectPattern
from alma.model.query import Compare, Has, Missing, Order
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import Session, WorkItemStatus
from alma.storage.base import TEXT_LENGTH, StorageBackend
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, NOON, SHOP, Oops


class ValuesContract:
    """Values of single fields, equal to those that `find` returns."""

    def test_fields_come_in_the_order_they_are_named(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", confidence=0.25))
        assert storage.values(Heuristic, ("confidence", "id", "confidence"), SHOP) == [(0.25, "h", 0.25)]

    @pytest.mark.parametrize(
        "record",
        [
            make.a_memory(
                title="Ärger",
                content_json={"a": [1, None, "日"]},
                category="",
                context_json={"deep": {"x": 0.5}},
                layer_project=True,
                expires_at=NOON,
                importance_score=1 / 3,
                tags=["t"],
                embedding=[1, 0, 0, 0],
            ),
            make.a_work_item(status=WorkItemStatus.BLOCKED, blocks=["a", "b"], started_at=NOON),
            make.a_pattern(memory_ids=["m1"], usage_count=7, success_rate=0.0),
        ],
        ids=lambda record: record.spec.kind,
    )
    def test_every_field_of_the_table_is_what_the_record_has(self, storage: StorageBackend, record: Record) -> None:
        storage.save(record)
        names = [field.name for field in record.spec.stored]
        [row] = storage.values(type(record), names, SHOP)
        assert dict(zip(names, row, strict=True)) == {name: getattr(record, name) for name in names}

    def test_the_length_of_a_text_is_known_without_reading_it(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", condition="x" * 100, strategy="y" * 50))
        [(key, length)] = storage.values(Heuristic, ("id", TEXT_LENGTH), SHOP)
        assert key == "h"
        # The separator between the fields may count as a word.
        assert 150 <= length <= 152

    def test_records_without_text_have_no_length(self, storage: StorageBackend) -> None:
        with pytest.raises(UnsupportedOperation):
            storage.values(Session, ("id", TEXT_LENGTH), SHOP)

    def test_rows_come_in_order_with_missing_values_last(self, storage: StorageBackend) -> None:
        late = make.a_heuristic(id="late", last_validated=NOON + timedelta(days=1))
        storage.save_many([make.a_heuristic(id="never"), late, make.a_heuristic(id="early", last_validated=NOON)])
        forwards = storage.values(Heuristic, ("id",), SHOP, order=[Order("last_validated")])
        backwards = storage.values(Heuristic, ("id",), SHOP, order=[Order("last_validated", "desc")])
        assert forwards == [("early",), ("late",), ("never",)]
        assert backwards == [("late",), ("early",), ("never",)]

    def test_ids_break_ties_between_rows(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id=each) for each in ("b", "B", "a", "ä")])
        rows = storage.values(Heuristic, ("id", "agent"), SHOP, order=[Order("confidence")])
        assert [key for key, _ in rows] == ["B", "a", "b", "ä"]

    def test_no_more_rows_come_than_are_wanted(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id=each) for each in ("a", "b", "c")])
        assert storage.values(Heuristic, ("id",), SHOP, limit=2) == [("a",), ("b",)]
        assert storage.values(Heuristic, ("id",), SHOP, limit=0) == []

    def test_rows_lie_inside_the_scope_and_fulfil_the_predicate(self, storage: StorageBackend) -> None:
        storage.save_many(
            [
                make.a_memory(id="here", tags=["x"]),
                make.a_memory(id="other", tags=["y"]),
                make.a_memory(id="there", project_id="bank", tags=["x"]),
            ]
        )
        assert storage.values(Memory, ("id",), SHOP, Has("tags", "x")) == [("here",)]
        assert storage.values(Memory, ("id",), Scope(project_id="nowhere")) == []
        with pytest.raises(ScopeViolationError):
            storage.values(Memory, ("id",), None)  # type: ignore[arg-type]

    def test_rows_show_what_the_transaction_wrote(self, storage: StorageBackend) -> None:
        with storage.transaction() as tx:
            tx.save(make.a_heuristic(id="h", confidence=0.5))
            assert tx.values(Heuristic, ("confidence",), SHOP, Missing("last_validated")) == [(0.5,)]

    @pytest.mark.parametrize("name", ["embedding", "tags", "priority"])
    def test_unknown_columns_are_refused(self, storage: StorageBackend, name: str) -> None:
        with pytest.raises(
            ValidationError, match=rf"memory\.{name} is stored outside of the record and cannot be read alone"
        ):
            storage.values(Memory, ("id", name), SHOP)

    def test_an_unknown_field_is_refused_with_the_names_there_are(self, storage: StorageBackend) -> None:
        with pytest.raises(ValidationError, match=r"memory has no such field; it has id, user_id, .*'nope'"):
            storage.values(Memory, ("id", "nope"), SHOP)

    @pytest.mark.parametrize("names", [(), [], "id", None, 7])
    def test_at_least_one_field_must_be_named(self, storage: StorageBackend, names: Any) -> None:
        with pytest.raises(ValidationError, match="must be a list of at least one field"):
            storage.values(Memory, names, SHOP)


class WordCountContract:
    """How many records inside a scope have each word."""

    def test_words_are_counted_once_for_each_record(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(content=text) for text in ("form field", "form form", "form page", "page")])
        assert storage.word_counts(Memory, ["form", "field", "nowher"], SHOP) == (
            4,
            {"form": 3, "field": 1, "nowher": 0},
        )

    def test_words_are_counted_inside_the_scope(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(content=text) for text in ("form", "form", "field")])
        storage.save_many([make.a_memory(content=text, project_id="bank") for text in ("field", "page")])
        assert storage.word_counts(Memory, ["form", "field", "page"], SHOP) == (3, {"form": 2, "field": 1, "page": 0})
        assert storage.word_counts(Memory, ["field", "page"], EVERYWHERE) == (5, {"field": 2, "page": 1})

    def test_a_predicate_may_come_with_the_scope(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(content=text, category="a") for text in ("form", "form", "field")])
        counted = storage.word_counts(Memory, ["form", "field"], SHOP, Compare("category", "eq", "a"))
        assert counted == (3, {"form": 2, "field": 1})

    def test_words_are_counted_as_they_are_after_a_change(self, storage: StorageBackend) -> None:
        memories = [make.a_memory(content="form") for _ in range(3)]
        storage.save_many([*memories, make.a_memory(content="field")])
        storage.update(Memory, memories[0].id, {"content": "page"}, SHOP)
        storage.delete(Memory, [memories[1].id], SHOP)
        assert storage.word_counts(Memory, ["form", "page"], SHOP) == (3, {"form": 1, "page": 1})

    def test_of_no_words_only_the_records_are_counted(self, storage: StorageBackend) -> None:
        storage.save(make.a_memory())
        assert storage.word_counts(Memory, [], SHOP) == (1, {})

    def test_as_many_words_can_be_counted_as_a_long_text_has(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(content=text) for text in ("it's form1 form2999", "form1 form1 日本")])
        words = [f"form{n}" for n in range(3_000)]
        _, counts = storage.word_counts(Memory, [*words, "日本", "'; --"], SHOP)
        assert {word: count for word, count in counts.items() if count} == {"form1": 2, "form2999": 1, "日本": 1}
        assert counts.keys() == {*words, "日本", "'; --"}

    def test_in_an_empty_store_no_record_has_a_word(self, storage: StorageBackend) -> None:
        assert storage.word_counts(Memory, ["form"], SHOP) == (0, {"form": 0})

    @pytest.mark.parametrize("word", ["日本", "'; --", '"', "%", "a*", "\\", "a\\'b", "NEAR", "x" * 64])
    def test_any_word_can_be_counted(self, storage: StorageBackend, word: str) -> None:
        storage.save(make.a_memory())
        assert storage.word_counts(Memory, [word], SHOP) == (1, {word: 0})

    def test_words_are_counted_only_where_there_is_text(self, storage: StorageBackend) -> None:
        with pytest.raises(UnsupportedOperation, match="session has no searchable text"):
            storage.word_counts(Session, ["form"], SHOP)


class WordScoreContract:
    """Word scores of records that another search has found."""

    def test_records_score_what_they_score_where_words_find_them(self, storage: StorageBackend) -> None:
        texts = ("login form", "form form page", "a page about the login", "nothing of it", "form " + "field " * 40)
        storage.save_many([make.a_memory(id=f"m{n}", title="", content=text) for n, text in enumerate(texts)])
        found = dict(storage.matching_ids(Memory, "login form", SHOP))
        assert found.keys() == {"m0", "m1", "m2", "m4"}
        assert storage.word_scores(Memory, "login form", [f"m{n}" for n in range(5)], SHOP) == pytest.approx(found)

    def test_words_that_were_looked_up_before_score_the_same(self, storage: StorageBackend) -> None:
        storage.save_many(
            [make.a_memory(id=f"m{n}", content=f"form{' login' * (n % 3)} page {n}", summary="field") for n in range(9)]
        )
        storage.save(make.a_memory(id="other", content="nothing of it"))
        ids = ["m8", "m0", "other", "m4", "nobody"]
        alone = storage.word_scores(Memory, "login form", ids, SHOP)
        with storage.snapshot() as tx:
            tx.matching_ids(Memory, "login form", SHOP, limit=2)
            assert tx.word_scores(Memory, "login form", ids, SHOP) == pytest.approx(alone)
            for others in ("form", "page login"):
                assert tx.word_scores(Memory, others, ids, SHOP) == pytest.approx(
                    storage.word_scores(Memory, others, ids, SHOP)
                )

    def test_every_word_counts_however_common_it_is(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(id=f"m{n:03}", title="", content="form") for n in range(100)])
        storage.save(make.a_memory(id="page", title="", content="form page"))
        scores = storage.word_scores(Memory, "form page", ["page", "m007"], SHOP)
        assert scores["page"] > scores["m007"] > 0

    def test_only_those_inside_the_scope_that_have_a_word_score(self, storage: StorageBackend) -> None:
        storage.save_many(
            [
                make.a_memory(id="here", content="form", category="a"),
                make.a_memory(id="other", content="form", category="b"),
                make.a_memory(id="elsewhere", content="form", category="a", project_id="bank"),
                make.a_memory(id="wordless", content="page", category="a"),
            ]
        )
        ids = ["here", "other", "elsewhere", "wordless", "nobody", "here"]
        assert storage.word_scores(Memory, "form", ids, SHOP, Compare("category", "eq", "a")).keys() == {"here"}

    def test_scores_are_of_what_is_stored_now(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(id=each, content="form") for each in ("kept", "changed", "gone")])
        with storage.transaction() as tx:
            tx.update(Memory, "changed", {"content": "page"}, SHOP)
            tx.delete(Memory, ["gone"], SHOP)
            assert tx.word_scores(Memory, "form", ["kept", "changed", "gone"], SHOP).keys() == {"kept"}
        assert storage.word_scores(Memory, "form", ["kept", "changed", "gone"], SHOP).keys() == {"kept"}

    @pytest.mark.parametrize("query", ["", "  ", "...", "'; --", '"', "NEAR(", "日本", "\\"])
    def test_any_text_is_a_valid_query(self, storage: StorageBackend, query: str) -> None:
        storage.save(make.a_memory(id="m", title="", content="form"))
        assert storage.word_scores(Memory, query, ["m", "'; --"], SHOP) == {}

    def test_of_no_records_there_are_no_scores(self, storage: StorageBackend) -> None:
        assert storage.word_scores(Memory, "form", ["m"], SHOP) == {}
        storage.save(make.a_memory(id="m", content="form"))
        assert storage.word_scores(Memory, "form", [], SHOP) == {}

    def test_only_kinds_with_text_have_scores(self, storage: StorageBackend) -> None:
        with pytest.raises(UnsupportedOperation, match="session has no searchable text"):
            storage.word_scores(Session, "form", ["s"], SHOP)

    def test_a_query_that_is_not_text_is_refused(self, storage: StorageBackend) -> None:
        with pytest.raises(ValidationError, match="must be text"):
            storage.word_scores(Memory, 7, ["m"], SHOP)  # type: ignore[arg-type]


def stays(storage: StorageBackend, meanwhile: Callable[[], object]) -> bool:
    """Whether the generation stays the same; background work of a server may change it now and then."""

    def stayed() -> bool:
        before = storage.generation()
        meanwhile()
        return storage.generation() == before

    return any(stayed() for _ in range(5))


class GenerationContract:
    """A text that changes with every commit."""

    def test_the_generation_stays_while_nothing_is_written(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())

        def read() -> None:
            storage.find(Heuristic, SHOP)
            with storage.snapshot() as tx:
                tx.search_text(Heuristic, "form", SHOP)

        assert stays(storage, read)

    def test_every_commit_makes_another_generation(self, storage: StorageBackend) -> None:
        heuristic, pattern = make.a_heuristic(embedding=[1, 0, 0, 0]), make.a_pattern()
        seen = [storage.generation()]
        for change in (
            lambda: storage.save(heuristic),
            lambda: storage.save(heuristic.replace(confidence=0.5)),
            lambda: storage.increment(Heuristic, heuristic.id, {"occurrence_count": 1}, SHOP),
            lambda: storage.put_passages(Heuristic, {heuristic.id: [[1, 0, 0, 0], [0, 1, 0, 0]]}),
            lambda: storage.put_vectors(Heuristic, {heuristic.id: [1, 2, 3]}, model="other"),
            lambda: storage.save(pattern),
            lambda: storage.delete(ProjectPattern, [pattern.id], SHOP),
            lambda: storage.delete(Heuristic, [heuristic.id], SHOP),
        ):
            change()
            seen.append(storage.generation())
        assert len(set(seen)) == len(seen)

    def test_many_quick_commits_of_the_same_size_are_as_many_generations(self, storage: StorageBackend) -> None:
        state = make.a_session(id="s", name="0")
        seen = set()
        for turn in range(60):
            storage.save(state.replace(name=str(turn % 2)))
            seen.add(storage.generation())
        assert len(seen) == 60

    def test_inside_a_writing_transaction_every_call_gives_another(self, storage: StorageBackend) -> None:
        before = storage.generation()
        with storage.transaction() as tx:
            tx.save(make.a_heuristic())
            seen = {before, storage.generation(), storage.generation(), storage.generation()}
        assert len(seen) == 4

    def test_a_rolled_back_transaction_leaves_no_generation(self, storage: StorageBackend) -> None:
        with pytest.raises(Oops), storage.transaction() as tx:
            tx.save(make.a_heuristic())
            inside = storage.generation()
            raise Oops
        assert storage.generation() != inside
