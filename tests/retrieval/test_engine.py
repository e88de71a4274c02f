"""What an agent gets before a task, and what it does not get."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from alma.cache.redis import RedisCache
from alma.clock import now
from alma.embeddings.base import EmbeddingProvider, Passage
from alma.embeddings.mock import MockEmbedder
from alma.errors import (
    ConfigurationError,
    EmbeddingError,
    IndexUnavailable,
    ScopeViolationError,
    StorageError,
    ValidationError,
)
from alma.memory.archive import Archive
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import EVERYTHING
from alma.model.scope import MemoryScope, Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.scoring import ScoringWeights
from alma.retrieval.simple_search import Mode
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.storage.in_memory import InMemoryStorage
from alma.testing import builders as make

Remember = Callable[..., Any]
QUESTION = "How should I test the login form?"


def ids(records: Sequence[Any]) -> list[str]:
    return [record.id for record in records]


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def store_kind(request: pytest.FixtureRequest) -> str:
    """Every store: what is found must not depend on it."""
    return str(request.param)


# ---------------------------------------------------------------------- what is found


def test_what_was_learned_is_found_again(engine: RetrievalEngine, remember: Remember) -> None:
    lesson = remember(make.a_heuristic(condition="testing a login form", strategy="try each field by itself"))
    remember(make.a_heuristic(condition="deploying to a cluster", strategy="roll out one node at a time"))
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert ids(found.heuristics)[0] == lesson.id
    assert "try each field by itself" in found.to_prompt()


def test_every_kind_comes_in_its_own_list(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        make.a_heuristic(condition="testing a login form"),
        make.an_anti_pattern(pattern="testing a login form with fixed sleeps"),
        make.some_knowledge(fact="the login form is tested by the nightly run"),
        make.an_outcome(task_description="test the login form"),
        make.a_preference(preference="wants the login form tested first"),
        make.a_memory(content="We rewrote the test of the login form"),
    )
    found = engine.retrieve(QUESTION, "helena", "shop", user_id="ana")
    lists = (found.heuristics, found.anti_patterns, found.domain_knowledge, found.outcomes, found.preferences)
    assert [len(records) for records in (*lists, found.memories)] == [1] * 6
    assert found.total_items == 6


def test_another_agent_or_project_finds_nothing_of_it(engine: RetrievalEngine, remember: Remember) -> None:
    remember(make.a_heuristic(condition="testing a login form"), make.a_memory(content="the login form was tested"))
    assert not engine.retrieve(QUESTION, "victor", "shop", kinds=[Heuristic])
    assert not engine.retrieve(QUESTION, "helena", "bank")


def test_an_agent_reads_what_it_inherits_unless_told_not_to(engine: RetrievalEngine, remember: Remember) -> None:
    lesson = remember(make.a_heuristic(agent="helena", condition="testing a login form"))
    victor = MemoryScope("victor", inherit_from=["helena"])
    assert ids(engine.retrieve(QUESTION, "victor", "shop", scope=victor).heuristics) == [lesson.id]
    assert not engine.retrieve(QUESTION, "victor", "shop", scope=victor, include_shared=False)


def test_a_scope_of_another_agent_is_refused(engine: RetrievalEngine) -> None:
    with pytest.raises(ScopeViolationError, match="must be the scope of the agent 'helena'"):
        engine.retrieve(QUESTION, "helena", "shop", scope=MemoryScope("victor"))


@pytest.mark.parametrize(
    "hidden",
    [
        {"is_archived": True},
        {"is_active": False},
        {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)},
        {"is_private": True, "user_id": "ben"},
        {"layer_session": True, "session_id": "another"},
    ],
)
def test_what_is_gone_private_or_of_another_session_stays_hidden(
    engine: RetrievalEngine, remember: Remember, hidden: dict[str, Any]
) -> None:
    memory = remember(make.a_memory(content="the login form was tested", **hidden))
    found = engine.retrieve(QUESTION, "helena", "shop", user_id="ana", session_id="mine")
    assert not found.memories
    dropped = found.why_not(memory.id)
    assert dropped is not None
    assert dropped.stage == "scope"


def test_a_user_carries_global_memories_into_every_project(engine: RetrievalEngine, remember: Remember) -> None:
    memory = remember(make.a_memory(project_id="home", layer_global=True, content="tests login forms by keyboard"))
    assert ids(engine.retrieve(QUESTION, "helena", "shop", user_id="ana").memories) == [memory.id]
    assert not engine.retrieve(QUESTION, "helena", "shop", user_id="ben").memories


# ---------------------------------------------------------------------- by rule


def test_preferences_and_standing_instructions_come_with_every_task(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(make.a_preference(preference="answers in German"))
    rule = remember(make.a_memory(content="write the ticket number into every commit", memory_type="instruction"))
    found = engine.retrieve("rotate the database password", "helena", "shop", user_id="ana")
    assert [preference.preference for preference in found.preferences] == ["answers in German"]
    assert ids(found.instructions) == [rule.id]
    assert rule.id not in ids(found.memories)
    assert found.explanation_of(rule.id).found_by == ("rule",)


# ---------------------------------------------------------------------- nothing instead of noise


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Mongolia?",
        "recipe for sourdough bread",
        "Who won the chess world championship?",
        "mortgage interest rates in Norway",
        "how do whales sleep",
    ],
)
def test_a_question_about_things_never_stored_finds_nothing(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    remember(
        make.a_heuristic(condition="testing the login form", strategy="field by field"),
        make.a_heuristic(condition="testing the cart", strategy="with an empty one first"),
        make.a_memory(content="We moved the build to another host"),
        make.a_memory(content="The release was delayed by a flaky test"),
        make.some_knowledge(fact="tokens expire after a day"),
    )
    assert not engine.retrieve(question, "helena", "shop")


def test_a_rare_name_is_found_by_its_letters(engine: RetrievalEngine, remember: Remember) -> None:
    memory = remember(make.a_memory(content="ERR_4521 means that the token is too old"))
    remember(make.a_memory(content="the build was moved"), make.a_memory(content="the cart was redesigned"))
    assert ids(engine.retrieve("ERR_4521", "helena", "shop").memories) == [memory.id]


# ---------------------------------------------------------------------- order


def test_a_newer_fact_stands_before_the_one_it_overrules(engine: RetrievalEngine, remember: Remember) -> None:
    before, after = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
    old = remember(make.a_memory(content="The release manager of the shop is Anna Kern", event_time=before))
    new = remember(make.a_memory(content="The release manager of the shop is Boris Lang", event_time=after))
    remember(make.a_memory(content="The release of the bank was quiet", event_time=after))
    found = engine.retrieve("Who is the release manager of the shop?", "helena", "shop")
    assert ids(found.memories)[:2] == [new.id, old.id]


def test_a_repetition_is_handed_over_once(engine: RetrievalEngine, remember: Remember) -> None:
    first, second = remember(
        make.a_memory(content="the login form is tested every night"),
        make.a_memory(content="The login form is tested every night!"),
    )
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert len(found.memories) == 1
    [left_out] = {first.id, second.id} - set(ids(found.memories))
    dropped = found.why_not(left_out)
    assert dropped is not None
    assert dropped.stage == "repetition"


def test_an_answer_is_found_beside_its_question(engine: RetrievalEngine, remember: Remember) -> None:
    moment = datetime(2024, 5, 8, tzinfo=UTC)

    def said(speaker: str, text: str) -> Memory:
        return Memory.said(speaker, text, moment, project_id="shop", session_id="s1")

    asked, answer, _ = (
        said("Ana", "Which framework shall we take for the new checkout page?"),
        said("Ben", "Svelte, since everybody knows it."),
        said("Ana", "Fine. Lunch?"),
    )
    remember(asked, answer, said("Ana", "Fine. Lunch?"))
    remember(*(make.a_memory(content=f"note {i} about the warehouse of the shop") for i in range(20)))
    found = engine.retrieve("Which framework was chosen for the checkout page?", "helena", "shop", top_k=3)
    assert asked.id in ids(found.memories)
    assert answer.id in ids(found.memories)


@pytest.mark.parametrize(
    ("question", "of_an_answer"),
    [
        ("Remind me which framework you recommended for the checkout page", True),
        ("In our last chat, which framework was it for the checkout page?", True),
        ("Can you recommend a framework for the checkout page?", False),
        ("Which framework is there for the checkout page?", False),
    ],
)
def test_what_was_answered_at_length_counts_fully_where_an_answer_is_asked_for(
    engine: RetrievalEngine, remember: Remember, question: str, of_an_answer: bool
) -> None:
    fields: dict[str, Any] = {"project_id": "shop", "session_id": "s1"}
    asked = Memory(content="Which framework shall we take for the checkout page?", **fields)
    answer = Memory(
        content="For the checkout page I recommend the framework Svelte. " + "It is small. " * 100, **fields
    )
    remember(asked, answer)
    terms = engine.retrieve(question, "helena", "shop").explanation_of(answer.id).terms
    assert (terms["conversation"] > 0.4) == of_an_answer


def test_a_time_in_the_question_prefers_what_happened_then(engine: RetrievalEngine, remember: Remember) -> None:
    today = datetime(2024, 6, 19, tzinfo=UTC)
    then = remember(make.a_memory(content="the deployment of the shop failed", event_time=today - timedelta(days=8)))
    remember(
        make.a_memory(content="the deployment of the bank failed", event_time=today - timedelta(days=1)),
        make.a_memory(content="the deployment of the club failed", event_time=today - timedelta(days=99)),
    )
    found = engine.retrieve("Which deployment failed last week?", "helena", "shop", now=today)
    assert ids(found.memories)[0] == then.id
    assert "time" in found.explanation_of(then.id).terms


def test_yesterday_is_the_day_where_the_question_is_asked(engine: RetrievalEngine, remember: Remember) -> None:
    in_tokyo = datetime(2024, 6, 19, 8, tzinfo=timezone(timedelta(hours=9)))
    remember(make.a_memory(id="m", content="the deployment failed", event_time=in_tokyo - timedelta(hours=10)))

    def gained(asked: datetime) -> float:
        found = engine.retrieve("Which deployment failed yesterday?", "helena", "shop", now=asked)
        return found.explanation_of("m").terms.get("time", 0.0)

    # In UTC it is still the same day.
    assert gained(in_tokyo) > 0
    assert gained(in_tokyo.astimezone(UTC)) == 0


def test_an_event_that_memory_knows_bounds_the_time(engine: RetrievalEngine, remember: Remember) -> None:
    release = datetime(2024, 3, 10, tzinfo=UTC)
    remember(make.a_memory(content="the big release went out", event_time=release))
    early = remember(
        make.a_memory(content="the search of the shop was rebuilt", event_time=release - timedelta(days=9))
    )
    late = remember(make.a_memory(content="the search of the shop was slow", event_time=release + timedelta(days=9)))
    found = engine.retrieve("What happened to the shop's search before the big release?", "helena", "shop")
    assert "time" in found.explanation_of(early.id).terms
    assert "time" not in found.explanation_of(late.id).terms


def test_what_is_related_comes_along(engine: RetrievalEngine, remember: Remember, store: StorageBackend) -> None:
    cause, effect = remember(
        make.a_memory(content="The login form of the shop times out"),
        make.a_memory(content="A proxy in Frankfurt was replaced"),
    )
    store.save(make.a_relationship(cause, effect, relationship_type="caused_by"))
    found = engine.retrieve("Why does the login form time out?", "helena", "shop")
    assert set(ids(found.memories)) == {cause.id, effect.id}
    assert "relationship caused_by" in found.explanation_of(effect.id).found_by


def test_of_two_remarks_the_one_that_answers_stands_before_the_one_that_asks(
    engine: RetrievalEngine, remember: Remember
) -> None:
    asked = remember(make.a_memory(content="What colour did Ana paint the garden fence?"))
    told = remember(make.a_memory(content="Ana painted the garden fence in a blue colour, it looks great."))
    found = engine.retrieve("What colour did Ana paint the garden fence?", "helena", "shop")
    assert ids(found.memories) == [told.id, asked.id]
    explanation = found.explanation_of(asked.id)
    assert explanation.terms["question"] < 0
    assert math.isclose(explanation.score, sum(explanation.terms.values()))


def test_where_a_time_is_asked_for_the_remark_that_tells_one_gains(engine: RetrievalEngine, remember: Remember) -> None:
    dated = remember(make.a_memory(content="Ana and Ben signed up for the pottery class last week"))
    plain = remember(make.a_memory(content="Ana and Ben love the pottery class with the old teacher"))
    when = engine.retrieve("When did Ana sign up for the pottery class?", "helena", "shop")
    assert when.explanation_of(dated.id).terms["when"] > 0
    assert "when" not in when.explanation_of(plain.id).terms
    who = engine.retrieve("Who signed up for the pottery class?", "helena", "shop")
    assert "when" not in who.explanation_of(dated.id).terms


def test_for_advice_meaning_counts_more_than_words(engine: RetrievalEngine, remember: Remember) -> None:
    memory = remember(make.a_memory(content="The camera I bought takes sharp photos of birds"))

    def shares(question: str) -> tuple[float, float]:
        terms = engine.retrieve(question, "helena", "shop").explanation_of(memory.id).terms
        return terms["meaning"], terms["words"]

    meaning, words = shares("Can you suggest a lens for my camera?")
    assert meaning > words
    meaning, words = shares("Which lens did I buy for my camera?")
    assert meaning < words


# ---------------------------------------------------------------------- explaining


def test_the_terms_of_every_score_add_up(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        make.a_heuristic(condition="testing a login form", confidence=0.9, occurrence_count=4, success_count=3),
        make.a_memory(content="the login form was tested", title="Test"),
        make.a_preference(preference="short answers"),
    )
    found = engine.retrieve(QUESTION, "helena", "shop", user_id="ana")
    assert len(found.explain()) == found.total_items
    for explanation in found.explain():
        assert math.isclose(explanation.score, sum(explanation.terms.values()))
        assert explanation.found_by


def test_memories_of_several_kinds_that_share_an_id_are_each_explained(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(
        make.a_heuristic(id="1", condition="testing a login form"),
        make.some_knowledge(id="1", fact="the login form has a hidden field"),
        make.a_memory(id="1", content="The login form was tested in March"),
    )
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert found.total_items == 3
    assert {each.kind for each in found.explain()} == {"heuristic", "domain_knowledge", "memory"}
    assert [record.spec.kind for record in found.ranked()] == [each.kind for each in found.explain()]


def test_alma_s_factors_weigh_as_they_are_configured(
    store: StorageBackend, embedder: EmbeddingProvider, remember: Remember
) -> None:
    lesson = remember(
        make.a_heuristic(condition="testing a login form", confidence=0.5, occurrence_count=4, success_count=1)
    )
    weights = ScoringWeights(similarity=0.0, recency=0.0, success=2.0, confidence=4.0)
    engine = RetrievalEngine(store, embedder, scoring_weights=weights)
    assert engine.retrieve(QUESTION, "helena", "shop").explanation_of(lesson.id).terms == {
        "success": 0.5,
        "confidence": 2.0,
    }
    engine.close()


def test_why_not_names_the_stage(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*(make.a_heuristic(condition=f"testing a login form, case {i}") for i in range(7)))
    stranger = remember(make.a_heuristic(agent="victor", condition="testing a login form"))
    other = remember(make.a_heuristic(condition="watering the plants", strategy="on Mondays"))
    found = engine.retrieve(QUESTION, "helena", "shop", top_k=3)
    stages = {}
    for heuristic in engine.storage.get_heuristics("shop", top_k=20):
        dropped = found.why_not(heuristic.id)
        stages[heuristic.id] = None if dropped is None else dropped.stage
    assert sorted(filter(None, stages.values())).count("rank") == 4
    assert stages[other.id] == "relevance"
    assert stages[stranger.id] == "scope"
    unknown = found.why_not("nobody")
    assert unknown is not None
    assert unknown.stage == "scope"


def test_why_not_tells_nothing_of_what_the_agent_may_not_see(engine: RetrievalEngine, remember: Remember) -> None:
    mine, private, elsewhere = remember(
        make.a_memory(content="the login form has two fields", user_id="ana"),
        make.a_memory(content="the login form is ugly", user_id="ben", is_private=True),
        make.a_memory(content="the login form of the bank", user_id="ben", project_id="bank"),
    )
    remember(make.a_memory(content="the login form was blue", user_id="ana", is_archived=True, id="old"))
    engine.storage.save_many(
        [make.a_relationship(mine, private), make.a_relationship(mine, elsewhere, relationship_type="supersedes")]
    )
    found = engine.retrieve("What is the login form like?", "helena", "shop", user_id="ana")
    assert ids(found.memories) == [mine.id]
    for hidden in (private.id, elsewhere.id, "nobody"):
        assert str(found.why_not(hidden)) == f"scope: there is no memory {hidden!r} that this agent may see"
    assert str(found.why_not("old")) == "scope: it is archived"
    owners = engine.retrieve("What is the color of the sky?", "helena", "shop", user_id="ben")
    assert "no memory" not in str(owners.why_not(private.id))


def test_why_not_says_why_a_memory_is_out_of_sight(engine: RetrievalEngine, remember: Remember) -> None:
    day = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    about: dict[str, Any] = {"content": "the login form has two fields"}
    remember(
        make.a_memory(id="deleted", is_active=False, **about),
        make.a_memory(id="expired", expires_at=day, **about),
        make.a_memory(id="elsewhere", layer_session=True, session_id="s1", **about),
        make.a_heuristic(id="doubtful", condition="testing the login form"),
        make.a_heuristic(id="suspicious", condition="testing the login form", agent="victor"),
        make.a_memory(id="private", user_id="ben", is_private=True, **about),
    )
    archive = Archive(engine.storage)
    everywhere = Scope.everywhere()
    archive.put(Heuristic, "doubtful", everywhere, "forgotten", reason="its confidence was below 0.3")
    archive.put(Heuristic, "suspicious", everywhere, "quarantined")
    archive.put(Memory, "private", everywhere)
    found = engine.retrieve(QUESTION, "helena", "shop", user_id="ana")
    assert str(found.why_not("deleted")) == "scope: it was deleted"
    assert str(found.why_not("expired")) == "scope: it expired at 2026-01-05 09:30 UTC"
    assert str(found.why_not("elsewhere")) == "scope: it belongs to another session or layer"
    forgotten = f"scope: it was forgotten on {now():%Y-%m-%d}: its confidence was below 0.3"
    assert str(found.why_not("doubtful")) == forgotten
    for hidden in ("suspicious", "private"):
        assert str(found.why_not(hidden)) == f"scope: there is no memory {hidden!r} that this agent may see"
    victors = engine.retrieve(QUESTION, "victor", "shop")
    assert str(victors.why_not("suspicious")) == f"scope: it was quarantined on {now():%Y-%m-%d}"


def test_why_not_tells_nothing_of_what_a_user_has_in_other_projects(
    engine: RetrievalEngine, remember: Remember
) -> None:
    past = now() - timedelta(days=1)
    remember(
        make.a_memory(id="bank", project_id="bank", content="the login form of the bank"),
        make.a_memory(id="archived", project_id="bank", content="the login form was red", is_archived=True),
        make.a_memory(id="carried", project_id="bank", content="login forms", layer_global=True, expires_at=past),
        make.a_memory(id="put away", project_id="bank", content="the login form was blue"),
    )
    Archive(engine.storage).put(Memory, "put away", Scope.everywhere())
    found = engine.retrieve(QUESTION, "helena", "shop", user_id="ana")
    for hidden in ("bank", "archived", "put away"):
        assert str(found.why_not(hidden)) == f"scope: there is no memory {hidden!r} that this agent may see"
    assert "it expired at" in str(found.why_not("carried"))


def test_why_not_says_of_what_is_related_and_out_of_sight_why_it_is(
    engine: RetrievalEngine, remember: Remember
) -> None:
    form, red = remember(
        make.a_memory(id="form", content="the login form is tested"),
        make.a_memory(id="red", content="a sunset", is_archived=True),
    )
    engine.storage.save(make.a_relationship(form, red))
    found = engine.retrieve(QUESTION, "helena", "shop", user_id="ana")
    assert str(found.why_not("red")) == "scope: it is archived"


def test_why_not_says_that_a_kind_was_not_asked_for(engine: RetrievalEngine, remember: Remember) -> None:
    lesson = remember(make.a_heuristic(condition="testing a login form"))
    found = engine.retrieve(QUESTION, "helena", "shop", kinds=["outcome", "memory"])
    assert str(found.why_not(lesson.id)) == "scope: its kind, heuristic, was not requested"
    expired = remember(make.a_memory(content=QUESTION, expires_at=now() - timedelta(days=1)))
    lessons_only = engine.retrieve(QUESTION, "helena", "shop", kinds=["heuristic"])
    assert str(lessons_only.why_not(expired.id)) == "scope: its kind, memory, was not requested"
    elsewhere = engine.retrieve(QUESTION, "victor", "shop", kinds=["outcome", "memory"])
    assert "there is no memory" in str(elsewhere.why_not(lesson.id))


@pytest.mark.parametrize(("mode", "stage"), [("keyword", "words"), ("semantic", "similarity")])
def test_why_not_names_the_stage_of_a_search_one_way_alone(
    engine: RetrievalEngine, remember: Remember, mode: Mode, stage: str
) -> None:
    near, far = remember(make.a_memory(content="the login form"), make.a_memory(content="lunch at noon"))
    found = engine.search("login form", [(Scope(project_id="shop"), EVERYTHING)], 1, mode=mode)
    assert ids(found.memories) == [near.id]
    dropped = found.why_not(far.id)
    assert dropped is not None
    assert dropped.stage == stage
    assert str(found.why_not("nobody")).startswith("scope: there is no memory")


def test_a_user_carries_standing_instructions_from_project_to_project(
    engine: RetrievalEngine, remember: Remember
) -> None:
    standing = {"memory_type": "instruction", "layer_global": True, "project_id": None}
    mine = remember(make.a_memory(content="always answer in German", **standing))
    remember(make.a_memory(content="always answer in French", user_id="ben", **standing))
    here = remember(make.a_memory(content="never deploy on a Friday", memory_type="instruction"))
    for question in ("water the plants", "Should I answer in German?"):
        found = engine.retrieve(question, "helena", "shop", user_id="ana")
        assert set(ids(found.instructions)) == {mine.id, here.id}
        assert found.memories == ()
    assert ids(engine.retrieve("water the plants", "helena", "shop").instructions) == [here.id]


def test_of_many_standing_instructions_the_fitting_one_is_handed_over(
    engine: RetrievalEngine, remember: Remember
) -> None:
    old = datetime(2024, 1, 1, tzinfo=UTC)
    fitting = remember(
        make.a_memory(content="login forms are tested on a phone", memory_type="instruction", created_at=old)
    )
    remember(*(make.a_memory(content=f"rule number {i}", memory_type="instruction") for i in range(60)))
    found = engine.retrieve("How is a login form tested?", "helena", "shop")
    assert found.instructions[0].id == fitting.id
    assert len(found.instructions) == 50


# ---------------------------------------------------------------------- the cache


def test_the_same_question_is_answered_from_the_cache_until_something_is_written(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(make.a_heuristic(condition="testing a login form"))
    first = engine.retrieve(QUESTION, "helena", "shop")
    second = engine.retrieve(QUESTION, "helena", "shop")
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first == second
    assert not engine.retrieve(QUESTION, "helena", "shop", bypass_cache=True).from_cache
    newer = remember(make.a_heuristic(condition="testing a login form by hand"))
    third = engine.retrieve(QUESTION, "helena", "shop")
    assert not third.from_cache
    assert newer.id in ids(third.heuristics)


def _write_elsewhere(path: str) -> None:
    from alma.bootstrap import create_embedder, open_storage

    with open_storage(path) as storage:
        MemoryWriter(storage, create_embedder("local")).save(
            make.a_heuristic(id="from elsewhere", condition="testing a login form")
        )


def test_another_process_s_write_is_seen_at_once(embedder: EmbeddingProvider, tmp_path: Any) -> None:
    from alma.bootstrap import open_storage

    path = str(tmp_path / "alma.db")
    with open_storage(path) as storage:
        engine = RetrievalEngine(storage, embedder)
        assert not engine.retrieve(QUESTION, "helena", "shop")
        process = multiprocessing.get_context("spawn").Process(target=_write_elsewhere, args=(path,))
        process.start()
        process.join()
        assert ids(engine.retrieve(QUESTION, "helena", "shop").heuristics) == ["from elsewhere"]
        storage.delete_heuristic("from elsewhere")
        assert not engine.retrieve(QUESTION, "helena", "shop")
        engine.close()


def test_yesterday_is_another_day_after_midnight_also_for_the_cache(
    engine: RetrievalEngine, remember: Remember, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight = datetime(2026, 3, 5, tzinfo=UTC)
    remember(
        make.a_memory(id="earlier", content="we fixed the login form", event_time=midnight - timedelta(hours=36)),
        make.a_memory(id="later", content="we fixed the login form, too", event_time=midnight - timedelta(hours=12)),
    )
    answers = []
    for moment in (midnight - timedelta(seconds=30), midnight + timedelta(seconds=30)):
        monkeypatch.setattr("alma.clock.now", lambda moment=moment: moment)
        found = engine.retrieve("Which login form did we fix yesterday?", "helena", "shop")
        answers.append([found.explanation_of(key).terms.get("time", 0.0) for key in ("earlier", "later")])
    assert answers[0][0] > answers[0][1]
    assert answers[1][1] > answers[1][0]


def test_what_expires_leaves_the_cache(engine: RetrievalEngine, remember: Remember) -> None:
    soon = now() + timedelta(milliseconds=1500)
    remember(make.a_memory(content="the login form is being tested", expires_at=soon))
    assert engine.retrieve(QUESTION, "helena", "shop").memories
    while now() < soon:
        pass
    assert not engine.retrieve(QUESTION, "helena", "shop").memories


# ---------------------------------------------------------------------- when something is down


class BrokenEmbedder(EmbeddingProvider):
    """A provider whose service does not answer."""

    model = "all-MiniLM-L6-v2"
    dimension = 384

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        raise EmbeddingError("the service does not answer")


class RamblingEmbedder(BrokenEmbedder):
    """A provider whose service answers something else."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def encode(self, text: str) -> Any:
        return self.answer


class BrokenIndex:
    """An index that cannot be reached."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def search(self, *_: Any, **__: Any) -> Any:
        raise self.error

    def close(self) -> None: ...


def test_without_embeddings_words_find_and_the_slice_says_so(store: StorageBackend, remember: Remember) -> None:
    lesson = remember(make.a_heuristic(condition="testing a login form"))
    engine = RetrievalEngine(store, BrokenEmbedder())
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert ids(found.heuristics) == [lesson.id]
    assert "is down" in found.degraded
    assert not engine.retrieve(QUESTION, "helena", "shop").from_cache
    engine.close()


def test_what_is_asked_for_in_two_pieces_is_found_in_one(store: StorageBackend, remember: Remember) -> None:
    engine = RetrievalEngine(store, BrokenEmbedder())
    memory = remember(make.a_memory(content="Olga rewrote the backend in Rust"))
    remember(*(make.a_memory(content=f"The {animal} sleeps") for animal in ("cat", "dog", "hen", "fox")))
    found = engine.retrieve("back-end", "helena", "shop")
    assert [each.id for each in found.memories] == [memory.id]
    assert [each for each, _ in store.matching_ids(Memory, "Back-End", Scope(project_id="shop"))] == [memory.id]
    engine.close()


@pytest.mark.parametrize("answer", [None, [], [1.0, 2.0], [float("nan")] * 384, [0.0] * 384, "no", [[0.0]] * 384])
def test_an_embedder_that_gives_no_fitting_vector_is_done_without(
    store: StorageBackend, remember: Remember, answer: Any
) -> None:
    lesson = remember(make.a_heuristic(condition="testing a login form"))
    engine = RetrievalEngine(store, RamblingEmbedder(answer))
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert ids(found.heuristics) == [lesson.id]
    assert "all-MiniLM-L6-v2 is down" in found.degraded
    engine.close()


def test_without_anything_to_search_by_the_newest_are_given(store: StorageBackend, remember: Remember) -> None:
    lesson = remember(make.a_heuristic(condition="watering the plants", strategy="on Mondays"))
    engine = RetrievalEngine(store, BrokenEmbedder())
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert ids(found.heuristics) == [lesson.id]
    assert "newest" in found.degraded
    engine.close()


def test_what_comes_by_rule_comes_once_with_the_newest_as_well(store: StorageBackend, remember: Remember) -> None:
    rule = remember(make.a_memory(content="never on a Friday", memory_type="instruction", layer_global=True))
    likes = remember(*(make.a_preference(preference=f"number {i}") for i in range(3)))
    note = remember(make.a_memory(content="lunch is at noon"))
    engine = RetrievalEngine(store, BrokenEmbedder())
    found = engine.retrieve("xyzzy", "helena", "shop", user_id="ana", top_k=1)
    assert ids(found.instructions) == [rule.id]
    assert set(ids(found.preferences)) == set(ids(likes))
    assert ids(found.memories) == [note.id]
    assert {each.id for each in found.explain()} == {str(record.key) for record in found}
    engine.close()


@pytest.mark.parametrize("error", [IndexUnavailable, ConnectionError, StorageError, RuntimeError, KeyError])
def test_an_index_that_is_down_is_done_without(
    store: StorageBackend, embedder: EmbeddingProvider, remember: Remember, error: type[Exception]
) -> None:
    lesson = remember(make.a_heuristic(condition="testing a login form"))
    note = remember(make.a_memory(content="the login form was tested"))
    engine = RetrievalEngine(store, embedder, vector_index=BrokenIndex(error("connection refused")))
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert ids(found.heuristics) == [lesson.id]
    assert "the vector index is down" in found.degraded
    assert "connection refused" in found.degraded
    searched = engine.search(QUESTION, [(Scope(project_id="shop"), EVERYTHING)], mode="semantic")
    assert ids(searched.memories) == [note.id]
    assert "connection refused" in searched.degraded


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ConfigurationError("open it otherwise")])
def test_what_an_index_cannot_help_is_raised(
    store: StorageBackend, embedder: EmbeddingProvider, remember: Remember, error: BaseException
) -> None:
    remember(make.a_heuristic(condition="testing a login form"))
    engine = RetrievalEngine(store, embedder, vector_index=BrokenIndex(error))
    with pytest.raises(type(error)):
        engine.retrieve(QUESTION, "helena", "shop")


def test_what_the_model_cannot_read_is_answered_by_words_or_not_at_all(
    engine: RetrievalEngine, remember: Remember
) -> None:
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    lunch = make.a_memory(content="Lunch was great 🍕")
    remember(lunch, make.a_memory(content="The launch went well 🚀🚀"))
    named = remember(make.a_memory(content=f"The build {digest} is broken"))
    for unread in ("🦄", "😂😂😂", "x" * 120, "0a" * 64):
        assert not engine.retrieve(unread, "helena", "shop").memories, unread
    assert ids(engine.retrieve(digest, "helena", "shop").memories)[:1] == [named.id]
    assert ids(engine.retrieve("🍕", "helena", "shop").memories) == [lunch.id]


def test_a_picture_in_a_lesson_brings_no_memories_along(engine: RetrievalEngine, remember: Remember) -> None:
    lesson = remember(make.a_heuristic(condition="a launch 🚀", strategy="count down"))
    remember(make.a_memory(content="Lunch was great 🍕"), make.a_memory(content="Another 🍕 for Ana"))
    found = engine.retrieve("🚀", "helena", "shop")
    assert (ids(found.heuristics), ids(found.memories)) == ([lesson.id], [])


def test_in_a_writing_that_the_model_cannot_read_nothing_comes_without_a_word(
    engine: RetrievalEngine, remember: Remember
) -> None:
    texts = ("我喜欢喝绿茶", "我们星期五部署商店", "会议改到三点", "Я люблю зелёный чай", "Сервер упал ночью")
    tea, shop, _, chai, _ = remember(*(make.a_memory(content=text) for text in texts))
    answers = {"谁喜欢绿茶": [tea.id], "什么时候部署商店?": [shop.id], "Кто любит чай?": [chai.id], "天气怎么样": []}
    for question, expected in answers.items():
        assert ids(engine.retrieve(question, "helena", "shop").memories) == expected, question


def test_what_a_long_memory_says_at_its_end_is_found_by_words(engine: RetrievalEngine, store: StorageBackend) -> None:
    long = make.a_memory(content="The minutes of the committee say nothing of note. " * 10_000 + "The zeppelin landed.")
    # Without a vector: a text of ten thousand sentences takes its time to embed.
    store.save_many([long, *(make.a_memory(content=f"Minute {number} of the committee") for number in range(5))])
    assert ids(engine.retrieve("When did the zeppelin land?", "helena", "shop").memories) == [long.id]


def test_a_model_of_another_length_is_refused_with_the_fix(store: StorageBackend) -> None:
    with pytest.raises(ConfigurationError, match="alma reembed"):
        RetrievalEngine(store, MockEmbedder(dimension=8))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"query": " "}, "retrieve.query must be a text"),
        ({"query": 7}, "retrieve.query must be a text"),
        ({"agent": ""}, "retrieve.agent must have 1 to"),
        ({"project_id": None}, "retrieve.project_id"),
        ({"top_k": 0}, "retrieve.top_k must be a whole number from 1 to 1,000"),
        ({"top_k": True}, "retrieve.top_k"),
        ({"kinds": "memory"}, "retrieve.kinds must be a list"),
        ({"kinds": 5}, "retrieve.kinds must be a list"),
        ({"kinds": ["session"]}, "retrieve.kinds must be among .*'session'"),
        ({"kinds": ["nonsense"]}, "retrieve.kinds must be among heuristic, .*'nonsense'"),
        ({"memories_within": "shop"}, "memories_within needs a Scope"),
        ({"now": "yesterday"}, "retrieve.now"),
        ({"scope": "helena"}, "retrieve.scope must be a MemoryScope"),
    ],
)
def test_bad_input_gets_one_sentence(engine: RetrievalEngine, call: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        engine.retrieve(**{"query": QUESTION, "agent": "helena", "project_id": "shop", **call})


@pytest.mark.parametrize(
    "options", [{"scoring_weights": 5}, {"memory_weights": {"recency": 1}}, {"embedding_provider": 5}]
)
def test_neither_a_provider_nor_weights_is_refused(options: dict[str, Any]) -> None:
    [name] = options
    with InMemoryStorage() as storage, pytest.raises(ConfigurationError, match=f"{name} must be"):
        RetrievalEngine(storage, **{"embedding_provider": "mock", **options})


def test_any_text_can_be_asked(engine: RetrievalEngine, remember: Remember) -> None:
    remember(make.a_memory(content="the login form"))
    for question in ('"', "NEAR(a b)", "*", "🎉", "日本語", "\0?", "' OR 1=1 --", "x" * 50_000, "the of and"):
        engine.retrieve(question, "helena", "shop")


def test_a_long_memory_is_found_by_any_part_of_it(engine: RetrievalEngine, remember: Remember) -> None:
    filler = "The committee discussed the colour of the curtains at great length. " * 60
    memory = remember(make.a_memory(content=f"{filler}The gardener feeds the penguins at noon. {filler}"))
    remember(*(make.a_memory(content=f"note {i} about the curtains") for i in range(5)))
    assert ids(engine.retrieve("When are the penguins fed?", "helena", "shop").memories)[:1] == [memory.id]


def test_what_stands_at_the_end_of_a_very_long_memory_is_found_and_shown(
    engine: RetrievalEngine, remember: Remember
) -> None:
    met = " ".join(f"The committee met on day {day} and discussed the budget without a result." for day in range(700))
    remember(
        make.some_knowledge(id="minutes", fact=f"{met} The launch code word of the satellite is marmalade."),
        *(make.some_knowledge(fact=f"It rained in town number {number}.") for number in range(20)),
    )
    found = engine.retrieve("What is the launch code word of the satellite?", "helena", "shop")
    assert [fact.id for fact in found.domain_knowledge] == ["minutes"]
    assert "marmalade" in found.to_prompt(150)


def test_a_slice_from_a_shared_cache_says_at_which_stage_a_memory_was_dropped(
    store: StorageBackend, embedder: EmbeddingProvider, remember: Remember, redis_url: str
) -> None:
    texts = ("the login form was tested", "a test of the login form was slow", "Ana likes tea")
    first, second, tea = remember(*(make.a_memory(content=text) for text in texts))
    with RedisCache(redis_url, prefix="why", timeout_seconds=30) as cache:
        engine = RetrievalEngine(store, embedder, cache=cache)
        slices = [engine.retrieve(QUESTION, "helena", "shop", top_k=1) for _ in range(2)]
        for found in slices:
            (kept,) = ids(found.memories)
            dropped = {key: found.why_not(key) for key in (first.id, second.id, tea.id, "nobody")}
            stages = {key: reason and reason.stage for key, reason in dropped.items()}
            other = first.id if kept == second.id else second.id
            assert stages == {kept: None, other: "rank", tea.id: "relevance", "nobody": "scope"}
        assert [found.from_cache for found in slices] == [False, True]
        engine.close()
