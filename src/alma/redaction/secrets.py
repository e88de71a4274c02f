"""What secrets look like: headers, addresses, numbers of cards and private keys, by their shape."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from alma.text.scanning import matches

MARK = "[redacted:"
"""How every replacement begins."""

MASKS = re.compile(re.escape(MARK) + r"([\w-]{0,100})\]")
"""What stands in the place of a secret, with its kind."""

Accept = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Span:
    """Where in a text a secret stands, and of which kind it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Need:
    """What a text must have for some rules to be worth a thought: one of these signs, and this pattern."""

    signs: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def is_met(self, signs: set[str], text: str) -> bool:
        """Whether a text that is made of these signs has it."""
        return not self.signs.isdisjoint(signs) and (self.pattern is None or self.pattern.search(text) is not None)


NOTHING = Need()
A_LONG_WORD = Need(pattern=re.compile(r"\S{16}"))
AN_OPTION = Need(frozenset("-"), re.compile(r"(?:^|\s)-"))
AN_ASSIGNMENT = Need(frozenset(":="))
A_COLON_OR_SLASH = Need(frozenset(":/"))
A_QUOTE = Need(frozenset("\"'"))
A_NUMBER = Need(frozenset("0123456789"), re.compile(r"\d{3}"))
A_LONG_NUMBER = Need(frozenset("0123456789"), re.compile(r"\d{4}[ -]?\d{4}"))
A_NUMBER_IN_PARTS = Need(frozenset("-"), re.compile(r"\d{3}-\d\d-\d{4}"))
A_DASH = Need(frozenset("-"))


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape of secrets; `hint` is what a text must contain, in one of its forms, for the pattern to be worth trying.

    The secret is the group of that name, or the whole match; `accept` has the last word on it. Rules that need
    the same are left out together where a text does not have it.
    """

    kind: str
    hint: str | tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Accept = lambda _: True
    needs: Need = NOTHING
    # Whether the pattern is so quick, and what it finds so long, that texts are not read in windows.
    at_once: bool = False

    @property
    def hints(self) -> tuple[str, ...]:
        """The forms of the hint, in small letters."""
        return (self.hint,) if isinstance(self.hint, str) else self.hint

    def spans(self, text: str) -> Iterator[Span]:
        """Where secrets of this shape stand in a text."""
        group: str | int = "secret" if "secret" in self.pattern.groupindex else 0
        found = self.pattern.finditer(text) if self.at_once else matches(self.pattern, text)
        for match in found:
            if match[group] and not match[group].startswith(MARK) and self.accept(match[group]):
                yield Span(match.start(group), match.end(group), self.kind)


def looks_random(value: str) -> bool:
    """Whether a word is no word: it mixes digits and letters, or cases in its middle."""
    has_digit = any(c.isdigit() for c in value)
    has_letter = any(c.isalpha() for c in value)
    mixed_case = any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)
    return (has_digit and has_letter) or mixed_case or (has_digit and len(value) >= 16)


def _like_a_key(body_after: int) -> Accept:
    """Digits, or one long run of letters and digits, behind a prefix that ordinary words may have too."""

    def accept(value: str) -> bool:
        body = value[body_after:]
        return sum(c.isdigit() for c in body) >= 3 or re.search(r"[A-Za-z0-9]{16}", body) is not None

    return accept


def is_basic(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_card(value: str) -> bool:
    digits = [int(c) for c in value if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) if i % 2 else d for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def mixed(value: str) -> bool:
    """Whether there are digits, capitals and small letters in it."""
    return all((any(c.isdigit() for c in value), any(c.isupper() for c in value), any(c.islower() for c in value)))


def is_placeholder(value: str) -> bool:
    """Whether this stands for a value and is none: ${VAR}, $(cat file), <password>, {{ token }}, ****, or our mark."""
    return _PLACEHOLDER.match(value) is not None or _STANDS_FOR.fullmatch(value) is not None


_PLACEHOLDER = re.compile(
    r"""\$[{(].*|\$[A-Za-z_]\w*$|<[^>]*>?$|\{.*|%\(?\w*\)?[sdr]?$|[*•.x…X_-]+$|\[redacted:.*|@.*|"?$|'?$""", re.DOTALL
)


# Words that say what is to be put there, and nothing else: your-api-key-here, change_me, REDACTED.
_STANDS_FOR = re.compile(
    r"(?:(?:your|insert|enter|replace|put|example|sample|dummy|placeholder|redacted|removed|changeme)(?![a-z])|"
    r"change[-_ ]?me(?![a-z])|"
    r"some(?=[-_ ]))(?:[-_ .]?(?:your|own|real|actual|new|the|my|me|with|secure|strong|very|long|api|access|auth|"
    r"client|secret|private|"
    r"public|db|database|user|app|service|key|token|password|passwd|pass|pwd|credentials?|value|string|here|in|prod|"
    r"production|"
    r"goes|\d{1,2})(?![a-z])){0,8}",
    re.IGNORECASE,
)


def shape(
    kind: str,
    hint: str | tuple[str, ...],
    pattern: str,
    accept: Accept = lambda _: True,
    flags: int = 0,
    needs: Need = NOTHING,
    *,
    at_once: bool = False,
) -> Rule:
    """A rule from the text of its pattern.

    A pattern may also match, without the group `secret`, what only begins as one: that is then passed over as a whole,
    and not looked at again from each of its characters.
    """
    return Rule(kind, hint, re.compile(pattern, flags), accept, needs, at_once)


START = r"(?<![A-Za-z0-9])"
"""That no letter or digit stands before."""
_FIRST_OF_A_CARD = tuple("23456")
_PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_NEXT_LINE = r"[ \t]*+\r?\n[> \t]*+"
_LINE_OF_A_KEY = rf"[A-Za-z0-9+/]{{40,76}}+={{0,2}}{_NEXT_LINE}"

SHAPES: tuple[Rule, ...] = (
    shape(
        "private_key",
        "private key",
        rf"-{{4,5}} ?BEGIN {_PRIVATE_KEY}(?:(?:[^-]++|-(?!-{{3,4}} ?(?:BEGIN|END) ))*+-{{4,5}} ?END {_PRIVATE_KEY}"
        rf"|(?:[A-Za-z0-9+/=\s\\:,]++|-(?!-{{3,4}} ?BEGIN ))*+)",
        needs=A_DASH,
        at_once=True,
    ),
    shape(
        "private_key",
        "private key",
        rf"(?<![^\s>])(?:(?P<secret>(?:{_LINE_OF_A_KEY}){{2,}}+(?:[A-Za-z0-9+/]{{1,76}}={{0,2}}{_NEXT_LINE})?)"
        rf"(?=-----END {_PRIVATE_KEY})|(?:{_LINE_OF_A_KEY})++)",
        needs=A_DASH,
        at_once=True,
    ),
    shape(
        "private_key",
        '"kty"',
        r"\"(?:d|p|q|dp|dq|qi|k)\"\s?:\s?\"(?P<secret>[\w-]{16,})\"",
        needs=A_LONG_WORD,
    ),
    shape("openai_key", "sk-", START + r"sk-[A-Za-z0-9][A-Za-z0-9_-]{9,}", _like_a_key(3), needs=A_DASH),
    shape(
        "aws_secret_key",
        ("akia", "asia", "aws", "secret"),
        r"(?:(?:AKIA|ASIA)[A-Z0-9]{16}|\b[Aa][Ww][Ss]\b|[Ss]ecret)[\s\S]{0,120}?(?<![A-Za-z0-9/+=])"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        mixed,
        needs=A_LONG_WORD,
    ),
    shape(
        "putty_key",
        "private-lines",
        r"Private-Lines: \d{1,6}\s(?P<secret>(?:[A-Za-z0-9+/=\s](?!rivate-)){16,}+)",
        needs=A_DASH,
    ),
    shape(
        "session_cookie",
        ("sessid", "jsessionid", "connect.sid"),
        r"\b(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid)=(?P<secret>[^\s;,\"'&]{8,})",
        flags=re.IGNORECASE,
        needs=AN_ASSIGNMENT,
    ),
    shape("key", "key=", r"(?<![\w.-])key=(?P<secret>[A-Za-z0-9_-]{20,})(?![\w./-])", mixed, needs=A_LONG_WORD),
    shape(
        "authorization",
        "authorization",
        r"""authorization["']?\s*+[:=]\s*+["']?(?:(?:bearer|basic|token|digest|apikey)\s++)?(?P<secret>[^\s"',;]{6,}+)""",
        lambda value: looks_random(value) and not is_placeholder(value),
        re.IGNORECASE,
        AN_ASSIGNMENT,
    ),
    shape(
        "bearer_token",
        "bearer",
        r"\bbearer[\s:]+[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
        lambda value: looks_random(value.rstrip(".")),
        re.IGNORECASE,
    ),
    shape("basic_auth", "basic", r"\bbasic\s+(?P<secret>[A-Za-z0-9+/]{6,}={0,2})", is_basic, re.IGNORECASE),
    shape(
        "cookie",
        "cookie",
        r"\bcookie[\"']?\s?:\s*+[\"']?(?P<secret>[^\n\"'=]{1,200}=[^\n\"']*)",
        lambda value: looks_random(value) and not is_placeholder(value),
        re.IGNORECASE,
        AN_ASSIGNMENT,
    ),
    shape(
        "basic_auth",
        "curl",
        r"""\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[ =]?["']?[^\s:"']{1,100}:(?P<secret>[^\s"']{3,})""",
        lambda value: not is_placeholder(value),
        needs=AN_OPTION,
    ),
    shape(
        "url_password",
        "://",
        r"(?<=[A-Za-z0-9+.-])://[^\s:/@\"'<>\[]*+:(?:(?P<secret>[^\s/\"'<>]+)@|[^\s/\"'<>]++)",
        lambda value: not is_placeholder(value),
        needs=AN_ASSIGNMENT,
    ),
    shape(
        "url_token",
        "://",
        r"://(?:(?P<secret>[A-Za-z0-9_-]{20,}+)@|[A-Za-z0-9_-]{20,}+)",
        looks_random,
        needs=A_LONG_WORD,
    ),
    shape(
        "credit_card",
        _FIRST_OF_A_CARD,
        r"(?=[2-6]\d{3})(?<![\w.#/-])(?:4\d{3}(?:[ -]?\d{4}){3}(?:[ -]?\d{3})?|4\d{12}|"
        r"(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|"
        r"2720)(?:[ -]?\d{4}){3}|3[47]\d\d[ -]?\d{6}[ -]?\d{5}|(?:6011|65\d\d|64[4-9]\d|35[2-8]\d)(?:[ -]?\d{4}){3}"
        r"|3(?:0[0-5]|[68]\d)\d[ -]?\d{6}[ -]?\d{4})(?![\w/-]|\.\d)",
        _is_card,
        needs=A_LONG_NUMBER,
    ),
)
