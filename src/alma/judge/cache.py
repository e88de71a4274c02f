"""An LRU cache of a model's answers about texts, keyed by content hash."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, TypeVar

from alma.judge.base import LABELS, OTHER, SAME, Judge, Judgement, normalised

Probabilities = tuple[float, ...]
"""One probability for each label, in the order of LABELS."""

_MOST_CACHED = 16_384
_MORE_AND_LESS_SWAPPED: Final = [
    LABELS.index("less" if label == "more" else "more" if label == "less" else label) for label in LABELS
]

Texts = TypeVar("Texts", bound=tuple[str, ...])
Answer = TypeVar("Answer")


class AnswerCache:
    """A thread-safe LRU cache of answers."""

    def __init__(self, most: int = _MOST_CACHED) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, Any] = OrderedDict()

    def found(
        self, head: str, wanted: Sequence[Texts], ask: Callable[[Sequence[Texts]], Sequence[Answer]]
    ) -> list[Answer]:
        """The answer of this head for each of the texts; None is not cached."""
        keys = [_key(head, texts) for texts in wanted]
        by_key = dict(zip(keys, wanted, strict=True))
        found = self._known(by_key)
        missing = [key for key in by_key if key not in found]
        if missing:
            new = dict(zip(missing, ask([by_key[key] for key in missing]), strict=True))
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
    answers: AnswerCache,
    ask: Callable[[Sequence[tuple[str, str]]], Sequence[Probabilities | None]],
    fallback: Judge,
) -> list[Judgement]:
    """A judgement of each pair: without a model, from the cache, from the model, or from the fallback.

    The model gets each pair in one canonical order, so that the given order only exchanges *more* and *less*.
    """
    found = [_without_model(a, b) for a, b in pairs]
    unclear = [pair for pair, judgement in zip(pairs, found, strict=True) if judgement is None]
    answered = answers.found("relation", [_in_order(pair) for pair in unclear], ask)
    both = list(zip(unclear, answered, strict=True))
    left = iter(fallback.compare([pair for pair, answer in both if answer is None]))
    judged = (next(left) if answer is None else _judgement(answer, pair) for pair, answer in both)
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


def _judgement(answer: Probabilities, pair: tuple[str, str]) -> Judgement:
    found = answer if pair == _in_order(pair) else swapped(answer)
    probabilities = dict(zip(LABELS, found, strict=True))
    return Judgement(max(LABELS, key=probabilities.__getitem__), MappingProxyType(probabilities))


def _key(head: str, texts: tuple[str, ...]) -> bytes:
    digest = blake2b(head.encode(), digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
