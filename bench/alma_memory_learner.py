"""The published alma-memory as a memory of the outcome harness, in its own environment.

Run as a program it is that memory: it runs with the Python of the environment that has the package, which is imported
as `alma`, too. Every line it reads is a request; where the package needs a vector, it asks the other side for it, so
that both memories see the same vectors of the same model.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_AGENT, _PROJECT = "agent", "bench"
_DIMS = 384


class AlmaMemoryLearner:
    """The harness's side: reports outcomes and requests the strategy that the package ranks first."""

    def __init__(self, python: Path, embed: Callable[[str], Sequence[float]]) -> None:
        self._python, self._embed = python, embed
        self._process: subprocess.Popen[str] | None = None
        self._strategies: list[str] = []

    def reset(self, strategies: list[str], seed: int) -> None:
        self.close()
        self._strategies = list(strategies)
        self._process = subprocess.Popen(
            [str(self._python), __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )

    def learn(self, task: str, strategy: str, success: float) -> None:
        self._ask({"task": task, "strategy": strategy, "outcome": "success" if success >= 0.5 else "failure"})

    def choose(self, task: str) -> str:
        return str(self._ask({"task": task, "among": self._strategies}))

    def close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        _say(self._process.stdin, request)
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError("alma-memory ended before it answered")
            answer = json.loads(line)
            if "embed" not in answer:
                return answer["answer"]
            _say(self._process.stdin, {"vector": [float(value) for value in self._embed(answer["embed"])]})


class _AskedEmbedder:
    """Requests vectors from the harness's side."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers
        self._known: dict[str, list[float]] = {}

    @property
    def dimension(self) -> int:
        return _DIMS

    def encode(self, text: str) -> list[float]:
        if text not in self._known:
            _say(self._answers, {"embed": text})
            self._known[text] = json.loads(sys.stdin.readline())["vector"]
        return self._known[text]


def _serve(folder: str) -> None:
    # What the package prints must not come between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    embedder = _AskedEmbedder(answers)
    storage = importlib.import_module("alma.storage.sqlite_local").SQLiteStorage(
        Path(folder) / "alma.db", embedding_dim=_DIMS
    )
    retrieval = importlib.import_module("alma.retrieval.engine").RetrievalEngine(storage=storage)
    retrieval._embedder = embedder
    learning = importlib.import_module("alma.learning.protocols").LearningProtocol(
        storage=storage, scopes={}, embedder=embedder
    )
    memory = importlib.import_module("alma").ALMA(storage, retrieval, learning, {}, _PROJECT)
    engine = importlib.import_module("alma.confidence").ConfidenceEngine(memory)
    for line in sys.stdin:
        request = json.loads(line)
        if "among" in request:
            ranked = engine.rank_strategies(request["among"], request["task"], _AGENT)
            _say(answers, {"answer": ranked[0][0]})
        else:
            memory.learn(_AGENT, request["task"], request["outcome"], request["strategy"])
            _say(answers, {"answer": None})


def _say(stream: Any, value: dict[str, Any]) -> None:
    stream.write(json.dumps(value) + "\n")
    stream.flush()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="alma-memory-learning-") as place:
        _serve(place)
