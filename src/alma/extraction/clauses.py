"""Clauses: the words of a sentence in a language, and conditions on some of them that the slots of frames name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from alma.graph.mentions import WORDS
from alma.lazy import lazy_regex

_FIRST_NAMES, _NOT_NAMES = WORDS["first_names"], WORDS["not_names"]

if TYPE_CHECKING:
    from alma.extraction.frames import Frame

_TOKEN = lazy_regex(r"[^\s,;!?\"“”„«»…()]+(?:\(\))?|[,;!?\"“”„«»…()]")
_TRAILING = ".:*_'’"
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'"})


@dataclass(frozen=True, slots=True)
class Token:
    """A word or punctuation mark of a text, and its place."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.casefold()

    @property
    def is_capital(self) -> bool:
        return self.text[:1].isupper()

    @property
    def is_mark(self) -> bool:
        return not self.text[0].isalnum() and len(self.text) == 1


def tokens_of(text: str) -> list[Token]:
    """The words and punctuation marks of a text, without full stops."""
    found = []
    for match in _TOKEN.finditer(text.translate(_APOSTROPHES)):
        bare = match[0].rstrip(_TRAILING).lstrip("*_'`")
        if bare:
            start = match.start() + match[0].index(bare)
            found.append(Token(bare, start, start + len(bare)))
            if match[0].endswith(":"):
                found.append(Token(":", match.end() - 1, match.end()))
    return found


class Phrases:
    """A set of phrases of one or several words."""

    def __init__(self, phrases: Sequence[str]) -> None:
        self._known = frozenset(tuple(phrase.casefold().split()) for phrase in phrases)
        self._lengths = sorted({len(phrase) for phrase in self._known}, reverse=True)

    def ends(self, words: Sequence[str], at: int) -> Iterator[int]:
        """The ends of the phrases that begin here, the longest first."""
        for length in self._lengths:
            if at + length <= len(words) and tuple(words[at : at + length]) in self._known:
                yield at + length

    def at(self, words: Sequence[str], at: int) -> int:
        """The end of the longest phrase that begins here; `at` where there is none."""
        return next(self.ends(words, at), at)

    def found_in(self, tokens: Sequence[Token], words: Sequence[str]) -> bool:
        """Whether a phrase is among these words; capitalised words within a sentence are names."""
        starts = (i for i, token in enumerate(tokens) if i == 0 or not token.is_capital or token.text == "I")
        return any(self.at(words, i) > i for i in starts) or any(self.at(words, i) > i + 1 for i in range(len(words)))


@dataclass(frozen=True)
class Language:
    """The words and the frames of a language."""

    name: str
    data: Mapping[str, Any]
    phrases: Mapping[str, Phrases]
    classes: Mapping[str, Phrases]
    # Verbs after the first person in a frame, and words by which the language is detected.
    own_verbs: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()
    frames: tuple[Frame, ...] = field(default=())
    tried: tuple[Frame, ...] = field(default=())
    answers: tuple[Frame, ...] = field(default=())

    def base(self, phrase: str) -> str:
        """A past verb phrase as an imperative; unchanged where the verb is unknown."""
        verb, space, rest = phrase.partition(" ")
        word = verb.casefold()
        irregular: Mapping[str, str] = self.data.get("irregular", {})
        stem = word.removesuffix("ing") if word.endswith("ing") else word.removesuffix("ed")
        stems = [stem, f"{stem}e", stem[:-1], f"{stem[:-1]}y"] if stem != word else []
        known = [irregular[word]] if word in irregular else [each for each in stems if self._is_verb(each)]
        return f"{known[0]}{space}{rest}" if known else phrase

    def _is_verb(self, word: str) -> bool:
        listed = (self.classes[name] for name in ("imperative", "wish", "practice") if name in self.classes)
        return any(each.at([word], 0) for each in listed)

    def third(self, verb: str) -> str:
        """A verb of the first person in the third person."""
        given: Mapping[str, str] = self.data.get("inflected", {})
        if verb in given or self.name != "en":
            return given.get(verb, verb)
        head, _, rest = verb.partition(" ")
        if head.endswith(("s", "sh", "ch", "x", "z")):
            head += "es"
        elif head.endswith("y") and head[-2:-1] not in "aeiou":
            head = head[:-1] + "ies"
        else:
            head += "s"
        return f"{head} {rest}".strip()


@dataclass(frozen=True)
class Clause:
    """A run of words that is matched as a whole."""

    source: str
    tokens: Sequence[Token]
    words: Sequence[str]
    language: Language
    greeted: bool = False

    @property
    def text(self) -> str:
        return self.between(0, len(self.tokens))

    def between(self, start: int, end: int) -> str:
        """The text from one word up to another one."""
        return self.source[self.tokens[start].start : self.tokens[end - 1].end] if end > start else ""

    def has(self, name: str) -> bool:
        """Whether it has one of the phrases of this name."""
        return self.language.phrases[name].found_in(self.tokens, self.words)


# ---------------------------------------------------------------------- conditions on the words of a slot


def _any(said: Clause, at: int, end: int) -> bool:
    first = said.tokens[at]
    return not first.is_mark and not (end == at + 1 and _is_vague(said, at))


def _is_vague(said: Clause, at: int) -> bool:
    return said.language.phrases["vague"].at(said.words, at) > at


def _said(said: Clause, at: int, end: int) -> bool:
    """Words that do not begin with a vague one."""
    return _any(said, at, end) and not _is_vague(said, at)


def _in(name: str) -> Callable[[Clause, int, int], bool]:
    def test(said: Clause, at: int, end: int) -> bool:
        known = said.language.classes[name]
        bare = [word.removesuffix("'s") for word in said.words[at:end]]
        return any(known.at(bare, i) > i for i in range(len(bare)))

    return test


def _starts(name: str) -> Callable[[Clause, int, int], bool]:
    return lambda said, at, end: said.language.classes[name].at(said.words, at) > at


def _name(said: Clause, at: int, end: int) -> bool:
    # A single capitalised word may be a nationality: Spanish, Italian.
    alone = end == at + 1 == len(said.words) and not said.words[at].endswith(("ish", "ese", "ian", "can"))
    known = said.greeted or said.words[at] in _FIRST_NAMES or (alone and said.words[at] not in _NOT_NAMES)
    return known and all(token.is_capital for token in said.tokens[at:end])


def _capital(said: Clause, at: int, end: int) -> bool:
    return said.tokens[at].is_capital


def _article(said: Clause, at: int, end: int) -> bool:
    return said.words[at] in ("a", "an") and end > at + 1 and _role(said, at + 1, end)


def _role(said: Clause, at: int, end: int) -> bool:
    return said.words[at] not in said.language.data["no_role"] and _said(said, at, end)


def _gerund(said: Clause, at: int, end: int) -> bool:
    word = said.words[at]
    none = word.endswith("thing") or word in said.language.data.get("no_gerund", ())
    return (
        len(word) > 4
        and word.endswith("ing")
        and not none
        and said.words[end - 1] not in said.language.data.get("denying", ())
    )


def _past(said: Clause, at: int, end: int) -> bool:
    return is_past(said, at) and end > at + 1


def is_past(said: Clause, at: int) -> bool:
    """Whether an English word may be a past verb."""
    word, data = said.words[at], said.language.data
    regular = said.language.name == "en" and word.endswith("ed") and word not in data["nothing_done"]
    return regular or word in data.get("irregular", ())


def _number(said: Clause, at: int, end: int) -> bool:
    return end == at + 1 and said.words[at].isdigit()


def _order(said: Clause, at: int, end: int) -> bool:
    word = said.words[at]
    return _any(said, at, end) and not word.endswith(("ed", "ing")) and word not in said.language.data["no_order"]


def _wish(said: Clause, at: int, end: int) -> bool:
    return _said(said, at, end) and not Phrases(said.language.data["once"]).found_in(
        said.tokens[at:end], said.words[at:end]
    )


def _clause(said: Clause, at: int, end: int) -> bool:
    verb = said.language.classes["stative"]
    words = said.words
    has_verb = any(verb.at(words, i) > i or is_past(said, i) for i in range(at + 1, end))
    return _said(said, at, end) and has_verb and words[at] != "to"


def _third(said: Clause, at: int, end: int) -> bool:
    """A word that ends like a verb of the third person."""
    word, token = said.words[at], said.tokens[at]
    plain = end == at + 1 and token.text.isalpha() and not token.is_capital and len(word) > 3
    return (
        plain and word.endswith("s") and not word.endswith(("ss", "us")) and word not in said.language.data["no_third"]
    )


def _habit(said: Clause, at: int, end: int) -> bool:
    """A habit, as opposed to a single event, a thought or a wish."""
    word = said.words[at]
    known = word.isalpha() and len(word) > 3 and not word.endswith(("ed", "ing", "ly"))
    return end == at + 1 and known and word not in said.language.data["no_habit"] and not is_past(said, at)


def _telling(said: Clause, at: int, end: int) -> bool:
    """A checkable statement after any verb."""
    return _fact(said, at, end) and any(_is_checkable(token, said.language) for token in said.tokens[at:end])


def _behind(said: Clause, at: int, end: int) -> bool:
    """Words that may follow "worked" without qualifying it, unlike "poorly"."""
    word = said.words[at]
    return said.tokens[at].is_mark or word.endswith("ing") or word in said.language.data["goes_on"]


def _bare(said: Clause, at: int, end: int) -> bool:
    """A strategy that is named by a noun: page objects."""
    plain = (
        said.words[at] not in said.language.data["determiners"] and said.words[at] not in said.language.data["first"]
    )
    plain = (
        plain
        and said.words[at] not in _FIRST_NAMES
        and said.words[end - 1] not in said.language.data.get("denying", ())
    )
    return plain and _said(said, at, end) and not any(token.is_mark for token in said.tokens[at:end])


def _call(said: Clause, at: int, end: int) -> bool:
    return end == at + 1 and any(mark in said.tokens[at].text for mark in ("()", "_", "`", "--"))


def _subject(said: Clause, at: int, end: int) -> bool:
    """The subject of a fact: a noun with an article, or a name."""
    language, words, tokens = said.language, said.words, said.tokens
    if any(token.is_mark for token in tokens[at:end]) or _is_vague(said, at):
        return False
    if any(word in language.data["first"] for word in words[at:end]):
        if words[at] in language.data["determiners"] and words[at + 1 : at + 2] == ["our"]:
            return end > at + 2
        return words[at] in ("our", "my", "notre", "nuestro", "nuestra", "unser", "unsere") and (
            words[at] != "my" or any(word in language.data.get("ours", ()) for word in words[at + 1 : end])
        )
    if words[at] in language.data["determiners"]:
        return end > at + 1
    if words[at] in _NOT_NAMES and not (words[at] in _TITLES and end > at + 1):
        return False
    is_plural = end == at + 1 and words[at].endswith("s")
    return tokens[at].is_capital or "_" in words[at] or "-" in words[at] or is_plural


def _fact(said: Clause, at: int, end: int) -> bool:
    """The predicate of a fact; of what something is or has, only what can be checked."""
    words, data = said.words, said.language.data
    trouble = _gerund(said, at, end) or said.words[at - 1 : at + 1] in (["have", "to"], ["has", "to"], ["need", "to"])
    if trouble or any(word in data.get("pointing", ()) for word in words[at:end]):
        # A recurring failure is not a fact, and "it" has no meaning out of context.
        return said.words[0] not in data["first"] and not _gerund(said, at, end) and words[at] == "to"
    if any(token.text in _CODE_MARKS for token in said.tokens):
        return False
    certain = said.tokens[0].is_capital or words[0] in (*data["determiners"], *data["first"])
    before = " ".join(words[max(0, at - 2) : at]), words[at - 1]
    if certain and not set(before) & set(data["copulas"]):
        return _any(said, at, end)
    state = end == at + 1 and words[at] in data.get("states", ())
    checkable = any(_is_checkable(token, said.language) for token in said.tokens[at:end])
    return state or checkable or any(test(said, at, end) for test in (_is_placed, _is_titled, _is_located, _is_had))


def _is_checkable(token: Token, language: Language) -> bool:
    is_code = any(c.isdigit() or c in "_/`@" for c in token.text)
    return token.is_capital or is_code or token.word in language.data.get("number_words", ())


def _is_placed(said: Clause, at: int, end: int) -> bool:
    """A participle or adjective with a preposition: written in, kept by, allergic to."""
    data = said.language.data
    start = at + (said.words[at] in ("not", "always", "only", "never"))
    if end <= start + 2 or "prepositions" not in data or _is_vague(said, start):
        return False
    linked = any(word in data["prepositions"] for word in said.words[start + 1 : min(start + 3, end - 1)])
    return linked and said.words[start] not in data["prepositions"]


def _is_located(said: Clause, at: int, end: int) -> bool:
    """A place: on the fridge, behind the old mill; not an idiom such as on time."""
    data = said.language.data
    placed = said.words[at] in data.get("prepositions", ()) and end > at + 1
    return placed and (end > at + 2 or said.words[at - 1] != "is") and said.words[at + 1] not in data["idioms"]


def _is_had(said: Clause, at: int, end: int) -> bool:
    """A possession: a gym, no lift."""
    data = said.language.data
    had = said.words[at - 1] in ("has", "have") and said.words[at] in ("a", "an", "no") and end > at + 1
    return had and not any(word in data["no_possession"] for word in said.words[at:end])


def _is_titled(said: Clause, at: int, end: int) -> bool:
    """A title or description: the head of payroll, a firm in Porto."""
    links = (*said.language.data.get("prepositions", ()), "of", "that", "who")
    return said.words[at] in ("the", "a", "an") and any(word in links for word in said.words[at + 2 : end - 1])


_CODE_MARKS = frozenset("={}<>|[]")
_TITLES = frozenset(["dr", "mr", "mrs", "ms", "prof"])
SLOTS: Mapping[str, Callable[[Clause, int, int], bool]] = {
    "any": _any,
    "thing": lambda said, at, end: not said.tokens[at].is_mark,
    "name": _name,
    "capital": _capital,
    "article": _article,
    "role": _role,
    "kin": _in("kin"),
    "body": _in("body"),
    "number": _number,
    "gerund": _gerund,
    "past": _past,
    "order": _order,
    "listed": _starts("wish"),
    "wish": _wish,
    "clause": _clause,
    "third": _third,
    "habit": _habit,
    "telling": _telling,
    "behind": _behind,
    "bare": _bare,
    "call": _call,
    "subject": _subject,
    "fact": _fact,
}
"""The condition of each kind of slot: whether these words of a clause may fill it."""
