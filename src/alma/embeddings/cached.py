"""An LRU cache of embeddings around a provider."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress

from alma.embeddings.base import EmbedderAround, EmbeddingProvider, Passage
from alma.errors import ConfigurationError
from alma.process import PerProcess

DEFAULT_CACHE_SIZE = 10_000

Passages = list[Passage]


class CachedEmbedder(EmbedderAround):
    """An LRU cache around a provider; threads that need the same text at once share one encoding.

    It holds the passages of the `size` most recently used texts, by a hash of model and text.
    """

    def __init__(self, inner: EmbeddingProvider, size: int = DEFAULT_CACHE_SIZE) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ConfigurationError(f"the cache size must be a whole number of at least 1, not {size!r}")
        super().__init__(inner)
        self._memory = PerProcess(lambda: _Memory(size))

    def _embed(self, texts: Sequence[str]) -> list[Passages]:
        keys = [self._key(text) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        found: dict[bytes, Passages] = {}
        while missing := {key: text for key, text in wanted.items() if key not in found}:
            self._find(missing, found)
        return [found[key] for key in keys]

    def _find(self, missing: Mapping[bytes, str], found: dict[bytes, Passages]) -> None:
        """Add cached passages, those that this thread encodes, and those that other threads are encoding."""
        memory = self._memory.get()
        ours, theirs = memory.claim(missing, found)
        if ours:
            try:
                encoded = dict(zip(ours, self.inner._embed([missing[key] for key in ours]), strict=True))
            except BaseException:
                memory.abandon(ours)
                raise
            memory.keep(encoded)
            found.update(encoded)
        for key, future in theirs.items():
            # The thread that was encoding it failed; try again here.
            with suppress(CancelledError):
                found[key] = future.result()

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self.model}\0{text}".encode(), digest_size=24).digest()


class _Memory:
    """The cached texts in LRU order, and the texts that a thread is encoding."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, Passages] = OrderedDict()
        self._pending: dict[bytes, Future[Passages]] = {}

    def claim(
        self, missing: Mapping[bytes, str], found: dict[bytes, Passages]
    ) -> tuple[list[bytes], dict[bytes, Future[Passages]]]:
        """Add cached passages to `found`; returns the texts to encode, and the futures of those that others encode."""
        ours: list[bytes] = []
        theirs: dict[bytes, Future[Passages]] = {}
        with self._lock:
            for key in missing:
                if key in self._known:
                    self._known.move_to_end(key)
                    found[key] = self._known[key]
                elif key in self._pending:
                    theirs[key] = self._pending[key]
                else:
                    self._pending[key] = Future()
                    ours.append(key)
        return ours, theirs

    def keep(self, encoded: Mapping[bytes, Passages]) -> None:
        with self._lock:
            for key, passages in encoded.items():
                self._known[key] = passages
                self._pending.pop(key).set_result(passages)
            while len(self._known) > self._size:
                self._known.popitem(last=False)

    def abandon(self, keys: Sequence[bytes]) -> None:
        with self._lock:
            for key in keys:
                self._pending.pop(key).cancel()
