"""The annotations that records share: names, texts, shares and counts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

from alma.errors import ValidationError
from alma.model.fields import LONGEST_NAME, Embedding, MaxLength, NotEmpty, Range, Refused, Tags, check_text

LONGEST_TEXT = 1 << 20
Part = TypeVar("Part")


def checked_name(subject: str, field: str, value: Any, longest: int = LONGEST_NAME) -> str:
    """A name outside of a record, validated by the same rules."""
    try:
        text = check_text(value)
        if not text.strip() or len(text) > longest:
            raise Refused(f"must have 1 to {longest:,} characters")
    except Refused as exc:
        raise ValidationError(subject, field, value, str(exc)) from None
    return text


def checked_whole(subject: str, field: str | None, value: Any, least: int, most: int | None = None) -> int:
    """An integer within these limits; a bool is refused."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise ValidationError(subject, field, value, f"must be a whole number {limits}")
    return value


def checked_part(owner: str, name: str | None, part: Part, kind: type, hint: str) -> Part:
    """The component, if it has the right type; checked at construction instead of first use."""
    if not isinstance(part, kind):
        raise ValidationError(owner, name, part, f"must be {hint}")
    return part


def checked_prose(subject: str, field: str, value: Any) -> str:
    """A possibly empty text outside of a record, validated by the same rules."""
    try:
        text = check_text(value)
        if len(text) > LONGEST_TEXT:
            raise Refused(f"must have at most {LONGEST_TEXT:,} characters")
    except Refused as exc:
        raise ValidationError(subject, field, value, str(exc)) from None
    return text


def checked_names(subject: str, field: str, given: Any, longest: int = LONGEST_NAME) -> list[str]:
    """Names or ids, given as one text or as several."""
    if isinstance(given, str):
        return [checked_name(subject, field, given, longest)]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise ValidationError(subject, field, given, "must be a list of texts, or one of them")
    return [checked_name(subject, field, each, longest) for each in given]


def same_name(name: str) -> str:
    """The normalized form of a name, equal for all spellings that differ in case or Unicode encoding."""
    return unicodedata.normalize("NFKC", name).casefold()


def spellings(name: str) -> tuple[str, ...]:
    """The common spellings of an agent's name that differ in case only: helena, Helena, HELENA."""
    written = (name, name.lower(), name.upper(), name.capitalize(), name.title())
    # A few letters become two in another case.
    return tuple(dict.fromkeys(each for each in written if len(each) <= LONGEST_NAME))


Name = Annotated[str, NotEmpty(), MaxLength(LONGEST_NAME)]
"""An identifier or short label; short enough that three of them fit one index entry on every store."""

Label = Annotated[str, MaxLength(LONGEST_NAME)]
"""A short label that may be empty."""

Text = Annotated[str, NotEmpty(), MaxLength(LONGEST_TEXT)]
"""The main text of a record: never empty, at most 1,048,576 characters."""

Prose = Annotated[str, MaxLength(LONGEST_TEXT)]
"""Text that may be empty."""

Path = Annotated[str, MaxLength(500)]
"""A file system path or address, short enough to be indexed."""

Share = Annotated[float, Range(0.0, 1.0)]
"""A number between 0 and 1: a confidence, a rate, a strength."""

Count = Annotated[int, Range(0)]
"""A number of occurrences."""

Weight = Annotated[float, Range(0.0)]
"""A decayed count of evidence, in which older evidence counts less."""

TagSet = Annotated[Sequence[str], Tags()]
"""A set of tags; kept as a sorted tuple."""

Strings = Sequence[str]
"""A list of texts; kept as a tuple."""

Floats = Annotated[Sequence[float], Embedding()]
"""An embedding; kept as a `Vector`."""
