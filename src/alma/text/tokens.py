"""Tokenize text into searchable terms, the same way for every store, and recognize function words by language."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, wraps
from itertools import chain
from typing import Any, TypeVar

from alma.lazy import lazy_regex
from alma.text.word_forms import ABBREVIATIONS, in_all_pieces, in_one_piece, may_have_joints, wholes_in

_TELLTALE = {
    "german": """
        wie wer wo wann warum wieso weshalb wohin woher wem wen wessen welche welcher welches welchen welchem ist sind
        wird werden wurde wurden haben habe hatte hatten kann konnen konnte muss mussen soll sollen sollte mochte nicht
        und oder aber auch ich wir unser unsere unserem unseren unserer mein meine meinen euer uns mir dich mich ihm
        fur uber zwischen dem eine einen einem einer
    """,
    "spanish": """
        que cuando cuanto cuanta cuantos cuantas cual cuales quien quienes donde adonde porque esta estan estamos
        tiene tienen tenemos hay fue fueron puede podemos pueden hacemos hizo nuestro nuestra nuestros nuestras usted
        ellos ella una unos unas pero tambien desde hasta sobre
    """,
    "french": """
        quel quelle quels quelles quand combien pourquoi qui quoi sont avons etes ont avez fait peut peuvent doit faut
        nous vous ils elles notre nos votre cette ces dans avec mais une aux chez
    """,
    "italian": """
        che chi quando quanto quanta quanti quante quale quali dove perche sono siamo abbiamo hanno puo possono deve
        nostro nostra nostri nostre della delle degli dello nella nelle alla anche una questo questa sul sulla
    """,
    "portuguese": """
        que quando quanto quanta quantos quantas qual quais quem onde porque esta estao estamos tem temos foi foram
        pode podem nosso nossa nossos nossas voce eles elas uma umas mas tambem desde ate sobre nao pelo pela
    """,
    "dutch": """
        hoe wie waar wanneer waarom waarheen welke hoeveel wordt worden werd heeft hebben heb kan kunnen moet moeten
        zijn niet maar ook ik wij ons onze mijn jouw uw voor met naar een het
    """,
}
_OTHERS = {
    "german": """
        der die das des den ein eines was wo war waren hat habt du er sie es ihr ihre ihren sein seine seinen seiner in
        im an am auf aus bei beim mit nach von vom vor zu zum zur um als wenn dass ob denn da so man sich doch noch nur
        schon sehr mehr viel viele hier dort diese dieser dieses kein keine keinen durch gegen ohne unter bis
    """,
    "spanish": """
        el la los las lo un de del al a en y o u e con sin por para como es son era ser se su sus mi mis tu tus me te le
        les nos si no ni ya muy mas menos este estos estas eso esa ese entre ha han he
    """,
    "french": """
        le la les l un de des du d et ou a au en y est c ce s se sa son ses n ne pas plus que qu on il elle je j tu me m
        te t mon ma mes ton ta tes leur leurs lui sur sous pour par sans comment si tres etre ete etait eu
    """,
    "italian": """
        il lo la i gli le l un uno di del dei da dal dalla a al ai in nel con su per tra fra e o ma se come non piu si
        mi ti ci vi cosa era ha ho hai suo sua mio mia tuo tua
    """,
    "portuguese": """
        o a os as um de do da dos das em no na nos nas ao aos por para com sem e ou se como ser era eu ele ela seu sua
        meu minha teu tua este isso mais menos muito ja
    """,
    "dutch": """
        de den der des van te ten ter in op aan bij uit over onder om als dat die dit deze wat is was waren er hij zij
        je we hun haar zo dan nog al en of geen meer veel
    """,
}
_ALL = {language: frozenset(f"{words} {_OTHERS[language]}".split()) for language, words in _TELLTALE.items()}
_ENOUGH = 3
_ANYWHERE = frozenset().union(*_ALL.values())
_TELLING = {language: frozenset(words.split()) for language, words in _TELLTALE.items()}


def function_words_of(words: Sequence[str], english: frozenset[str], *, accented: bool) -> frozenset[str]:
    """The function words of the detected language; none if it is English or unknown. A language is detected by one word
    that only it has, by three shared words, or by any word in a text with accents, if there are fewer English words.
    """
    least = len([word for word in words if word in english])
    # A quick check for English texts.
    if len([word for word in words if word in _ANYWHERE]) <= least:
        return frozenset()
    said = Counter(words)
    chosen: frozenset[str] = frozenset()
    for language, known in _ALL.items():
        having = known & said.keys()
        found = sum(said[word] for word in having)
        if found > least and (accented or len(having) >= _ENOUGH or not _TELLING[language].isdisjoint(having)):
            least, chosen = found, known
    return chosen


def only_english(words: Sequence[str], english: frozenset[str]) -> bool:
    """Whether a function word is English only."""
    return any(word in english and word not in _ANYWHERE for word in words)


LONGEST_TERM = 64
_MOST_STEMS = 100_000
_MOST_CHUNKS, _LONGEST_CHUNK = 50_000, 40
_MOST_LETTERS = 20_000

# ASCII letters and digits in lower case, and spaces for other characters.
_PLAIN = bytes(ord(chr(i).lower()) if i < 128 and chr(i).isalnum() else ord(" ") for i in range(256))
_SHORT = 1_000
_Result = TypeVar("_Result")
# Spaces inside of numbers.
_THIN_SPACES = ("\u00a0", "\u202f", "\u2009")
_CHUNK = lazy_regex(r"[^ \t\n\r]+")
_AROUND_WORDS = '.,;:!?()"*'
# Scripts without spaces, and Korean, whose words end in particles: indexed by character bigrams.
_UNSPACED = lazy_regex(
    "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
# Endings and auxiliaries after an apostrophe: Anna's, we'll, they're.
_ENDING = lazy_regex(r"(?<=[^\W_])'(?:s|ll|re|ve|d|m)(?![^\W_])")
_NEGATION = lazy_regex(r"(?<=n)'t(?![^\W_])")
# Zero-width characters.
_WITHOUT_WIDTH = dict.fromkeys(map(ord, "\u00ad\u200c\u200d\u200e\u200f\u061c\u2060\ufeff"))
_APOSTROPHES = {**dict.fromkeys(map(ord, "\u2019\u02bc\uff07"), "'"), **_WITHOUT_WIDTH}
# Quotes, dashes and trademark signs.
_ASIDE = "\u201c\u201d\u201e\u2013\u2014\u2026\u2122\u2120\u00ae\u00a9\u2117"
_QUOTES_AND_DASHES = {**_APOSTROPHES, **dict.fromkeys(map(ord, _ASIDE), " "), 0x2010: "-", 0x2011: "-"}
# Accents of Latin and Greek letters.
_ACCENTS = lazy_regex("(?<=[a-z\u00df-\u024f\u1e00-\u1eff\u0370-\u03ff])[\u0300-\u036f]+")
_ACCENTED = lazy_regex("[\u00a1\u00bf\u00c0-\u024f]")
# Optional marks of Hebrew and Arabic: vowels, hamza and tatweel.
_VOWELS = lazy_regex("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0655\u0670]")
# Letters that Unicode does not decompose, and interchangeable Arabic and Persian letters.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "ё": "е"}
    | {"\u0671": "\u0627", "\u0649": "\u064a", "\u0629": "\u0647", "\u06cc": "\u064a", "\u06a9": "\u0643"}
)

# C++ and C# are not C.
_NAME = r"(?<![\w+#])[a-z]{1,2}(?:\+\+(?!\+)|#(?![\w#]))"
# Replacements for plus and number sign, which full-text indexes treat as separators.
_STAND_INS = str.maketrans({"+": "\uff0b", "#": "\uff03"})
# Emoji are words; two regional indicators make a flag.
_FLAG = "\U0001f1e6-\U0001f1ff"
_PICTURE = (
    "\u2300-\u23ff\u2600-\u2767\u2794-\u27bf\u2b00-\u2bff"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
# Variation selectors, keycaps and skin tones.
_STYLES = dict.fromkeys((0xFE0E, 0xFE0F, 0x20E3, *range(0x1F3FB, 0x1F400)))
_NAMES = lazy_regex(f"({_NAME})")
_SIGNS = lazy_regex(f"([{_FLAG}]{{2}}|[{_PICTURE}]|{_NAME})")
# A quick check for these before folding.
_MAYBE_SIGNS = lazy_regex(
    f"[#\ufe5f\uff03]|[+\ufe62\uff0b\u207a\u208a]{{2}}|[{_FLAG}{_PICTURE}{''.join(map(chr, _STYLES))}]"
)

# Stop words: function words, question words and auxiliaries.
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
    """The words of a text in order: letters and digits, without case, width, accents and English endings; and emoji.
    Scripts without spaces give character bigrams and single characters. Words longer than 64 characters are split.
    """
    return list(chain.from_iterable(map(_read_chunks.__getitem__, _chunks(text))))


def stored_terms(text: str) -> list[str]:
    """The terms to index for a text: names, compounds and numbers in all their forms."""
    return list(chain.from_iterable(map(_stored_chunks.__getitem__, _chunks(text))))


def spaced_terms(text: str) -> str:
    """The terms to index, joined by spaces."""
    return " ".join(stored_terms(text))


def _chunks(text: str) -> list[str]:
    """The parts of a text between spaces."""
    if not text.isascii() and any(space in text for space in _THIN_SPACES):
        return _CHUNK.findall(text)
    return text.split()


def short_text_cache(maxsize: int) -> Callable[[Callable[[str], _Result]], Callable[[str], _Result]]:
    """An LRU cache for a function of a text that keeps short texts only, so that its memory is bounded."""

    def decorate(function: Callable[[str], _Result]) -> Callable[[str], _Result]:
        cached = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def call(text: str) -> _Result:
            return cached(text) if len(text) <= _SHORT else function(text)

        return call

    return decorate


def query_terms(text: str) -> list[str]:
    """The distinct terms of a query without stop words, or with them when there are no others."""
    return list(_query_terms(text))


# Cached, as a query is tokenized for every kind of memory.
@short_text_cache(256)
def _query_terms(text: str) -> tuple[str, ...]:
    words = _words(text)
    foreign = _foreign(text, words)
    distinctive = [word for word in words if word not in STOP_WORDS and word not in foreign] or words
    return tuple(dict.fromkeys(" ".join(map(_stem_of, distinctive)).split()))


def searched_terms(text: str) -> list[str]:
    """The terms to search for a query: its own, and those of its compounds."""
    return list(dict.fromkeys((*query_terms(text), *compounds_of(text))))


def compounds_of(text: str) -> dict[str, frozenset[str]]:
    """Other forms of terms of a query, each with the terms it replaces.

    Compounds in one piece, and abbreviations in full or the reverse.
    """
    asked = frozenset(query_terms(text))
    found = {other: frozenset((term,)) for term, other in _other_forms().items() if term in asked}
    # Most queries have no compounds.
    if "-" in text or not text.isascii():
        wholes = ((term, pieces) for whole, pieces in wholes_in(text) for term in terms(whole))
        found |= {term: asked.intersection(terms(pieces)) for term, pieces in wholes}
    return found


@cache
def _other_forms() -> dict[str, str]:
    """The terms of abbreviations and of their long forms, each with the other."""
    pairs = [
        (short_term, long_term)
        for short, long in ABBREVIATIONS.items()
        for short_term in terms(short)
        for long_term in terms(long)
    ]
    return dict(pairs) | {long: short for short, long in pairs}


def is_foreign(text: str) -> bool:
    """Whether a text in Latin letters is in a language other than English, by its function words."""
    return bool(_foreign(text, _words(text)))


def is_english(text: str) -> bool:
    """Whether a text is in English, by its function words; a text without any is not."""
    words = _words(text)
    return only_english(words, STOP_WORDS) and not _foreign(text, words)


def _foreign(text: str, words: Sequence[str]) -> frozenset[str]:
    """The function words of the language of a foreign text."""
    return function_words_of(words, STOP_WORDS, accented=_ACCENTED.search(text) is not None)


def words_by_term(text: str) -> dict[str, str]:
    """The content words of a text in order, by term; the first word of a term counts."""
    found: dict[str, str] = {}
    for word in _words(text):
        if word not in STOP_WORDS:
            found.setdefault(_stem_of(word), word)
    return found


def _words(text: str, *, alone: bool = False, in_pieces: bool = False) -> list[str]:
    """The words of a text; `alone` adds single characters of scripts without spaces. Texts have them, so that a query
    of one character finds them; in longer queries they, and names `in_pieces`, would match too much.
    """
    if not text.isascii():
        # Quotes and dashes are often the only characters that are not ASCII.
        text = text.translate(_QUOTES_AND_DASHES)
    if may_have_joints(text):
        text = in_all_pieces(text) if in_pieces else in_one_piece(text)
    if text.isascii():
        # A quick check, as most texts have neither sign.
        if "#" in text or "++" in text:
            return _apart(_NAMES, text.lower(), lambda part: _without_punctuation(part).split())
        return _without_punctuation(text).split()
    with_signs = _MAYBE_SIGNS.search(text) is not None
    folded = _without_apostrophes(_folded(text))
    if with_signs:
        return _apart(_SIGNS, folded.translate(_STYLES), lambda part: _lettered(part, alone))
    return _lettered(folded, alone)


def _apart(signs: re.Pattern[str], text: str, cut: Callable[[str], list[str]]) -> list[str]:
    """The words of a text in which some signs are words."""
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
    """Letters and marks as they are, decimal digits in ASCII, and spaces for other characters."""

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
    """ASCII text in lower case with spaces for punctuation."""
    plain = _without_apostrophes(text.lower()) if "'" in text else text
    return plain.encode("ascii").translate(_PLAIN).decode("ascii")


def _without_apostrophes(text: str) -> str:
    """Don't becomes dont, Anna's becomes anna; other apostrophes separate words."""
    return _ENDING.sub("", _NEGATION.sub("t", text))


def _folded(text: str) -> str:
    """The text without case, width and optional marks."""
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
    """A cache of terms by word: the English stem, the word itself if it has other letters, or its pieces."""

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
        # The stemmer is not thread-safe.
        with self._lock:
            self.prepare()
            stem: str = self._stemmer.stemWord(word)
        return stem

    def prepare(self) -> None:
        """Load the stemmer; without this call, the first word does."""
        if self._stemmer is None:
            import Stemmer

            # Without the cache of the stemmer, as this is one.
            self._stemmer = Stemmer.Stemmer("english", 0)


_stems = _Stems()
_stem_of = _stems.__getitem__


class _Chunks(dict[str, tuple[str, ...]]):
    """A cache of terms by chunk."""

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
    """Whether this is one word by a quick check: ASCII letters and digits, a capital only at the beginning."""
    return bare.isascii() and bare.isalnum() and (bare[1:].islower() or bare.isdigit())


_read_chunks, _stored_chunks = _Chunks(in_pieces=False), _Chunks(in_pieces=True)
prepare_to_cut = _stems.prepare
"""Load the stemmer, so that the first text does not wait for it."""
