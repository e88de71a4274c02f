"""Cutting a conversation into statements: what is asked, supposed or quoted is told apart from what is said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from alma.extraction import wording as say
from alma.extraction.facts import ASSISTANTS, USERS, Evidence, Turn
from alma.model.scanning import Squeezed

_LONGEST_MESSAGE = 20_000
_LONGEST_STATEMENT, _LONGEST_SENTENCE = 600, 2_000
# A message with more of them is a list or a log.
_MOST_STATEMENTS = 500
# What is pasted: code, quotations, and the lines of a log.
_CODE = re.compile(
    r"```.*?(?:```|\Z)|^>[^\n]*|^(?: {4}|\t)[^\n]*"
    r"|^\W{0,2}(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b[^\n]*"
    r"|^\W?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\n]*|^Traceback \([^\n]*|^\w{0,60}(?:Error|Exception): [^\n]*",
    re.DOTALL | re.MULTILINE,
)
# What is to be worked on is not what the user says, and what is made up is not what the assistant did.
_PIECE = (
    r"(?:story|tale|poem|song|novel|scene|dialogue?|screenplay|letter|e-?mail|message|tweet|article|essay|speech|reply"
    r"|caption|joke|paragraph|bio|announcement|chapter|role-?play)(?=\s*(?:[:.,!?\n]|$)|\s+(?:to|about|for|in|that|"
    r"from|where)\b)"
)
_MAKING_UP = re.compile(
    rf"\b(?:(?:write|draft|compose|continue|make up|invent)\b[^.:\n]{{0,60}}?|tell (?:me |us )?an? [^.:\n]{{0,40}}?)"
    rf"\b{_PIECE}",
    re.IGNORECASE,
)
_WORKED_ON = re.compile(
    rf"(?:\b(?:translate|rephrase|rewrite|reword|proofread|paraphrase|polish|summari[sz]e|shorten)\b[^:\n]{{0,120}}"
    rf"|{_MAKING_UP.pattern}[^:\n]{{0,120}}):(?=\s).*",
    re.IGNORECASE | re.DOTALL,
)
_END = re.compile(r"(?<=[.!?…])[\"”’')]*\s+|[。！？]+|\n+|(?<=\w)\s+[;–—]\s+|;\s+")
# Who goes on to tell something else of themselves makes a second statement: my name is Priya and I work at …
_SECOND = re.compile(
    r",?\s+(?:and|but)\s+(?=(?:I\s+(?:am|work|live|prefer|like|love|hate|dislike|want|need|use|speak|always|never|"
    r"don['’]t)"
    r"|I['’]m|my\s+\w+\s+is)\b)"
    # What follows from it is a wish: the runner has 4 GB, so never start more than two workers.
    r"|,\s+so\s+(?=(?:please|always|never|do not|don['’]t|avoid|use)\b)"
)
# What one thing came to, and what another did: X had no effect, but doing Y worked.
_VERDICT = re.compile(rf"\b(?:{say.FAILED}|{say.WORKED}|{say.ENDED})\b", re.IGNORECASE)
_OTHERWISE = re.compile(
    rf"(?:,\s+(?:but|while|whereas|and)?\s*|\s+(?:but|while|whereas)\s+)(?=\w+ing\b[^,]{{0,200}}?\b(?:{say.FAILED}|"
    rf"{say.WORKED}|{say.ENDED})\b)",
    re.IGNORECASE,
)
# A full stop that ends no sentence.
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|no|approx|Dr|Mr|Mrs|Ms|Prof|St)|\b[A-Z])\.\s*$")
_OPENING = re.compile(
    r"^(?:[-*•>\d.)\s\u2600-\u27bf\U0001f300-\U0001faff\ufe0f]*)(?:(?:oh|ok|okay|so|well|and|but|also|btw|by the way|"
    r"fyi|hey|hi|hello|yes|yeah|yep|right|sure|"
    r"great|perfect|awesome|excellent|nice|brilliant|wow|thanks|thank you|cool|hmm|alright|listen|look|just|one more "
    r"thing|again|honestly|anyway|in short|done|seriously|though|to be clear|for context|"
    r"good news|update|then|after that|afterwards|finally|eventually|"
    r"in the end|(?:next|first|second|third|later)(?=,))\b[\s,:!.…-]*)*",
    re.IGNORECASE,
)
_CLOSING = re.compile(r",?\s+(?:by the way|btw|fyi|for your information|just so you know)(?=[\s.!…]*$)", re.IGNORECASE)
# When or where it was, before somebody says what they do or did: in this project, after hours of searching.
_CIRCUMSTANCE = re.compile(
    r"^(?:(?:after (?!\w+ing\b)|in|during|on|at|for|over|yesterday|today|last|earlier|eventually)\b[^,.:;]{0,50},\s+"
    r"|(?:in|on|for|at) (?:this|our|my|that) (?:repo(?:sitory)?|project|codebase|team|company|office|house|family|"
    r"school)\s+)"
    r"(?=(?:i|we)\b)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^(?!(?:didn't|doesn't|did not|does not) (?:really |even |actually )?(?:work|help|fix|solve|change|matter)\b)"
    r"(?:what|why|how|when(?! you [^,?]+, )|where|who|which|whose|is|are|was|were|do|does|did|can|could|would|should|"
    r"will|shall|may|has|"
    r"have|had|am|isn't|aren't|don't you|doesn't|didn't|won't|couldn't|wouldn't|shouldn't|can you|could you)\b"
    r"(?!\s*(?:n't|not)\s+(?:use|do|ever|add|write|call|put|commit|push|touch|change))",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"^(?:if|unless|whether)\b|\b(?:would|could|might|maybe|perhaps|possibly|probably|suppose|supposing|imagine|"
    r"assuming|"
    r"hopefully|ideally|in theory|in an ideal world|let's (?:say|pretend|assume)|i wonder|i guess|i hope|let's try|"
    r"let us try|let me try|what if|wish|hypothetically|should (?:we|i)|"
    r"(?:i|we)(?:'ll| will| am going to|'m going to| are going to|'re going to| plan to| could| can try))\b",
    re.IGNORECASE,
)
# What somebody else said is theirs, and what is said with a shrug means the opposite.
_REPORTED = re.compile(
    r"^(?!(?:i|we|you|it|(?:the |our )?(?:docs?|documentation|spec\w*))\b)"
    r"(?:(?:my|our|the|a|an|his|her|their|your)\s+)?[\w.'-]+(?:\s+[\w.'-]+){0,3}?\s+"
    r"(?:says?|said|claims?|claimed|thinks?|thought|believes?|believed|told (?:me|us|him|her|them)|wrote|insists?"
    r"|insisted|argues?|argued)\b|^according to (?!(?:the |our )?(?:docs?|documentation|spec\w*|logs?)\b)",
    re.IGNORECASE,
)
_IRONY = re.compile(
    r"\byeah,? right\b|^oh,? (?:great|joy|wonderful|fantastic)\b|\bjust what i needed\b|\bthanks for nothing\b"
    r"|\s/s\W*$",
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
    making_up = False
    for number, turn in enumerate(turns):
        if turn.role not in (*USERS, *ASSISTANTS):
            continue
        if making_up and turn.role not in USERS:
            continue
        text = turn.content[:_LONGEST_MESSAGE]
        # Code and quotations keep their place, so that what is found stands where it says.
        readable = _CODE.sub(_blank, text)
        if turn.role in USERS:
            making_up = _MAKING_UP.search(readable) is not None
            readable = _WORKED_ON.sub(_asked_for, readable)
        plain = Squeezed(readable)
        for first, last in islice(_sentences(plain.text), _MOST_STATEMENTS):
            start = plain.at(first)
            end = min(plain.at(last), start + _LONGEST_STATEMENT)
            yield _statement(text[start:end], Evidence(text[start:end], turn.role, number, start, end))


def reread(plain: str, statement: Statement) -> Statement:
    """What is left of a statement, or what it comes to, where it was said."""
    return _statement(plain, statement.evidence)


def as_wish(statement: Statement) -> Statement:
    """What a user asks for politely and for good, as the wish it is: could you please always …?"""
    polite = _POLITE.match(statement.plain) if statement.by_user else None
    return statement if polite is None else reread(polite["wish"], statement)


# That something is done always is asked for with a "please"; without one it may be asked whether it is.
_POLITE = re.compile(
    r"^(?:can|could|would|will) you (?:"
    r"(?:please )?(?P<wish>(?:please )?(?:stop \w+ing|from now on|going forward|in (?:the )?future)\b.+?"
    r"|please (?:always|never)\b.+?|(?:always|never)\b.+?(?=,? please\b)))(?:,? please)?[\s?!.]*$",
    re.IGNORECASE | re.DOTALL,
)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _asked_for(match: re.Match[str]) -> str:
    """What is asked for, up to the colon, without what it is asked for."""
    asked, _, _ = match[0].partition(":")
    return asked + re.sub(r"[^\n]", " ", match[0][len(asked) :])


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
    end = min(end, start + _LONGEST_SENTENCE)
    whole = text[start:end]
    # What is asked, supposed or told of others goes on to the end of the sentence.
    is_said = not (_ASKING.match(whole) or _UNREAL.search(whole) or _REPORTED.match(whole))
    if is_said and not whole.endswith(("?", "？")):
        cuts = [*_SECOND.finditer(text, start, end), *_OTHERWISE.finditer(text, start, end)]
        for match in sorted(cuts, key=lambda each: each.start()):
            if match.start() >= start and (match.re is _SECOND or _VERDICT.search(text, start, match.start())):
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
    said = straight[opening.end() if opening else 0 :].strip() or straight.strip()
    plain = _CLOSING.sub("", _CIRCUMSTANCE.sub("", said))
    asked = straight.rstrip("\"')* ").endswith(("?", "？")) or bool(_ASKING.match(plain))
    unreal = _UNREAL.search(said) or _REPORTED.match(plain) or _IRONY.search(straight)
    return Statement(plain, evidence, asked, bool(unreal), bool(_HEDGED.search(straight)))
