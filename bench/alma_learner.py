"""ALMA as a memory of the outcome harness: outcomes go to `learn`, the next strategy comes from `recommend`."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

from alma import ALMA
from alma.bootstrap import create_embedder
from alma.learning.protocols import LearningProtocol
from alma.retrieval.engine import RetrievalEngine
from alma.storage.sqlite_local import SQLiteStorage
from remembered_vectors import RememberedEmbedder

VECTORS = Path(__file__).parent / "results" / "learning-vectors.sqlite"
_AGENT = "agent"


class AlmaLearner:
    """A new store for every run, with the defaults; only vectors are cached between runs."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._alma: ALMA | None = None
        self._strategies: list[str] = []

    def reset(self, strategies: list[str], seed: int) -> None:
        self.close()
        self._strategies = list(strategies)
        self._folder = Path(tempfile.mkdtemp(prefix="alma-learning-"))
        self._alma = opened(self._folder / "alma.db")

    def learn(self, task: str, strategy: str, success: float) -> None:
        assert self._alma is not None
        self._alma.learn(_AGENT, task, success >= 0.5, strategy)

    def choose(self, task: str) -> str:
        assert self._alma is not None
        chosen = self._alma.recommend(task, _AGENT, among=self._strategies, explore=True).strategy
        assert chosen is not None
        return chosen

    def close(self) -> None:
        if self._alma is not None:
            self._alma.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


@functools.cache
def embedder() -> RememberedEmbedder:
    """The local model with a persistent cache."""
    return RememberedEmbedder(create_embedder("local", cache_size=0), VECTORS)


def opened(path: Path) -> ALMA:
    """A new store with the defaults and cached vectors."""
    storage = SQLiteStorage(path, embedder().dimension, embedding_model=embedder().model)
    engine = RetrievalEngine(storage, embedder())
    return ALMA(storage, engine, LearningProtocol(storage, embedder(), engine.index), {}, "bench")
