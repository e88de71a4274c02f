"""Embeddings from a service: requests, retries, timeouts and errors."""

from __future__ import annotations

import base64
import json
import pickle
import struct
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from alma import clock
from alma.embeddings.azure import AzureEmbedder
from alma.embeddings.mock import MockEmbedder
from alma.embeddings.openai import OpenAIEmbedder
from alma.embeddings.remote import RemoteEmbedder
from alma.errors import ConfigurationError, EmbeddingError
from alma.model.secret import Secret
from alma.retry import retry_after_seconds
from tests.support.embedding_server import KEY, EmbeddingServer
from tests.support.http_server import Reply, error

Make = Callable[..., RemoteEmbedder]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture(params=["openai", "azure"])
def make(request: pytest.FixtureRequest, server: EmbeddingServer) -> Make:
    """Makes an embedder of either sort that asks the local server."""

    def openai(api_key: str = KEY, **options: Any) -> RemoteEmbedder:
        return OpenAIEmbedder(api_key, base_url=f"{server.url}/v1", **{"backoff_seconds": 0.001, **options})

    def azure(api_key: str = KEY, **options: Any) -> RemoteEmbedder:
        return AzureEmbedder(server.url, api_key, "my deployment", **{"backoff_seconds": 0.001, **options})

    return openai if request.param == "openai" else azure


def test_openai_is_asked_in_its_own_words(server: EmbeddingServer) -> None:
    OpenAIEmbedder(KEY, base_url=f"{server.url}/v1/").encode("hello")
    [request] = server.received
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"input": ["hello"], "model": "text-embedding-3-small", "encoding_format": "float"}


def test_azure_is_asked_in_its_own_words(server: EmbeddingServer) -> None:
    AzureEmbedder(f"{server.url}/", KEY, "my deployment", "2024-02-01").encode("hello")
    [request] = server.received
    assert request.path == "/openai/deployments/my%20deployment/embeddings?api-version=2024-02-01"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers


def test_vectors_come_in_the_order_of_the_texts_whatever_the_service_does(make: Make) -> None:
    texts = [f"text {i}" for i in range(5)]
    for vector, expected in zip(make().encode_batch(texts), MockEmbedder(1536).encode_batch(texts), strict=True):
        assert list(vector) == pytest.approx(list(expected), abs=1e-6)


def test_many_texts_go_in_several_requests(make: Make, server: EmbeddingServer) -> None:
    make(batch_size=4).encode_batch([f"text {i}" for i in range(10)])
    assert [len(request.body["input"]) for request in server.received] == [4, 4, 2]


def test_a_request_is_bounded_in_size_as_well(make: Make, server: EmbeddingServer) -> None:
    make().encode_batch([f"{i} {'word ' * 1_500}" for i in range(100)])
    sizes = [sum(len(text) for text in request.body["input"]) for request in server.received]
    assert len(sizes) > 1
    assert max(sizes) <= 250_000


def test_shortened_vectors_are_asked_for_and_are_another_space(make: Make, server: EmbeddingServer) -> None:
    short = make(dimensions=256)
    assert len(short.encode("a")) == short.dimension == 256
    assert server.received[0].body["dimensions"] == 256
    assert short.model == "text-embedding-3-small-256"
    assert make().model == "text-embedding-3-small"


def test_an_unknown_model_needs_its_dimensions(server: EmbeddingServer) -> None:
    server.dimension = 768
    own = OpenAIEmbedder(KEY, "nomic-embed", dimensions=768, base_url=server.url)
    assert len(own.encode("a")) == 768
    assert "dimensions" not in server.received[0].body
    with pytest.raises(ConfigurationError, match="give the length of its vectors"):
        OpenAIEmbedder(KEY, "nomic-embed")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(make: Make, server: EmbeddingServer, status: int) -> None:
    server.script += [error(status, "busy"), error(status, "busy")]
    assert len(make().encode("a")) == 1536
    assert len(server.received) == 3


def test_the_wait_the_service_asks_for_is_kept(make: Make, server: EmbeddingServer) -> None:
    server.script.append(error(429, "slow down", {"Retry-After": "0.3"}))
    began = time.monotonic()
    make().encode("a")
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("asked", ["0", "-5", "nan", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_where_the_service_asks_for_no_wait_it_is_given_time_all_the_same(
    make: Make, server: EmbeddingServer, asked: str
) -> None:
    server.script.append(error(503, "starting", {"Retry-After": asked}))
    began = time.monotonic()
    make(backoff_seconds=0.4).encode("a")
    assert time.monotonic() - began >= 0.2


def test_a_wait_of_minutes_is_an_error_at_once(make: Make, server: EmbeddingServer) -> None:
    server.script.append(error(429, "slow down", {"Retry-After": "3600"}))
    with pytest.raises(EmbeddingError, match="429: slow down; ask for less"):
        make().encode("a")
    assert len(server.received) == 1


def test_a_retry_after_may_be_a_date() -> None:
    assert retry_after_seconds(format_datetime(clock.now() + timedelta(seconds=30))) == pytest.approx(30, abs=2)
    assert retry_after_seconds("2") == 2
    assert retry_after_seconds(None) is retry_after_seconds("soon") is None


def test_an_exhausted_quota_does_not_pass(make: Make, server: EmbeddingServer) -> None:
    server.script.append(error(429, "You exceeded your current quota", code="insufficient_quota"))
    with pytest.raises(EmbeddingError, match="exceeded your current quota"):
        make().encode("a")
    assert len(server.received) == 1


def test_after_the_last_attempt_the_error_says_how_many_there_were(make: Make, server: EmbeddingServer) -> None:
    server.script += [error(500, "the server had an error")] * 3
    with pytest.raises(EmbeddingError, match=r"500: the server had an error \(tried 3 times\)"):
        make(attempts=3).encode("a")
    assert len(server.received) == 3


def test_a_service_that_does_not_answer_is_given_up(make: Make, server: EmbeddingServer) -> None:
    server.script += [Reply(hang=True)] * 2
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.1 seconds \(tried 2 times\)"):
        make(timeout_seconds=0.1, attempts=2).encode("a")


def test_a_service_that_answers_byte_by_byte_is_given_up_in_time(make: Make, server: EmbeddingServer) -> None:
    for drips in ("body", "status"):
        server.script.append(Reply(drip=drips))
        began = time.monotonic()
        with pytest.raises(EmbeddingError, match=r"did not answer within 0.5 seconds$"):
            make(timeout_seconds=0.5, attempts=1).encode("hello")
        assert time.monotonic() - began < 3


def test_an_error_that_comes_as_a_success_is_told(make: Make, server: EmbeddingServer) -> None:
    server.script.append(Reply(body=b'{"error": {"message": "no such model", "code": "model_not_found"}}'))
    with pytest.raises(EmbeddingError, match=r"returned an error: model_not_found no such model; check the model"):
        make().encode("hello")
    server.script.append(Reply(body=f'{{"error": "what is {KEY}?"}}'.encode()))
    with pytest.raises(EmbeddingError, match=r"returned an error: .*what is \*\*\*\?"):
        make().encode("hello")
    assert len(server.received) == 2
    server.script.append(Reply(body=b'{"error": {"message": "overloaded", "code": 503}}'))
    assert make().encode("hello")


def test_a_refusal_that_breaks_off_is_tried_again(make: Make, server: EmbeddingServer) -> None:
    server.script.append(Reply(500, b"<html>", {"Content-Length": "1000"}))
    assert len(make(attempts=2).encode("a")) == 1536
    server.script.append(Reply(500, b"<html>", {"Content-Length": "1000"}))
    with pytest.raises(EmbeddingError, match="answered 500"):
        make(attempts=1).encode("a")


def test_a_service_that_is_not_there_is_named() -> None:
    gone = OpenAIEmbedder(KEY, base_url="http://127.0.0.1:1/v1", attempts=2, backoff_seconds=0)
    with pytest.raises(EmbeddingError, match=r"cannot be reached at 127\.0\.0\.1:1: .*refused.*tried 2 times"):
        gone.encode("a")


def test_a_wrong_key_is_one_sentence_that_names_the_variable_and_not_the_key(make: Make) -> None:
    with pytest.raises(EmbeddingError, match=r"answered 401; check the API key \((AZURE_)?OPENAI_API_KEY") as caught:
        make("sk-the-wrong-key").encode("a")
    assert "sk-" not in str(caught.value)


def test_a_key_that_the_service_quotes_is_not_repeated(make: Make, server: EmbeddingServer) -> None:
    server.script.append(error(400, f"you sent {KEY}"))
    with pytest.raises(EmbeddingError, match=r"400: you sent \*\*\*"):
        make().encode("a")


def test_what_is_not_found_names_the_model_or_the_deployment(server: EmbeddingServer) -> None:
    with pytest.raises(EmbeddingError, match="404: The model does not exist; check the model 'nobody'"):
        OpenAIEmbedder(KEY, "nobody", dimensions=3, base_url=server.url).encode("a")
    with pytest.raises(EmbeddingError, match="404: The model does not exist; check the deployment 'nobody'"):
        AzureEmbedder(server.url, KEY, "nobody").encode("a")


def test_the_key_is_not_carried_to_another_host(make: Make, server: EmbeddingServer) -> None:
    server.script.append(Reply(307, b"", {"Location": f"{server.url}/elsewhere"}))
    with pytest.raises(EmbeddingError, match="answered 307"):
        make().encode("a")
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<html>", "is not JSON"),
        (b"", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"data": [{"index": 0, "embed', "is not JSON"),
        (b"null", "is not a list of embeddings: it has no list called data"),
        (b"[]", "is not a list of embeddings: it has no list called data"),
        (b'{"data": "abc"}', "is not a list of embeddings: it has no list called data"),
        (b'{"data": []}', "is not a list of embeddings: 0 vectors for 1 texts"),
        (b'{"data": [null]}', "is not a list of embeddings: an entry has no index"),
        (b'{"data": [{"index": [0]}]}', "is not a list of embeddings: an entry has no index"),
        (b'{"data": [{"index": 0}]}', "is not a list of embeddings: an embedding is not made of numbers"),
        (
            b'{"data": [{"index": 0, "embedding": {"a": 1}}]}',
            "is not a list of embeddings: an embedding is not made of",
        ),
        (b'{"data": [{"index": 0, "embedding": [true]}]}', "is not a list of embeddings: an embedding is not made of"),
        (b'{"data": [{"index": 0, "embedding": ["0.1"]}]}', "is not a list of embeddings: an embedding is not made of"),
        (
            b'{"data": [{"index": 7, "embedding": [1]}]}',
            "is not a list of embeddings: its vectors are not numbered from",
        ),
    ],
)
def test_an_invalid_response_is_an_error_that_names_the_defect(
    make: Make, server: EmbeddingServer, body: bytes, what: str
) -> None:
    server.script += [Reply(body=body)] * 2
    with pytest.raises(EmbeddingError, match=f"returned a response that {what}"):
        make(attempts=2).encode("a")


def test_a_failed_connection_is_reported_without_internal_numbers_and_names(
    make: Make, server: EmbeddingServer
) -> None:
    server.script.append(Reply(200, b'{"data"', {"Content-Length": "1000"}))
    with pytest.raises(EmbeddingError, match=r"the connection was lost in the middle of the response$"):
        make(attempts=1).encode("a")
    with pytest.raises(EmbeddingError, match=r"127\.0\.0\.1:1: Connection refused$"):
        OpenAIEmbedder(KEY, base_url="http://127.0.0.1:1", attempts=1).encode("a")


@pytest.mark.parametrize(
    "numbers",
    [
        [0.0] * 1536,
        [float("nan")] * 1536,
        ["x"] * 1536,
        [1e200] * 1536,
        [1e154] * 1536,
        [10**400] * 1536,
        [1e-200] * 1536,
    ],
)
def test_a_vector_without_a_direction_is_an_error(make: Make, server: EmbeddingServer, numbers: list[object]) -> None:
    server.script.append(Reply(body=json.dumps({"data": [{"index": 0, "embedding": numbers}]}).encode()))
    with pytest.raises(EmbeddingError, match="not a list of embeddings"):
        make().encode("a")


def test_vectors_in_base64_are_read(make: Make, server: EmbeddingServer) -> None:
    packed = base64.b64encode(struct.pack("<1536f", 3.0, 4.0, *[0.0] * 1534)).decode()
    server.script.append(Reply(body=json.dumps({"data": [{"index": 0, "embedding": packed}]}).encode()))
    assert list(make().encode("a"))[:3] == pytest.approx([0.6, 0.8, 0.0])


@pytest.mark.parametrize("packed", ["", "not base64", "AAA=", "AAAAAAA="])
def test_an_invalid_vector_in_base64_is_an_error(make: Make, server: EmbeddingServer, packed: str) -> None:
    server.script.append(Reply(body=json.dumps({"data": [{"index": 0, "embedding": packed}]}).encode()))
    with pytest.raises(EmbeddingError, match=r"not a list of embeddings|0 dimensions"):
        make().encode("a")


def test_a_vector_of_another_length_is_an_error_that_says_what_to_set(make: Make, server: EmbeddingServer) -> None:
    server.dimension = 8
    with pytest.raises(EmbeddingError, match="8 dimensions, not 1536; set dimensions=8"):
        make().encode("a")


def test_nothing_that_is_printed_holds_the_key(make: Make) -> None:
    embedder = make()
    assert "sk-" not in f"{embedder!r} {embedder._service!r} {vars(embedder)}"
    assert f"{Secret('x')} {Secret('x')!r}" == "*** ***"
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(Secret("x"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: OpenAIEmbedder(""), "set OPENAI_API_KEY"),
        (lambda: AzureEmbedder("https://x", " "), "set AZURE_OPENAI_API_KEY"),
        (lambda: AzureEmbedder("", KEY), "set AZURE_OPENAI_ENDPOINT"),
        (lambda: OpenAIEmbedder(KEY, base_url="api.openai.com"), "must begin with https://"),
        (lambda: OpenAIEmbedder(KEY, dimensions=0), "dimensions must be"),
        (lambda: OpenAIEmbedder(KEY, dimensions=4096), "gives vectors of 1536"),
        (lambda: OpenAIEmbedder(KEY, "text-embedding-ada-002", dimensions=256), "gives vectors of 1536"),
        (lambda: OpenAIEmbedder(KEY, batch_size=0), "batch_size must be"),
        (lambda: OpenAIEmbedder(KEY, attempts=0), "attempts of OpenAI must be a whole number"),
        (lambda: OpenAIEmbedder(KEY, attempts=1.5), "attempts of OpenAI must be a whole number"),  # type: ignore[arg-type]
        (lambda: OpenAIEmbedder(KEY, timeout_seconds=float("inf")), "timeout_seconds of OpenAI must be a number"),
        (lambda: OpenAIEmbedder(KEY, timeout_seconds=0), "timeout_seconds of OpenAI must be a number greater than 0"),
        (lambda: OpenAIEmbedder(KEY, backoff_seconds=-1), "backoff_seconds of OpenAI must be a number of at least 0"),
        (lambda: OpenAIEmbedder(f"{KEY}\n"), "the API key of OpenAI has a line break"),
        (lambda: AzureEmbedder("https://x", "ключ"), "the API key of Azure OpenAI has .* invalid characters"),
        (lambda: OpenAIEmbedder(None), "set OPENAI_API_KEY"),
        (lambda: AzureEmbedder("https://x", None), "set AZURE_OPENAI_API_KEY"),
        (lambda: AzureEmbedder(None, KEY), "set AZURE_OPENAI_ENDPOINT"),  # type: ignore[arg-type]
        (lambda: AzureEmbedder("https://x", KEY, None), "give deployment="),  # type: ignore[arg-type]
        (lambda: OpenAIEmbedder(KEY, None), "give model="),  # type: ignore[arg-type]
        (lambda: OpenAIEmbedder(KEY, base_url=None), "give base_url="),  # type: ignore[arg-type]
        (lambda: OpenAIEmbedder(KEY, base_url="http://[::1"), "cannot be read: .*; write it as https://host/path"),
        (lambda: OpenAIEmbedder(KEY, base_url="http://host:port"), "cannot be read: .*; write it as https://"),
        (lambda: OpenAIEmbedder(KEY, base_url="https://a host/v1"), "cannot be read: .*; write it as https://"),
        (
            lambda: OpenAIEmbedder(KEY, base_url="https://me:secret@host/v1"),
            "without a user and password, as in (?!.*me)",
        ),
        (lambda: AzureEmbedder("https://x/openai?api-version=1", KEY), "endpoint must end before the question mark"),
    ],
)
def test_a_wrong_setting_is_one_sentence(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        call()
