"""Batches for the judge's network: texts are tokenised once, and laid out as pairs when a batch is made."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

LONGEST = 128
Texts = tuple[str, str | None]


class Layout:
    """Lays tokens out as the encoder's family does: `[CLS] a [SEP] b [SEP]`, or `<s> a </s></s> b </s>`."""

    def __init__(self, tokenizer: Path, relative: bool) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        names = ("<s>", "</s>", "<pad>") if relative else ("[CLS]", "[SEP]", "[PAD]")
        self._start, self._end, self._pad = (self._tokenizer.token_to_id(name) for name in names)
        self._between = [self._end, self._end] if relative else [self._end]
        self._relative = relative
        self._known: dict[str, list[int]] = {}

    def read(self, texts: Sequence[str]) -> None:
        """Tokenise these texts, all at once."""
        new = list({text for text in texts if text not in self._known})
        for text, encoded in zip(new, self._tokenizer.encode_batch(new, add_special_tokens=False), strict=True):
            self._known[text] = encoded.ids

    def length(self, texts: Texts) -> int:
        return sum(len(self._known[text]) for text in texts if text is not None)

    def batch(self, chosen: Sequence[Texts]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, mask and types of these texts."""
        laid = [self._laid(*texts) for texts in chosen]
        longest = max(len(ids) for ids, _ in laid)
        ids = np.array([ids + [self._pad] * (longest - len(ids)) for ids, _ in laid])
        mask = np.array([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in laid])
        return ids, mask, np.array([types + [0] * (longest - len(types)) for _, types in laid])

    def _laid(self, a: str, b: str | None) -> tuple[list[int], list[int]]:
        if b is None:
            ids = [self._start, *self._known[a][: LONGEST - 2], self._end]
            return ids, [0] * len(ids)
        room = LONGEST - 2 - len(self._between)
        one, two = shortened(self._known[a], self._known[b], room)
        ids = [self._start, *one, *self._between, *two, self._end]
        second = 0 if self._relative else 1
        return ids, [0] * (1 + len(one) + len(self._between)) + [second] * (len(two) + 1)


def shortened(one: list[int], two: list[int], room: int) -> tuple[list[int], list[int]]:
    """Both cut so that they fit, the longer one first."""
    half = room // 2
    if len(one) + len(two) <= room:
        return one, two
    if len(one) <= half:
        return one, two[: room - len(one)]
    if len(two) <= half:
        return one[: room - len(two)], two
    return one[: room - half], two[:half]


def grouped(lengths: Sequence[int], size: int, rng: random.Random | None) -> Iterator[list[int]]:
    """Indices in batches of similar length; shuffled, if there is chance to shuffle them with."""
    order = list(range(len(lengths)))
    if rng is None:
        order.sort(key=lengths.__getitem__)
        yield from (order[start : start + size] for start in range(0, len(order), size))
        return
    rng.shuffle(order)
    pool = size * 32
    made = []
    for start in range(0, len(order), pool):
        part = sorted(order[start : start + pool], key=lengths.__getitem__)
        made += [part[at : at + size] for at in range(0, len(part), size)]
    rng.shuffle(made)
    yield from made
