"""What two names, types or ids must have in common to be the same."""

from __future__ import annotations

import hashlib
import re
import unicodedata


def digest(*parts: str) -> str:
    """An id that follows from the parts alone."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def entity_id(entity_type: str, name: str) -> str:
    """The id that follows from a type and a name."""
    return digest(type_key(entity_type), name_key(name))


def name_key(name: str) -> str:
    """What two names must have in common to be the same."""
    folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return folded if 0 < len(folded) <= 200 else digest(name)


def type_key(name: str) -> str:
    """What two types must have in common to be the same."""
    return "_".join(re.split(r"[\s_]+", name.casefold().strip()))
