"""Secrets by place: what command lines, markup, SQL and pairs of a name and a value hold, and numbers called secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alma.redaction.secrets import (
    A_COLON_OR_SLASH,
    A_NUMBER,
    A_NUMBER_IN_PARTS,
    A_QUOTE,
    AN_ASSIGNMENT,
    AN_OPTION,
    Rule,
    Span,
    is_basic,
    is_placeholder,
    looks_random,
    shape,
)
from alma.redaction.telling import is_secret_name, telling
from alma.redaction.values import is_no_word, is_put_together, is_spoken_phrase, is_unlike_any_name, may_be_secret
from alma.text.scanning import matches


def _is_argument(value: str) -> bool:
    return not is_placeholder(value) and not value.startswith(("/", "./", "~"))


_WORDS_OF_A_SEED = r"(?:[a-z]{3,8}[ \t,]+){11,23}[a-z]{3,8}\b"

PLACES: tuple[Rule, ...] = (
    shape(
        "password",
        ("sqlplus", "oracle:thin"),
        r"(?:\bsqlplus\s+|oracle:thin:)[^\s/@]{1,80}/(?:(?P<secret>[^\s@]{3,}+)@|[^\s@]{3,}+)",
        _is_argument,
    ),
    shape(
        "password",
        "--password-stdin",
        r"""\becho\s+(?:-n\s+)?["']?(?P<secret>[^\s"'|]{3,}+)["']?\s*\|[^\n]{0,200}?--password-stdin""",
        _is_argument,
        needs=AN_OPTION,
    ),
    shape(
        "password",
        "password",
        r"""\b(?:with|role\s+\S+|user\s+\S+)\s+(?:encrypted\s+)?password\s+'(?P<secret>[^'\n]{3,}+)(?:'|\Z)""",
        _is_argument,
        re.IGNORECASE,
        A_QUOTE,
    ),
    shape(
        "password",
        "identified by",
        r"""\bidentified by\s+(?:password\s+)?["'](?P<secret>[^"'\n]{3,}+)(?:["']|\Z)""",
        _is_argument,
        re.IGNORECASE,
        A_QUOTE,
    ),
    shape(
        "password",
        "password",
        r"""\b(?:set|with|using)?_?password\(\s*["'](?P<secret>[^"'\n]{3,}+)(?:["']|\Z)""",
        lambda value: looks_random(value) and _is_argument(value),
        re.IGNORECASE,
        A_QUOTE,
    ),
    shape(
        "password",
        "password",
        r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(?P<secret>\S{3,}+)",
        _is_argument,
    ),
    shape(
        "password",
        "pass",
        r"""\b(?:user(?:name)?|login|account|e-?mail)["']?\s?[:=]\s?["']?[^\s"',;]{1,80}["']?[\s,;/|]{1,6}["']?"""
        r"""pass["']?\s?[:=]\s?["']?(?P<secret>[^\s"',;]{3,}+)""",
        lambda value: not value.isdigit() and may_be_secret(value),
        re.IGNORECASE,
        AN_ASSIGNMENT,
    ),
    shape(
        "password",
        ("credential", "creds", "zugangsdaten", "identifiants", "credenciales", "credenziali"),
        r"""(?:credentials?|creds|zugangsdaten|identifiants|credenciales|credenziali)\b[^\n:=]{0,40}?\s?(?:[:=]|\bare\b|\bis\b)\s?"""
        r"""["']?[\w.@-]{2,80}["']?\s?(?:[/:|]|,(?=\s))\s?["']?(?P<secret>[^\s"',;]{6,}+)""",
        lambda value: may_be_secret(value) and is_no_word(value),
        re.IGNORECASE,
    ),
    shape(
        "password",
        "login",
        r"""\blogin["']?\s?[:=]\s?["']?[\w.@-]{2,80}["']?(?:\s[/|]\s|:)["']?(?P<secret>[^\s"',;]{6,}+)""",
        lambda value: may_be_secret(value) and is_unlike_any_name(value),
        re.IGNORECASE,
        AN_ASSIGNMENT,
    ),
    shape(
        "password",
        ("log in", "login", "log on", "logged in", "sign in", "anmelden"),
        r"""\b(?:log(?:ged)?[ -]?(?:in|on)|sign in|anmelden)\s(?:is|with|as|using|mit|als)\s["'`]?[\w.@-]{2,60}"""
        r"""["'`]?\s?[/:|]\s?["'`]?(?P<secret>[^\s"'`,;]{6,}+)""",
        lambda value: may_be_secret(value) and is_unlike_any_name(value),
        re.IGNORECASE,
    ),
    shape(
        "password",
        ("admin", "root", "user", "guest", "deploy", "postgres"),
        r"""(?<![\w/@.:-])(?:admin(?:istrator)?|root|user|guest|deploy|postgres)(?::\s?|\s/\s)(?P<secret>[^\s"'`,;]{8,64})""",
        lambda value: may_be_secret(value) and is_put_together(value),
        re.IGNORECASE,
        A_COLON_OR_SLASH,
    ),
    shape(
        "password",
        ("app password", "app-password", "app-specific"),
        r"\bapp(?:-specific)?[ -]password\b[^\n:=]{0,40}(?:[:=]|\bis\b)\s?(?P<secret>[a-z]{4}(?: [a-z]{4}){3})\b",
        is_spoken_phrase,
        re.IGNORECASE,
    ),
    shape(
        "basic_auth",
        "_auth",
        r"""(?<!\w)_auth\s*=\s*["']?(?P<secret>[A-Za-z0-9+/]{6,}={0,2})""",
        is_basic,
        needs=AN_ASSIGNMENT,
    ),
    shape(
        "seed_phrase",
        ("mnemonic", "phrase", "seed"),
        rf"\b(?:mnemonic|(?:seed|recovery|backup)(?: phrase| words))(?:\s+is|\s?[:=])\s{{0,4}}[\"']?"
        rf"(?P<secret>{_WORDS_OF_A_SEED})",
        flags=re.IGNORECASE,
    ),
    shape(
        "password",
        ("passphrase", "pass phrase"),
        r"\bpass ?phrase(?:\s+is|\s?[:=])\s{1,4}(?P<secret>[a-z]{3,12}(?: [a-z]{3,12}){2,9})(?=[ \t.]*(?:\n|$))",
        is_spoken_phrase,
        re.IGNORECASE,
    ),
    shape(
        "otp_seed",
        ("otp", "2fa", "mfa", "authenticator"),
        r"\b(?:[ht]?otp|2fa|mfa|authenticator)\b[ _-](?:\w{2,10} )?(?:seed|secret|key)\s?(?:is\b|:|=)\s{0,4}"
        r"[\"']?(?P<secret>(?-i:[A-Z2-7]{16,64}))\b",
        flags=re.IGNORECASE,
    ),
    shape(
        "password",
        ("pass ", "pw "),
        r"\b(?:user|username|login)\b[ :=]{1,3}[\w.@-]{2,60},? (?:and )?(?:pass|pw) (?P<secret>[^\s,;\"']{6,}+)",
        lambda value: may_be_secret(value) and is_no_word(value),
        re.IGNORECASE,
    ),
    shape(
        "code",
        ("otp", "code", "cvv", "cvc", "one-time", "one time"),
        r"\b(?:otp|cvv2?|cvc2?|(?:verification|security|confirmation|login|2fa|mfa|one[- ]time|backup|access"
        r"|door|gate|alarm|unlock|entry|pairing|recovery|authentication|sms)"
        r"[ _](?:code|password))\b"
        r"(?:\s*(?:is\b|was\b|:|=)\s*|\s+(?=\d{4}))(?P<secret>\d(?:[ -]?\d){2,7})(?![\w-]|[.,]\d)",
        flags=re.IGNORECASE,
        needs=A_NUMBER,
    ),
    shape(
        "ssn",
        ("ssn", "social security"),
        r"\b(?:ssn|social security(?: (?:number|no))?)\b\D{0,12}(?P<secret>\d{3}[ -]?\d{2}[ -]?\d{4})(?![\w-])",
        flags=re.IGNORECASE,
        needs=A_NUMBER,
    ),
    shape(
        "ssn",
        "-",
        r"(?<![\w.#/-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w/-]|\.\d)",
        needs=A_NUMBER_IN_PARTS,
    ),
)

_ELEMENT = re.compile(
    r"<(?:\w{1,40}:)?(?P<name>[\w.-]{2,80})(?:\s[^<>]{0,200})?>\s{0,4}(?P<secret>[^<>\s]{3,}+)(?:\s{0,4}</|\Z)"
)
_PAIR = re.compile(
    r"""(?:key|name|id|property|variable)["']?\s?[:=]\s?["']?(?P<name>[\w. -]{2,80}?)["']?\s{0,80}+(?:,\s{0,80}+)?"""
    r"""["']?\bvalue["']?\s?[:=]\s?(?:"(?P<double>[^"\n]{3,}+)(?:"|\Z)|'(?P<single>[^'\n]{3,}+)(?:'|\Z)|(?P<bare>[^\s"',;}<>]{3,}+))""",
    re.IGNORECASE,
)
# What stands below the name with a deeper indent, to its last line.
_BLOCK = re.compile(
    r"^(?P<indent>[ \t]*)(?:- )?[\"']?(?P<name>[\w.-]{2,80})[\"']?:[ \t]*[|>][+-]?\d?[ \t]*\n"
    r"(?P<inside>(?P=indent)[ \t]+)(?P<secret>\S[^\n]{2,}+(?:\n(?P=inside)[^\n]++)*+)",
    re.MULTILINE,
)


def placed_spans(text: str) -> Iterator[Span]:
    """The values that stand in an element, an attribute, an entry or a block whose name is one of a secret."""
    if "</" in text:
        yield from _named(matches(_ELEMENT, text))
    if "value" in text or "Value" in text or "VALUE" in text:
        yield from _named(matches(_PAIR, text))
    if ":" in text and "\n" in text:
        yield from _blocks(text)


def _named(found: Iterator[re.Match[str]]) -> Iterator[Span]:
    for match in found:
        group = next(name for name in ("secret", "double", "single", "bare") if match.groupdict().get(name))
        if is_secret_name(match["name"].strip()) and may_be_secret(match[group]):
            yield Span(match.start(group), match.end(group), "secret")


def _blocks(text: str) -> Iterator[Span]:
    for match in matches(_BLOCK, text):
        tells = telling(match["name"])
        if tells is not None and tells.is_secret(match["secret"].split("\n")[0].rstrip()):
            yield Span(match.start("secret"), match.start("secret") + len(match["secret"].rstrip()), "secret")
