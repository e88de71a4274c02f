"""Key names of secrets in texts, JSON keys and arguments, in many languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from alma.lazy import lazy_regex
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


class Sort(StrEnum):
    """How strongly a name indicates a secret value."""

    PASSWORD = "password"
    TOKEN = "token"
    # "pass" is more often about tests than about secrets.
    PASS = "pass"
    # Only numbers; other pins are not secrets.
    PIN = "pin"


@dataclass(frozen=True, slots=True)
class Name:
    """Where in a text the name of a secret is, and of which sort it is."""

    start: int
    end: int
    sort: Sort


# Words before "key" that make it a secret, and before "pass" that make it a password.
_OF_A_KEY = (
    r"(?:api|access|auth|private|secret|account|encryption|decryption|signing|master|service|storage|subscription"
    r"|shared[ _-]?access|client|session|bot|webhook|license|app|application|consumer|ssh|gpg|pgp|hmac|wi-?fi|wpa2?"
    r"|pre-?shared|recovery|activation|admin|root|sas|secret\.|access\.)[ _-]?"
)
_OF_A_PASS = (
    r"(?:(?<![a-z])my|db|database|root|admin|user|smtp|imap|e?mail|ftp|redis|mysql|mongo|pg|postgres|login|ldap|bind|vpn"
    r"|ssh|wifi|sudo|svc|proxy|app|api|web|http|basic|jdbc|sql|become|ansible|store|key|truststore|keystore)[_-]?"
)
_BEFORE_KEY = lazy_regex(_OF_A_KEY + r"\Z")
_BEFORE_PASS = lazy_regex(_OF_A_PASS + r"\Z")
_LONGEST_BEFORE = 16

# The stem of a word is searched first; then the rest of the word must follow.
_ASCII_WORDS: tuple[tuple[str, Sort, str], ...] = (
    ("pass", Sort.PASSWORD, r"pass(?:[ _-]?(?:words?|phrases?|wrod)|wd|code|wort|word|ord(?:et)?(?![a-z]))"),
    ("pass", Sort.PASSWORD, r"(?<=mot de )passe|(?<=mot_de_)passe|(?<=palavra-)passe|(?<=palavra )passe"),
    ("pass", Sort.PASS, r"pass(?![a-z])"),
    ("pw", Sort.PASSWORD, r"pwd|(?<![a-z])pw\b|(?<![a-z])pword\b"),
    ("psw", Sort.PASSWORD, r"(?<![a-z])pswd?\b"),
    ("psk", Sort.PASSWORD, r"(?<![a-z])psk\b"),
    ("pin", Sort.PIN, r"\bpin\b"),
    ("secret", Sort.TOKEN, r"secret(?: (?:word|code)\b)?"),
    ("token", Sort.TOKEN, r"token"),
    ("cred", Sort.TOKEN, r"credentials?|(?<![a-z])creds?\b"),
    ("key", Sort.TOKEN, r"key"),
    ("auth", Sort.TOKEN, r"(?<![\w-])auth(?=\\?\"\s?:\s?\\?\"[A-Za-z0-9+/]{12,}={0,2}\\?\")"),
    # SMTP_AUTH is more often a method than a secret.
    ("auth", Sort.TOKEN, r"(?<=_)auth(?=\s?[=:]\s?[\"']?(?=[^\s\"']*\d)(?=[^\s\"']*[a-z])[^\s\"']{12})"),
    ("api", Sort.TOKEN, r"api[ -]?(?:schlüssel|sleutel|nyckeln?|klucz|ключ|anahtarı)"),
    (
        "api",
        Sort.TOKEN,
        r"(?:(?<=clé )|(?<=clé d')|(?<=clave )|(?<=clave de )|(?<=chiave )|(?<=chave )|(?<=chave de ))api",
    ),
    ("kennw", Sort.PASSWORD, r"kennwort"),
    ("contrase", Sort.PASSWORD, r"contrase(?:ñ|n|ny)a"),
    ("senha", Sort.PASSWORD, r"senha"),
    ("wachtw", Sort.PASSWORD, r"wachtwoord"),
    ("kod", Sort.PASSWORD, r"(?<=adgangs)koden?|kodeord(?:et)?"),
    ("cod", Sort.PASSWORD, r"(?<=zugangs)code|code d['’]accès|codice di accesso|código de acceso"),
    ("clave", Sort.PASSWORD, r"clave (?:de (?:acceso|seguridad)|secreta)"),
    ("chave", Sort.PASSWORD, r"chave (?:de (?:acesso|segurança)|secreta)"),
    ("sandi", Sort.PASSWORD, r"(?<=kata )sandi(?:nya)?"),
    ("salasana", Sort.PASSWORD, r"salasana"),
    ("haslo", Sort.PASSWORD, r"\bhaslo\b"),
    ("heslo", Sort.PASSWORD, r"\bheslo\b"),
    ("parol", Sort.PASSWORD, r"\bparol(?:a|ă|e)\b"),
    ("parool", Sort.PASSWORD, r"\bparool\b"),
    ("lozink", Sort.PASSWORD, r"lozinka"),
    ("sifre", Sort.PASSWORD, r"\bsifre(?:si)?\b"),
    ("mdp", Sort.PASSWORD, r"(?<![a-z])mdp\b"),
)
_OTHER_WORDS: tuple[tuple[str, Sort, str], ...] = tuple(
    (word, Sort.PASSWORD, f"{word}(?:si|et)?" if word in ("şifre", "lösenord") else word)
    for word in (
        *(
            "lösenord",
            "лозинка",
            "รหัสผ่าน",
            "hasło",
            "jelszó",
            "şifre",
            "пароль",
            "парола",
            "κωδικός",
            "slaptažodis",
            "mật khẩu",
            "סיסמה",
        ),
        *("كلمة المرور", "كلمة السر", "पासवर्ड", "密码", "密碼", "口令", "パスワード", "비밀번호", "암호"),
    )
)


Words = tuple[tuple[Sort, re.Pattern[str]], ...]


def _compiled(words: tuple[tuple[str, Sort, str], ...]) -> tuple[tuple[str, Words], ...]:
    """The words by stem."""
    stems = dict.fromkeys(stem for stem, _, _ in words)
    return tuple(
        (stem, tuple((sort, re.compile(word)) for other, sort, word in words if other == stem)) for stem in stems
    )


_STEMS = _compiled(_ASCII_WORDS)
_STEMS_OF_ALL = _compiled((*_ASCII_WORDS, *_OTHER_WORDS))


# Names of counts, page tokens and CSRF tokens, which are not secrets.
_COUNTED = lazy_regex(
    r"(?:max|min|num|n|total|prompt|completion|input|output|count|used|next|csrf|page)[_-]?token", re.IGNORECASE
)
_NAME_BEFORE = lazy_regex(r"[a-z0-9_.-]*\Z")
# Suffixes of the names of secrets: DB_PASSWORD_PROD, token2, apiKeyValue.
SUFFIX = r"(?:[_-]?(?:prod|production|dev|test|staging|live|main|default|value|data|b64|base64|hash|base)|_?\d{1,2})?"
_WHOLE_NAME_ENDS = lazy_regex(rf"{SUFFIX}(?:\s?\([^()]{{0,40}}\))?[\s:=]*\Z")
_LONGEST_NAME = 100


def names_in(folded: str) -> Iterator[Name]:
    """The names of secrets in a lower-case text."""
    for stem, words in _STEMS if folded.isascii() else _STEMS_OF_ALL:
        if stem in folded:
            yield from _names_by(stem, words, folded)


def _names_by(stem: str, words: Words, folded: str) -> Iterator[Name]:
    at = folded.find(stem)
    while at >= 0:
        name = _name_at(folded, at, words)
        if name is not None:
            yield name
        at = folded.find(stem, at + len(stem))


def _name_at(folded: str, at: int, words: Words) -> Name | None:
    for sort, word in words:
        match = word.match(folded, at)
        if match is None:
            continue
        before = max(0, at - _LONGEST_BEFORE)
        if match[0] == "key" and _BEFORE_KEY.search(folded, before, at) is None:
            return None
        if sort is Sort.PASS and _BEFORE_PASS.search(folded, before, at) is not None:
            sort = Sort.PASSWORD
        elif sort is Sort.PASS and _goes_on(folded, at):
            return None
        return Name(at, match.end(), sort)
    return None


def _goes_on(folded: str, at: int) -> bool:
    """Whether a longer name ends here, as in first_pass; the dashes of an argument are not part of it."""
    before = folded[max(0, at - 3) : at]
    return before[-1:].isalnum() or (before[-1:] in ("_", "-") and before.lstrip() not in ("-", "--"))


def counts(folded: str, name: Name) -> bool:
    """Whether this names a number of tokens, or a token that is not secret."""
    before = _NAME_BEFORE.search(folded, max(0, name.start - 40), name.start)
    return before is not None and _COUNTED.match(f"{before[0]}{folded[name.start : name.start + 10]}") is not None


@lru_cache(maxsize=4096)
def sort_of(name: str) -> Sort | None:
    """The sort of a key, field or argument name; None where it does not name a secret."""
    folded = name.lower()
    if len(name) > _LONGEST_NAME or _COUNTED.match(folded) is not None:
        return None
    found = [each.sort for each in names_in(folded) if _WHOLE_NAME_ENDS.match(folded, each.end) is not None]
    return min(found, key=_BY_STRENGTH.index, default=None)


_ENGLISH = ("pass", "pw", "psw", "psk", "pin", "secret", "token", "cred", "key", "auth", "api")


def is_english(folded: str, name: Name) -> bool:
    """Whether this is a name of secrets in English, or in code."""
    return folded.startswith(_ENGLISH, name.start)


_BY_STRENGTH = (Sort.PASSWORD, Sort.TOKEN, Sort.PIN, Sort.PASS)


# Names of containers of secrets, in addition to the names of secrets.
_CARRIER = lazy_regex(
    r"(?:^|[_\-.\s])(?:auth|authorization|cookies?|otp|totp|cvv2?|cvc2?|ssn|mnemonic"
    r"|(?:seed|recovery|backup)[ _-](?:phrase|words?)"
    r"|(?:verification|security|confirmation|login|2fa|mfa|one[ _-]time|backup|access)[ _-](?:code|password))$",
    re.IGNORECASE,
)
_NUMBER = lazy_regex(r"\d(?:[ -]?\d){2,7}$")
_SEED = lazy_regex(r"(?:[a-z]{3,8}[ \t,]+){11,23}[a-z]{3,8}$")
_SESSION = lazy_regex(r"[\w.-]+=\S{8,}")
_WORD_START = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class KeyName:
    """The meaning of a key name for its value."""

    name: str
    sort: Sort | None
    is_plural: bool = False

    def is_secret(self, text: str) -> bool:
        """Whether the value under this name is a secret."""
        if self.is_plural:
            # "tokens" and "secrets" are often counts or lists of names.
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
def key_name(name: str) -> KeyName | None:
    """The meaning of a key name for its value; None where it does not name a secret."""
    sort = sort_of(name)
    if sort is None and name[-1:] in ("s", "S") and (sort := sort_of(name[:-1])) in (Sort.TOKEN, Sort.PASSWORD):
        return KeyName(name, sort, is_plural=True)
    if sort is None and (len(name) > 100 or _CARRIER.search(_WORD_START.sub("_", name)) is None):
        return None
    return KeyName(_WORD_START.sub("_", name), sort)


def is_secret_name(name: str) -> bool:
    """Whether the value under this name is a secret, independent of its form."""
    return sort_of(name) in (Sort.PASSWORD, Sort.TOKEN, Sort.PIN)
