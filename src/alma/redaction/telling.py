"""Telling names: keys of JSON and fields whose value is to be read together with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from alma.redaction.values import (
    is_no_word,
    is_password,
    is_phrase,
    is_pin,
    is_slug,
    is_unlike_any_name,
    may_be,
    may_be_secret,
)
from alma.redaction.words import Sort, sort_of

# Names of what carries secrets, beside the names of secrets themselves.
_CARRIER = re.compile(
    r"(?:^|[_\-.\s])(?:auth|authorization|cookies?|otp|totp|cvv2?|cvc2?|ssn|mnemonic"
    r"|(?:seed|recovery|backup)[ _-](?:phrase|words?)"
    r"|(?:verification|security|confirmation|login|2fa|mfa|one[ _-]time|backup|access)[ _-](?:code|password))$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d(?:[ -]?\d){2,7}$")
_SEED = re.compile(r"(?:[a-z]{3,8}[ \t,]+){11,23}[a-z]{3,8}$")
_SESSION = re.compile(r"[\w.-]+=\S{8,}")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Tells:
    """What a name says of the value below it."""

    name: str
    sort: Sort | None
    is_of_many: bool = False

    def is_secret(self, text: str) -> bool:
        """Whether the whole text is a secret, because it stands under this name."""
        if self.is_of_many:
            # "tokens" and "secrets" are counted, listed and named as often as written down.
            return len(text) >= 8 and may_be_secret(text) and is_no_word(text) and not is_slug(text)
        match self.sort:
            case Sort.PASSWORD:
                return may_be_secret(text) or (may_be(text) and _is_passphrase(text))
            case Sort.TOKEN:
                return may_be_secret(text)
            case Sort.PIN:
                return is_pin(text.strip())
            case Sort.PASS:
                return len(text) >= 6 and may_be_secret(text) and is_password(text) and not is_slug(text)
            case None:
                return may_be(text) and self._carries(text)

    def _carries(self, text: str) -> bool:
        last = re.split(r"[_\-.\s]", self.name.lower())[-1]
        if last in ("auth", "authorization"):
            return is_unlike_any_name(text) and " " not in text
        if last in ("cookie", "cookies"):
            return _SESSION.match(text) is not None or is_unlike_any_name(text)
        return (_NUMBER if last not in ("mnemonic", "phrase", "word", "words") else _SEED).match(text) is not None


def _is_passphrase(text: str) -> bool:
    return " " in text.strip() and "\n" not in text.strip() and len(text) <= 200 and is_phrase(text)


@lru_cache(maxsize=4096)
def telling(name: str) -> Tells | None:
    """What a name says of the value below it; None where it says nothing of secrets."""
    sort = sort_of(name)
    if sort is None and name[-1:] in ("s", "S") and (sort := sort_of(name[:-1])) in (Sort.TOKEN, Sort.PASSWORD):
        return Tells(name, sort, is_of_many=True)
    if sort is None and (len(name) > 100 or _CARRIER.search(_WORD_START.sub("_", name)) is None):
        return None
    return Tells(_WORD_START.sub("_", name), sort)


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret, whatever it looks like."""
    return sort_of(name) in (Sort.PASSWORD, Sort.TOKEN, Sort.PIN)
