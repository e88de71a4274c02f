"""Embeddings on a Redis server: a text that one process has encoded is not encoded again by another."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from alma.cache.keys import EMBEDDING, EMBEDDING_BATCH, hashed
from alma.cache.redis_server import RedisServer
from alma.embeddings.base import EmbedderAround, EmbeddingProvider, Passage
from alma.errors import ValidationError
from alma.model.vector import Vector

if TYPE_CHECKING:
    from redis import Redis

# The batch size of reads and writes, so that the server answers within its timeout.
_AT_ONCE = 50
_UNIT_TOLERANCE = 1e-3

Passages = list[Passage]


class RedisEmbedder(EmbedderAround):
    """A provider whose vectors are kept on a Redis server, by a hash of model and text.

    A value that is not the vectors of this model is encoded again, and so is everything while the server is down.
    """

    def __init__(self, inner: EmbeddingProvider, server: RedisServer) -> None:
        super().__init__(inner)
        self._server = server

    def _embed(self, texts: Sequence[str]) -> list[Passages]:
        hashes = [hashed(self.model, text) for text in texts]
        wanted = dict(zip(hashes, texts, strict=True))
        known = self._known(list(wanted))
        missing = [each for each in wanted if each not in known]
        if missing:
            encoded = dict(zip(missing, self.inner._embed([wanted[each] for each in missing]), strict=True))
            self._keep(encoded)
            known.update(encoded)
        return [known[each] for each in hashes]

    def _known(self, hashes: Sequence[str]) -> dict[str, Passages]:
        known: dict[str, Passages] = {}
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            keys = [self._server.keys.key(EMBEDDING, each) for each in some]
            texts: Sequence[object] = self._server.read(lambda client, keys=keys: client.mget(keys), ())  # type: ignore[misc]
            for content_hash, text in zip(some, texts, strict=False):
                if isinstance(text, bytes) and (passages := self._read(text)) is not None:
                    known[content_hash] = passages
        return known

    def _keep(self, encoded: Mapping[str, Passages]) -> None:
        every = list(encoded.items())
        for start in range(0, len(every), _AT_ONCE):
            some = dict(every[start : start + _AT_ONCE])
            self._server.write(lambda client, some=some: self._write(client, some))  # type: ignore[misc]

    def _write(self, client: Redis, encoded: Mapping[str, Passages]) -> None:
        keys = self._server.keys
        milliseconds = max(1, int(1000 * keys.ttl(EMBEDDING)))
        with client.pipeline(transaction=False) as pipe:
            for content_hash, passages in encoded.items():
                pipe.set(keys.key(EMBEDDING, content_hash), _text(self.model, passages), px=milliseconds)
            if len(encoded) > 1:
                batch = keys.key(EMBEDDING_BATCH, hashed(*encoded))
                pipe.delete(batch)
                pipe.rpush(batch, *encoded)
                pipe.pexpire(batch, milliseconds)
            pipe.execute()

    def _read(self, text: bytes) -> Passages | None:
        try:
            document = json.loads(text)
            if document["model"] != self.model:
                return None
            passages = [
                Passage(self._vector(each), _whole(tokens))
                for each, tokens in zip(document["vectors"], document["tokens"], strict=True)
            ]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return passages or None

    def _vector(self, numbers: list[float]) -> Vector:
        vector = Vector(numbers)
        if len(vector) != self.dimension or abs(math.hypot(*vector) - 1) > _UNIT_TOLERANCE:
            raise ValidationError("embedding", "vector", len(vector), "is not a unit vector of this model")
        return vector


def _text(model: str, passages: Passages) -> str:
    # Nine digits give back every 32-bit float.
    vectors = ",".join(f"[{','.join([f'{number:.9g}' for number in each.vector])}]" for each in passages)
    tokens = [each.tokens for each in passages]
    return f'{{"model":{json.dumps(model)},"tokens":{json.dumps(tokens)},"vectors":[{vectors}]}}'


def _whole(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValidationError("embedding", "tokens", number, "must be a whole number of at least 1")
    return number
