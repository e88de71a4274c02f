"""Terms: how text is cut into searchable words, the same way for every store."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from alma.text.languages import function_words_of, only_english
from alma.text.word_forms import ABBREVIATIONS, in_all_pieces, in_one_piece, may_have_joints, wholes_in

LONGEST_TERM = 64
_MOST_STEMS = 100_000
_MOST_CHUNKS, _LONGEST_CHUNK = 50_000, 40
_MOST_LETTERS = 20_000

# ASCII, without case, and spaces for whatever else is neither letter nor digit.
_PLAIN = bytes(ord(chr(i).lower()) if i < 128 and chr(i).isalnum() else ord(" ") for i in range(256))
_SHORT = 1_000
# Spaces that stand inside of numbers, which are one word.
_THIN_SPACES = ("\u00a0", "\u202f", "\u2009")
_CHUNK = re.compile(r"[^ \t\n\r]+")
_AROUND_WORDS = '.,;:!?()"*'
# Scripts written without spaces, and Korean, whose particles stand at the end of its words: they are found by pairs of
# neighbouring characters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
# What stands behind an apostrophe is an ending or an auxiliary, and says nothing: Anna's, we'll, they're.
_ENDING = re.compile(r"(?<=[^\W_])'(?:s|ll|re|ve|d|m)(?![^\W_])")
_NEGATION = re.compile(r"(?<=n)'t(?![^\W_])")
# Signs without width say where a word may be broken, which letters are tied, or which way to read.
_WITHOUT_WIDTH = dict.fromkeys(map(ord, "\u00ad\u200c\u200d\u200e\u200f\u061c\u2060\ufeff"))
_APOSTROPHES = {**dict.fromkeys(map(ord, "\u2019\u02bc\uff07"), "'"), **_WITHOUT_WIDTH}
# Quotes and dashes, and the marks of traders, which are no letters of a name.
_ASIDE = "\u201c\u201d\u201e\u2013\u2014\u2026\u2122\u2120\u00ae\u00a9\u2117"
_QUOTES_AND_DASHES = {**_APOSTROPHES, **dict.fromkeys(map(ord, _ASIDE), " "), 0x2010: "-", 0x2011: "-"}
# The accents of Latin and Greek, which capitals often go without.
_ACCENTS = re.compile("(?<=[a-z\u00df-\u024f\u1e00-\u1eff\u0370-\u03ff])[\u0300-\u036f]+")
_ACCENTED = re.compile("[\u00a1\u00bf\u00c0-\u024f]")
# The vowels of Hebrew and Arabic, the hamza on a letter and the stroke that stretches a word: they may be written, and
# mostly are not.
_VOWELS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0655\u0670]")
# Letters whose stroke or tie Unicode does not take for a mark, one whose dots are mostly left out, those of Arabic that
# are written for each other, and those of Persian that look like them.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "ё": "е"}
    | {"\u0671": "\u0627", "\u0649": "\u064a", "\u0629": "\u0647", "\u06cc": "\u064a", "\u06a9": "\u0643"}
)

# Names that a sign tells from a letter: C is not C++, and neither is C#.
_NAME = r"(?<![\w+#])[a-z]{1,2}(?:\+\+(?!\+)|#(?![\w#]))"
# Plus and number sign as no text has them once it is folded: an index takes the plain ones for what is between words.
_STAND_INS = str.maketrans({"+": "\uff0b", "#": "\uff03"})
# Pictures are words of their own; two of the letters that flags are spelled with make one.
_FLAG = "\U0001f1e6-\U0001f1ff"
_PICTURE = (
    "\u2300-\u23ff\u2600-\u2767\u2794-\u27bf\u2b00-\u2bff"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
# How the sign before it is shown: as text or picture, on a key, in which colour of skin.
_STYLES = dict.fromkeys((0xFE0E, 0xFE0F, 0x20E3, *range(0x1F3FB, 0x1F400)))
_NAMES = re.compile(f"({_NAME})")
_SIGNS = re.compile(f"([{_FLAG}]{{2}}|[{_PICTURE}]|{_NAME})")
# Whether there may be any of these, before the text is folded.
_MAYBE_SIGNS = re.compile(
    f"[#\ufe5f\uff03]|[+\ufe62\uff0b\u207a\u208a]{{2}}|[{_FLAG}{_PICTURE}{''.join(map(chr, _STYLES))}]"
)

# Function words, question words and auxiliaries: every text has them, so that they find nothing.
_FUNCTION_WORDS = """
a about above after again all also am an and any are aren arent as at be because been before being below between both
but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each either else ever few for from
further had hadnt has hasnt have havent having he her here hers herself him himself his how i if in into is isnt it its
itself just may me might mine more most must my myself neither no nor not of off on once only or other our ours
ourselves out over own shall shant she should shouldnt so some such than that the their theirs them themselves then
there these they this those through to too under until up upon us very was wasnt we were werent what when where which
while who whom whose why will with wont would wouldnt yes you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


def terms(text: str) -> list[str]:
    """The words of a text in order: letters and digits, without case, width, accents and English endings; pictures.

    Of scripts without spaces, every pair of neighbouring characters and every character. A word longer than 64
    characters counts in pieces.
    """
    return list(chain.from_iterable(map(_read_chunks.__getitem__, _chunks(text))))


def stored_terms(text: str) -> list[str]:
    """The words that a text is found by: names, compounds and numbers in all pieces that they may be asked for in."""
    return list(chain.from_iterable(map(_stored_chunks.__getitem__, _chunks(text))))


def spaced_terms(text: str) -> str:
    """The words that a text is found by, with spaces between them."""
    return " ".join(stored_terms(text))


def _chunks(text: str) -> list[str]:
    """What stands between spaces, which no word reaches across."""
    if not text.isascii() and any(space in text for space in _THIN_SPACES):
        return _CHUNK.findall(text)
    return text.split()


def query_terms(text: str) -> list[str]:
    """The different terms of a question, without the words that every text has; if there are no others, with them."""
    # A question is cut again for every kind of memory that is looked for.
    return list(_remembered_query_terms(text) if len(text) <= _SHORT else _query_terms(text))


def _query_terms(text: str) -> tuple[str, ...]:
    words = _words(text)
    foreign = _foreign(text, words)
    telling = [word for word in words if word not in STOP_WORDS and word not in foreign] or words
    return tuple(dict.fromkeys(" ".join(map(_stem_of, telling)).split()))


_remembered_query_terms = lru_cache(maxsize=256)(_query_terms)


def searched_terms(text: str) -> list[str]:
    """What is looked for to answer a question: its terms, and those of its compounds in one piece."""
    return list(dict.fromkeys((*query_terms(text), *compounds_of(text))))


def compounds_of(text: str) -> dict[str, frozenset[str]]:
    """What says the same as terms of a question in another form, as a term, each with these terms.

    That is a compound in one piece, and an abbreviation in full or the other way round.
    """
    asked = frozenset(query_terms(text))
    found = {other: frozenset((term,)) for term, other in _other_forms().items() if term in asked}
    # Most questions have no compounds.
    if "-" in text or not text.isascii():
        wholes = ((term, pieces) for whole, pieces in wholes_in(text) for term in terms(whole))
        found |= {term: asked.intersection(terms(pieces)) for term, pieces in wholes}
    return found


@cache
def _other_forms() -> dict[str, str]:
    """The terms of abbreviations and of what they stand for, each with the other."""
    pairs = [
        (short_term, long_term)
        for short, long in ABBREVIATIONS.items()
        for short_term in terms(short)
        for long_term in terms(long)
    ]
    return dict(pairs) | {long: short for short, long in pairs}


def is_foreign(text: str) -> bool:
    """Whether a text in Latin letters is in another language than English, as far as its function words tell."""
    return bool(_foreign(text, _words(text)))


def is_english(text: str) -> bool:
    """Whether a text is in English, as far as its function words tell; one without any is in no language."""
    words = _words(text)
    return only_english(words, STOP_WORDS) and not _foreign(text, words)


def _foreign(text: str, words: Sequence[str]) -> frozenset[str]:
    """The function words of the language of a text that is not in English."""
    return function_words_of(words, STOP_WORDS, accented=_ACCENTED.search(text) is not None)


def words_by_term(text: str) -> dict[str, str]:
    """The telling words of a text in order, each under its term; the first word met stands for a term."""
    found: dict[str, str] = {}
    for word in _words(text):
        if word not in STOP_WORDS:
            found.setdefault(_stem_of(word), word)
    return found


def _words(text: str, *, alone: bool = False, in_pieces: bool = False) -> list[str]:
    """The words of a text; `alone` gives the characters of scripts without spaces one by one as well.

    A text has them, so that a question about a word of one character finds it; in a question they would find too much.
    So would names `in_pieces`.
    """
    if not text.isascii():
        # Quotes and dashes are often all that is not plain, and stand between words as plain ones do.
        text = text.translate(_QUOTES_AND_DASHES)
    if may_have_joints(text):
        text = in_all_pieces(text) if in_pieces else in_one_piece(text)
    if text.isascii():
        if _may_have_names(text):
            return _apart(_NAMES, text.lower(), lambda part: _without_punctuation(part).split())
        return _without_punctuation(text).split()
    with_signs = _MAYBE_SIGNS.search(text) is not None
    folded = _without_apostrophes(_folded(text))
    if with_signs:
        return _apart(_SIGNS, folded.translate(_STYLES), lambda part: _lettered(part, alone))
    return _lettered(folded, alone)


def _may_have_names(text: str) -> bool:
    # Most texts have neither sign, which is seen at once.
    return "#" in text or "++" in text


def _apart(signs: re.Pattern[str], text: str, cut: Callable[[str], list[str]]) -> list[str]:
    """The words of a text with signs that are words, each in its place."""
    words: list[str] = []
    for i, part in enumerate(signs.split(text)):
        if i % 2:
            words.append(part)
        else:
            words.extend(cut(part))
    return words


def _lettered(folded: str, alone: bool) -> list[str]:
    """Words in any letters."""
    words = folded.translate(_letters).split()
    if _UNSPACED.search(folded) is None:
        return words
    return [piece for word in words for piece in _split(word, alone)]


class _Letters(dict[int, int]):
    """Every character that words are made of as itself, with its marks, digits as ours, and a space for any other."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        kept = code if character.isalnum() or unicodedata.category(character)[0] == "M" else ord(" ")
        if character.isdecimal():
            kept = ord(str(unicodedata.decimal(character)))
        if len(self) < _MOST_LETTERS:
            self[code] = kept
        return kept


_letters = _Letters()


def _without_punctuation(text: str) -> str:
    """ASCII in lower case, with spaces for what stands between its words."""
    plain = _without_apostrophes(text.lower()) if "'" in text else text
    return plain.encode("ascii").translate(_PLAIN).decode("ascii")


def _without_apostrophes(text: str) -> str:
    """Don't becomes dont, Anna's becomes anna; any other apostrophe stands between two words."""
    return _ENDING.sub("", _NEGATION.sub("t", text))


def _folded(text: str) -> str:
    """Without case and width, and without marks that the same word may have or not; other marks make other letters."""
    plain = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold()
    bare = _VOWELS.sub("", _ACCENTS.sub("", unicodedata.normalize("NFKD", plain)))
    return unicodedata.normalize("NFKC", bare).translate(_LETTERS)


def _split(word: str, alone: bool) -> list[str]:
    pieces: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            pieces.append(word[end : run.start()])
        characters = run.group()
        pieces.extend(characters[i : i + 2] for i in range(max(1, len(characters) - 1)))
        if alone and len(characters) > 1:
            pieces.extend(characters)
        end = run.end()
    if end < len(word):
        pieces.append(word[end:])
    return pieces


class _Stems(dict[str, str]):
    """The term of each word met so far: its English stem, itself if it has other letters or digits, or its pieces."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._stemmer: Any = None

    def __missing__(self, word: str) -> str:
        if len(word) > LONGEST_TERM:
            pieces = (word[start : start + LONGEST_TERM] for start in range(0, len(word), LONGEST_TERM))
            return " ".join(map(self.__getitem__, pieces))
        if len(self) >= _MOST_STEMS:
            self.clear()
        stem = self[word] = self._stem(word) if word.isascii() and word.isalpha() else word.translate(_STAND_INS)
        return stem

    def _stem(self, word: str) -> str:
        # A stemmer works for one thread at a time.
        with self._lock:
            self.prepare()
            stem: str = self._stemmer.stemWord(word)
        return stem

    def prepare(self) -> None:
        """Load the stemmer, at the latest when the first word is cut: importing the records stays free of it."""
        if self._stemmer is None:
            import Stemmer

            # Without a cache of its own, which would only repeat this one.
            self._stemmer = Stemmer.Stemmer("english", 0)


_stems = _Stems()
_stem_of = _stems.__getitem__


class _Chunks(dict[str, tuple[str, ...]]):
    """The terms of each chunk met so far: texts repeat their words, and most of the work is to cut a new one."""

    def __init__(self, *, in_pieces: bool) -> None:
        super().__init__()
        self._in_pieces = in_pieces

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(chunk) > _LONGEST_CHUNK:
            return self._cut(chunk)
        if len(self) >= _MOST_CHUNKS:
            self.clear()
        bare = chunk.strip(_AROUND_WORDS)
        terms = self[chunk] = (_stem_of(bare.lower()),) if _is_one_word(bare) else self._cut(chunk)
        return terms

    def _cut(self, chunk: str) -> tuple[str, ...]:
        words = _words(chunk, alone=True, in_pieces=self._in_pieces)
        return tuple(" ".join(map(_stem_of, words)).split())


def _is_one_word(bare: str) -> bool:
    """Whether it is seen at once that this is one word: plain letters and digits, a capital only at the beginning."""
    return bare.isascii() and bare.isalnum() and (bare[1:].islower() or bare.isdigit())


_read_chunks, _stored_chunks = _Chunks(in_pieces=False), _Chunks(in_pieces=True)
prepare_to_cut = _stems.prepare
"""Load what cutting words needs, so that the first text does not wait for it."""
