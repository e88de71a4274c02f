"""The memories and queries of the latency benchmark: made once per size, in files that every contender maps.

Words are those of the local model's tokenizer, as unevenly common as in a language. Every memory is about one of two
thousand topics: its vector lies near the topic's, and a third of its words are the topic's own. In a conversation of
twenty turns half of the turns are about the same topic. A question takes some words and about the vector of a memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

PROJECT = "bench"
"""The project of everything that belongs to agents."""
DIMS = 384
NEIGHBOURS = 5
CHANGES = 100
"""How many further memories there are, to be written one by one."""
WARM_UP = 5
"""How many questions of each set come before those that count."""
BIG, SMALL = "big", "small"
OWNERS = (BIG, SMALL)
"""Whose memories are asked for: the agent's that owns four in five, or those of agents that own one in a hundred each.

General memories belong to projects: to one with nearly all of them, or to one with one in a hundred."""

_TOPICS = 2_000
_TOPIC_WORDS = 12
_VOCABULARY = 8_000
_CONDITION_WORDS, _STRATEGY_WORDS = 10, 16
_WORDS = _CONDITION_WORDS + _STRATEGY_WORDS
_ASKED_WORDS, _FURTHER_WORDS = 5, 5
_TURNS = 20
_SPREAD, _QUERY_SPREAD = 0.5, 0.4
_AT_ONCE = 50_000
_START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Fact:
    """One memory, before it becomes a record of a contender's type."""

    number: int
    id: str
    agent: str
    project: str
    session: str
    condition: str
    strategy: str
    moment: datetime
    vector: Floats


@dataclass(frozen=True, slots=True)
class Question:
    """A question to one owner's memories: its text, the vector of that text, and the number of what it is about."""

    agent: str
    project: str
    text: str
    vector: Floats
    about: int


def make(folder: Path, count: int, vocabulary: list[str], questions: int, seed: int = 7) -> None:
    """Write the memories of a size into a folder, and twice that number of queries for each owner."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    vocabulary = vocabulary[:_VOCABULARY]
    (folder / "vocabulary.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    rows = count + CHANGES
    topics = _topics_of(rng, rows)
    _write_vectors(rng, folder / "vectors.npy", topics)
    words = _words_of(rng, topics, len(vocabulary))
    np.save(folder / "words.npy", words)
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    for owned_by in (_agent, _project):
        for owner in OWNERS:
            about = rng.choice(_owned(owned_by, owner, count), WARM_UP + 2 * questions)
            noise = rng.standard_normal((len(about), DIMS), np.float32) * np.float32(_QUERY_SPREAD / DIMS**0.5)
            further = _common_words(rng, (len(about), _FURTHER_WORDS), len(vocabulary))
            asked = np.concatenate([rng.permuted(words[about], axis=1)[:, :_ASKED_WORDS], further], axis=1)
            path = folder / f"{owned_by.__name__}-{owner}.npz"
            np.savez(path, about=about, vectors=_units(vectors[about] + noise), words=asked)


class Data:
    """The files that `make` wrote."""

    def __init__(self, folder: Path, count: int, by_project: bool) -> None:
        self.count = count
        self._folder = folder
        self._owned_by = _project if by_project else _agent
        self._vocabulary: list[str] = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
        # Mapped, so that it does not count as the contender's memory.
        self._vectors: Floats = np.load(folder / "vectors.npy", mmap_mode="r")
        self._words: npt.NDArray[np.int16] = np.load(folder / "words.npy", mmap_mode="r")

    def facts(self, numbers: Iterable[int]) -> list[Fact]:
        """The facts with these numbers; those from `count` on are the ones to write later."""
        return [self._fact(number) for number in numbers]

    def questions(self, owner: str) -> list[Question]:
        """The questions to the big owner, or to the small ones."""
        with np.load(self._folder / f"{self._owned_by.__name__}-{owner}.npz") as kept:
            columns = [kept[name] for name in ("about", "vectors", "words")]
        return [
            Question(_agent(int(about)), _project(int(about)), self._text(words), vector, int(about))
            for about, vector, words in zip(*columns, strict=True)
        ]

    def nearest(self, question: Question, stored: int) -> set[str]:
        """The ids truly nearest to a question among those of its owner's facts that were stored."""
        owned = _owned(self._owned_by, self._owned_by(question.about), stored)
        scores = [self._vectors[part] @ question.vector for part in np.array_split(owned, 1 + len(owned) // _AT_ONCE)]
        best = owned[np.argsort(-np.concatenate(scores), kind="stable")[:NEIGHBOURS]]
        return {id_of(int(number)) for number in best}

    def _fact(self, number: int) -> Fact:
        words = self._words[number]
        return Fact(
            number=number,
            id=id_of(number),
            agent=_agent(number),
            project=_project(number),
            session=f"session-{number // _TURNS:06d}",
            condition=self._text(words[:_CONDITION_WORDS]),
            strategy=self._text(words[_CONDITION_WORDS:]),
            moment=_START + timedelta(seconds=20 * number),
            vector=np.array(self._vectors[number]),
        )

    def _text(self, words: Iterable[np.int16]) -> str:
        return " ".join(self._vocabulary[word] for word in words)


def id_of(number: int) -> str:
    """The id of the fact with this number: an UUID, since one of the contenders takes nothing else."""
    return str(UUID(int=number + 1))


def _agent(number: int) -> str:
    place = number % 100
    return BIG if place < 80 else f"small-{place}"


def _project(number: int) -> str:
    """One conversation in a hundred belongs to a small project, the others to a big one."""
    return "small-project" if number // _TURNS % 100 == 7 else "big-project"


def _owned(owned_by: Callable[[int], str], owner: str, count: int) -> Numbers:
    return np.array([number for number in range(count) if owned_by(number).startswith(owner)])


def _topics_of(rng: np.random.Generator, rows: int) -> Numbers:
    own = rng.integers(0, _TOPICS, rows)
    of_conversation = np.repeat(rng.integers(0, _TOPICS, rows // _TURNS + 1), _TURNS)[:rows]
    return np.where(rng.random(rows) < 0.5, of_conversation, own)


def _write_vectors(rng: np.random.Generator, path: Path, topics: Numbers) -> None:
    centers = _units(rng.standard_normal((_TOPICS, DIMS), np.float32))
    vectors = np.lib.format.open_memmap(path, "w+", np.float32, (len(topics), DIMS))
    for start in range(0, len(topics), _AT_ONCE):
        chosen = centers[topics[start : start + _AT_ONCE]]
        noise = rng.standard_normal(chosen.shape, np.float32) * np.float32(_SPREAD / DIMS**0.5)
        vectors[start : start + _AT_ONCE] = _units(chosen + noise)
    vectors.flush()


def _words_of(rng: np.random.Generator, topics: Numbers, vocabulary: int) -> npt.NDArray[np.int16]:
    """The words of every memory, a third of them its topic's own."""
    # The commonest words are no topic's own.
    own = rng.integers(200, vocabulary, (_TOPICS, _TOPIC_WORDS)).astype(np.int16)
    words = np.empty((len(topics), _WORDS), np.int16)
    for start in range(0, len(topics), _AT_ONCE):
        part = topics[start : start + _AT_ONCE]
        common = _common_words(rng, (len(part), _WORDS), vocabulary)
        picked = own[part[:, None], rng.integers(0, _TOPIC_WORDS, common.shape)]
        words[start : start + _AT_ONCE] = np.where(rng.random(common.shape) < 1 / 3, picked, common)
    return words


def _common_words(rng: np.random.Generator, shape: tuple[int, int], vocabulary: int) -> npt.NDArray[np.int16]:
    """Words as often as their rank says."""
    weights = 1 / np.arange(1, vocabulary + 1)
    return rng.choice(vocabulary, size=shape, p=weights / weights.sum()).astype(np.int16)


def _units(vectors: Floats) -> Floats:
    scaled: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return scaled
