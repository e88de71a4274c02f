"""Facts and preferences are compared when they are written; what replaces or denies another one says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA
from alma.bootstrap import parts_at
from alma.clock import now
from alma.judge.base import Judge, Judgement, Label, StrictJudge
from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.memory import FactRelationship, Memory
from alma.model.scope import Scope
from alma.operations import operation_named
from alma.operations.access import Caller
from tests.support.judging import LabelledJudge

CENTRAL, WEST, AGAIN = (
    "Production runs in eu-central-1",
    "Prod is in eu-west-1 now",
    "We run production in eu-central-1",
)
DARK, LIGHT = "I like dark mode in the editor", "Light mode in the editor, please"
TOLD: dict[tuple[str, str], Label] = {
    (WEST, CENTRAL): "supersedes",
    (AGAIN, CENTRAL): "same",
    (AGAIN, WEST): "supersedes",
    (DARK, LIGHT): "opposite",
}
ASKED = "Which region does production run in?"


def opened(place: Path, judge: Judge) -> ALMA:
    parts = parts_at(place / "alma.db", "shop", {})
    return ALMA(parts.storage, parts.retrieval, parts.learning, parts.scopes, parts.project_id, judge=judge)


@pytest.fixture
def judge() -> LabelledJudge:
    return LabelledJudge(TOLD)


@pytest.fixture
def alma(tmp_path: Path, judge: LabelledJudge) -> Iterator[ALMA]:
    with opened(tmp_path, judge) as memory:
        yield memory


def fact(alma: ALMA, text: str, **options: Any) -> DomainKnowledge:
    return alma.add_domain_knowledge("ops", "infrastructure", text, **options)


def told(alma: ALMA, fact_id: str, cls: type[Any] = DomainKnowledge) -> list[tuple[str, str]]:
    return [(each.relation, str(each.other.key)) for each in alma.facts.of(cls, fact_id, Scope.everywhere())]


def perform(alma: ALMA, name: str, **arguments: Any) -> Any:
    return operation_named(name).perform(Caller(alma), arguments)


# ---------------------------------------------------------------------- facts


def test_a_fact_that_replaces_another_is_related_to_it(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    assert told(alma, old.id) == [("superseded_by", new.id)]
    (related,) = alma.facts.of(DomainKnowledge, old.id, alma.scope())
    assert related.edge.strength == 0.9
    assert [each.detail for each in related.evidence] == ["supersedes, 0.90, by scripted"]
    assert related.edge.metadata["dates"].keys() == {old.id, new.id}


def test_what_is_so_stands_before_what_was_and_the_prompt_says_since_when(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    found = alma.retrieve(ASKED, "ops")
    assert [each.id for each in found.domain_knowledge] == [new.id, old.id]
    prompt = found.to_prompt()
    note = f"Note: superseded on {now():%Y-%m-%d} by: {WEST}"
    assert prompt.index(f": {WEST}") < prompt.index(CENTRAL) < prompt.index(note)
    assert found.explanation_of(old.id).notes[0].startswith("superseded on")


def test_what_replaced_a_fact_is_found_by_it_where_the_question_is_far_from_it(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    found = alma.retrieve("eu-central-1", "ops", top_k=1)
    assert [each.id for each in found.domain_knowledge] == [new.id]
    assert found.why_not(old.id) is not None


def test_of_preferences_of_one_category_the_newest_holds_however_differently_they_are_worded(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", "shop") as alma:
        for text in ("write in German", "please use English from now on"):
            alma.add_user_preference("ana", "language", text)
        prompt = alma.retrieve("Write the report", "ops", user_id="ana").to_prompt()
    note = f"Note: superseded on {now():%Y-%m-%d} by: please use English from now on"
    assert prompt.index(": please use English") < prompt.index(": write in German") < prompt.index(note)


def test_preferences_of_one_category_that_fit_together_are_not_related(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", "shop") as alma:
        first = alma.add_user_preference("ana", "style", "Keep answers short")
        alma.add_user_preference("ana", "style", "Use bullet points")
        assert told(alma, first.id, UserPreference) == []


def test_without_a_model_only_what_someone_says_replaces_a_fact(tmp_path: Path) -> None:
    with opened(tmp_path, StrictJudge()) as alma:
        old, unrelated = fact(alma, CENTRAL), fact(alma, WEST)
        assert told(alma, old.id) == []
        new = fact(alma, "We moved to us-east-2", supersedes=old.id)
        assert told(alma, old.id) == [("superseded_by", new.id)]
        assert told(alma, unrelated.id) == []


def test_what_someone_says_stands_above_what_the_judge_found(alma: ALMA) -> None:
    old = fact(alma, CENTRAL)
    fact(alma, WEST, supersedes=old.id)
    (related,) = alma.facts.of(DomainKnowledge, old.id, alma.scope())
    assert (related.edge.strength, related.edge.auto_detected) == (1.0, False)


def test_the_same_in_other_words_counts_and_waits_in_the_archive(alma: ALMA) -> None:
    known = fact(alma, CENTRAL)
    again = fact(alma, AGAIN)
    assert again.id == known.id
    assert again.metadata["occurrence_count"] == 2
    (archived,) = alma.archive.find(alma.scope())
    assert "0.90 by scripted" in (archived.reason or "")
    assert AGAIN in archived.document


def test_what_was_stated_again_in_other_words_holds_in_the_place_of_what_denied_it(tmp_path: Path) -> None:
    brief, longer, short = "Keep your answers brief", "Write longer, more detailed answers", "Write short answers"
    told_: dict[tuple[str, str], Label] = {(brief, short): "same", (brief, longer): "opposite"}
    with opened(tmp_path, LabelledJudge(told_)) as alma:
        first, _, again = (alma.add_user_preference("ana", "style", text) for text in (short, longer, brief))
        assert again.id == first.id
        prompt = alma.retrieve("Answer a question", "ops", user_id="ana").to_prompt()
        assert prompt.index(short) < prompt.index(longer) < prompt.index(f"Note: contradicted on {now():%Y-%m-%d}")


def test_what_is_about_another_thing_is_not_replaced_beside_what_is(tmp_path: Path) -> None:
    staging = "Staging runs in eu-central-1"
    told_: dict[tuple[str, str], Label] = {(WEST, CENTRAL): "supersedes", (WEST, staging): "supersedes"}
    with opened(tmp_path, LabelledJudge(told_)) as alma:
        old, other, new = (fact(alma, text) for text in (CENTRAL, staging, WEST))
        assert told(alma, old.id) == [("superseded_by", new.id)]
        assert told(alma, other.id) == []


def test_what_did_not_say_the_same_is_a_fact_of_its_own_again(alma: ALMA, judge: LabelledJudge) -> None:
    known = fact(alma, CENTRAL)
    fact(alma, AGAIN)
    (merged,) = perform(alma, "memory_relations", memory_id=known.id).merged
    done = perform(alma, "distinguish_memories", memory_id=known.id, other_id=merged.id)
    assert list(done.restored) == [merged.id]
    assert {each.fact for each in alma.storage.find(DomainKnowledge, alma.scope())} == {CENTRAL, AGAIN}
    kept = alma.storage.get(DomainKnowledge, known.id, alma.scope())
    assert kept is not None
    assert kept.metadata["occurrence_count"] == 1


def test_what_is_stated_again_holds_again(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    fact(alma, CENTRAL, source="user_stated")
    assert told(alma, old.id) == [("supersedes", new.id)]
    assert [each.id for each in alma.retrieve(ASKED, "ops").domain_knowledge] == [old.id, new.id]


def test_someone_says_that_it_does_not_replace_it_and_this_is_remembered(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    done = perform(alma, "distinguish_memories", memory_id=old.id, other_id=new.id)
    assert list(done.removed) == ["supersedes"]
    assert told(alma, old.id) == [("distinct_from", new.id)]
    perform(alma, "compare_memories", kind="domain_knowledge")
    assert told(alma, old.id) == [("distinct_from", new.id)]
    assert "superseded" not in alma.retrieve(ASKED, "ops").to_prompt()


def test_that_two_facts_are_distinct_can_be_taken_back(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    (before,) = alma.storage.find(FactRelationship, Scope.everywhere())
    perform(alma, "distinguish_memories", memory_id=old.id, other_id=new.id)
    done = perform(alma, "distinguish_memories", memory_id=new.id, other_id=old.id, distinct=False)
    assert list(done.related) == ["supersedes"]
    assert alma.storage.find(FactRelationship, Scope.everywhere()) == [before]
    again = perform(alma, "distinguish_memories", memory_id=new.id, other_id=old.id, distinct=False)
    assert not again.related


def test_facts_of_other_agents_and_projects_are_not_compared(alma: ALMA, judge: LabelledJudge) -> None:
    fact(alma, CENTRAL)
    alma.add_domain_knowledge("web", "infrastructure", WEST)
    alma.for_project("bank").add_domain_knowledge("ops", "infrastructure", WEST)
    assert judge.asked == []
    assert alma.storage.count(FactRelationship, Scope.everywhere()) == 0


def test_an_untrusted_source_replaces_nothing(alma: ALMA, judge: LabelledJudge) -> None:
    old = fact(alma, CENTRAL)
    fact(alma, WEST, source="web")
    assert judge.asked == []
    assert told(alma, old.id) == []


def test_what_replaced_a_fact_and_is_gone_replaces_nothing(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    alma.storage.delete(DomainKnowledge, new.id, alma.scope())
    assert told(alma, old.id) == []
    assert "Note:" not in alma.retrieve(ASKED, "ops").to_prompt()


def test_who_reads_the_past_finds_what_was_so_then(alma: ALMA) -> None:
    old = fact(alma, CENTRAL)
    then = now()
    new = fact(alma, WEST)
    found = alma.history.search(DomainKnowledge, ASKED, alma.scope(), mode="keyword", true_at=now())
    assert [hit.record.id for hit in found] in ([new.id], [])
    found = alma.history.search(DomainKnowledge, ASKED, alma.scope(), mode="keyword", true_at=then)
    assert [hit.record.id for hit in found][:1] == [old.id]


@pytest.mark.parametrize(
    "text",
    ["x", "a " * 10_000, "本番は eu-west-1 で動いている", '{"region": "eu-west-1"}', "🚀🔥", "def f(x): return x + 1"],
)
def test_odd_texts_are_facts_like_any_other(alma: ALMA, text: str) -> None:
    known = fact(alma, CENTRAL)
    odd = fact(alma, text)
    assert odd.id != known.id
    assert fact(alma, text).id == odd.id
    assert told(alma, known.id) == []


class Down(StrictJudge):
    """Cannot be reached."""

    def compare(self, pairs: Any) -> list[Judgement]:
        from alma.errors import LanguageModelError

        raise LanguageModelError("the model is down")


def test_while_the_judge_is_down_facts_are_kept_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, Down()) as alma:
        fact(alma, CENTRAL)
        assert fact(alma, WEST).fact == WEST


# ---------------------------------------------------------------------- preferences and general memories


def test_of_preferences_that_contradict_each_other_the_newest_holds(alma: ALMA) -> None:
    old, new = (alma.add_user_preference("ana", "editor", text) for text in (DARK, LIGHT))
    alma.add_user_preference("bob", "editor", DARK)
    found = alma.retrieve("Set up the editor", "ops", user_id="ana")
    assert [each.id for each in found.preferences] == [new.id, old.id]
    prompt = found.to_prompt()
    assert prompt.index(LIGHT) < prompt.index(DARK) < prompt.index("Note: contradicted on")
    assert prompt.count("Note:") == 1
    assert told(alma, old.id, UserPreference) == [("contradicts", new.id)]


def test_general_memories_are_compared_as_well(alma: ALMA) -> None:
    old = alma.journal.create(CENTRAL, project_id="shop", memory_type="decision")
    new = alma.journal.create(WEST, project_id="shop", memory_type="note")
    assert told(alma, old.id, Memory) == [("superseded_by", new.id)]
    assert [hit.memory.id for hit in alma.journal.search(ASKED, alma.scope())][:2] == [new.id, old.id]
    alma.relationships.unrelate(new.id, old.id, "supersedes", alma.scope())
    alma.ingest.facts.compare_stored(Memory, alma.scope(), 10)
    assert told(alma, old.id, Memory) == [("distinct_from", new.id)]


def test_a_memory_with_an_id_of_its_own_is_compared_before_its_transaction(alma: ALMA, judge: LabelledJudge) -> None:
    old = alma.journal.create(CENTRAL, project_id="shop")
    new = alma.journal.create(WEST, project_id="shop", id="chosen")
    assert told(alma, old.id, Memory) == [("superseded_by", new.id)]
    assert judge.asked == [(WEST, CENTRAL)]
    alma.journal.update(new.id, {"content": AGAIN}, alma.scope())
    assert judge.asked == [(WEST, CENTRAL), (AGAIN, CENTRAL)]


def test_a_memory_that_says_something_else_by_now_replaces_nothing(alma: ALMA) -> None:
    old = alma.journal.create(CENTRAL, project_id="shop")
    new = alma.journal.create(WEST, project_id="shop")
    alma.journal.update(new.id, {"content": "The office is in Lisbon"}, alma.scope())
    assert told(alma, old.id, Memory) == []


def test_turns_of_conversations_are_no_facts(alma: ALMA, judge: LabelledJudge) -> None:
    for text in (CENTRAL, WEST):
        alma.journal.create(text, project_id="shop", memory_type="conversation")
    assert judge.asked == []


def test_what_is_stored_in_bulk_is_compared_when_that_is_asked_for(alma: ALMA, judge: LabelledJudge) -> None:
    made = [DomainKnowledge(agent="ops", project_id="shop", domain="infra", fact=text) for text in (CENTRAL, WEST)]
    old, new = [written.id for written in alma.ingest.save_many(made)]
    assert judge.asked == []
    done = perform(alma, "compare_memories")
    assert (done.compared, done.related) == (2, 2)
    assert told(alma, old) == [("superseded_by", new)]


# ---------------------------------------------------------------------- faces


def test_the_relations_of_a_fact_are_told_with_judge_probability_and_dates(alma: ALMA) -> None:
    old, new = fact(alma, CENTRAL), fact(alma, WEST)
    shown = perform(alma, "memory_relations", memory_id=old.id)
    (related,) = shown.relations
    assert (related.relation, related.other_id, related.other) == ("superseded_by", new.id, WEST)
    assert (related.probability, related.detected) == (0.9, True)
    assert related.evidence == ["judge: supersedes, 0.90, by scripted"]
    assert related.date < related.other_date


def test_a_retrieval_over_any_face_tells_what_is_no_longer_so(alma: ALMA) -> None:
    old, _ = fact(alma, CENTRAL), fact(alma, WEST)
    found = perform(alma, "retrieve", task=ASKED, agent="ops")
    assert found.notes.keys() == {old.id}
