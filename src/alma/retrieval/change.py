"""Change: whether a question asks how things were before they changed, or how they will be."""

from __future__ import annotations

import re
from functools import lru_cache

# In the past tense: what is kept in the old shed is asked of now. And who counts, wants to know of all.
_FORMER = re.compile(
    r"(?=.*\b(?:did|was|were|had)\b)"
    r"(?=.*\b(?:before|previous|previously|former|formerly|the old|used to|back then|at first)\b)"
    r"(?!.*\b(?:current|currently|now|how (?:many|much|long|often)|(?:conversation|chat|discussion|talk)s?)\b)",
    re.IGNORECASE | re.DOTALL,
)
_WILL_BE = re.compile(
    r"\b(?:will|shall|won['’]t|going to|\w+['’]ll|upcoming|tomorrow|in (?:the )?future|next \w+)\b", re.IGNORECASE
)
READ = 500
"""How much of a text is looked at: in a longer one a word of change is one of many."""


@lru_cache(maxsize=16)
def asks_for_former(question: str) -> bool:
    """Whether a question wants to know how things were before they changed."""
    return _FORMER.match(question[:READ]) is not None


@lru_cache(maxsize=16)
def asks_what_will_be(question: str) -> bool:
    """Whether it is asked how things will be, not how they are."""
    return _WILL_BE.search(question[:READ]) is not None
