"""Values: what may be a secret where the name of one stands, and what is a placeholder, code or a word about it."""

from __future__ import annotations

import re

from alma.redaction.secrets import MARK, is_placeholder, looks_random
from alma.text.tokens import STOP_WORDS

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
# What stands behind the name of a secret and is none: types, states and the beginnings of sentences.
_NO_VALUES = frozenset(_WORDS.split())
_CODE = re.compile(
    r"(?:ConvertTo-|Get-|New-|os\.|self\.|process\.env|env\.|config\.|settings\.|secrets\.|request\.|args\.|params\.|props\.|this\.|vault:|ref:)"
    r"|\w*\(|[\w.]+\[|\w+\(.*\)$|[A-Za-z_]\w*\.[A-Za-z_]\w*\("
)
# The name of a variable that holds the secret.
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_PLAIN_WORD = re.compile(r"[^\W\d]+(?:\.[^\W\d]+)*$")
_UNIT = (
    r"(?:%|[kmgt]?i?b|[kmgt]|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|months?|y|yrs?|years?|x"
    r"|st|nd|rd|th|px|bits?|bytes?|chars?|characters?|digits?|letters?|words?|symbols?|numbers?|signs?|times?|tokens?"
    r"|factor|step|part|of|way|stellig\w*|zeichen|tage?|stunden|minuten)?"
)
# Numbers with a unit, versions, dates, algorithms and formats, which have digits and letters as well.
_TECHNICAL = re.compile(
    r"(?:base\d+|sha-?\d+|md5|utf-?\d+|[rheps]{1,2}s?\d{3}|o?auth-?\d(?:\.\d)?|v\d+|ipv\d|x\.?509|aes-?\d+|rsa-?\d*|bcrypt"
    rf"|argon2\w*|pbkdf2|saml2?|\d{{4}}-\d\d-\d\d\S*|\d+(?:[.,:]\d+)*(?:[-–+]\d+)?[ -]?{_UNIT})(?:[-_.,;:!?)].*)?$",
    re.IGNORECASE,
)
_PIN = re.compile(r"\d(?:[ -]?\d){3,11}$")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+$")
_SLUG = re.compile(r"[a-z]+(?:[-_./][a-z]+)*[-_]?v?\d{0,3}(?:\.\d+)?$")
_SIGN_INSIDE = re.compile(r"\w[!@#$%^&*+~?]+\w")
_OWN = frozenset(["i", "me", "mine", "my", "myself", "our", "ours", "your", "yours", "his", "her", "hers", "their"])
_OF_RULES = frozenset(("required", "invalid", "field", "password", "see", "use", "enter", "least", "characters"))
_OF_SENTENCES = (STOP_WORDS - _OWN) | _OF_RULES
_SHORTEST_PHRASE = 8


def may_be(value: str) -> bool:
    """Whether this could be a secret at all, and is no placeholder, path, address, code or word about secrets."""
    return not (
        value.startswith((MARK, "/", "./", "../", "~/", "http://", "https://"))
        # Rules of forms are put together so: required|min:8.
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
    """A number with its unit, a version, a date, an algorithm: digits and letters, and no secret."""
    return _TECHNICAL.match(value) is not None


def is_pin(value: str) -> bool:
    """A number that is as long as those one knows by heart."""
    return _PIN.match(value) is not None


def is_no_word(value: str) -> bool:
    """Whether digits and letters are mixed as nobody writes a word, a number or a version."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not is_technical(value)


def is_password(value: str) -> bool:
    """Whether this looks made up: mixed, or with signs where words have none."""
    if is_technical(value) or _ADDRESS.match(value) is not None:
        return False
    return looks_random(value) or (len(value) >= 6 and _SIGN_INSIDE.search(value) is not None)


def is_unlike_any_name(value: str) -> bool:
    """Whether this can be no name of a product or a test either: it has signs, or is long and mixed."""
    if not is_no_word(value):
        return False
    return any(c in "!@#$%^&*+~?" for c in value) or (len(value) >= 16 and " " not in value)


def is_put_together(value: str) -> bool:
    """Whether this has all that rules for passwords ask for: capitals, small letters, digits, and signs inside."""
    sorts = (str.isupper, str.islower, str.isdigit, "!#$%^&*~".__contains__)
    return all(any(map(sort, value)) for sort in sorts) and _SIGN_INSIDE.search(value) is not None


def is_slug(value: str) -> bool:
    """Whether this is how things are named: small words with signs between them, and a number or version at the end."""
    return _SLUG.match(value) is not None


def is_joined_phrase(value: str, least: int = 3) -> bool:
    """Whether words that are joined by signs are a secret, as correct-horse-battery-staple, and name or say nothing."""
    words = _BETWEEN_WORDS.split(value.lower())
    return len(words) >= least and all(len(word) >= 3 and word.isalpha() for word in words) and _say_nothing(words)


def is_spoken_phrase(value: str) -> bool:
    """The same of words with spaces between them."""
    return _say_nothing(value.lower().split())


def _say_nothing(words: list[str]) -> bool:
    """Whether words are put together as no sentence or name does; one of them may be a word about secrets."""
    strange = [word for word in words if word not in _NO_VALUES]
    return len(strange) >= 3 and not any(word in _OF_SENTENCES or word in _OF_KEEPERS for word in strange)


_BETWEEN_WORDS = re.compile(r"[-_.]")
# Of whom or what a secret is, and where it is to be found.
_KEEPERS = """
    cred creds credential credentials key keys pass passwd pwd app db database user admin root service account auth api
    login test testing prod production staging dev config managed manager wiki page docs readme file ask lead team
    minimum maximum words length case sensitive based only
"""
_OF_KEEPERS = frozenset(_KEEPERS.split())


def is_phrase(value: str) -> bool:
    """Whether words in a row are a secret, and not a sentence about one, as error messages are."""
    words = [word.strip(".,;:!?").lower() for word in value.split()]
    return len(value) >= _SHORTEST_PHRASE and not any(word in _OF_SENTENCES for word in words)
