"""Secrets by key name: the values of assignments, arguments and sentences such as "the password is …"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from alma.lazy import lazy_regex
from alma.redaction.names import SUFFIX, Name, Sort, counts, is_english, names_in
from alma.redaction.rules import Span
from alma.redaction.values import (
    is_joined_phrase,
    is_no_word,
    is_password,
    is_phrase,
    is_pin,
    is_plain_word,
    is_slug,
    is_technical,
    is_unlike_any_name,
    looks_random,
    may_be,
)

# An ampersand is part of a value unless it begins the next query parameter or the next command.
_SIGN = r"""(?:[^\s,;"'`&<>]|&(?![\w.-]{0,64}=|&|\s|$))"""
_QUOTED = r'''(?P<quote>\\?(?:"""|\'\'\'|["'`]))(?P<quoted>(?:(?!(?P=quote))[^\n]){1,}?)(?P=quote)'''
_VALUE = rf"""{_QUOTED}|(?P<bare>{_SIGN}{{3,}}+)"""
# What separates a value from its name: in code, JSON, URLs and tables, in bold, or with the type in between; on the
# same line or alone on one of the next two.
_QUOTE = r"(?:\\?[\"'`]|%22|\*{1,3}|_{2})?"
_TYPE = r"(?:\s?:\s?[A-Za-z_&][\w.&*\[\]|<>?]{0,30}(?=\s?=))?"
_BELOW = r"[^\S\n]{0,4}(?:\n[^\S\n]{0,80}){1,2}"
_ASSIGNED = lazy_regex(
    rf"{SUFFIX}(?: ?\([^()\n]{{0,40}}\))?{_QUOTE}{_TYPE}(?P<gap>\s{{0,4}})"
    rf"(?P<by>=>|:=|==?|:|：|%3[ad]|\||->|→|–|—|-(?=\s))"
    rf"(?:(?:\*{{1,3}}|_{{2}})(?=\s))?(?P<after>{_BELOW}|[^\S\n]{{0,4}})(?:%22|\*{{1,3}})?(?:{_VALUE})"
)
# Separators that are also common between other words.
_LOOSE = ("|", "->", "→", "–", "—", "-")
_COLONS = (":", "：")
_SHORTEST_SAID = 6
_LONG = 500
_LONGEST_LEAD = 60
_SHORT_VALUE = r"""(?:(?P<quote>["'`“])(?P<quoted>[^\n"'`”]{3,}+)["'`”]|(?P<bare>[^\s,;"'`<>]{4,}+))"""
_FLAG = lazy_regex(rf"(?:[= ]\s?)(?:{_QUOTED}|(?P<bare>{_SIGN}{{3,}}+))")
_BEFORE_FLAG = lazy_regex(r"(?<!\S)--?[a-z_-]*\Z")
_FOR = (
    r"(?:\s++(?:for|of|to|on|at|für|von|vom|zum|para|pour|de|du|des|del|della|do|da|di|per|voor|för|til|dla|для|от|к|"
    r"na)\s++"
    r"[^\n:=;]{1,60}?)"
)
_IS = r"(?:is|was|will\s++be|are|ist|war|lautet|est|es|era|è|é|är|er|jest|это|هي|هو|है|=)(?:\s++now)?"
_SAID = lazy_regex(
    rf"(?:\s++code)?(?:{_FOR}?\s++{_IS}(?:\s*+:)?\s++|{_FOR}\s*+(?:=>|->|→|:)\s*+|\s?(?:是|为|為|は|는|은)\s?[:：]?\s?){_SHORT_VALUE}"
)
# Prepositions that are usually followed by a place: the password on server12, to server12.
_SAID_ABROAD = lazy_regex(
    rf"{_FOR}?(?:\s++(?:to|je|on|e|ir|la|là|és|este|esta|está|yra|adalah|ialah|olarak|είναι|је|היא|הוא)(?:\s*+:)?\s++|\s?คือ\s?)"
    rf"{_SHORT_VALUE}"
)
# "set the password to hunter2": after "set" comes a value, not the place that the password is for.
_TO = lazy_regex(
    rf"(?:{_FOR})??(?:\s++from\s++\S{{1,80}})?\s++(?P<to>to|auf|à|a|en|su|till|naar|na|"
    rf"на)(?:\s*+:)?\s++{_SHORT_VALUE}(?!\s++(?:is|was|ist|est|es)\b)"
)
_SET = lazy_regex(r"\b(?:set|sett|chang|reset|updat|rotat|switch|mak|mad|default|assign|renam|mov)\w*\b[^.\n]*\Z")
# "the password was changed to hunter2": a value follows, unless it is a name.
_CHANGED = r"(?:set|changed|updated|rotated|switched|reset|altered)"
_BECAME = lazy_regex(
    rf"{_FOR}?\s++(?:(?:was|is|has\s++been|had\s++been|got|gets|will\s++be)\s++(?:now\s++|just\s++)?{_CHANGED}\s++(?:back\s++)?to"
    rf"|used\s++to\s++be|became|remains|stays|(?:wurde|wird|ist)\s++(?:jetzt\s++|nun\s++)?auf|a\s++été\s++changé\s++en"
    rf"|(?:se\s++cambió|ha\s++sido\s++cambiad[ao])\s++a|è\s++stat[ao]\s++cambiat[ao]\s++in|foi\s++(?:alterad|mudad)[ao]\s++para)"
    rf"(?:\s*+:)?\s++{_SHORT_VALUE}"
)
_FROM = lazy_regex(rf"\s++from\s++{_SHORT_VALUE}\s++to\b")
# "the key that you gave me, 9f8e…, has expired".
_RELATED = lazy_regex(rf"\s++(?:that\s++)?(?:you|i|we|he|she|they)\s[a-z' ]{{2,30}}[,:]\s{{1,3}}{_SHORT_VALUE}")
# define('DB_PASSWORD', '…'), environ.get("DB_PASSWORD", "…"): the name is one argument and the value the next.
_NEXT_ARGUMENT = lazy_regex(rf"{SUFFIX}[\"']\s?,\s{{0,4}}[bru]?(?:{_QUOTED})\s{{0,4}}\)")
_DEFINING = lazy_regex(
    r"(?:define|putenv|setenv|setdefault|set_?property|(?:set|add|append)_?header)\(\s{0,4}[\"'][\w.-]{0,60}\Z"
)
# A default value in code: what the secret is if nothing else is configured.
_OTHERWISE = lazy_regex(
    rf"{SUFFIX}{_QUOTE}\s?[:=]\s?[\w.$()\[\]\"']{{1,80}}?\s{{0,4}}(?:\?\?|\|\||\bor\b)\s{{0,4}}(?:{_QUOTED})"
    rf"|{SUFFIX}[\"']\)\s?\.(?:unwrap_or\w{{0,10}}|or_?else|get_?or_?else)\(\s{{0,4}}(?P<quote2>[\"'])(?P<bare>[^\"'"
    rf"\n]{{3,}}+)(?P=quote2)"
)
_IN_BLOCK = lazy_regex(
    rf"{SUFFIX}\\?[\"']\s?:?\s?\{{[^{{}}]{{0,300}}?\\?[\"']?\b(?:default|value)\\?[\"']?\s{{0,12}}[:=]\s?(?:{_QUOTED})"
)
# <b>Password:</b> …, <key>Token</key><string>…
_BEHIND_MARKUP = lazy_regex(rf"{SUFFIX}\s?:?\s?(?:</?\w{{1,12}}>\s{{0,8}}){{1,3}}:?\s?(?P<bare>[^\s<>\"',;]{{5,}}+)")
# "log in with the password hunter2": without a verb, only a word that is not in a dictionary is recognized.
_BEFORE_TOLD = lazy_regex(
    r"\b(?:with|and|use|using|the|my|her|his|their|our|your|mit|dem|das|mein|le|mon|el|la|mi|temporary|temp|initial|"
    r"new|old"
    r"|default|current|root|admin|wi-?fi) \Z|[,;] \Z"
)
_TOLD = lazy_regex(r"\s++(?P<bare>[^\s,;\"'`<>]{6,}+)")
_BESIDE_QUOTED = lazy_regex(r"""\s++(?P<quote>["'`“])(?P<quoted>[^\s"'`”]{6,}+)["'`”]""")
# A key or token that follows its name without a separator: long, with only letters and digits.
_BESIDE = lazy_regex(r"\s++(?P<bare>(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{12,}+)(?![\w-])")
# "hunter2 is the password".
_BEFORE_TOLD_AFTER = lazy_regex(r" (?:is|was|as) (?:the|my|her|his|their|our|your) (?:[\w-]+ )?(?:api )?(?=\Z)")
_TOLD_AFTER = lazy_regex(r"(?=[ \t]*(?:[.,;!?)\n]|$|for\b|to\b|of\b))")
_NOT_IN_WORD = lazy_regex(r"[\s,;\"'`<>(]")
_TRAILING = ".,;:)]}*"
_AFTER_NUMBER = lazy_regex(r"[ \t.,;:)\]}*!\"']*(?:$|\n|(?<=[.,;)!\"'])\s)")


@dataclass(frozen=True, slots=True)
class _Found:
    """A value next to the name of a secret; the match is on the lower-case text."""

    name: Name
    match: re.Match[str]
    text: str

    @property
    def group(self) -> str:
        return "quoted" if self.quoted else "bare"

    @property
    def quoted(self) -> bool:
        return self.match.groupdict().get("quoted") is not None

    @property
    def value(self) -> str:
        value = self.text[self.match.start(self.group) : self.match.end(self.group)]
        return value if self.quoted else value.rstrip(_TRAILING)

    def span(self, kind: str) -> Span:
        start = self.match.start(self.group)
        return Span(start, start + len(self.value), kind)


def assigned_spans(text: str, folded: str) -> Iterator[Span]:
    """The values next to the name of a secret; `folded` is the lower-case text."""
    if len(folded) != len(text):
        # Some letters become two in lower case, which would shift the positions.
        folded = "".join(small if len(small := c.lower()) == 1 else c for c in text)
    long_word = range(0)
    for name in names_in(folded):
        if name.start in long_word:
            continue
        match = _ASSIGNED.match(folded, name.end)
        if match is not None and len(match[0]) > _LONG:
            # Skip the names inside of a long value: each would match the rest of it again.
            long_word = range(name.start + 1, match.end())
        span = _span_of(name, match, text, folded)
        if span is not None:
            yield span


def _span_of(name: Name, match: re.Match[str] | None, text: str, folded: str) -> Span | None:
    """The value next to a name, if it is a secret; `match` is that of an assignment."""
    if match is not None and not counts(folded, name) and _is_assigned(found := _Found(name, match, text), folded):
        return found.span("secret" if name.sort is Sort.TOKEN else "password")
    if _BEFORE_FLAG.search(folded, max(0, name.start - _LONGEST_LEAD), name.start) is not None:
        match = _FLAG.match(folded, name.end)
        return None if match is None or not _is_argument(found := _Found(name, match, text)) else found.span("secret")
    if name.sort is Sort.PASS:
        return None
    return _coded_span(name, text, folded) or _spoken_span(name, text, folded) or _value_before_name(name, text, folded)


def _coded_span(name: Name, text: str, folded: str) -> Span | None:
    """A value that code or markup assigns to a name at a distance."""
    following = folded[name.end : name.end + 40]
    if not any(sign in following for sign in ",?|{<)") and " or " not in following:
        return None
    for pattern in (_NEXT_ARGUMENT, _OTHERWISE, _IN_BLOCK, _BEHIND_MARKUP):
        match = pattern.match(folded, name.end)
        if match is None or not may_be((found := _Found(name, match, text)).value):
            continue
        defined = pattern is _IN_BLOCK or (
            pattern is _NEXT_ARGUMENT
            and _DEFINING.search(folded, max(0, name.start - 2 * _LONGEST_LEAD), name.start) is not None
        )
        if defined or is_password(found.value) or is_no_word(found.value):
            return found.span("secret")
    return None


def _spoken_span(name: Name, text: str, folded: str) -> Span | None:
    match = _SAID.match(folded, name.end)
    if match is None and not is_english(folded, name):
        match = _SAID_ABROAD.match(folded, name.end)
    if match is not None and _is_said(found := _Found(name, match, text), folded):
        return found.span("secret")
    lead = max(0, name.start - _LONGEST_LEAD)
    for related in (_RELATED, _FROM, _BECAME):
        match = related.match(folded, name.end)
        if match is not None and _is_told(found := _Found(name, match, text)):
            # A token may be changed to that of server2.
            named = related is _BECAME and name.sort is Sort.TOKEN and is_slug(found.value)
            return None if named else found.span("secret")
    match = _TO.match(folded, name.end)
    if match is not None and _is_set_to(found := _Found(name, match, text)) and _SET.search(folded, lead, name.start):
        return found.span("secret")
    match = _BESIDE_QUOTED.match(folded, name.end)
    if match is None and name.sort is Sort.PASSWORD:
        match = _TOLD.match(folded, name.end)
        if match is not None and _BEFORE_TOLD.search(folded, lead, name.start) is None:
            # Without an introducing word, only a value that does not look like a name is a password.
            match = match if is_unlike_any_name(_Found(name, match, text).value) else None
    if match is None and name.sort is Sort.TOKEN:
        match = _BESIDE.match(folded, name.end)
    if match is not None and _is_told(found := _Found(name, match, text)):
        return found.span("secret")
    return None


def _value_before_name(name: Name, text: str, folded: str) -> Span | None:
    lead = _BEFORE_TOLD_AFTER.search(folded, max(0, name.start - _LONGEST_LEAD), name.start)
    if lead is None or _TOLD_AFTER.match(folded, name.end) is None:
        return None
    start = _start_of_word(text, lead.start())
    word = text[start : lead.start()]
    if len(word) < _SHORTEST_SAID or (start and text[start - 1] not in "(" and not text[start - 1].isspace()):
        return None
    return Span(start, lead.start(), "secret") if may_be(word) and is_no_word(word) else None


def _start_of_word(text: str, end: int) -> int:
    """The start of the word that ends here."""
    start = end
    while start and _NOT_IN_WORD.match(text, start - 1) is None:
        start -= 1
    return start


def _is_assigned(found: _Found, folded: str) -> bool:
    match, value, sort = found.match, found.value, found.name.sort
    if not may_be(value):
        return False
    if sort in (Sort.PASS, Sort.PIN):
        return (_is_behind_pass if sort is Sort.PASS else _is_behind_pin)(found, folded)
    is_for_password = sort is Sort.PASSWORD
    if match["by"] in _LOOSE:
        return is_for_password and len(value) >= 5 and looks_random(value) and not is_technical(value)
    if found.quoted:
        return len(value) >= 3 and (" " not in value.strip() or (is_for_password and is_phrase(value)))
    if "\n" in match["after"]:
        return _is_alone_below(found, folded)
    tight = not match["gap"] and not match["after"]
    if match["by"] not in _COLONS and tight:
        return len(value) >= (3 if is_for_password else 6) and (is_for_password or not value.isdigit())
    if is_for_password and is_joined_phrase(value):
        return _ends_line(folded, match.end())
    if is_plain_word(value):
        # In prose, a plain word is the secret only at the end of a line.
        return is_for_password and len(value) >= 5 and _ends_line(folded, match.end()) and match["by"] != "=="
    if value.isdigit():
        return is_for_password and len(value) >= 4
    return is_password(value) and len(value) >= (5 if is_for_password else 8)


def _is_behind_pin(found: _Found, _: str) -> bool:
    return is_pin(found.value) and found.match["by"] not in _LOOSE


def _is_behind_pass(found: _Found, folded: str) -> bool:
    """Whether a value after "pass" is a password, not a passed test."""
    match, value = found.match, found.value
    if match["by"] in _LOOSE or not is_no_word(value) or len(value) < _SHORTEST_SAID:
        return False
    if any(c in "!@#$%^&*+~?" for c in value):
        return True
    if "\n" in match["after"] or value.lower().startswith("test"):
        return False
    if match["by"] == "=" and not match["gap"] and not match["after"]:
        return True
    # Test runners begin a line with "PASS:".
    is_result = found.text[found.name.start : found.name.end].isupper() and match["by"] in _COLONS
    behind = folded[match.end() : match.end() + 2].lstrip(" \t\"'`)]}*")
    return not is_result and (not behind or behind[0] in "\r\n")


def _is_alone_below(found: _Found, folded: str) -> bool:
    """Whether a value alone on the line below its name is a secret."""
    value = found.value
    if not _ends_line(folded, found.match.end("bare")) or found.match["by"] not in (*_COLONS, "="):
        return False
    if found.name.sort is Sort.PASSWORD:
        return len(value) >= _SHORTEST_SAID and is_password(value)
    return len(value) >= 12 and is_no_word(value) and not is_slug(value)


def _is_argument(found: _Found) -> bool:
    value = found.value
    if value.startswith("-") or not may_be(value) or len(value) < 3:
        return False
    if found.name.sort is Sort.PIN:
        return is_pin(value)
    if found.name.sort is Sort.PASS:
        return is_no_word(value)
    return found.quoted or not is_plain_word(value)


def _is_said(found: _Found, folded: str) -> bool:
    value = found.value
    if found.name.sort is Sort.PIN:
        return is_pin(value)
    if not may_be(value):
        return False
    if found.quoted:
        return " " not in value.strip() or (found.name.sort is Sort.PASSWORD and is_phrase(value))
    if value.isdigit():
        # A number before a word is a count.
        is_whole = _AFTER_NUMBER.match(folded, found.match.end()) is not None
        return found.name.sort is Sort.PASSWORD and is_pin(value) and is_whole
    if found.name.sort is Sort.PASSWORD and is_joined_phrase(value, least=4):
        return True
    return len(value) >= _SHORTEST_SAID and is_no_word(value)


def _is_set_to(found: _Found) -> bool:
    value = found.value
    if _is_quoted_phrase(found) and found.match["to"] == "to":
        return may_be(value)
    if not may_be(value) or len(value) < _SHORTEST_SAID or " " in value or not is_password(value):
        return False
    if found.match["to"] != "to":
        # In other languages the same word introduces the place of a password.
        return is_no_word(value) and any(c in "!@#$%^&*+~?" for c in value)
    return found.quoted or (is_no_word(value) and (found.name.sort is Sort.PASSWORD or len(value) >= 12))


def _is_told(found: _Found) -> bool:
    value = found.value
    if found.name.sort is Sort.PIN:
        return is_pin(value)
    if not may_be(value) or len(value) < _SHORTEST_SAID:
        return False
    return is_no_word(value) or _is_quoted_phrase(found)


def _is_quoted_phrase(found: _Found) -> bool:
    return found.quoted and found.name.sort is Sort.PASSWORD and " " in found.value.strip() and is_phrase(found.value)


def _ends_line(text: str, end: int) -> bool:
    return text[end : end + 2].strip(" \t" + _TRAILING + "\"'`") == "" or text[end : end + 1] in "\n,;"
