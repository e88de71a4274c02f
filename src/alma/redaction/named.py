"""Secrets by name: the value of an assignment, a JSON key or a sentence that says what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from alma.model.text import STOP_WORDS
from alma.redaction.secrets import MARK, Span, is_placeholder, looks_random

# The word in the languages that people write it in, and what programs shorten it to.
_PASSWORD = (
    r"pass[ _-]?(?:word|phrase)|pass(?:wd|code)|pwd|\bpin\b|(?<![A-Za-z])pw\b|(?:(?<![A-Za-z])my|db|database|root|admin"
    r"|user|smtp|imap|e?mail|ftp|redis|mysql|mongo|pg|postgres|login|ldap|bind|vpn|ssh|wifi|sudo|svc|proxy)[_-]?pass"
    r"(?![A-Za-z])|passwort|kennwort|contrase(?:ñ|n)a|mot[ _]de[ _]passe|senha|wachtwoord|lösenord|hasło|пароль"
    r"|密码|密碼|パスワード|비밀번호"
)
_STRONG = (
    r"secret|token|credentials?|api[ _-]?key|(?:access|auth|private|secret|account|encryption|signing|master|service"
    r"|storage|subscription|shared[ _-]?access|client|session|bot|webhook|license)[ _-]?(?:key|secret|token)"
)
# What may stand behind the word and leave it a secret: DB_PASSWORD_PROD, token2, apiKeyValue.
_SUFFIX = r"(?:[_-]?(?:prod|production|dev|test|staging|live|main|default|value|b64|base64|hash|base)|_?\d{1,2})?"
# An ampersand belongs to a value unless the next parameter of a query, or the next command, begins with it.
_SIGN = r"""(?:[^\s,;"'`&<>]|&(?![\w.-]{0,64}=|&|\s|$))"""
_VALUE = (
    r"""(?P<quote>\\?["'`])(?P<quoted>(?:(?!(?P=quote))[^\n]){1,4096}?)(?P=quote)"""
    rf"""|(?P<bare>{_SIGN}{{3,4096}})"""
)
# How a value follows its name: in code, in JSON, in an address, in a table; bold, and with the type between them.
_QUOTE = r"(?:\\?[\"'`]|%22|\*{1,3}|_{2})?"
_TYPE = r"(?:\s?:\s?[A-Za-z_&][\w.&*\[\]|<>?]{0,30}(?=\s?=))?"
_ASSIGNED = re.compile(
    rf"(?:(?P<password>{_PASSWORD})|{_STRONG}){_SUFFIX}{_QUOTE}{_TYPE}(?P<gap>\s{{0,4}})"
    rf"(?P<by>=>|:=|==?|:|：|%3[ad]|\||->|→|–|-(?=\s))(?P<after>[^\S\n]{{0,4}})(?:%22|\*{{1,3}})?(?:{_VALUE})"
)
# Signs that part a name and a value as often as they part anything else.
_LOOSE = ("|", "->", "→", "–", "-")
_COLONS = (":", "：")
_SHORTEST_SAID = 6
_FLAG = re.compile(rf"(?<!\S)--?(?:{_PASSWORD}|{_STRONG})[= ]\s?(?P<bare>{_SIGN}{{3,}})")
_SAID = re.compile(
    r"\b(?P<name>pass ?(?:word|phrase)|passcode|secret(?: key)?|(?:api|access|auth|secret) (?:key|token)|token"
    r"|pin(?: code)?)(?: for [\w .@-]{1,40}?| to [\w .@-]{1,40}?| of [\w .@-]{1,40}?)?\s+(?:is|was|will be|=)\s*:?\s+"
    r"""(?:(?P<quote>["'`])(?P<quoted>[^\n]{3,200}?)(?P=quote)|(?P<bare>[^\s,;"'`<>]{4,200}))"""
)
# "log in with the password hunter2": without a verb only a word that is none gives itself away.
_TOLD = re.compile(
    r"\b(?:with|and|using|the|my|her|his|their|our|your) (?:password|passphrase|pwd)\s+(?P<bare>[^\s,;\"'`<>]{6,200})"
)
# A key or token that follows its name without a sign between them: long, and of letters and digits alone.
_BESIDE = re.compile(
    r"\b(?:(?:api|access|auth|secret)[ _-]?(?:key|token)|token)\s+"
    r"(?P<bare>(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{12,200})(?![\w-])"
)
# "hunter2 is the password".
_TOLD_AFTER = re.compile(
    r" (?:is|was|as) (?:the|my|her|his|their|our|your) (?:[\w-]+ )?(?:password|passphrase|pin|api key|token)"
    r"(?=[ \t]*(?:[.,;!?)\n]|$|for\b|to\b|of\b))"
)
_NAME_BEFORE = re.compile(r"[a-z0-9_.-]*\Z")
_LAST_WORD = re.compile(r"(?<![^\s(])[^\s,;\"'`<>(]{6,200}\Z")
# A name that ends in the word of a secret.
_SECRET_NAME = re.compile(rf"(?:^|.*[^A-Za-z0-9]|.*?)(?:(?P<password>{_PASSWORD})|{_STRONG}){_SUFFIX}$", re.IGNORECASE)
_PLURAL_OR_COUNT = re.compile(
    r"(?:max|min|num|n|total|prompt|completion|input|output|count|used|next|csrf|page)[_-]?token", re.IGNORECASE
)

_WORDS = """
    none null nil true false undefined required optional string str text bytes bool boolean int integer number any
    field input hidden missing empty invalid incorrect wrong correct expired valid needed given set unset changed reset
    yes no here below above unknown type object varchar char secret password token value default
    secretstr optional[str] str|none the a an is was must should may can will not never
    erforderlich vergessen falsch obligatoire requis oublié requerido requerida obligatorio olvidada ошибка неверный
"""
# What stands behind the name of a secret and is none: types, states and the beginnings of sentences.
_NO_VALUES = frozenset(_WORDS.split())
_CODE = re.compile(
    r"(?:os\.|self\.|process\.env|env\.|config\.|settings\.|secrets\.|request\.|args\.|params\.|props\.|this\.|vault:|ref:)"
    r"|\w*\(|[\w.]+\[|\w+\(.*\)$|[A-Za-z_]\w*\.[A-Za-z_]\w*\("
)
# The name of a variable that holds the secret.
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_]+)*$")
_TECHNICAL = re.compile(
    r"(?:base\d+|sha-?\d+|md5|utf-?\d+|[rheps]{1,2}s?\d{3}|oauth\d?|v\d+|ipv\d|x\.?509|aes-?\d+|rsa-?\d*|bcrypt|argon2\w*"
    r"|pbkdf2|\d+(?:[.,]\d+)?[a-z%-]*|\d+-\w+)(?:[-_.,;:!?)].*)?$",
    re.IGNORECASE,
)
_TRAILING = ".,;:)]}*"
_HINT_WORDS = """
    pass pwd pw secret token key credential pin kennwort contrase senha wachtwoord lösenord hasło пароль 密码 密碼
    パスワード 비밀번호
"""
_HINTS = tuple(_HINT_WORDS.split())


@dataclass(frozen=True, slots=True)
class _Found:
    """A value that stands by the name of a secret; the pattern saw small letters, the value has its own."""

    match: re.Match[str]
    text: str
    group: str

    @property
    def value(self) -> str:
        value = self.text[self.match.start(self.group) : self.match.end(self.group)]
        return value if self.quoted else value.rstrip(_TRAILING)

    @property
    def quoted(self) -> bool:
        return self.group == "quoted"

    def span(self, kind: str) -> Span:
        start = self.match.start(self.group)
        return Span(start, start + len(self.value), kind)


def named_spans(text: str, folded: str) -> Iterator[Span]:
    """The values that stand by the name of a secret; `folded` is the text in small letters."""
    # Nearly every text ends here, so it is no generator that looks.
    for hint in _HINTS:
        if hint in folded:
            break
    else:
        return
    if len(folded) != len(text):
        # A few letters become two when they are made small, and what is found must be where it is.
        folded = "".join(small if len(small := c.lower()) == 1 else c for c in text)
    for match in _ASSIGNED.finditer(folded):
        if _is_assigned_secret(found := _found(match, text), folded):
            yield found.span("password" if match["password"] else "secret")
    for match in _FLAG.finditer(folded):
        found = _found(match, text)
        if _may_be(found.value) and not _PLAIN_WORD.match(found.value):
            yield found.span("secret")
    for pattern in (_SAID, _TOLD, _BESIDE):
        yield from (found.span("secret") for found in _all(pattern, text, folded) if _is_said_secret(found))
    yield from _told_after(text, folded)


def _all(pattern: re.Pattern[str], text: str, folded: str) -> Iterator[_Found]:
    return (_found(match, text) for match in pattern.finditer(folded))


def _found(match: re.Match[str], text: str) -> _Found:
    return _Found(match, text, "quoted" if match.groupdict().get("quoted") is not None else "bare")


def _told_after(text: str, folded: str) -> Iterator[Span]:
    for match in _TOLD_AFTER.finditer(folded):
        word = _LAST_WORD.search(text, max(0, match.start() - 201), match.start())
        if word is not None and _may_be(word[0]) and _is_no_word(word[0]):
            yield Span(word.start(), word.end(), "secret")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret, whatever it looks like."""
    return len(name) <= 100 and _PLURAL_OR_COUNT.match(name) is None and _SECRET_NAME.match(name) is not None


def may_be_secret(value: str) -> bool:
    """Whether the value of a JSON key that names a secret is one, and not a placeholder or a word about it."""
    return len(value) >= 3 and _may_be(value) and " " not in value.strip()


def _is_assigned_secret(found: _Found, folded: str) -> bool:
    match, value = found.match, found.value
    if _counts(folded, match.start()) or not _may_be(value):
        return False
    if match["by"] in _LOOSE:
        return bool(match["password"]) and len(value) >= 5 and looks_random(value) and not _TECHNICAL.match(value)
    if found.quoted:
        return len(value) >= 3 and (" " not in value.strip() or (bool(match["password"]) and not _is_prose(value)))
    tight = not match["gap"] and not match["after"]
    if match["by"] not in _COLONS and tight:
        return len(value) >= (3 if match["password"] else 6) and (bool(match["password"]) or not value.isdigit())
    if _PLAIN_WORD.match(value):
        # Said or spelled out: a plain word is the secret only where nothing follows it on the line.
        return bool(match["password"]) and len(value) >= 5 and _ends_line(folded, match.end()) and match["by"] != "=="
    if value.isdigit():
        return bool(match["password"]) and len(value) >= 4
    return looks_random(value) and len(value) >= (5 if match["password"] else 8) and not _TECHNICAL.match(value)


def _counts(folded: str, start: int) -> bool:
    """Whether the name that goes on here is one of a number of tokens, or of a token that is no secret."""
    before = _NAME_BEFORE.search(folded, max(0, start - 40), start)
    return before is not None and _PLURAL_OR_COUNT.match(f"{before[0]}{folded[start : start + 10]}") is not None


def _is_said_secret(found: _Found) -> bool:
    value, name = found.value, found.match.groupdict().get("name") or ""
    if not _may_be(value):
        return False
    if found.quoted:
        return " " not in value.strip() or (name.startswith("pass") and not _is_prose(value))
    if value.isdigit():
        return name.startswith("pin")
    return len(value) >= _SHORTEST_SAID and _is_no_word(value)


def _is_no_word(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not _TECHNICAL.match(value)


def _is_prose(value: str) -> bool:
    """Whether this is a sentence about a password, as error messages are, and not one itself."""
    words = value.lower().split()
    return any(word in STOP_WORDS or word in ("required", "invalid", "field", "password") for word in words)


def _may_be(value: str) -> bool:
    return not (
        value.startswith((MARK, "/", "./", "../", "~/", "http://", "https://"))
        or value.strip().lower() in _NO_VALUES
        or is_placeholder(value.strip())
        or _CODE.match(value) is not None
        or _CONSTANT.fullmatch(value) is not None
    )


def _ends_line(text: str, end: int) -> bool:
    return text[end : end + 2].strip(" \t" + _TRAILING + "\"'`") == "" or text[end : end + 1] in "\n,;"
