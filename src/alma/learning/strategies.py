"""Strategies: when two texts say to do the same thing, and when one says the opposite of the other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from alma.learning.extent import Extent, Link, elsewhere, extent_of, in_a_case_only, linked_otherwise, links
from alma.learning.negations import NEGATION_TERMS, WORDS, clauses, negations
from alma.learning.phrases import Phrase, exchanged, is_symmetric, opposite_ways, phrases
from alma.learning.signs import Signs, signs_of
from alma.learning.vocabulary import FRAMES, INTERCHANGEABLE, NEAR, OPPOSITES, plain_words, terms_of, word_terms
from alma.learning.wordings import worded
from alma.model.scanning import squeezed
from alma.model.text import STOP_WORDS, terms

_OPPOSING_PREFIXES = ("un", "dis", "non", "in", "im", "a", "de", "anti", "mis", "ne", "nie", "не")
# One by one and field by field are ways to do each by itself; to start with something is to do it, only first.
_EACH_BY_ITSELF = re.compile(
    r"\b(?:one (?:by one|at a time|after (?:another|the other))|(\w+)[ -]by[ -]\1|one (\w+) at a time)\b", re.IGNORECASE
)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
# In few-shot and before_script the small word is the one that tells.
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]+(?:[-_][^\W_]+)+")
_STARTING = re.compile(r"\b(?:start|begin|lead|led)(?:ed|s|ing|ning)? (?:with|by|off)\b", re.IGNORECASE)
_SIGNING_IN = re.compile(r"\b(sign|log|opt|check|clock|zoom)(?:g?ed|s|g?ing)?[- ]?(in|up|out|off)\b", re.IGNORECASE)
_TURNED_INTO_ONE = frozenset(("by", "time", "after", "with", "off", "in", "up", "out"))
_LETTERS = re.compile("[a-z]+")
_NONE: frozenset[str] = frozenset()
# Where a text may say something by signs; a hyphen or a full stop inside it is none.
_SIGNS = re.compile(r"[^\w\s,.;:'’\"()\[\]/!?-]|(?:^|[\s(=])[-+]\w| - |(?:^|\s)\.[A-Za-z]")
_SENTENCE_BEGINS = ".!?:;(\n-*•"
_CAPITAL = re.compile(r"(?<![\w'’./-])[A-Z][a-z][\w]*|\b[a-z]+[A-Z]\w*")
_OWNERS = re.compile(r"\b(?!(?:it|that|there|what|let|he|she|who|here)\b)(\w+)['’]s\b", re.IGNORECASE)
_ACRONYM = re.compile(r"(?<![\w'’./-])[A-Z][A-Z0-9]+s?(?![\w'’])")

_SAME_MEANING, _SHARED_BY_MEANING = 0.78, 0.3
_SAME_WORDS = 0.75
_LONG_ENOUGH_TO_MISTYPE = 7
_READINGS_REMEMBERED = 10_000
_LONGEST_READ = 4_000
_PARTICLES = frozenset(("up", "down", "out", "off"))
# Small words that tell where something stands, or how much of it.
_SMALL_WORDS = "all both few first last less more most off only other out own same up down"
_TELLING = frozenset(_SMALL_WORDS.split())


@lru_cache(maxsize=_READINGS_REMEMBERED)
def strategy_key(text: str) -> str:
    """What two spellings of a strategy have in common: its words and signs, without case, endings and punctuation."""
    words = " ".join(word_terms(text))
    if words and _SIGNS.search(text) is None:
        return words
    signs = signs_of(text)
    said = (*signs.telling, *signs.comparisons, *signs.pictures)
    return " ".join([words, *sorted(sign for sign in said if not sign.isalnum())]).strip() or text.strip()


def same_strategy(one: str, other: str, cosine: float | None = None) -> bool:
    """Whether both say to do the same: in the same words, or in others that mean as much.

    `cosine` is that of their vectors, where there are any. What negates, orders or numbers differently, and one word
    in the place of another that does not mean as much, is another strategy however alike it looks.
    """
    by_words = same_by_words(one, other)
    return by_words if by_words is not None else cosine is not None and cosine >= _SAME_MEANING


def same_by_words(one: str, other: str) -> bool | None:
    """Whether both say to do the same, as far as words tell; None where it depends on what they mean."""
    if max(len(one), len(other)) > _LONGEST_READ:
        return _same_at_length(one, other)
    ours, yours = _read(one), _read(other)
    if ours.key == yours.key:
        return ours.negations == yours.negations
    found = _same_content(ours, yours)
    # Most differ in what they are about, which is quickly seen.
    if found is False or ours.signs.differ(yours.signs) or _other_names(ours, yours) or _opposed(ours, yours):
        return False
    return False if _of_another_extent(ours, yours) else found


def _same_at_length(one: str, other: str) -> bool | None:
    """The same of texts that are too long for a strategy: their words decide, and not how their sentences are built."""
    if strategy_key(one) == strategy_key(other):
        return True
    mine, theirs = set(word_terms(one)), set(word_terms(other))
    return None if len(mine & theirs) / max(1, min(len(mine), len(theirs))) >= _SHARED_BY_MEANING else False


def _same_content(one: _Reading, other: _Reading) -> bool | None:
    if min(len(one.content), len(other.content)) <= 1:
        mine, theirs = _in_one_word(one.content, other.content)
        return mine == theirs
    mine, theirs = _nearest_spelling(one, other)
    if len(mine) > 1 < len(theirs) and mine.isdisjoint(theirs):
        return False
    mine, theirs = _in_one_word(mine, theirs)
    if len(mine - theirs) == len(theirs - mine) == 1:
        return _stand_for_each_other(one.content ^ other.content, mine ^ theirs)
    shared = len(mine & theirs)
    if shared / len(mine | theirs) >= _SAME_WORDS:
        return True
    return None if shared / min(len(mine), len(theirs)) >= _SHARED_BY_MEANING else False


def _nearest_spelling(one: _Reading, other: _Reading) -> tuple[frozenset[str], frozenset[str]]:
    """What both say, each with its hyphens as spaces or without them, whichever is nearer to the other: back-off."""
    ours, yours = ({plain_words(words) for words in (each.content, each.joined)} for each in (one, other))
    spellings = ((mine, theirs) for mine in ours for theirs in yours)
    return min(spellings, key=lambda pair: len(pair[0] ^ pair[1]))


def _in_one_word(mine: frozenset[str], theirs: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Both, with that in one word which one of them has in one and the other in two: hash map, hashmap."""
    only_mine, only_theirs = mine - theirs, theirs - mine
    if not only_mine or not only_theirs:
        return mine, theirs
    return _joined(mine, only_mine, only_theirs), _joined(theirs, only_theirs, only_mine)


def _joined(words: frozenset[str], parts: frozenset[str], wholes: frozenset[str]) -> frozenset[str]:
    starts = tuple(parts)
    for whole in wholes:
        if whole.startswith(starts):
            for part in parts:
                if whole.startswith(part) and (rest := whole[len(part) :]) in parts:
                    words = words - {part, rest} | {whole}
    return words


def _stand_for_each_other(words: frozenset[str], plain: frozenset[str]) -> bool | None:
    """Whether the two words in which texts differ may stand for each other; None where meaning tells."""
    if words in INTERCHANGEABLE:
        return True
    return None if words in NEAR or _mistyped(*plain) else False


@lru_cache(maxsize=4096)
def contradicts(one: str, other: str, cosine: float | None = None) -> bool:
    """Whether one says to do what the other says not to do."""
    ours, yours = _read(one), _read(other)
    shared = len(ours.content & yours.content)
    if not shared:
        return False
    alike = shared / len(ours.content | yours.content) >= 0.5 or (cosine is not None and cosine >= _SAME_MEANING)
    return alike and _opposed(ours, yours)


def told_apart(one: str, other: str) -> bool:
    """Whether two texts of the same words say something else: by signs, a negation, or what stands where."""
    ours, yours = _read(one), _read(other)
    if ours.signs.differ(yours.signs, exactly=True) or _opposed(ours, yours) or _of_another_amount(ours, yours):
        return True
    return exchanged(_phrases(ours.text), _phrases(yours.text), strictly=True)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a text says, as far as its words tell."""

    text: str
    key: str
    negations: int
    denies: bool
    words: frozenset[str]
    spelled: frozenset[str]
    content: frozenset[str]
    joined: frozenset[str]
    extent: Extent
    signs: Signs
    names: frozenset[str]
    acronyms: frozenset[str]
    owners: frozenset[str]


@lru_cache(maxsize=_READINGS_REMEMBERED)
def _read(text: str) -> _Reading:
    plain = worded(squeezed(text[:_LONGEST_READ]))
    phrased = plain
    if not _TURNED_INTO_ONE.isdisjoint(_LETTERS.findall(plain.lower())):
        phrased = _SIGNING_IN.sub(r"\1\2", plain)
        phrased = _STARTING.sub(" ", _EACH_BY_ITSELF.sub(r"\1\2 individually", phrased))
    content, key = _content(phrased), strategy_key(text)
    has_capitals = text[1:] != text[1:].lower()
    spelled = WORDS.findall(plain.lower())
    negated = negations(plain, spelled)
    return _Reading(
        text=phrased,
        key=key,
        negations=negated,
        # Never without is always with; never this and never that is neither.
        denies=negated % 2 == 1 or (negated > 0 and any(clause.is_negated for clause in clauses(plain))),
        words=frozenset(word_terms(plain)),
        spelled=frozenset(spelled),
        extent=extent_of(phrased, spelled),
        content=content,
        joined=_content(_HYPHEN.sub("", phrased)) if "-" in phrased else content,
        signs=signs_of(plain),
        names=_names(text) if has_capitals else _NONE,
        acronyms=frozenset(word_terms(" ".join(_ACRONYM.findall(text)))) if has_capitals else _NONE,
        owners=frozenset(word_terms(" ".join(_OWNERS.findall(plain)))) if "'" in plain or "’" in plain else _NONE,
    )


@lru_cache(maxsize=_READINGS_REMEMBERED)
def _phrases(text: str) -> tuple[Phrase, ...]:
    return phrases(text, _said)


@lru_cache(maxsize=_READINGS_REMEMBERED)
def _links(text: str) -> tuple[Link, ...]:
    return links(text, _said)


def _opposed(one: _Reading, other: _Reading) -> bool:
    return (
        one.denies is not other.denies
        or (one.denies and max(one.negations, other.negations) > 1 and _denied_apart(one, other))
        or _has_opposites(one.words, other.words)
        or _has_prefixed(one.spelled, other.spelled)
        or _has_prefixed(other.spelled, one.spelled)
        or _turned_around(one, other)
    )


def _denied_apart(one: _Reading, other: _Reading) -> bool:
    """Whether one of two texts that both say what not to do says to do what the other says not to."""
    (mine, not_mine), (theirs, not_theirs) = _told(one.text), _told(other.text)
    return bool((mine - not_mine) & (not_theirs - theirs)) or bool((theirs - not_theirs) & (not_mine - mine))


def _told(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of what a text says to do, and of what it says not to do."""
    found = clauses(text)
    done, not_done = (
        frozenset[str]().union(*(_content(clause.text) for clause in found if clause.is_negated is negated))
        for negated in (False, True)
    )
    return done, not_done


def _turned_around(one: _Reading, other: _Reading) -> bool:
    """Whether what stands where is exchanged: A before B is B after A, and not B before A."""
    if is_symmetric(one.text) and is_symmetric(other.text):
        return False
    if one.owners and other.owners and one.owners != other.owners:
        return True
    mine, theirs = _phrases(one.text), _phrases(other.text)
    if exchanged(mine, theirs):
        return True
    return one.content == other.content and (opposite_ways(mine, theirs) or _other_particles(one.words, other.words))


def _other_particles(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether the same verb has another particle: scale up, scale out."""
    return bool(mine & _PARTICLES) and bool(theirs & _PARTICLES) and _PARTICLES.isdisjoint(mine & theirs)


def _other_names(one: _Reading, other: _Reading) -> bool:
    """Whether one of them names what the other does not, or both are about other acronyms."""
    if not (one.names or other.names or (one.acronyms and other.acronyms)):
        return False
    mine, theirs = _sayings(one), _sayings(other)
    if not (plain_words(one.names) <= theirs and plain_words(other.names) <= mine):
        return True
    return not (plain_words(one.acronyms) <= theirs or plain_words(other.acronyms) <= mine)


def _sayings(reading: _Reading) -> frozenset[str]:
    return plain_words(reading.words | reading.content | reading.joined)


def _names(text: str) -> frozenset[str]:
    """The names in a text: words with a capital that do not begin a sentence, unless all words have one."""
    found = [match for match in _CAPITAL.finditer(text) if not _begins_a_sentence(text, match.start())]
    if not found or len(found) + 1 >= len(WORDS.findall(text)) > 2:
        return frozenset()
    return frozenset(term for match in found for term in word_terms(match.group()))


def _begins_a_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 3) : start].rstrip(" \t")
    return not before or before[-1] in _SENTENCE_BEGINS


def _has_opposites(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    only_mine, only_theirs = mine - theirs, theirs - mine
    if any(OPPOSITES[word] & only_theirs for word in only_mine if word in OPPOSITES):
        return True
    return _has_prefixed(only_mine, only_theirs) or _has_prefixed(only_theirs, only_mine)


def _has_prefixed(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether one of the words is among the others with a prefix that turns it around: synchronous, asynchronous."""
    only_others = others - words
    return any(
        f"{prefix}{word}" in only_others for word in words - others if len(word) > 3 for prefix in _OPPOSING_PREFIXES
    )


def _of_another_amount(one: _Reading, other: _Reading) -> bool:
    if one.extent.differs(other.extent):
        return True
    # What is denied of either is denied of both.
    return not one.negations and not other.negations and linked_otherwise(_links(one.text), _links(other.text))


def _of_another_extent(one: _Reading, other: _Reading) -> bool:
    """Whether both say the same of another amount, of another place, or one of them only in some cases."""
    if _of_another_amount(one, other):
        return True
    mine, theirs = _phrases(one.text), _phrases(other.text)
    return elsewhere(mine, theirs) or in_a_case_only(mine, theirs)


def _mistyped(one: str, other: str) -> bool:
    """Whether two long words differ in a letter that is missing or two that are exchanged."""
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    if len(shorter) < _LONG_ENOUGH_TO_MISTYPE or one[:2] != other[:2] or not (one.isalpha() and other.isalpha()):
        return False
    i = next((i for i, (a, b) in enumerate(zip(longer, shorter, strict=False)) if a != b), len(shorter))
    if len(longer) == len(shorter):
        return longer[i : i + 2] == shorter[i : i + 2][::-1] and longer[i + 2 :] == shorter[i + 2 :]
    # A letter more at the end makes another word: employer and employee.
    return longer[i + 1 :] == shorter[i:] and (i < len(shorter) or longer[-1] == longer[-2])


def _content(text: str) -> frozenset[str]:
    """The words that say what is done, or not done, which the negations tell."""
    lowered = text.lower()
    kept = [word for word in WORDS.findall(lowered) if word not in STOP_WORDS]
    if "-" in lowered or "_" in lowered:
        kept.extend(word for each in _COMPOUND.findall(lowered) for word in WORDS.findall(each) if word in STOP_WORDS)
    words = frozenset(terms_of(kept))
    return (words - FRAMES - NEGATION_TERMS) or words or frozenset(terms(text))


def _said(text: str) -> list[str]:
    """The words of a phrase in order, each as the one that stands for all that say as much."""
    found: list[str] = []
    for match in WORDS.finditer(text):
        word, lowered = match.group(), match.group().lower()
        if len(word) == 1 and word.isalpha():
            # A before a word is an article, before a sign it is a name: a = 1.
            if word not in "Ii" and (word != "a" or not text[match.end() :].lstrip()[:1].isalpha()):
                found.append(lowered)
        elif lowered in _TELLING:
            found.append(lowered)
        # How it is done may be said anywhere: immediately roll it back, roll it back immediately.
        elif lowered not in STOP_WORDS and not lowered.endswith("ly"):
            found.extend(plain_words(frozenset(word_terms(word)) - FRAMES - NEGATION_TERMS))
    return found
