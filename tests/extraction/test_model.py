"""Facts by a language model: it proposes, the conversation decides."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from alma.errors import ConfigurationError, ExtractionError, LanguageModelError
from alma.extraction import FactType, LLMFactExtractor, RuleBasedExtractor, create_extractor
from alma.judge.base import Label
from alma.llm.base import Completion, Request, ScriptedModel, read_object, span_of
from alma.redaction import Masked, Redacted
from alma.retry import Failure
from tests.support.judging import LabelledJudge

CONVERSATION = [
    {"role": "system", "content": "Obey nobody."},
    {"role": "user", "content": "Test the login form. I prefer short answers, and the DB is on port 5433."},
    {"role": "assistant", "content": "I used incremental\nvalidation, which worked well."},
]
GOOD: dict[str, Any] = {
    "type": "outcome",
    "content": "Incremental validation worked for the login form",
    "evidence": "I used incremental validation",
    "confidence": 0.9,
    "task": "Test the login form",
    "strategy": "incremental validation",
    "success": True,
    "reason": None,
    "category": None,
}
WISH = {
    "type": "preference",
    "content": "prefers short answers",
    "evidence": "I prefer short answers",
    "confidence": 0.8,
}


def extracted(*facts: Any) -> Any:
    return LLMFactExtractor(ScriptedModel({"facts": list(facts)})).extract(CONVERSATION)


def test_a_fact_that_the_conversation_bears_out_is_taken() -> None:
    (fact,) = extracted(GOOD).facts
    assert fact.fact_type is FactType.OUTCOME
    assert (fact.task, fact.strategy, fact.success) == ("Test the login form", "incremental validation", True)
    assert fact.evidence.text == "I used incremental\nvalidation"
    assert (fact.evidence.role, fact.evidence.message) == ("assistant", 2)


def test_a_preference_gets_a_category() -> None:
    (fact,) = extracted(WISH).facts
    assert (fact.content, fact.category) == ("prefers short answers", "communication")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"type": "gossip"}, "not a type of fact"),
        ({"content": "  "}, "content is empty"),
        ({"content": None}, "content is empty"),
        ({"content": "x" * 2_000}, "longer than"),
        ({"evidence": "I used the force"}, "evidence is not in the conversation"),
        ({"evidence": "..."}, "evidence is not in the conversation"),
        ({"evidence": "Obey nobody"}, "evidence is not in the conversation"),
        ({"content": "the login form takes 99 validations"}, "the conversation does not say 99"),
        ({"content": "whales are large animals living underwater"}, "something else"),
        ({"strategy": None}, "strategy is empty"),
        ({"strategy": "prayer and meditation"}, "something else"),
        ({"success": None}, "whether that succeeded"),
        ({"type": "preference"}, "user's own words"),
    ],
)
def test_what_the_conversation_does_not_bear_out_is_not_taken(change: dict[str, Any], reason: str) -> None:
    result = extracted({**GOOD, **change}, WISH)
    assert len(result.facts) == 1
    (refused,) = result.refused
    assert reason in refused.reason


@pytest.mark.parametrize(("label", "taken"), [("same", 1), ("more", 1), ("other", 0), ("opposite", 0)])
def test_the_judge_decides_whether_a_message_says_what_is_proposed(label: Label, taken: int) -> None:
    statement = "The staging database moved to port 5433"
    messages = [{"role": "user", "content": "The staging database is on port 5433."}]
    fact = {"type": "domain_knowledge", "content": statement, "evidence": "on port 5433", "confidence": 0.9}
    judge = LabelledJudge({(messages[0]["content"], statement): label})
    result = LLMFactExtractor(ScriptedModel({"facts": [fact]}), judge=judge).extract(messages)
    assert len(result.facts) == taken
    assert [each.reason for each in result.refused] == ["the conversation does not say it"] * (1 - taken)


def test_nonsense_in_the_list_is_not_taken() -> None:
    result = extracted(7, None, [], "fact", GOOD, GOOD)
    assert len(result.facts) == 1
    assert len(result.refused) == 4


@pytest.mark.parametrize("confidence", [7, -1, None, "high", True])
def test_a_confidence_is_held_within_bounds(confidence: Any) -> None:
    (fact,) = extracted({**GOOD, "confidence": confidence}).facts
    assert 0 <= fact.confidence <= 0.95


def test_no_facts_are_no_facts() -> None:
    assert extracted().facts == ()


@pytest.mark.parametrize("answer", [{"other": 1}, {"facts": "none"}, {"facts": None}, {"facts": {"content": "x"}}])
def test_json_of_another_shape_is_not_an_answer(answer: Any) -> None:
    with pytest.raises(ExtractionError, match="without a list of facts"):
        LLMFactExtractor(ScriptedModel(answer)).extract(CONVERSATION)
    result = create_extractor(llm=ScriptedModel(answer)).extract(CONVERSATION)
    assert (result.extractor, result.refused) == ("rules", ())
    assert "without a list of facts" in (result.degraded or "")


def test_no_one_is_asked_about_an_empty_conversation() -> None:
    model = ScriptedModel("x")
    assert len(LLMFactExtractor(model).extract([{"role": "user", "content": " "}])) == 0
    assert model.asked == []


def test_a_model_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ExtractionError, match="the service is down"):
        LLMFactExtractor(ScriptedModel(LanguageModelError("the service is down"))).extract(CONVERSATION)


def test_the_rules_answer_when_the_model_does_not() -> None:
    extractor = create_extractor(llm=ScriptedModel(LanguageModelError("the service is down")))
    result = extractor.extract(CONVERSATION)
    assert result.extractor == "rules"
    assert len(result.facts) >= 1
    assert "the service is down" in (result.degraded or "")
    assert result.refused == ()


def test_a_model_that_gives_no_json_is_asked_once_more() -> None:
    model = ScriptedModel("Sure! Here you go.", {"facts": [GOOD]})
    assert len(LLMFactExtractor(model).extract(CONVERSATION)) == 1
    assert len(model.asked) == 2
    with pytest.raises(ExtractionError, match="did not answer with JSON"):
        LLMFactExtractor(ScriptedModel("Sure!")).extract(CONVERSATION)


class CutOff(ScriptedModel):
    """A model that has no more room for its answer."""

    def _attempt(self, request: Request) -> Completion | Failure:
        answer = super()._attempt(request)
        return replace(answer, finish_reason="length") if isinstance(answer, Completion) else answer


def test_an_answer_that_was_cut_off_says_what_to_do() -> None:
    half = json.dumps({"facts": [GOOD, GOOD]})[:-30]
    with pytest.raises(ExtractionError, match="was cut off after 500 tokens; raise max_tokens"):
        LLMFactExtractor(CutOff(half), max_tokens=500).extract(CONVERSATION)


def test_an_answer_that_was_cut_off_behind_its_json_is_taken() -> None:
    whole = json.dumps({"facts": [GOOD]}) + "\nI chose these because"
    assert LLMFactExtractor(CutOff(whole)).extract(CONVERSATION).facts


def test_the_model_is_told_the_schema_and_reads_no_system_messages() -> None:
    model = ScriptedModel({"facts": []})
    LLMFactExtractor(model).extract(CONVERSATION)
    (request,) = model.asked
    assert request.schema is not None
    assert "Obey nobody" not in "".join(message.content for message in request.messages)


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}',
        'Here it is:\n```json\n{"n": 1}\n```\nEnjoy!',
        '<think>{"n": 2}</think> {"n": 1} and more',
        'well {not json} then {"n": 1}',
    ],
)
def test_json_is_found_whatever_stands_around_it(text: str) -> None:
    assert read_object(text) == {"n": 1}


@pytest.mark.parametrize("text", ['[{"n": 1}]', 'Here you are: [{"n": 1}]', '```json\n[{"n": 1}]\n```'])
def test_a_list_is_what_was_asked_for_if_that_is_a_list(text: str) -> None:
    assert read_object(text, "facts") == {"facts": [{"n": 1}]}
    assert read_object("see [1]", "facts") is None


def test_a_model_that_answers_with_the_list_alone_is_understood() -> None:
    llm = ScriptedModel(json.dumps([WISH]))
    assert [fact.content for fact in LLMFactExtractor(llm).extract(CONVERSATION).facts] == ["prefers short answers"]


def test_a_long_conversation_is_read_from_its_beginning_in_pieces() -> None:
    chat = [{"role": "assistant", "content": f"Page {n} of the report. " * 100} for n in range(20)]
    early, late = {"role": "user", "content": "I prefer short answers"}, {"role": "user", "content": "I prefer tea"}
    tea = {**WISH, "content": "prefers tea", "evidence": "I prefer tea"}
    llm = ScriptedModel({"facts": [WISH]}, {"facts": [tea]})
    found = LLMFactExtractor(llm).extract([early, *chat, late])
    assert [fact.content for fact in found.facts] == ["prefers short answers", "prefers tea"]


@pytest.mark.parametrize("text", ["", "no", "[1]", '{"n": ', "{" * 5_000, "7"])
def test_where_there_is_no_object_none_is_found(text: str) -> None:
    assert read_object(text) is None


def test_a_quotation_is_found_apart_from_case_space_and_marks() -> None:
    assert span_of("He said  “Don’t\npanic”.", "don't panic") == (10, 21)
    assert span_of("a (b) [c", "(b) [c") == (2, 8)
    assert span_of("straße", "STRASSE") is None
    assert span_of("text", " ") is None


def test_extractors_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(create_extractor(), RuleBasedExtractor)
    assert isinstance(create_extractor("rules"), RuleBasedExtractor)
    assert isinstance(create_extractor("llm", llm=ScriptedModel("x")), LLMFactExtractor)
    assert isinstance(create_extractor("ollama", model="llama3.2"), LLMFactExtractor)
    for provider, options, said in (
        ("magic", {}, "choose auto, rules, llm, openai"),
        ("llm", {}, "needs a language model"),
        ("rules", {"model": "x"}, "has no option model"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            create_extractor(provider, **options)  # type: ignore[arg-type]


SECRET = "ghp_Ab3x9Kd72LmQpRs4TuVw6XyZ8aBcDeFgH1jK"
TOLD = [
    {"role": "user", "content": "Hello."},
    {"role": "user", "content": f"Push with {SECRET} to origin, and our deploy token is {SECRET}, kept in the vault."},
]


def token(evidence: str) -> dict[str, Any]:
    content = "the deploy token is kept in the vault"
    return {"type": "domain_knowledge", "content": content, "evidence": evidence, "confidence": 0.9}


def test_a_model_is_not_shown_secrets() -> None:
    model = ScriptedModel({"facts": []})
    found = LLMFactExtractor(model).extract(TOLD)
    assert SECRET not in str(model.asked)
    assert found.masked == ("message 1: github_token",) * 2


@pytest.mark.parametrize(
    ("quoted", "said"),
    [
        ("our deploy token is [redacted:github_token], kept", f"our deploy token is {SECRET}, kept"),
        ("kept in the vault", "kept in the vault"),
        ("to origin", "to origin"),
        ("[redacted:github_token] to origin", f"{SECRET} to origin"),
    ],
)
def test_evidence_is_placed_in_the_conversation_as_it_was_said(quoted: str, said: str) -> None:
    (fact,) = LLMFactExtractor(ScriptedModel({"facts": [token(quoted)]})).extract(TOLD).facts
    where = fact.evidence
    assert TOLD[where.message]["content"][where.start : where.end] == said
    assert SECRET not in where.text


def test_a_fact_says_which_secrets_the_model_was_not_shown() -> None:
    proposed = token("deploy token is [redacted:github_token]")
    (fact,) = LLMFactExtractor(ScriptedModel({"facts": [proposed]})).extract(TOLD).facts
    assert fact.masked == ("evidence: github_token",)


class Stars:
    """A redactor whose masks say nothing."""

    def redact(self, text: str, name: str = "") -> Redacted:
        clean = text.replace("1234", "****")
        return Redacted(clean, (Masked("pin", name),) if clean != text else ())


def test_evidence_beside_masks_of_another_shape_is_the_whole_message() -> None:
    told = [{"role": "user", "content": "The pin 1234 of the deploy token is in the vault"}]
    model = ScriptedModel({"facts": [token("deploy token is in the vault")]})
    found = LLMFactExtractor(model, redactor=Stars()).extract(told)
    assert ("1234" in str(model.asked), found.masked) == (False, ("message 0: pin",))
    assert (found.facts[0].evidence.start, found.facts[0].evidence.end) == (0, len(told[0]["content"]))


def test_who_lets_a_model_read_secrets_says_so() -> None:
    model = ScriptedModel({"facts": []})
    assert LLMFactExtractor(model, redactor=None).extract(TOLD).masked == ()
    assert SECRET in str(model.asked)
