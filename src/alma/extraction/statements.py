"""Cutting a conversation into statements: what is asked, supposed or quoted is told apart from what is said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alma.extraction.facts import USERS, Evidence, Turn

_LONGEST_MESSAGE = 20_000
_LONGEST_STATEMENT = 600
_CODE = re.compile(r"```.*?(?:```|\Z)|^>.*$|^(?: {4}|\t).*$", re.DOTALL | re.MULTILINE)
_END = re.compile(r"(?<=[.!?…])[\"”’')]*\s+|[。！？]+|\n+|(?<=\w)\s+[;–—]\s+|;\s+")
# Who goes on to tell something else of themselves makes a second statement: my name is Priya and I work at …
_SECOND = re.compile(
    r",?\s+(?:and|but)\s+(?=(?:I\s+(?:am|work|live|prefer|like|love|hate|dislike|want|need|use|speak|always|never|don['’]t)"
    r"|I['’]m|my\s+\w+\s+is)\b)"
)
# A full stop that ends no sentence.
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|no|approx|Dr|Mr|Mrs|Ms|Prof|St)|\b[A-Z])\.\s*$")
_OPENING = re.compile(
    r"^(?:[-*•>\d.)\s]*)(?:(?:oh|ok|okay|so|well|and|but|also|btw|by the way|fyi|hey|hi|hello|yes|yeah|yep|right|sure|"
    r"great|thanks|thank you|cool|hmm|alright|listen|look|just|one more thing|again|honestly|anyway|in short|done|"
    r"good news|update)\b[\s,:!.…-]*)*",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^(?:what|why|how|when|where|who|which|whose|is|are|was|were|do|does|did|can|could|would|should|will|shall|may|has|"
    r"have|had|am|isn't|aren't|don't you|doesn't|didn't|won't|couldn't|wouldn't|shouldn't|can you|could you)\b"
    r"(?!\s*(?:n't|not)\s+(?:use|do|ever|add|write|call|put|commit|push|touch|change))",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"^(?:if|unless|whether)\b|\b(?:would|could|might|maybe|perhaps|possibly|probably|suppose|supposing|imagine|assuming|"
    r"hopefully|i wonder|i guess|i hope|let's try|let us try|let me try|what if|wish|hypothetically|should (?:we|i)|"
    r"(?:i|we)(?:'ll| will| am going to|'m going to| are going to|'re going to| plan to| could| can try))\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:i think|i believe|i suppose|not sure|as far as i know|afaik|iirc|apparently|seems?)\b", re.I
)
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'", "`": "`", "“": '"', "”": '"'})


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence as it was said; `plain` is without openings such as "ok, so", and with straight quotes."""

    plain: str
    evidence: Evidence
    asked: bool
    unreal: bool
    hedged: bool

    @property
    def role(self) -> str:
        return self.evidence.role

    @property
    def by_user(self) -> bool:
        return self.evidence.role in USERS


def statements(turns: Sequence[Turn]) -> Iterator[Statement]:
    """Every sentence of the conversation that is somebody's own words, in order."""
    for number, turn in enumerate(turns):
        if turn.role in ("system", "tool", "function", "developer"):
            continue
        text = turn.content[:_LONGEST_MESSAGE]
        # Code and quotations keep their place, so that what is found stands where it says.
        readable = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for start, end in _sentences(readable):
            yield _statement(text[start:end], Evidence(text[start:end], turn.role, number, start, end))


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _END.finditer(text):
        if _ABBREVIATION.search(text[max(start, match.start() - 8) : match.start()]):
            continue
        yield from _clauses(text, start, match.start())
        start = match.end()
    yield from _clauses(text, start, len(text))


def _clauses(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentence, or the statements that it is made of."""
    for match in _SECOND.finditer(text, start, end):
        # What is asked or supposed goes on to the end of the sentence.
        if not _ASKING.match(text[start:end]) and not _UNREAL.search(text[start:end]) and text[end - 1] not in "?？":
            yield from _trimmed(text, start, match.start())
            start = match.end()
    yield from _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    end = min(end, start + _LONGEST_STATEMENT)
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _statement(text: str, evidence: Evidence) -> Statement:
    straight = text.translate(_APOSTROPHES)
    opening = _OPENING.match(straight)
    plain = straight[opening.end() if opening else 0 :].strip() or straight.strip()
    asked = straight.rstrip("\"')* ").endswith(("?", "？")) or bool(_ASKING.match(plain))
    return Statement(plain, evidence, asked, bool(_UNREAL.search(plain)), bool(_HEDGED.search(straight)))
