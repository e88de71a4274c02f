"""Answers of a model to pairs of texts: asked for in one order, each once, and remembered by content hash."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, TypeVar

from alma.judge.base import LABELS, Judge, Judgement
from alma.judge.strict import OTHER, SAME, normalised

Probabilities = tuple[float, ...]
"""One probability for each label, in the order of LABELS."""

_MOST_ANSWERS = 16_384
_MORE_AND_LESS_SWAPPED: Final = [
    LABELS.index("less" if label == "more" else "more" if label == "less" else label) for label in LABELS
]

Texts = TypeVar("Texts", bound=tuple[str, ...])
Answer = TypeVar("Answer")


class Answers:
    """The latest answers by content hash, for many threads; the least recently used are forgotten first."""

    def __init__(self, most: int = _MOST_ANSWERS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, Any] = OrderedDict()

    def found(
        self, question: str, asked: Sequence[Texts], ask: Callable[[Sequence[Texts]], Sequence[Answer]]
    ) -> list[Answer]:
        """The answer to this question about each of the texts; None is an answer that is not remembered."""
        keys = [_key(question, texts) for texts in asked]
        wanted = dict(zip(keys, asked, strict=True))
        found = self._known(wanted)
        missing = [key for key in wanted if key not in found]
        if missing:
            new = dict(zip(missing, ask([wanted[key] for key in missing]), strict=True))
            self._keep(new)
            found.update(new)
        return [found[key] for key in keys]

    def _known(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        with self._lock:
            found = {key: self._held[key] for key in keys if key in self._held}
            for key in found:
                self._held.move_to_end(key)
        return found

    def _keep(self, answers: Mapping[bytes, Any]) -> None:
        with self._lock:
            self._held.update((key, answer) for key, answer in answers.items() if answer is not None)
            while len(self._held) > self._most:
                self._held.popitem(last=False)


def compared(
    pairs: Sequence[tuple[str, str]],
    answers: Answers,
    ask: Callable[[Sequence[tuple[str, str]]], Sequence[Probabilities | None]],
    fallback: Judge,
) -> list[Judgement]:
    """A judgement of each pair: without a model, remembered, asked for, or by the fallback where there is no answer.

    The model is asked for each pair in one order, so that the order it came in only exchanges *more* and *less*.
    """
    found = [_without_model(a, b) for a, b in pairs]
    unclear = [pair for pair, judgement in zip(pairs, found, strict=True) if judgement is None]
    told = answers.found("relation", [_in_order(pair) for pair in unclear], ask)
    left = iter(fallback.compare([pair for pair, answer in zip(unclear, told, strict=True) if answer is None]))
    judged = (
        next(left) if answer is None else _judgement(answer, pair) for pair, answer in zip(unclear, told, strict=True)
    )
    return [next(judged) if each is None else each for each in found]


def swapped(probabilities: Sequence[float]) -> Probabilities:
    """The probabilities of the pair in the other order."""
    return tuple(probabilities[i] for i in _MORE_AND_LESS_SWAPPED)


def _without_model(a: str, b: str) -> Judgement | None:
    """What needs no model: identical texts, and those of which one says nothing."""
    if a == b:
        return SAME
    first, second = normalised(a), normalised(b)
    if first == second:
        return SAME
    return None if first and second else OTHER


def _in_order(pair: tuple[str, str]) -> tuple[str, str]:
    a, b = pair
    return (a, b) if a <= b else (b, a)


def _judgement(answer: Probabilities, asked: tuple[str, str]) -> Judgement:
    found = answer if asked == _in_order(asked) else swapped(answer)
    probabilities = dict(zip(LABELS, found, strict=True))
    return Judgement(max(LABELS, key=probabilities.__getitem__), MappingProxyType(probabilities))


def _key(question: str, texts: tuple[str, ...]) -> bytes:
    digest = blake2b(question.encode(), digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
