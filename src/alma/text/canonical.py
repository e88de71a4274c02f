"""Canonical words of a text, to find duplicates: without case, fillers, contractions, plurals and spellings."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable

from alma.lazy import lazy_regex
from alma.text.scanning import WINDOW, squeezed, windows
from alma.text.tokens import short_text_cache

Replacement = str | Callable[[re.Match[str]], str]

# Only these words are fillers: none changes polarity, number or order.
_FILLERS = frozenset(("a", "an", "the", "please", "just", "simply", "really", "actually", "basically"))
_OPENINGS = lazy_regex(
    r"^\W*(?:please\s+)?(?:note|remember|reminder|fyi|important|i(?:'ve| have)? learn(?:ed|t)|"
    r"lesson(?: learned)?|insight)\s*(?::|\bthat\b|,|-\s)\s*",
    re.IGNORECASE,
)
_CONTRACTIONS: tuple[tuple[re.Pattern[str], Replacement], ...] = tuple(
    (lazy_regex(pattern), replacement)
    for pattern, replacement in (
        (r"\bcan'?t\b|\bcannot\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\b(dont|doesnt|didnt|isnt|arent|wasnt|shouldnt|mustnt)\b", lambda m: m.group(1)[:-2] + " not"),
        (r"\b(it|that|there|he|she)'s\b", r"\1 is"),
        # The API's rate limit is the API rate limit.
        (r"(?<=\w)'s\b", ""),
        (r"'re\b", " are"),
        (r"'ll\b", " will"),
    )
)
# One character for look-alikes, and none for invisible ones.
_APOSTROPHES = str.maketrans(
    {"\u2019": "'", "\u02bc": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2212": "-"}
    | dict.fromkeys("\u00ad\u200b\u200e\u200f\u2060\ufeff", "")
)
# Layout: bullets, quotation marks of mail, ticks, emphasis.
_SETTING = lazy_regex(r"^[ \t]*(?:[-*•>▪‣◦·✅✔☑]+\ufe0f?[ \t]+)+(?=[^\W\d])", re.MULTILINE)
_EMPHASIS = lazy_regex(r"(?<!\w)(\*{1,3}|_{1,3})(?=\S)([^*_\n]+?)(?<=\S)\1(?!\w)")
# A 24-hour token is a 24 hour token; 5-a and 3-4 are something else.
_COUNTED = lazy_regex(r"(?<=\d)-(?=[a-z]{3})")
_THOUSANDS = lazy_regex(r"(?<=\d),(?=\d{3}(?:\D|$))")
# "One" is mostly not a number: this one, one by one.
_UP_TO_NINETEEN = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: str(number) for number, word in enumerate(_UP_TO_NINETEEN.split(), 2)}
_NUMBERS |= {word: str(10 * number) for number, word in enumerate(_TENS.split(), 2)}
# "Under three metres" is below; "over three days" is as often during.
_A_NUMBER = rf"\s+(?=[$€£]?\d|(?:{'|'.join(_NUMBERS)})\b)"
_BOUNDS = tuple(
    (lazy_regex(rf"\b(?:{said}){_A_NUMBER}"), f"{bound} ")
    for said, bound in (
        ("no more than|not more than|up to|a maximum of", "at most"),
        ("no less than|no fewer than|not less than|a minimum of", "at least"),
        ("under|less than|fewer than|lower than|smaller than", "below"),
        ("more than|greater than|higher than|larger than", "above"),
    )
)
# A single A is an article only before a word: not in plan A, a + b.
_DASH = lazy_regex(r"(?<=\s)[–—](?=\s)")
_NAMED_A = lazy_regex(r"(?<=[a-z,] )A(?=\W|$)")
_A_NAME = "\x02"
# A word keeps signs that are part of it (C++, C#, v1.2, -1, 50%, a.b, x/y).
_TOKEN = lazy_regex(r"!=+|[^\s,;!?\"'`()\[\]{}…“”«»—–\ufe0f]+")
_EDGES = ".:|_"
_UNSAID = frozenset((".", ":", "..", "::", "_", "|", "--", "---", "***", "//", "•", "·"))
# Words at which a sentence can be reordered: before a commit run the tests, run the tests before a commit.
_TURNING = frozenset(
    ("before", "after", "when", "whenever", "if", "unless", "until", "while", "once", "because", "since")
)
_FRONTED = lazy_regex(
    r"^((?:in|on|for|with|without|at|by|during|under|from|to|as|via|using|within|instead of|rather than)\s[^,]+),"
    r"\s*([^,]+)$"
)
_SEVERAL_SENTENCES = lazy_regex(r"[.!?;:]\s+\S|\n\s*\S|,.*,", re.DOTALL)
# Words whose final s is not a plural.
_OWN_PLURALS = """
https ldaps imaps smtps mqtts amqps windows goods customs means savings glasses series species arms
"""
_NO_PLURALS = frozenset(_OWN_PLURALS.split())
_VOWELS = frozenset("aeiouy")
_DOUBLED_CONSONANT = lazy_regex(r"([bdfglmnprtz])\1(?=(?:ing|ed|er|ers|able)$)")
_TAKEN_FOR_EACH_OTHER = """
casual causal; united untied; martial marital; sacred scared; unclear nuclear; silver sliver; desert dessert; casually
causally; conversation conservation; diary dairy
"""
_TERMS_REMEMBERED = 20_000
_OTHER_WORDS = frozenset(frozenset(pair.split()) for pair in _TAKEN_FOR_EACH_OTHER.split(";"))
_OTHER_SPELLINGS = {
    "centre": "center", "centres": "centers", "centred": "centered", "metre": "meter", "metres": "meters",
    "litre": "liter", "litres": "liters", "fibre": "fiber", "theatre": "theater", "catalogue": "catalog",
    "catalogues": "catalogs", "dialogue": "dialog", "dialogues": "dialogs", "analogue": "analog", "licence": "license",
    "licences": "licenses", "defence": "defense", "offence": "offense", "practise": "practice",
    "programme": "program", "programmes": "programs", "grey": "gray", "judgement": "judgment", "artefact": "artifact",
    "artefacts": "artifacts", "analyse": "analyze", "analysed": "analyzed", "analysing": "analyzing",
    "sceptical": "skeptical", "acknowledgement": "acknowledgment", "aeroplane": "airplane", "aeroplanes": "airplanes",
    "aluminium": "aluminum", "cheque": "check", "cheques": "checks", "cosy": "cozy", "draught": "draft",
    "draughts": "drafts", "enrol": "enroll", "enrols": "enrolls", "enrolment": "enrollment", "fibres": "fibers",
    "fulfil": "fulfill", "fulfils": "fulfills", "fulfilment": "fulfillment", "instalment": "installment",
    "instalments": "installments", "jewellery": "jewelry", "kerb": "curb", "kerbs": "curbs",
    "manoeuvre": "maneuver", "manoeuvres": "maneuvers", "mould": "mold", "moulds": "molds", "plough": "plow",
    "ploughs": "plows", "pretence": "pretense", "skilful": "skillful", "sulphur": "sulfur", "theatres": "theaters",
    "tyre": "tire", "tyres": "tires", "yoghurt": "yogurt", "yoghurts": "yogurts",
}  # fmt: skip
# British endings and vowels in American spelling, in this order: kilometre, haemoglobin, diarrhoea, paralyse, organise,
# colour, travelled.
_AMERICAN = tuple(
    (lazy_regex(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"(?<=[a-z]{3})(met|lit)re(?=s?$)", r"\1er"),
        (r"(?:(?<=h)a(?=em)|(?<=an)a(?=es|em)|(?<=p)a(?=ed))", ""),
        (r"(?<=rh)o(?=ea)", ""),
        (r"(?<=[a-z]{3}ly)s(?=e[sd]?$|ing$)", "z"),
        (
            r"\b([a-z]{3,}(?:al|an|ar|as|at|en|er|gn|il|im|in|it|og|ol|on|or|tom|ur))is(e|es|ed|er|ing|ations?)\b",
            r"\1iz\2",
        ),
        (
            r"\b(arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rum|sav|vap)our"
            r"(?=s|ed|ing|ful|ite|able|al|hood|\b)",
            r"\1or",
        ),
        (r"\b(cancel|channel|fuel|label|level|model|signal|total|travel|tunnel)l(?=ed|ing|er)", r"\1"),
    )
)


def canonical_words(text: str) -> list[str]:
    """The words of a text without case, punctuation, articles and plural endings; numbers, names and signs stay."""
    return [token for part in windows(squeezed(text), overlap=0) for token in _tokens(_plain(part))]


def ordered_words(text: str) -> list[str]:
    """The canonical words, with a movable clause always on the same side."""
    if len(text) > WINDOW:
        return canonical_words(text)
    plain = _plain(squeezed(text))
    if _SEVERAL_SENTENCES.search(plain.strip()):
        return _tokens(plain)
    words = _tokens(_FRONTED.sub(r"\2 \1", plain.strip().rstrip(".!?")))
    turning = [i for i, word in enumerate(words) if word in _TURNING]
    return words[turning[0] :] + words[: turning[0]] if len(turning) == 1 else words


def fingerprint(*parts: object) -> str:
    """A short digest of these parts."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def differ_by_typo(one: str, other: str) -> bool:
    """Whether two canonical texts differ in one mistyped word only: two letters swapped, or one doubled."""
    ours, theirs = re.split("[ \x1f]", one), re.split("[ \x1f]", other)
    if len(ours) != len(theirs):
        return False
    different = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    return len(different) == 1 and _is_slip(*different[0])


def _plain(text: str) -> str:
    """The text in one spelling, without case and layout."""
    bare = _DASH.sub("-", _SETTING.sub("", _EMPHASIS.sub(r"\2", text.translate(_APOSTROPHES))))
    folded = unicodedata.normalize("NFKC", _NAMED_A.sub(f"{_A_NAME}a", bare)).casefold()
    plain = _COUNTED.sub(" ", _THOUSANDS.sub("", _OPENINGS.sub("", folded)))
    for pattern, replacement in _CONTRACTIONS:
        plain = pattern.sub(replacement, plain)
    for bounded, bound in _BOUNDS:
        plain = bounded.sub(bound, plain)
    return plain


def _tokens(plain: str) -> list[str]:
    found = [token for match in _TOKEN.finditer(plain) if (token := _bare(match.group()))]
    around = zip(["", *found], found, [*found[1:], ""], strict=False)
    return [_term(token) for before, token, after in around if not _says_nothing(before, token, after)]


def _bare(token: str) -> str:
    """The token without surrounding punctuation; signs alone stay unless they are punctuation."""
    if token in _UNSAID:
        return ""
    stripped = token.strip(_EDGES)
    return stripped if any(map(str.isalnum, stripped)) else token


def _says_nothing(before: str, token: str, after: str) -> bool:
    if token == "a":
        return len(after) > 1 and (after.isalpha() or after[0].isdigit())
    # Between words a hyphen is a dash, between numbers and single letters it is a minus.
    return token in _FILLERS or (token == "-" and _is_word(before) and _is_word(after))


def _is_word(token: str) -> bool:
    return len(token) > 1 and token.isalpha()


@short_text_cache(_TERMS_REMEMBERED)
def _term(token: str) -> str:
    """The token in the singular and in American spelling; a number in digits."""
    return _NUMBERS.get(token) or _singular(_american(token))


def _singular(token: str) -> str:
    if len(token) > 4 and token.isalpha() and token.endswith("s") and not token.endswith(("ss", "us", "is")):
        return token if token in _NO_PLURALS or _VOWELS.isdisjoint(token) else token[:-1]
    return token


def _is_slip(a: str, b: str) -> bool:
    if min(len(a), len(b)) < 6 or not (a.isalpha() and b.isalpha()) or frozenset((a, b)) in _OTHER_WORDS:
        return False
    if len(a) == len(b):
        i = next(i for i in range(len(a)) if a[i] != b[i])
        return a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    if _DOUBLED_CONSONANT.sub(r"\1", longer) == shorter:
        # Scraping and scrapping, filing and filling.
        return False
    return any(longer[i] == longer[i + 1] and longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer) - 1))


def _american(word: str) -> str:
    """The word in American spelling."""
    known = _OTHER_SPELLINGS.get(word.lower())
    if known:
        return known
    for pattern, replacement in _AMERICAN:
        word = pattern.sub(replacement, word)
    return word
