"""Figures: how near the numbers are to each other in tasks that are written alike but for their numbers.

`run/load-40.cfg` is nearer to `run/load-41.cfg` than to `run/load-9000.cfg`, which the letters do not tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

_NUMBER = re.compile(r"[0-9]+")
_CHARACTERS_READ = 2000
# Numbers of more digits are names rather than sizes, and these are enough to tell them apart.
_DIGITS_READ = 15


class Figures:
    """The numbers of many texts, by what is written around them; texts can only be added."""

    def __init__(self) -> None:
        self._forms: dict[str, int] = {}
        self._form_of: list[int] = []
        self._sizes: list[Any] = []

    def add(self, texts: Sequence[str]) -> None:
        """Take in further texts; they are numbered in the order they came."""
        for text in texts:
            form, sizes = _read(text)
            self._form_of.append(self._forms.setdefault(form, len(self._forms)))
            self._sizes.append(sizes)

    def alike(self, text: str, numbers: Any) -> Any:
        """How near the numbers of this text are to those of each of these: from 0 to 1."""
        form, sizes = _read(text)
        near = np.zeros(len(numbers))
        same = np.flatnonzero(np.array(self._form_of)[numbers] == self._forms.get(form, -1))
        if len(same):
            near[same] = _nearness(self._of(numbers[same]), sizes)
        return near

    def among(self, numbers: Any) -> Any:
        """How near the numbers of these texts are to each other."""
        near = np.zeros((len(numbers), len(numbers)))
        forms = np.array(self._form_of)[numbers]
        order = np.argsort(forms, kind="stable")
        for same in np.split(order, np.flatnonzero(np.diff(forms[order])) + 1):
            sizes = self._of(numbers[same])
            near[np.ix_(same, same)] = _nearness(sizes[:, None], sizes[None])
        return near

    def _of(self, numbers: Any) -> Any:
        return np.stack([self._sizes[number] for number in numbers])


def _read(text: str) -> tuple[str, Any]:
    """What is written around the numbers, and how large each of them is."""
    read = text[:_CHARACTERS_READ].lower()
    sizes = np.log1p([float(number[:_DIGITS_READ]) for number in _NUMBER.findall(read)])
    return _NUMBER.sub("0", read), sizes


def _nearness(some: Any, others: Any) -> Any:
    return np.exp(-((some - others) ** 2).sum(axis=-1))
