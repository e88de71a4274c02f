"""Split a conversation into sentences, without code, quotations, logs and material to work on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

from alma.extraction.clauses import Clause, Language, Token, tokens_of
from alma.extraction.facts import ASSISTANTS, USERS, Evidence, Turn
from alma.extraction.frames import languages
from alma.lazy import lazy_regex
from alma.text.scanning import Squeezed

_LONGEST_MESSAGE, _LONGEST_SENTENCE = 20_000, 600
# A message with more sentences is a list or a log.
_MOST_SENTENCES = 200
# Pasted text: code, quotations and log lines.
_PASTED = lazy_regex(
    r"```.*?(?:```|\Z)|^>[^\n]*|^(?: {4}|\t)[^\n]*"
    r"|^\W{0,2}(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b[^\n]*"
    r"|^\W?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\n]*|^Traceback \([^\n]*|^\w{0,60}(?:Error|Exception): [^\n]*",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = lazy_regex(r"[\"“„«][^\"”“»\n]{0,400}[\"”“»]|(?<!\w)'[^'\n]{12,400}'(?!\w)")
_FEWEST_QUOTED_WORDS = 3
_END = lazy_regex(r"(?<=[.!?…])[\"”’')]*\s+|[。！？]+|\n+|\s+[–—-]\s+|;\s+")
_ABBREVIATION = lazy_regex(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|no|approx|Dr|Mr|Mrs|Ms|Prof|St)|\b[A-Z])\.\s*$")
_LIST_MARK = lazy_regex(r"^[-*•>\d.)\s]+(?=\S)")
_FIRST_WORDS = 12


@dataclass(frozen=True)
class Sentence:
    """A sentence, and whether it is a plain statement."""

    text: str
    evidence: Evidence
    quotes: bool

    @property
    def by_user(self) -> bool:
        return self.evidence.role in USERS

    @cached_property
    def language(self) -> Language:
        """The language with the most common words in it; English in a tie."""
        words = [token.word for token in self._tokens]
        return max(languages().values(), key=lambda each: sum(word in each.common for word in words))

    @cached_property
    def _tokens(self) -> list[Token]:
        return tokens_of(self.text)

    @cached_property
    def plain(self) -> Clause:
        """The words without an opening such as "ok, so"."""
        tokens, language = self._tokens, self.language
        words = [token.word for token in tokens]
        at, greeted = 0, False
        while at < len(tokens):
            end = language.phrases["openings"].at(words, at)
            mark = end < len(tokens) and tokens[end].is_mark
            if end > at and not mark and language.phrases["before_a_mark"].at(words, at) == end:
                break
            if end > at:
                greeted |= "greetings" in language.phrases and language.phrases["greetings"].at(words, at) > at
                at = end + mark
            elif tokens[at].is_mark:
                at += 1
            else:
                break
        return _clause(self.text, _unclosed(tokens[at:], language), language, greeted)

    @cached_property
    def is_correction(self) -> bool:
        """Whether it opens like a correction."""
        words = [token.word for token in self._tokens if not token.is_mark]
        corrections = self.language.phrases.get("corrections")
        return corrections is not None and any(corrections.at(words, i) > i for i in range(min(2, len(words))))

    @cached_property
    def finding(self) -> Clause:
        """The words without "it turns out that"."""
        said, found = self.plain, self.language.phrases.get("found")
        start = found.at(said.words, 0) if found is not None else 0
        return _clause(self.text, said.tokens[start:], self.language) if 0 < start < len(said.words) else said

    @cached_property
    def takes_back(self) -> bool:
        """Whether it takes back the sentence before: never mind."""
        words = [token.word for token in self._tokens if not token.is_mark]
        taken_back = self.language.phrases.get("taken_back")
        return taken_back is not None and taken_back.at(words, 0) > 0

    @cached_property
    def wish_asked_for(self) -> Clause | None:
        """A lasting request in polite form: could you please always …?"""
        said, phrases = self.plain, self.language.phrases
        if not self.by_user or "polite_questions" not in phrases:
            return None
        start = phrases["polite_questions"].at(said.words, 0)
        please = int(said.words[start : start + 1] == ["please"])
        standing = phrases["standing"].at(said.words, start + please) > start + please
        return _clause(self.text, said.tokens[start + please :], self.language) if start and standing else None

    @cached_property
    def changes_its_mind(self) -> bool:
        """Whether it corrects itself: 5432, no wait, 5433."""
        said, corrections = self.plain, self.language.phrases.get("corrections")
        marks = (i + 1 for i, token in enumerate(said.tokens) if token.is_mark and i)
        return corrections is not None and any(
            corrections.at(said.words, i) > i and said.words[i] != "actually" for i in marks
        )

    @cached_property
    def is_asked(self) -> bool:
        words = self.plain.words
        begun = bool(words) and self.language.phrases["questions"].at(words, 0) > 0
        return begun or self.text.rstrip("\"')* ").endswith(("?", "？"))

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is a plain statement: not hypothetical, reported, ironic or invented."""
        whole = _clause(self.text, self._tokens, self.language)
        if (
            self.quotes
            or self.is_asked
            or self.changes_its_mind
            or whole.has("irony")
            or whole.has("make_believe")
            or whole.has("reported")
        ):
            return False
        polite = self.language.phrases["politely"].at(self.plain.words, 0) > 0
        return polite or not whole.has("unreal")

    def clauses(self) -> Iterator[tuple[Clause, ...]]:
        """The clauses joined in it, each with its possible readings.

        Where one leaves out who does it, or says "it", it is also read with who did before.
        """
        said, data = self.plain, self.language.data
        cuts = [0, *_cuts(said), len(said.words)]
        subject = ""
        for start, end in pairwise(cuts):
            while start < end and (said.tokens[start].is_mark or said.words[start] in data["joins"]):
                start += 1
            clause = _clause(self.text, said.tokens[start:end], self.language, said.greeted)
            if not clause.words:
                continue
            pronoun = clause.words[0] == "it"
            if subject and (pronoun or (_verb_at(said, start, 0) and not said.tokens[start].is_capital)):
                joined = f"{subject} {clause.between(int(pronoun), len(clause.words))}"
                yield clause, _clause(joined, tokens_of(joined), self.language, said.greeted)
            else:
                subject = _subject(clause)
                yield (clause,)


def _unclosed(tokens: list[Token], language: Language) -> list[Token]:
    """The words without a closing such as "by the way"."""
    closings = language.phrases.get("closings")
    while tokens and closings is not None:
        words = [token.word for token in tokens]
        length = next(
            (n for n in (5, 4, 3, 2, 1) if n < len(words) and closings.at(words, len(words) - n) == len(words)), 0
        )
        last = tokens[-1]
        if not length and not (last.is_mark or (not last.text[0].isalnum() and not last.text.isascii())):
            break
        if words[0] in ("no", "less", "fewer", "shorter", "thanks", "thank"):
            break
        tokens = tokens[: -(length or 1)]
    return tokens


def sentences(turns: Sequence[Turn]) -> Iterator[Sentence]:
    """The sentences of the conversation that their speakers wrote, in order."""
    made_up = False
    for number, turn in enumerate(turns):
        if turn.role not in (*USERS, *ASSISTANTS) or (made_up and turn.role not in USERS):
            continue
        text = turn.content[:_LONGEST_MESSAGE]
        # Replaced by spaces, so that positions stay the same.
        readable = _PASTED.sub(_blank, text)
        if turn.role in USERS:
            readable, made_up = _without_material(readable)
        squeezed = Squeezed(readable)
        for first, last in islice(_spans(squeezed.text), _MOST_SENTENCES):
            start = squeezed.at(first)
            end = min(squeezed.at(last), start + _LONGEST_SENTENCE)
            said = text[start:end]
            quotes = any(len(quote.split()) >= _FEWEST_QUOTED_WORDS for quote in _QUOTED.findall(said))
            yield Sentence(said, Evidence(said, turn.role, number, start, end), quotes)


def _without_material(text: str) -> tuple[str, bool]:
    """The text without material to work on, and whether the user asks for invented content."""
    begun = tokens_of(text[:400])[:_FIRST_WORDS]
    words = [token.word for token in begun]
    is_material = made_up = False
    for language in languages().values():
        phrases = language.phrases
        works = any(phrases["worked_on"].at(words, i) > i for i in range(min(6, len(words))))
        is_material |= works
        made_up |= works and phrases["made_up"].found_in(begun, words)
        if phrases["make_believe"].found_in(begun, words):
            return "", True
    head, colon, rest = text.partition(":")
    if is_material and colon and (not rest or rest[0].isspace()):
        text = head + colon + re.sub(r"[^\n]", " ", rest)
    return text, made_up


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _END.finditer(text):
        if _ABBREVIATION.search(text[max(start, match.start() - 8) : match.start()]):
            continue
        yield from _trimmed(text, start, match.start())
        start = match.end()
    yield from _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    end = min(end, start + _LONGEST_SENTENCE)
    piece = text[start:end]
    mark = _LIST_MARK.match(piece)
    start += mark.end() if mark else len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if start < end:
        yield start, end


# ---------------------------------------------------------------------- clauses


def _clause(source: str, tokens: Sequence[Token], language: Language, greeted: bool = False) -> Clause:
    while tokens and (tokens[-1].is_mark and tokens[-1].text not in ')"”'):
        tokens = tokens[:-1]
    spelled = language.data.get("spelled", {})
    return Clause(source, tokens, [spelled.get(token.word, token.word) for token in tokens], language, greeted)


def _cuts(said: Clause) -> Iterator[int]:
    """Where the next clause begins: after "and", at a subject or a verb."""
    joins = said.language.data["joins"]
    for i in range(1, len(said.words) - 1):
        if said.words[i] in joins or (said.tokens[i].text == "," and said.words[i + 1] not in joins):
            joined = said.words[i] in joins
            verb_first = _verb_at(said, i + 1, 0) and not said.tokens[i + 1].is_capital
            if (joined and verb_first) or _starts_statement(said, i + 1, joined):
                yield i


def _verb_at(said: Clause, at: int, subject: int) -> bool:
    """Whether the verb of this subject is here."""
    language = said.language
    own = said.words[subject] in language.data["first"] or language.name != "en"
    return language.classes["stative"].at(said.words, at) > at or (own and said.words[at] in language.own_verbs)


def _starts_statement(said: Clause, at: int, joined: bool) -> bool:
    """Whether a subject with a verb, or an imperative, begins here."""
    word, language = said.words[at], said.language
    orders = language.classes.get("wish")
    if word in _ORDERING:
        return joined
    if not joined and word in _GOING_ON:
        return True
    if word in _CONTRACTED or (not joined and orders is not None and orders.at(said.words, at) > at):
        return True
    starts = word in language.data["first"] or word in language.data["determiners"] or word == "it"
    within = range(at + 1, min(at + _NEAR, len(said.words)))
    return (starts or said.tokens[at].is_capital) and any(_verb_at(said, i, at) for i in within)


def _subject(clause: Clause) -> str:
    """The subject: the words before the verb."""
    verb = next((i for i in range(1, min(_NEAR + 3, len(clause.words))) if _verb_at(clause, i, 0)), 0)
    return clause.between(0, verb)


_NEAR = 6
# Words after a comma that begin another clause.
_GOING_ON = frozenset(["i", "we", "they", "he", "she", "which", "because", "since", "though", "although"])
_ORDERING = frozenset(["please", "always", "never", "don't", "bitte", "immer", "nie"])
# A pronoun and its verb in one word.
_CONTRACTED = frozenset(["i'm", "i've", "j'habite", "j'aime", "j'adore"])
