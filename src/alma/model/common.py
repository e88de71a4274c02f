"""The annotations that records share: a name, a text, a share of one, a count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from alma.model.fields import LONGEST_NAME, Embedding, MaxLength, NotEmpty, Range, Tags

LONGEST_TEXT = 1 << 20

Name = Annotated[str, NotEmpty(), MaxLength(LONGEST_NAME)]
"""An identifier or short label; short enough that three of them fit one index entry on every store."""

Label = Annotated[str, MaxLength(LONGEST_NAME)]
"""A short label that may be empty."""

Text = Annotated[str, NotEmpty(), MaxLength(LONGEST_TEXT)]
"""What a record is about: never empty, at most a mebibyte of characters."""

Prose = Annotated[str, MaxLength(LONGEST_TEXT)]
"""Text that may be empty."""

Path = Annotated[str, MaxLength(500)]
"""A file system path or address, short enough to be indexed."""

Share = Annotated[float, Range(0.0, 1.0)]
"""A number between 0 and 1: a confidence, a rate, a strength."""

Count = Annotated[int, Range(0)]
"""How often something happened."""

TagSet = Annotated[Sequence[str], Tags()]
"""A set of tags; kept as a sorted tuple."""

Strings = Sequence[str]
"""A list of texts; kept as a tuple."""

Floats = Annotated[Sequence[float], Embedding()]
"""An embedding; kept as a `Vector`."""
