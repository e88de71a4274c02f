"""Secrets by name: the value of an assignment, a JSON key or a sentence that says what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from alma.model.text import STOP_WORDS
from alma.redaction.secrets import MARK, Span, is_placeholder, looks_random

_PASSWORD = r"pass(?:word|wd|phrase|code)|pwd|\bpin\b"
_STRONG = (
    r"secret|token|credentials?|api[_-]?key|(?:access|auth|private|secret|account|encryption|signing|master|service|storage"
    r"|subscription|shared[_-]?access|client|session|bot|webhook|license)[_-]?(?:key|secret|token)"
)
# What may stand behind the word and leave it a secret: DB_PASSWORD_PROD, token2, apiKeyValue.
_SUFFIX = r"(?:[_-]?(?:prod|production|dev|test|staging|live|main|default|value|b64|base64|hash|base)|_?\d{1,2})?"
_NAME = rf"(?P<name>[A-Za-z0-9_.\-]*?(?:(?P<password>{_PASSWORD})|{_STRONG}){_SUFFIX})"
# An ampersand belongs to a value unless the next parameter of a query, or the next command, begins with it.
_SIGN = r"""(?:[^\s,;"'`&<>]|&(?![\w.-]{0,64}=|&|\s|$))"""
_VALUE = (
    r"""(?P<quote>\\?["'`])(?P<quoted>(?:(?!(?P=quote))[^\n]){1,4096}?)(?P=quote)"""
    rf"""|(?P<bare>{_SIGN}{{3,4096}})"""
)
_ASSIGNED = re.compile(
    rf"(?<![A-Za-z0-9]){_NAME}\\?[\"'`]?(?P<gap>\s{{0,4}})(?P<by>=>|:=|==?|:)(?P<after>[^\S\n]{{0,4}})(?:{_VALUE})",
    re.IGNORECASE,
)
_FLAG = re.compile(rf"(?<!\S)--?(?:{_PASSWORD}|{_STRONG})[= ]\s?(?P<bare>{_SIGN}{{3,}})", re.IGNORECASE)
_SAID = re.compile(
    r"\b(?:password|passphrase|passcode|secret(?: key)?|(?:api|access|auth|secret) (?:key|token)|token|pin(?: code)?)"
    r"(?: for [\w .@-]{1,40}?| to [\w .@-]{1,40}?| of [\w .@-]{1,40}?)?\s+(?:is|was|will be|=)\s*:?\s+"
    r"""(?:(?P<quote>["'`])(?P<quoted>[^\n]{3,200}?)(?P=quote)|(?P<bare>[^\s,;"'`<>]{6,200}))""",
    re.IGNORECASE,
)
# "log in with the password hunter2": without a verb only a word that is none gives itself away.
_TOLD = re.compile(
    r"\b(?:with|and|using|the|my|her|his|their|our|your) (?:password|passphrase|pwd)\s+(?P<bare>[^\s,;\"'`<>]{6,200})",
    re.IGNORECASE,
)
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
_TRAILING = ".,;:)]}"
_HINTS = ("pass", "pwd", "secret", "token", "key", "credential", "pin")


def named_spans(text: str, folded: str) -> Iterator[Span]:
    """The values that stand behind the name of a secret."""
    # Nearly every text ends here, so it is no generator that looks.
    for hint in _HINTS:
        if hint in folded:
            break
    else:
        return
    for match in _ASSIGNED.finditer(text):
        if _is_assigned_secret(match, text):
            yield _span(match, "password" if match["password"] else "secret")
    for match in _FLAG.finditer(text):
        if _may_be(match["bare"]) and not _PLAIN_WORD.match(match["bare"]):
            yield _span(match, "secret")
    for pattern in (_SAID, _TOLD):
        for match in pattern.finditer(text):
            if _is_said_secret(match):
                yield _span(match, "secret")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret, whatever it looks like."""
    return len(name) <= 100 and _PLURAL_OR_COUNT.match(name) is None and _SECRET_NAME.match(name) is not None


def may_be_secret(value: str) -> bool:
    """Whether the value of a JSON key that names a secret is one, and not a placeholder or a word about it."""
    return len(value) >= 3 and _may_be(value) and " " not in value.strip()


def _is_assigned_secret(match: re.Match[str], text: str) -> bool:
    value, quoted = _value(match)
    if _PLURAL_OR_COUNT.match(match["name"]) or not _may_be(value):
        return False
    if quoted:
        return len(value) >= 3 and (" " not in value.strip() or (bool(match["password"]) and not _is_prose(value)))
    tight = not match["gap"] and not match["after"]
    if match["by"] != ":" and tight:
        return len(value) >= (3 if match["password"] else 6) and (bool(match["password"]) or not value.isdigit())
    if _PLAIN_WORD.match(value):
        # Said or spelled out: a plain word is the secret only where nothing follows it on the line.
        return bool(match["password"]) and len(value) >= 5 and _ends_line(text, match.end()) and match["by"] != "=="
    if value.isdigit():
        return bool(match["password"]) and len(value) >= 4
    return looks_random(value) and len(value) >= (5 if match["password"] else 8) and not _TECHNICAL.match(value)


def _is_said_secret(match: re.Match[str]) -> bool:
    value, quoted = _value(match)
    if not _may_be(value):
        return False
    if quoted:
        return " " not in value.strip()
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not _TECHNICAL.match(value)


def _is_prose(value: str) -> bool:
    """Whether this is a sentence about a password, as error messages are, and not one itself."""
    words = value.lower().split()
    return any(word in STOP_WORDS or word in ("required", "invalid", "field", "password") for word in words)


def _value(match: re.Match[str]) -> tuple[str, bool]:
    groups = match.groupdict()
    quoted = groups.get("quoted")
    return (quoted, True) if quoted is not None else (groups["bare"].rstrip(_TRAILING), False)


def _span(match: re.Match[str], kind: str) -> Span:
    value, quoted = _value(match)
    start = match.start("quoted" if quoted else "bare")
    return Span(start, start + len(value), kind)


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
