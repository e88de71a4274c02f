"""Language models behind services: requests, retries, timeouts and errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from alma.bootstrap.providers import create_language_model
from alma.errors import ConfigurationError, LanguageModelError, MissingDependencyError, ValidationError
from alma.llm.anthropic import AnthropicModel
from alma.llm.base import LanguageModel, Message, complete_json
from alma.llm.ollama import OllamaModel
from alma.llm.openai import AzureOpenAIModel, GroqModel, OpenAIModel
from tests.support.http_server import Reply, error
from tests.support.language_server import KEY, LanguageServer
from tests.support.tiny_model import TinyModel

Make = Callable[..., LanguageModel]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
ASKED = [Message("system", "Be brief."), Message("user", "What is two and two?")]
QUICK = {"backoff_seconds": 0.001}


@pytest.fixture
def server() -> Iterator[LanguageServer]:
    with LanguageServer() as running:
        yield running


@pytest.fixture(params=["openai", "azure", "anthropic", "ollama"])
def make(request: pytest.FixtureRequest, server: LanguageServer) -> Iterator[Make]:
    """Makes a model of each sort that asks the local server."""
    made: list[LanguageModel] = []

    def model(name: str = "small", api_key: str = KEY, **options: Any) -> LanguageModel:
        given = {**QUICK, **options}
        models: dict[str, Callable[[], LanguageModel]] = {
            "openai": lambda: OpenAIModel(api_key, name, f"{server.url}/v1", **given),
            "azure": lambda: AzureOpenAIModel(server.url, api_key, name, **given),
            "anthropic": lambda: AnthropicModel(api_key, name, server.url, **given),
            "ollama": lambda: OllamaModel(name, server.url, **given),
        }
        made.append(models[request.param]())
        return made[-1]

    yield model
    for each in made:
        each.close()
        each.close()


def test_a_model_answers(make: Make) -> None:
    completion = make().complete(ASKED)
    assert completion.text == "Four."
    assert completion.model == "small"
    assert (completion.input_tokens, completion.output_tokens) == (7, 2)


def test_messages_may_be_plain_dictionaries(make: Make) -> None:
    assert make().complete([{"role": "user", "content": "What is two and two?"}]).text == "Four."


def test_a_schema_gives_json(make: Make) -> None:
    assert complete_json(make(), ASKED, SCHEMA) == {"n": 4}


@pytest.mark.parametrize(
    "failure", [error(429, "slow down"), error(500, "oh"), error(503, "busy"), Reply(body=b"<html>")]
)
def test_what_may_pass_is_tried_again(make: Make, server: LanguageServer, failure: Reply) -> None:
    server.script.extend([failure, failure])
    assert make().complete(ASKED).text == "Four."
    assert len(server.received) == 3


def test_a_service_that_stays_down_is_an_error_that_says_so(make: Make, server: LanguageServer) -> None:
    server.script.extend([error(500, "oh dear")] * 5)
    with pytest.raises(LanguageModelError, match=r"answered 500: .*oh dear.*\(tried 2 times\)"):
        make(attempts=2).complete(ASKED)
    assert len(server.received) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"choices": [], "content": []}',
        b"not json",
        b'{"message": 7}',
        b"[" * 20_000,
        b'{"model": "m", "choices": [{"message": {"role": "assistant", "content": 7}, "finish_reason": "stop"}]}',
    ],
)
def test_garbage_is_an_error(make: Make, server: LanguageServer, body: bytes) -> None:
    server.script.extend([Reply(body=body)] * 2)
    with pytest.raises(LanguageModelError):
        make(attempts=2).complete(ASKED)


def test_groq_is_asked_at_its_own_address_or_through_a_gateway(server: LanguageServer) -> None:
    with GroqModel(KEY) as model:
        assert (model.model, str(model._client.base_url)) == ("openai/gpt-oss-20b", "https://api.groq.com/openai/v1/")
    with GroqModel(KEY, "llama-3.3-70b-versatile", f"{server.url}/v1") as model:
        assert complete_json(model, ASKED, SCHEMA) == {"n": 4}


def test_an_answer_in_parts_is_read_as_one(server: LanguageServer) -> None:
    parts = [{"type": "text", "text": "Fo"}, {"type": "thinking", "text": "hm"}, {"type": "text", "text": "ur."}]
    choice = {"index": 0, "message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}
    server.script.append(Reply(body=json.dumps({"id": "c1", "model": "m", "choices": [choice]}).encode()))
    with OpenAIModel(KEY, "m", f"{server.url}/v1") as model:
        assert model.complete(ASKED).text == "Four."


def test_a_secret_in_what_a_service_says_is_masked(make: Make, server: LanguageServer) -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    server.script.append(Reply(400, json.dumps({"error": {"message": f"no access with {key}"}}).encode()))
    with pytest.raises(LanguageModelError, match="no access with") as caught:
        make(attempts=1).complete(ASKED)
    assert key not in str(caught.value)


def test_an_empty_answer_is_an_error(make: Make, server: LanguageServer) -> None:
    server.text = "  \n"
    with pytest.raises(LanguageModelError, match="returned an empty response"):
        make(attempts=2).complete(ASKED)


def test_a_service_that_hangs_is_left_after_its_time(make: Make, server: LanguageServer) -> None:
    server.script.append(Reply(hang=True))
    began = time.monotonic()
    with pytest.raises(LanguageModelError, match=r"did not answer within 0\.2 seconds"):
        make(attempts=1).complete(ASKED, timeout_seconds=0.2)
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("part", ["status", "body"])
def test_the_time_out_holds_for_an_answer_that_comes_a_byte_at_a_time(
    make: Make, server: LanguageServer, part: Literal["status", "body"]
) -> None:
    server.script.append(Reply(drip=part))
    began = time.monotonic()
    with pytest.raises(LanguageModelError, match=r"did not answer within 0\.3 seconds"):
        make(timeout_seconds=0.3, attempts=1).complete(ASKED)
    assert time.monotonic() - began < 8


def test_the_time_out_begins_anew_with_every_question(make: Make, server: LanguageServer) -> None:
    model = make(timeout_seconds=0.3, attempts=1)
    assert model.complete(ASKED).text == "Four."
    server.released.wait(0.4)
    assert model.complete(ASKED).text == "Four."


def test_a_refusal_is_not_tried_again(make: Make, server: LanguageServer) -> None:
    server.script.append(error(400, "your question is too long"))
    with pytest.raises(LanguageModelError, match="too long"):
        make().complete(ASKED)
    assert len(server.received) == 1


@pytest.mark.parametrize("make", ["openai", "azure", "anthropic"], indirect=True)
def test_a_model_that_refuses_is_told_as_such_and_not_asked_again(make: Make, server: LanguageServer) -> None:
    server.refuses = True
    with pytest.raises(LanguageModelError, match="small refused to answer; ask in other words, or another model"):
        make().complete(ASKED)
    assert len(server.received) == 1


def test_an_unknown_model_is_named_with_the_fix(make: Make) -> None:
    with pytest.raises(LanguageModelError, match="nobody"):
        make("nobody").complete(ASKED)


def test_no_one_there_is_an_error_that_says_so(make: Make, server: LanguageServer) -> None:
    model = make(attempts=1)
    server._server.server_close()
    with pytest.raises(LanguageModelError, match=r"cannot be reached|did not answer"):
        model.complete(ASKED, timeout_seconds=1)


def test_a_redirect_does_not_take_the_key_along(make: Make, server: LanguageServer) -> None:
    with LanguageServer() as elsewhere:
        server.script.append(Reply(307, headers={"Location": f"{elsewhere.url}/v1/chat/completions"}))
        with pytest.raises(LanguageModelError):
            make(attempts=1).complete(ASKED)
        assert elsewhere.received == []


def test_a_conversation_without_a_user_is_refused(make: Make, server: LanguageServer) -> None:
    for wrong in ([], "hello", [{"role": "robot", "content": "x"}], [{"role": "user"}], [Message("system", "x")]):
        with pytest.raises(ValidationError):
            make().complete(wrong)  # type: ignore[arg-type]
    assert server.received == []


@pytest.mark.parametrize("provider", ["openai", "azure", "anthropic"])
def test_a_wrong_key_is_an_error_that_does_not_show_it(server: LanguageServer, provider: str) -> None:
    place: dict[str, Any] = {"openai": {"base_url": f"{server.url}/v1"}, "anthropic": {"base_url": server.url}}
    azure = {"endpoint": server.url, "deployment": "small"}
    model = create_language_model(provider, api_key="sk-wrong-key", **place.get(provider, azure))
    with model, pytest.raises(LanguageModelError, match="check the API key") as caught:
        model.complete(ASKED)
    assert "sk-wrong-key" not in str(caught.value)
    assert "sk-wrong-key" not in repr(model)


def test_openai_is_asked_in_its_own_words(server: LanguageServer) -> None:
    with OpenAIModel(KEY, "small", f"{server.url}/v1") as model:
        model.complete(ASKED, SCHEMA, max_tokens=9)
    [request] = server.received
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert request.body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (request.body["max_tokens"], request.body["temperature"]) == (9, 0.0)


def test_azure_is_asked_for_a_deployment(server: LanguageServer) -> None:
    with AzureOpenAIModel(f"{server.url}/", KEY, "my deployment", "2024-02-01") as model:
        model.complete(ASKED)
    [request] = server.received
    assert request.path == "/openai/deployments/my%20deployment/chat/completions?api-version=2024-02-01"
    assert request.headers["api-key"] == KEY


def test_anthropic_is_told_the_system_message_apart(server: LanguageServer) -> None:
    with AnthropicModel(KEY, "small", server.url) as model:
        model.complete(ASKED, SCHEMA)
    [request] = server.received
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["system"] == "Be brief."
    assert [each["role"] for each in request.body["messages"]] == ["user"]
    assert request.body["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}
    assert "temperature" not in request.body


def test_ollama_is_given_the_schema_as_format(server: LanguageServer) -> None:
    with OllamaModel("small", server.url) as model:
        model.complete(ASKED, SCHEMA, max_tokens=9)
    [request] = server.received
    assert request.body["format"] == SCHEMA
    assert request.body["options"] == {"num_predict": 9, "temperature": 0.0}


def test_a_model_that_takes_no_temperature_is_asked_without_one(server: LanguageServer) -> None:
    server.script.append(error(400, "Unsupported value: 'temperature' does not support 0.0 with this model"))
    with OpenAIModel(KEY, "thinker", f"{server.url}/v1") as model:
        assert model.complete(ASKED).text == model.complete(ASKED).text == "Four."
    assert ["temperature" in request.body for request in server.received] == [True, False, False]


def test_an_exhausted_quota_does_not_pass(server: LanguageServer) -> None:
    server.script.append(error(429, "You exceeded your quota", code="insufficient_quota"))
    with OpenAIModel(KEY, "small", f"{server.url}/v1") as model, pytest.raises(LanguageModelError, match="quota"):
        model.complete(ASKED)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("provider", "options", "said"),
    [
        ("openai", {}, "OPENAI_API_KEY"),
        ("azure", {"deployment": "x", "endpoint": "https://x"}, "AZURE_OPENAI_API_KEY"),
        ("azure", {"deployment": "x", "api_key": "k"}, "AZURE_OPENAI_ENDPOINT"),
        ("anthropic", {}, "ANTHROPIC_API_KEY"),
        ("groq", {}, "Groq needs an API key: set GROQ_API_KEY"),
        ("ollama", {"model": " "}, "name of a model"),
        ("ollama", {}, "model"),
        ("openai", {"api_key": "k", "host": "here"}, "unknown option 'host'"),
        ("openai", {"api_key": "k", "attempts": 0}, "attempts"),
        ("palm", {}, "openai, azure, anthropic, groq, ollama"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_sent(
    provider: str, options: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
        "ANTHROPIC_API_KEY",
        "GROQ_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=said):
        create_language_model(provider, **options)


@pytest.mark.parametrize(
    ("provider", "package", "extra"),
    [
        ("openai", "openai", "openai"),
        ("azure", "openai", "azure"),
        ("anthropic", "anthropic", "anthropic"),
        ("groq", "openai", "openai"),
        ("ollama", "ollama", "ollama"),
    ],
)
def test_a_missing_client_names_the_extra(
    provider: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    azure: dict[str, Any] = {"endpoint": "https://x", "deployment": "d", "api_key": "k"}
    options = {"azure": azure, "ollama": {"model": "m"}}
    with pytest.raises(MissingDependencyError, match=rf"alma-agent-memory\[{extra}\]"):
        create_language_model(provider, **options.get(provider, {"api_key": "k"}))


@pytest.mark.slow
class TestARealModel:
    """A tiny one, which knows little and speaks the protocol."""

    @pytest.fixture(scope="class")
    @classmethod
    def llm(cls) -> Iterator[LanguageModel]:
        with TinyModel() as server, OpenAIModel("", "smollm2", f"{server.url}/v1", timeout_seconds=240) as model:
            yield model

    def test_it_answers(self, llm: LanguageModel) -> None:
        completion = llm.complete([Message("user", "Say hello.")], max_tokens=8)
        assert completion.text.strip()
        assert completion.output_tokens is not None
        assert completion.output_tokens <= 8

    def test_an_answer_that_is_cut_off_says_so(self, llm: LanguageModel) -> None:
        assert llm.complete([Message("user", "Tell me a long story.")], max_tokens=3).finish_reason == "length"

    def test_it_keeps_to_a_schema(self, llm: LanguageModel) -> None:
        found = complete_json(llm, [Message("user", "How many legs has a dog?")], SCHEMA, max_tokens=30)
        assert isinstance(found["n"], int)
