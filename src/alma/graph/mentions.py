"""Finding names in text by rules: what is mentioned, where, as what, and how certain that is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from alma.graph import lexicon as lx
from alma.text.tokens import STOP_WORDS


@dataclass(frozen=True, slots=True)
class Mention:
    """One place of a text that names something."""

    start: int
    end: int
    name: str
    entity_type: str
    confidence: float


_Rule = Callable[[str], Iterator[Mention]]
# Stands for what another rule has found.
_KNOWN = "\ue000"

_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w’'-]*"
_EXTENSIONS = (
    "py|pyi|js|jsx|ts|tsx|java|kt|rs|go|rb|php|c|h|cpp|hpp|cs|swift|sh|bash|sql|html|css|scss|vue|md|rst|txt|json|yaml|"
    "yml|toml|ini|cfg|conf|env|xml|csv|tsv|log|lock|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|zip|tar|gz|db|"
    "ipynb|proto|tf"
)
_MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    "Nov(?:ember)?|Dec(?:ember)?"
)
_DATE = (
    rf"\b(?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}\.\s?\d{{1,2}}\.\s?\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTHS})(?:,?\s+\d{{4}})?"
    rf"|(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?|(?:{_MONTHS})\s+\d{{4}})\b"
)
_REQUEST = r"\b(?:PR|MR|pull request|merge request)s?\b"
_TICKET = r"\b(?:issue|ticket|bug)s?\b"
_NO_TICKETS = "COVID|UTF|SHA|ISO|GPT|RFC|AES|RSA|MD|HTTP|TLS|IPV|IP|CVE|BM|H|A|B|F|S|X|T|UTC|GMT|PEP|AK|EB|FP|MI"
_THE = r"(?<=\bthe )|(?<=\bthis )|(?<=\bthat )|(?<=\bour )|(?<=\bmy )|(?<=\bhis )|(?<=\bher )|(?<=\ba )|(?<=\ban )"
_TITLED = rf"\b(?:Dr|Mr|Mrs|Ms|Prof)\.?\s+({_CAPITAL}(?:\s+{_CAPITAL})?)"
_PARTS = (
    "service|server|database|API|app|application|system|module|pipeline|backend|frontend|dashboard|website|"
    "team|library|component|form|page|endpoint|cluster|queue|worker|job|test suite|deployment|migration(?! script)|"
    "release|repository|"
    "framework|gateway|engine|platform|scheduler|proxy|registry|portal|script|plugin|bot|client|SDK|CLI"
)
_ROLES = r"(?i:colleague|manager|boss|friend|teammate|engineer|developer|designer|director|CEO|CTO|user|customer)"


def mentions(text: str) -> list[Mention]:
    """Everything the rules find, in order; where two claim a place, the surer rule has it."""
    found: list[Mention] = []
    taken = bytearray(len(text))
    for rule in _RULES:
        # A name may stand right behind another one that is known by now: the CEO of Acme Corp Alice Smith.
        for mention in rule(_covered(text, taken) if rule is _people else text):
            if mention.name and not any(taken[mention.start : mention.end]):
                taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
                found.append(mention)
    return sorted(found, key=lambda mention: mention.start)


def _covered(text: str, taken: bytearray) -> str:
    return "".join(_KNOWN if known else c for c, known in zip(text, taken, strict=True))


def _by(pattern: str, entity_type: str, confidence: float, flags: int = 0) -> _Rule:
    """What the pattern finds, or its first group if it has one."""
    compiled = re.compile(pattern, flags)

    def rule(text: str) -> Iterator[Mention]:
        for match in compiled.finditer(text):
            group = 1 if compiled.groups else 0
            name = match[group]
            if name:
                trimmed = name.rstrip(".,;:!?’'")
                yield Mention(match.start(group), match.start(group) + len(trimmed), trimmed, entity_type, confidence)

    return rule


def _numbered(text: str) -> Iterator[Mention]:
    """Pull requests and issues with a number: PR #42, issue 7, ABC-123, #9."""
    forms = (
        (rf"({_REQUEST})\s*(?:no\.?\s*)?[#!]?(\d+)\b", lx.PULL_REQUEST, "PR #"),
        (rf"({_TICKET})\s*(?:no\.?\s*)?#?(\d+)\b", lx.ISSUE, "issue #"),
        (r"(?<![\w#/])(#)(\d{1,6})\b", lx.ISSUE, "#"),
    )
    for pattern, entity_type, prefix in forms:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            yield Mention(match.start(), match.end(), f"{prefix}{match[2]}", entity_type, 0.95)


def _unnumbered(text: str) -> Iterator[Mention]:
    """The PR, this ticket: which one is left open, that there is one is not."""
    for pattern, entity_type, name in ((_REQUEST, lx.PULL_REQUEST, "PR"), (_TICKET, lx.ISSUE, "")):
        for match in re.finditer(rf"(?:{_THE}){pattern}", text, re.IGNORECASE):
            yield Mention(match.start(), match.end(), name or match[0].lower(), entity_type, 0.6)


_NAME = rf"{_CAPITAL}(?:\s+{_CAPITAL}){{0,3}}"
_COMPANY = re.compile(rf"\b(?:{_CAPITAL}\s+(?:(?:of|&|for)\s+)?){{1,4}}(?:{lx.ORGANIZATION_ENDINGS})\b\.?")
_CONNECTED = re.compile(r"(\S+)\s+(?:of|for)\s+")


def _companies(text: str) -> Iterator[Mention]:
    """What ends like a company's name, without who somebody is there and what the sentence begins with."""
    for match in _COMPANY.finditer(text):
        start, name = match.start(), match[0].rstrip(".")
        for connected in reversed([*_CONNECTED.finditer(name)]):
            if connected[1].lower() not in lx.INSTITUTIONS:
                start, name = start + connected.end(), name[connected.end() :]
                break
        while (first := re.match(r"(\S+)\s+(?=\S)", name)) and _is_no_name(first[1]):
            start, name = start + first.end(), name[first.end() :]
        if " " in name:
            yield Mention(start, start + len(name), name, lx.ORGANIZATION, 0.95)


_EMPLOYER = re.compile(
    rf"\b(?:{lx.TITLES})(?: of (?:[\w-]+(?: (?:and|&) [\w-]+)?))?? (?:at|of|for) (?:the )?(?P<name>{_NAME})"
    rf"(?![\w’'-])(?! (?:at|of|for) (?:the )?[A-Z])"
)


def _employers(text: str) -> Iterator[Mention]:
    """CEO of X, VP of Sales at X."""
    for match in _EMPLOYER.finditer(text):
        yield from _organization(match, "name", 0.8)


_AMOUNT = r"[$€£]\s?\d[\d.,]*\s?(?:thousand|million|billion|bn|[km])?\b"
_HAS = r"(?:has |have |had |just |recently |also |then |later |finally )*"
_WAS = r"(?:was |is |has been |had been |got |will be |being |recently |then |later )+"
_DEALS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<one>{_NAME})\s+{_HAS}(?:acquire[sd]|bought|buys|took over|takes over|merged with|merges with|"
        rf"partnered with|partners with)\s+(?:(?:the|its|a|an)\s+(?:[a-z-]+\s+){{0,3}})?(?P<other>{_NAME})",
        rf"\b(?P<one>{_NAME})\s+{_WAS}(?:acquired|bought|taken over)\s+by\s+(?:the\s+)?(?P<other>{_NAME})",
        rf"\b(?P<one>{_NAME})\s+{_WAS}founded\b",
        rf"\b(?P<one>{_NAME})\s+{_HAS}invest(?:ed|s)\s+(?:{_AMOUNT}\s+)?in\s+(?P<other>{_NAME})",
        rf"\b(?P<one>{_NAME})\s+{_HAS}(?:acquire[sd]|bought)\b.{{0,60}}?{_AMOUNT}",
        rf"\b(?P<one>{_NAME})\s+{_HAS}(?:hire[sd]|employ(?:s|ed))\s+(?=[A-Z])",
    )
)


def _dealers(text: str) -> Iterator[Mention]:
    """Who buys, joins or pays for each other; a person may buy anything."""
    for pattern in _DEALS:
        for match in pattern.finditer(text):
            buys_alone = match["one"].split()[0].lower() in lx.FIRST_NAMES
            for name in ("one", "other"):
                if name in match.groupdict() and not buys_alone:
                    yield from _organization(match, name, 0.75)


def _origins(text: str) -> Iterator[Mention]:
    """Bob Jones from X, Eve of X: for whom they work, or where they come from."""
    for match in re.finditer(rf"\b(?P<who>{_CAPITAL})(?:\s+{_CAPITAL})?\s+(?:from|of)\s+(?P<name>{_NAME})", text):
        if match["who"].lower() in lx.FIRST_NAMES:
            is_place = match["name"].split()[0].lower() in lx.PLACES | lx.DEPARTMENTS
            yield from _organization(
                match, "name", 0.5 if is_place else 0.7, lx.CONCEPT if is_place else lx.ORGANIZATION
            )


def _organization(
    match: re.Match[str], group: str, confidence: float, sort: str = lx.ORGANIZATION
) -> Iterator[Mention]:
    """The name that a pattern found, up to where somebody's name begins."""
    words = [(match.start(group) + word.start(), word[0]) for word in re.finditer(r"\S+", match[group])]
    while words and _is_no_name(words[0][1]):
        words.pop(0)
    people = (i for i, (_, word) in enumerate(words) if word.lower() in lx.FIRST_NAMES)
    words = words[: next(people, len(words))]
    if words and words[0][1].lower() not in (lx.DEPARTMENTS if sort is lx.ORGANIZATION else ()):
        start, end = words[0][0], words[-1][0] + len(words[-1][1])
        name = re.sub(r"['’]s?$", "", match.string[start:end].rstrip(".,;:!?"))
        yield Mention(start, start + len(name), name, sort, confidence)


def _people(text: str) -> Iterator[Mention]:
    english = _reads_english(text)
    for match in re.finditer(rf"{_CAPITAL}(?:\s+(?:(?:van|von|de|der|da|di|bin|al)\s+)*{_CAPITAL}){{0,2}}", text):
        words = list(_words_of(match))
        while words and _is_no_name(words[0][1]):
            words.pop(0)
        while words and _is_no_name(words[-1][1]):
            words.pop()
        if words and not _is_department(text, words):
            yield from _person(text, words, english)


def _is_no_name(word: str) -> bool:
    """Whether it is a word that is only written large here; I've and I'll are I."""
    return re.split("['’]", word.lower())[0] in lx.NO_NAMES


_HEADED = re.compile(rf"\b(?:{lx.TITLES})\s+(?:of|for)\s+(?:\w+\s+(?:and|&)\s+)?$")


def _is_department(text: str, words: list[tuple[int, str]]) -> bool:
    """Whether somebody is the head of it: VP of Sales at …"""
    start = words[0][0]
    named = words[-1][1].lower() in lx.DEPARTMENTS
    return named and _HEADED.search(text[max(0, start - 80) : start]) is not None


def _person(text: str, words: list[tuple[int, str]], english: bool) -> Iterator[Mention]:
    start, end = words[0][0], words[-1][0] + len(words[-1][1])
    name = text[start:end]
    bare = re.sub(r"['’]s?$", "", name)
    end -= len(name) - len(bare)
    known = bare.split()[0].lower() in lx.FIRST_NAMES
    if not known and _KNOWN in (text[max(0, start - 2) : start] + text[end : end + 2]).replace(" ", "")[:2]:
        # A part of something longer.
        return
    if known:
        yield Mention(start, end, bare, lx.PERSON, 0.9)
    elif (
        _acts_itself(text, start, end, len(words))
        or _is_addressed(text[max(0, start - 30) : start])
        or _is_somebody(text[end : end + 80])
    ):
        yield Mention(start, end, bare, lx.PERSON, 0.65)
    elif english and (not _begins_sentence(text[max(0, start - 6) : start]) or _HYPHENED.match(bare)) and len(bare) > 1:
        yield Mention(start, end, bare, lx.CONCEPT, 0.4)


def _acts_itself(text: str, start: int, end: int, words: int) -> bool:
    """Whether somebody does what follows; behind a preposition it is who stands before that: nobody from X said."""
    return _BELONGING.search(text[max(0, start - 12) : start]) is None and _acts(text[end : end + 60], words)


# Mercedes-Benz is a name wherever it stands, Self-service is none.
_HYPHENED = re.compile(r"[A-ZÀ-ÖØ-Þ][^\W\d_]+-(?!(?:Out|Off|Down|Mail)\b)[A-ZÀ-ÖØ-Þ][^\W\d_A-Z]{2,}(?!\w)")
_BELONGING = re.compile(r"\b(?:from|at|of|within|inside) (?:the )?$")
_PERSONAL = (
    "said|says|wrote|asked|told|thinks|believes|mentioned|suggested|reviewed|submitted|approved|opened|merged|reported|"
    "complained|wants|prefers|likes|joined|lives|works|worked|confirmed|noticed|explained|agreed|decided|assigned|fixed"
)


# What a company may be said to do in one word, and only people are if they have two names.
_SOCIAL = "met|emailed|founded|co-founded|visited|taught|married|resigned|retired|introduced|invited|interviewed|left"


def _acts(rest: str, names: int) -> bool:
    verbs = _PERSONAL if names == 1 else f"{_PERSONAL}|{_SOCIAL}"
    return re.match(rf"\s+(?:also\s+|then\s+|has\s+|already\s+)?(?:{verbs})\b", rest) is not None


def _is_addressed(before: str) -> bool:
    return re.search(rf"(?:\b(?:ask|asked|tell|told|thanks|met|named|called)|{_ROLES})\s+$", before) is not None


# Judy, the CTO of …: who has a title is somebody.
_WITH_A_TITLE = re.compile(rf"\s*[,(]\s*(?:the |our |an? |my )?(?:[a-z-]+ ){{0,2}}(?:{lx.TITLES})\b")


def _is_somebody(rest: str) -> bool:
    return _WITH_A_TITLE.match(rest) is not None


def _begins_sentence(before: str) -> bool:
    return re.search(r"(?:^\s*|[.!?:\n\"“(\[]\s*|[-*•]\s+)$", before) is not None


def _reads_english(text: str) -> bool:
    """Other languages write other words large, so that a capital says little there."""
    words = re.findall(r"[^\W\d_]+", text[:2_000].lower())
    return sum(word in STOP_WORDS for word in words) * 10 >= len(words)


def _words_of(match: re.Match[str]) -> Iterable[tuple[int, str]]:
    return ((match.start() + word.start(), word[0]) for word in re.finditer(r"\S+", match[0]))


_RULES: tuple[_Rule, ...] = (
    _by(r"https?://[^\s<>\"')\]]+", lx.URL, 0.99),
    _by(r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+\b", lx.EMAIL, 0.99),
    _by(rf"(?<![\w.])(?:[\w.~-]{{0,60}}/){{0,12}}[\w.-]{{0,60}}\w\.(?:{_EXTENSIONS})\b(?!\()", lx.FILE, 0.95),
    _by(r"(?<![\w/:])(?:~|\.{1,2})?/(?:[\w.-]{1,60}/){1,12}[\w.-]{0,60}", lx.FILE, 0.85),
    _by(r"`([^`\n]{1,80})`", lx.IDENTIFIER, 0.9),
    _numbered,
    _by(rf"\b(?!(?:{_NO_TICKETS})-)[A-Z][A-Z0-9]{{1,9}}-\d{{1,6}}\b(?!-)", lx.ISSUE, 0.85),
    _by(_DATE, lx.DATE, 0.95),
    _by(r"\b[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,6}\(\)", lx.IDENTIFIER, 0.9),
    _by(
        rf"(?<![\w])(?:{lx.TECHNOLOGIES})(?![\w+#])(?:\s+v?\d+(?:\.\d+)*(?![\w%.]*\w))?",
        lx.TECHNOLOGY,
        0.9,
    ),
    _by(
        rf"\b(?:(?!The\b){_CAPITAL}\s+)?(?:{lx.OFFICES}) (?:of|for) (?:the )?{_CAPITAL}(?:\s+(?:and\s+)?{_CAPITAL})*",
        lx.ORGANIZATION,
        0.9,
    ),
    _companies,
    _by(_TITLED, lx.PERSON, 0.9),
    _by(r"(?<![\w@])@([A-Za-z][\w-]{1,38})\b", lx.PERSON, 0.8),
    _by(
        rf"\b(?:works? (?:at|for)|worked (?:at|for)|joined|hired by|employed by)\s+({_CAPITAL}(?:\s+{_CAPITAL})*)",
        lx.ORGANIZATION,
        0.85,
    ),
    _employers,
    _by(rf"\b(?:{'|'.join(lx.KNOWN_ORGANIZATIONS)})\b", lx.ORGANIZATION, 0.85, re.IGNORECASE),
    _by(r"\b(?:[A-Z][a-z0-9]+){2,}\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b", lx.IDENTIFIER, 0.8),
    _by(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", lx.IDENTIFIER, 0.8),
    _by(
        r"(?<![\w-])[a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?:service|server|api|app|worker|client|backend|frontend|gateway|queue|db)\b",
        lx.IDENTIFIER,
        0.75,
    ),
    _dealers,
    _origins,
    _unnumbered,
    _by(rf"\b(?:[Tt]he|[Oo]ur|[Mm]y)\s+((?:(?:[a-z][\w-]*|[A-Z]{{2,5}})\s+){{0,2}}(?:{_PARTS}))\b", lx.CONCEPT, 0.55),
    _people,
    _by(r"[\"“]([A-Z][^\"”\n]{1,60})[\"”]", lx.CONCEPT, 0.6),
)
