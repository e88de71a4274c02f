"""Checks on values: whether they may be secrets, or are placeholders, code or words about secrets."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from alma.lazy import lazy_regex
from alma.text.tokens import STOP_WORDS

MARK = "[redacted:"
"""How every mask begins."""

MASKS = lazy_regex(re.escape(MARK) + r"([\w-]{0,100})\]")
"""A mask, with the kind of secret."""

_WORDS = """
    none null nil true false undefined required optional string str text bytes bool boolean int integer number any
    field input hidden missing empty invalid incorrect wrong correct expired valid needed given set unset changed reset
    yes no here below above unknown type object varchar char secret password token value default
    secretstr optional[str] str|none the a an is was must should may can will not never n/a tbd todo
    bearer basic jwt opaque oauth oauth2 oidc saml uuid pending active inactive enabled disabled revoked rotated
    generated encrypted hashed masked stored present absent provided configured ok okay pass passed fail failed same
    include omit same-origin redacted
    1password lastpass bitwarden keepass keepassxc dashlane keychain vault env environment keyring prompt stdin
    erforderlich vergessen falsch obligatoire requis oublié requerido requerida obligatorio olvidada ошибка неверный
    obrigatória obbligatoria verplicht wymagane keine aucun ninguno nessuno geen brak нет zurückgesetzt
"""
# Words after the name of a secret that are not values: types, states, beginnings of sentences.
_NO_VALUES = frozenset(_WORDS.split())
_CODE = lazy_regex(
    r"(?:ConvertTo-|Get-|New-|os\.|self\.|process\.env|env\.|config\.|settings\.|secrets\.|request\.|args\.|params\.|props\.|this\.|vault:|ref:)"
    r"|\w*\(|[\w.]+\[|\w+\(.*\)$|[A-Za-z_]\w*\.[A-Za-z_]\w*\("
)
# The name of a variable that holds the secret.
_CONSTANT = lazy_regex(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_PLAIN_WORD = lazy_regex(r"[^\W\d]+(?:\.[^\W\d]+)*$")
_UNIT = (
    r"(?:%|[kmgt]?i?b|[kmgt]|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|months?|y|yrs?|years?|x"
    r"|st|nd|rd|th|px|bits?|bytes?|chars?|characters?|digits?|letters?|words?|symbols?|numbers?|signs?|times?|tokens?"
    r"|factor|step|part|of|way|stellig\w*|zeichen|tage?|stunden|minuten)?"
)
# Numbers with a unit, versions, dates, algorithms and formats, which also mix digits and letters.
_TECHNICAL = lazy_regex(
    r"(?:base\d+|sha-?\d+|md5|utf-?\d+|[rheps]{1,2}s?\d{3}|o?auth-?\d(?:\.\d)?|v\d+|ipv\d|x\.?509|aes-?\d+|rsa-?\d*|bcrypt"
    rf"|argon2\w*|pbkdf2|saml2?|\d{{4}}-\d\d-\d\d\S*|\d+(?:[.,:]\d+)*(?:[-–+]\d+)?[ -]?{_UNIT})(?:[-_.,;:!?)].*)?$",
    re.IGNORECASE,
)
_PIN = lazy_regex(r"\d(?:[ -]?\d){3,11}$")
_ADDRESS = lazy_regex(r"[\w.+-]+@[\w-]+\.[\w.]+$")
_SLUG = lazy_regex(r"[a-z]+(?:[-_./][a-z]+)*[-_]?v?\d{0,3}(?:\.\d+)?$")
_SIGN_INSIDE = lazy_regex(r"\w[!@#$%^&*+~?]+\w")
_OWN = frozenset(["i", "me", "mine", "my", "myself", "our", "ours", "your", "yours", "his", "her", "hers", "their"])
_OF_RULES = frozenset(("required", "invalid", "field", "password", "see", "use", "enter", "least", "characters"))
_OF_SENTENCES = (STOP_WORDS - _OWN) | _OF_RULES
_SHORTEST_PHRASE = 8


_PLACEHOLDER = lazy_regex(
    r"""\$[{(].*|\$[A-Za-z_]\w*$|<[^>]*>?$|\{.*|%\(?\w*\)?[sdr]?$|[*•.x…X_-]+$|\[redacted:.*|@.*|"?$|'?$""", re.DOTALL
)


# Words of placeholders: your-api-key-here, change_me, REDACTED.
_STANDS_FOR = lazy_regex(
    r"(?:(?:your|insert|enter|replace|put|example|sample|dummy|placeholder|redacted|removed|changeme)(?![a-z])|"
    r"change[-_ ]?me(?![a-z])|"
    r"some(?=[-_ ]))(?:[-_ .]?(?:your|own|real|actual|new|the|my|me|with|secure|strong|very|long|api|access|auth|"
    r"client|secret|private|"
    r"public|db|database|user|app|service|key|token|password|passwd|pass|pwd|credentials?|value|string|here|in|prod|"
    r"production|"
    r"goes|\d{1,2})(?![a-z])){0,8}",
    re.IGNORECASE,
)


def may_be(value: str) -> bool:
    """Whether this could be a secret, and not a placeholder, path, address, code or a word about secrets."""
    return not (
        value.startswith((MARK, "/", "./", "../", "~/", "http://", "https://"))
        # Validation rules of forms have this syntax: required|min:8.
        or value.partition("|")[0].strip().lower() in _NO_VALUES
        or is_placeholder(value.strip())
        or _CODE.match(value) is not None
        or _CONSTANT.fullmatch(value) is not None
    )


def may_be_secret(value: str) -> bool:
    """Whether the value of a JSON key that names a secret is one, and not a placeholder or a word about it."""
    return len(value) >= 3 and may_be(value) and " " not in value.strip()


def is_plain_word(value: str) -> bool:
    """Letters alone, perhaps with dots between them."""
    return _PLAIN_WORD.match(value) is not None


def is_technical(value: str) -> bool:
    """A number with its unit, a version, a date, an algorithm: digits and letters, but not a secret."""
    return _TECHNICAL.match(value) is not None


def is_pin(value: str) -> bool:
    """Whether this is a number as long as a PIN."""
    return _PIN.match(value) is not None


def is_no_word(value: str) -> bool:
    """Whether digits and letters are mixed, and it is not a number with a unit or a version."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not is_technical(value)


def is_password(value: str) -> bool:
    """Whether this looks made up: mixed, or with signs where words have none."""
    if is_technical(value) or _ADDRESS.match(value) is not None:
        return False
    return looks_random(value) or (len(value) >= 6 and _SIGN_INSIDE.search(value) is not None)


def is_unlike_any_name(value: str) -> bool:
    """Whether this is mixed and has signs or is long, unlike names of products and tests."""
    if not is_no_word(value):
        return False
    return any(c in "!@#$%^&*+~?" for c in value) or (len(value) >= 16 and " " not in value)


def is_put_together(value: str) -> bool:
    """Whether this satisfies common password rules: upper case, lower case, digits, and signs inside."""
    sorts = (str.isupper, str.islower, str.isdigit, "!#$%^&*~".__contains__)
    return all(any(map(sort, value)) for sort in sorts) and _SIGN_INSIDE.search(value) is not None


def is_slug(value: str) -> bool:
    """Whether this is a slug: lower-case words with signs between them, and a number or version at the end."""
    return _SLUG.match(value) is not None


def is_joined_phrase(value: str, least: int = 3) -> bool:
    """Whether words joined by signs are a passphrase, as correct-horse-battery-staple, and not a name or sentence."""
    words = _BETWEEN_WORDS.split(value.lower())
    return len(words) >= least and all(len(word) >= 3 and word.isalpha() for word in words) and _say_nothing(words)


def is_spoken_phrase(value: str) -> bool:
    """The same for words with spaces between them."""
    return _say_nothing(value.lower().split())


def _say_nothing(words: list[str]) -> bool:
    """Whether the words are unusual for a sentence or name; one of them may be a word about secrets."""
    strange = [word for word in words if word not in _NO_VALUES]
    return len(strange) >= 3 and not any(word in _OF_SENTENCES or word in _OF_KEEPERS for word in strange)


_BETWEEN_WORDS = lazy_regex(r"[-_.]")
# Owners and places of secrets.
_KEEPERS = """
    cred creds credential credentials key keys pass passwd pwd app db database user admin root service account auth api
    login test testing prod production staging dev config managed manager wiki page docs readme file ask lead team
    minimum maximum words length case sensitive based only
"""
_OF_KEEPERS = frozenset(_KEEPERS.split())


def is_phrase(value: str) -> bool:
    """Whether a row of words is a secret, and not a sentence about one, as in error messages."""
    words = [word.strip(".,;:!?").lower() for word in value.split()]
    return len(value) >= _SHORTEST_PHRASE and not any(word in _OF_SENTENCES for word in words)


def is_placeholder(value: str) -> bool:
    """Whether this is a placeholder: ${VAR}, $(cat file), <password>, {{ token }}, ****, or a mask."""
    return _PLACEHOLDER.match(value) is not None or _STANDS_FOR.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Whether a word mixes digits and letters, or cases in its middle."""
    has_digit = any(c.isdigit() for c in value)
    has_letter = any(c.isalpha() for c in value)
    mixed_case = any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)
    return (has_digit and has_letter) or mixed_case or (has_digit and len(value) >= 16)


def mixed(value: str) -> bool:
    """Whether it has digits, upper-case and lower-case letters."""
    return all((any(c.isdigit() for c in value), any(c.isupper() for c in value), any(c.islower() for c in value)))


def is_basic(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def is_card_number(value: str) -> bool:
    digits = [int(c) for c in value if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) if i % 2 else d for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def has_long_run(value: str) -> bool:
    """Whether digits, or one long run of letters and digits, follow a prefix that ordinary words may have too."""
    body = value[3:]
    return sum(c.isdigit() for c in body) >= 3 or re.search(r"[A-Za-z0-9]{16}", body) is not None


def is_argument(value: str) -> bool:
    """Whether an argument of a command is a value, not a placeholder or path."""
    return not is_placeholder(value) and not value.startswith(("/", "./", "~"))


def is_made_up(value: str) -> bool:
    """Whether the word after a user name is a password."""
    return may_be_secret(value) and (is_password(value) or is_no_word(value))


def _holds_values(value: str) -> bool:
    """Whether any line of a Kubernetes secret has a value."""
    return not all(is_placeholder(line.partition(":")[2].strip()) for line in value.strip().split("\n"))


CHECKS: dict[str, Callable[[str], bool]] = {
    "argument": is_argument,
    "basic": is_basic,
    "card": is_card_number,
    "composed": is_put_together,
    "has_digit": lambda value: any(c.isdigit() for c in value),
    "kubernetes_data": _holds_values,
    "like_a_key": has_long_run,
    "made_up": is_made_up,
    "mixed": mixed,
    "no_name": is_unlike_any_name,
    "no_word": is_no_word,
    "not_number": lambda value: not value.isdigit(),
    "not_placeholder": lambda value: not is_placeholder(value),
    "passphrase": is_spoken_phrase,
    "possible": may_be_secret,
    "random": looks_random,
}
"""The names that `checks` of a rule may use."""
