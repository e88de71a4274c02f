"""Full text: records are found by their words, inside the scope."""

from __future__ import annotations

import math

import pytest

from alma.errors import (
    UnsupportedOperation,
    ValidationError,
)
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.storage_contract.common import EVERYWHERE, SHOP


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

    def test_words_of_scripts_without_spaces_are_found_whatever_stands_beside_them(
        self, storage: StorageBackend
    ) -> None:
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

    def test_what_stands_at_the_end_of_a_text_as_long_as_there_may_be_is_found(self, storage: StorageBackend) -> None:
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

    def test_names_with_signs_are_told_from_letters(self, storage: StorageBackend) -> None:
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
