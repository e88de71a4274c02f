"""The local judge: a small cross-encoder on onnxruntime, with a cache of its answers."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from alma.judge.base import LABELS, Judgement
from alma.judge.network import Head, Network, Probabilities, read_card, swapped
from alma.judge.strict import OTHER, SAME, normalised
from alma.paths import at_home
from alma.per_process import Lazily, PerProcess

SHIPPED: Final = Path(__file__).parent / "data"
"""The folder of the model that comes with the package."""

_MOST_ANSWERS = 16_384

Texts = TypeVar("Texts", bound=tuple[str, ...])
Answer = TypeVar("Answer", float, Probabilities)


class LocalJudge:
    """The shipped model, or the one that lies in `folder`.

    A folder holds `judge.onnx`, its `tokenizer.json`, and `judge.json` with their digests. They are verified and loaded
    by the first question that needs them. It is safe to use from many threads and after a fork.

    What the model does not read of a text, because it is too long or in characters without a token, is never taken
    for agreement: two such texts are not *same*.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = SHIPPED if folder is None else at_home(folder)
        self._card = read_card(self._folder)
        self._network = PerProcess(lambda: Lazily(lambda: Network(self._folder, self._card)))
        self._answers = PerProcess(lambda: _Answers(_MOST_ANSWERS))

    @property
    def name(self) -> str:
        return self._card.name

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._folder

    def load(self) -> None:
        """Verify and load the files now; an `ALMAError` says what is wrong with them."""
        self._network.get().loaded()

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """What the first text of each pair is to the second; the order of a pair only exchanges *more* and *less*."""
        found = [_without_model(a, b) for a, b in pairs]
        open_pairs = [pair for pair, judgement in zip(pairs, found, strict=True) if judgement is None]
        answers = iter(self._answered("relation", [_in_order(pair) for pair in open_pairs], self._relations))
        asked = iter(open_pairs)
        return [_judgement(next(answers), next(asked)) if each is None else each for each in found]

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """For each (task, memory) the probability that the memory helps with the task."""
        return self._told("useful", pairs, lambda each: self._network.get().loaded().useful(each))

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        """For each text the probability that it holds instructions aimed at its reader."""
        return self._told(
            "injection",
            [(text,) for text in texts],
            lambda each: self._network.get().loaded().injection([text for (text,) in each]),
        )

    def __repr__(self) -> str:
        return f"LocalJudge(name={self.name!r})"

    def _relations(self, pairs: Sequence[tuple[str, str]]) -> list[Probabilities]:
        return self._network.get().loaded().relations(pairs)

    def _told(
        self, head: Head, asked: Sequence[Texts], ask: Callable[[Sequence[Texts]], list[float]]
    ) -> list[float | None]:
        """What a head of one number says; None where the model has no such head, 0 where there is nothing to read."""
        if head not in self._card.temperatures:
            return [None] * len(asked)
        readable = [texts for texts in asked if all(map(str.strip, texts))]
        answers = iter(self._answered(head, readable, ask))
        return [next(answers) if all(map(str.strip, texts)) else 0.0 for texts in asked]

    def _answered(
        self, head: Head, asked: Sequence[Texts], ask: Callable[[Sequence[Texts]], list[Answer]]
    ) -> list[Answer]:
        """The answers, each remembered or asked for once."""
        keys = [_key(head, texts) for texts in asked]
        wanted = dict(zip(keys, asked, strict=True))
        answers = self._answers.get()
        found = answers.known(wanted)
        missing = [key for key in wanted if key not in found]
        if missing:
            new = dict(zip(missing, ask([wanted[key] for key in missing]), strict=True))
            answers.keep(new)
            found.update(new)
        return [found[key] for key in keys]


class _Answers:
    """The latest answers by content hash; the least recently used are forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, Any] = OrderedDict()

    def known(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        """The answers that are held."""
        with self._lock:
            found = {key: self._held[key] for key in keys if key in self._held}
            for key in found:
                self._held.move_to_end(key)
        return found

    def keep(self, answers: Mapping[bytes, Any]) -> None:
        with self._lock:
            self._held.update(answers)
            while len(self._held) > self._most:
                self._held.popitem(last=False)


def _without_model(a: str, b: str) -> Judgement | None:
    """What needs no model: identical texts, and those of which one says nothing."""
    if a == b:
        return SAME
    first, second = normalised(a), normalised(b)
    if first == second:
        return SAME
    return None if first and second else OTHER


def _in_order(pair: tuple[str, str]) -> tuple[str, str]:
    """The pair in the order in which the model is asked, whichever way it came."""
    a, b = pair
    return (a, b) if a <= b else (b, a)


def _judgement(answer: Probabilities, asked: tuple[str, str]) -> Judgement:
    found = answer if asked == _in_order(asked) else swapped(answer)
    probabilities = dict(zip(LABELS, found, strict=True))
    return Judgement(max(LABELS, key=probabilities.__getitem__), MappingProxyType(probabilities))


def _key(head: Head, texts: tuple[str, ...]) -> bytes:
    digest = blake2b(head.encode(), digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
