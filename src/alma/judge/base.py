"""The port of judges, the strict judge, which needs no model, and the LRU cache of answers.

A judge compares two short texts, rates whether a memory helps with a task, and detects prompt injections.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeVar

Label = Literal["same", "more", "less", "opposite", "supersedes", "other"]
LABELS: Final[tuple[Label, ...]] = ("same", "more", "less", "opposite", "supersedes", "other")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The relation of text `a` to text `b`.

    *same*: they say the same. *more*: `a` implies `b` and says more. *less*: the other way round. *opposite*: both
    cannot be followed or be true. *supersedes*: another value of the same single-valued thing, so that the later one
    replaces the earlier. *other*: anything else. `probabilities` has every label and adds up to 1.
    """

    label: Label
    probabilities: Mapping[Label, float]

    def __getitem__(self, label: Label) -> float:
        return self.probabilities[label]


class Judge(Protocol):
    """Compares texts. The same texts always get the same answer, and any text is valid."""

    @property
    def name(self) -> str:
        """The name of the judge, which is stored with its decisions."""
        ...

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """The relation of the first text of each pair to the second."""
        ...

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """For each (task, memory) the probability that the memory helps with the task; None if unknown."""
        ...

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        """For each text the probability that it holds instructions aimed at its reader; None if unknown."""
        ...


# "10²" is not "102" and "1½" is not "11/2", which is what NFKC makes of them.
_RAISED = ("<super>", "<sub>", "<fraction>")
# A question mark is kept: "Deploy on Friday?" is not "Deploy on Friday."
_END_PUNCTUATION = " .,;:!…。、"


def normalised(text: str) -> str:
    """The text in NFKC, case folded, with single spaces and without punctuation at its end."""
    if not text.isascii():
        raised = any(unicodedata.decomposition(character).startswith(_RAISED) for character in text)
        text = unicodedata.normalize("NFC" if raised else "NFKC", text)
    folded = " ".join(text.casefold().split())
    return folded.rstrip(_END_PUNCTUATION) or folded


def certain(label: Label) -> Judgement:
    """The judgement that gives all probability to one label."""
    return Judgement(label, MappingProxyType({each: float(each == label) for each in LABELS}))


SAME: Final = certain("same")
OTHER: Final = certain("other")


class StrictJudge:
    """Judges without a model: *same* for texts that are equal once normalised, *other* for all others."""

    @property
    def name(self) -> str:
        return "strict"

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """*same* or *other* with certainty; a paraphrase is *other*."""
        return [SAME if a == b or normalised(a) == normalised(b) else OTHER for a, b in pairs]

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """None for each pair, because relevance needs a model."""
        return [None] * len(pairs)

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        """None for each text, because detection needs a model."""
        return [None] * len(texts)

    def __repr__(self) -> str:
        return "StrictJudge()"


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
        with self._lock:
            found = {key: self._held[key] for key in by_key if key in self._held}
            for key in found:
                self._held.move_to_end(key)
        missing = [key for key in by_key if key not in found]
        if missing:
            new = dict(zip(missing, ask([by_key[key] for key in missing]), strict=True))
            found.update(new)
            with self._lock:
                self._held.update((key, answer) for key, answer in new.items() if answer is not None)
                while len(self._held) > self._most:
                    self._held.popitem(last=False)
        return [found[key] for key in keys]


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
    """The judgement of identical or empty texts, which needs no model."""
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
