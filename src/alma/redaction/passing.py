"""Texts that leave the process: without their secrets, and with a way back to the words that were said."""

from __future__ import annotations

from alma.redaction.nested import Redacted
from alma.redaction.redactor import Redactor
from alma.redaction.secrets import MASKS
from alma.text.scanning import matches

_Span = tuple[int, int]


class PassedOn:
    """A text as others may read it; `findings` are the secrets that it is without."""

    def __init__(self, said: str, redactor: Redactor | None) -> None:
        clean = Redacted(said) if redactor is None else redactor.redact(said)
        self.text = clean.text
        self.findings = clean.findings
        self._said = said

    def said_at(self, start: int, end: int) -> _Span:
        """Where in the text as it was said this part of it stands; all of it where that cannot be told."""
        if self.text == self._said:
            return start, end
        places = self._masked()
        if places is None:
            return 0, len(self._said)
        return _moved(start, places, 0), _moved(end, places, 1)

    def _masked(self) -> list[tuple[_Span, _Span]] | None:
        """Where each mask stands, and what it stands for; None where texts and masks do not follow each other."""
        masks = [mask.span() for mask in matches(MASKS, self.text)]
        places: list[tuple[_Span, _Span]] = []
        read = 0
        for number, (start, end) in enumerate(masks):
            begun = read + start - (masks[number - 1][1] if number else 0)
            if number + 1 < len(masks):
                read = self._said.find(self.text[end : masks[number + 1][0]], begun)
            else:
                read = len(self._said) - (len(self.text) - end)
            if read < begun:
                return None
            places.append(((start, end), (begun, read)))
        return places or None


def _moved(at: int, places: list[tuple[_Span, _Span]], side: int) -> int:
    """A place of the masked text in the one that was said; within a mask it is that end of what was masked."""
    shift = 0
    for mask, said in places:
        if at <= mask[0]:
            break
        if at < mask[1]:
            return said[side]
        shift = said[1] - mask[1]
    return at + shift


def masks_in(text: str) -> tuple[str, ...]:
    """The kinds of the secrets that a text is without, as far as its masks say."""
    return tuple(mask[1] for mask in matches(MASKS, text))
