"""Mentions: what a text names, such as issues, files, errors and people, and how it speaks of other memories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from alma.model.memory import Memory
from alma.model.relations import Relation

READ = 20_000
"""How many characters of a text are looked at."""

# What names one thing and hardly ever anything else.
_TELLING = {
    "issue": re.compile(r"(?<![\w&])#\d{1,7}\b|\b[A-Z][A-Z0-9]{1,9}-\d{1,6}\b"),
    "error": re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Fault)\b|\bE[A-Z]{4,}\b|\b0x[0-9A-Fa-f]{4,16}\b"),
    "link": re.compile(r"\bhttps?://[^\s<>\"')\]]+[^\s<>\"')\].,;:]"),
    "commit": re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"),
}
# What is named now and then.
_NAMING = {
    "file": re.compile(r"(?<![\w/.\-])(?:[\w.\-]+/)+[\w.\-]+\b|(?<![\w\-])[\w\-]+\.(?:[a-z]{1,4}[a-z0-9]?)\b(?!\.)"),
    "code": re.compile(
        r"\b[a-z]\w*_\w+\b|\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b\w+\(\)"
    ),
    "name": re.compile(r"(?<=[a-z,;] )[A-Z][\w'’]+(?: [A-Z][\w'’]+)*"),
}
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*")
_ID = re.compile(r"[\w\-]{2,200}")

# Each with the direction in which it is said: from the memory that says it to the one it speaks of.
_CUES: dict[str, tuple[str, ...]] = {
    Relation.SUPERSEDES: (
        "replac(?:es|ing)", "supersed(?:es|ing)", "overrid(?:es|ing)", "obsoletes", "deprecates", "instead of",
        "takes the place of", "no longer (?:valid|true|applies)[:,]?", "(?:switched|moved|migrated) (?:away )?from",
    ),
    Relation.RESOLVES: (
        "fix(?:es|ed)(?: for)?", "resolv(?:es|ed)", "clos(?:es|ed)", "solv(?:es|ed)",
        "(?:solution|answer|fix) (?:to|for)",
    ),
    Relation.CONTRADICTS: (
        "contrary to", "contradicts?", "in contrast to", "disagrees? with", "conflicts? with", "unlike", "disproves",
    ),
    Relation.BUILDS_ON: ("build(?:s|ing) (?:up)?on", "based on", "extend(?:s|ing)", "derived from", "on top of"),
    Relation.FOLLOW_UP: ("follow(?:s|ing)?[- ]up (?:to|on|of)", "follows up on", "continu(?:es|ing|ation of)"),
    Relation.REPLY_TO: (
        "in (?:reply|response|answer) to", "repl(?:y|ies|ying) to", "respond(?:s|ing) to", "^re:",
    ),
    Relation.REFERENCES: (
        "as (?:discussed|decided|agreed|described|mentioned|noted|explained|shown|said) (?:in|at|on|with)",
        "see(?: also)?", "refer(?:s|ring)? to", "according to", r"cf\.", "mentioned in", "described in",
    ),
}  # fmt: skip
# The same told from the other end: what they speak of stands before them.
_DONE = r"(?:is|are|was|were|got|has been|have been|had been) (?:now |since |finally |already |meanwhile )?"
_CUES_BEHIND: dict[str, tuple[str, ...]] = {
    Relation.SUPERSEDES: (rf"(?:{_DONE})?(?:replaced|superseded|obsoleted) by",),
    Relation.RESOLVES: (rf"{_DONE}(?:fixed|resolved|solved)(?: by| with| in)?",),
}
_TOLD_BACK = {Relation.SUPERSEDES: Relation.SUPERSEDED_BY, Relation.RESOLVES: Relation.RESOLVED_BY}


def _patterns(cues: Mapping[str, tuple[str, ...]]) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (relation, re.compile(rf"(?:(?<=\W)|^)(?:{'|'.join(words)})(?=\W|$)", re.IGNORECASE))
        for relation, words in cues.items()
    ]


_CUE_PATTERNS = [
    *((relation, pattern, True) for relation, pattern in _patterns(_CUES_BEHIND)),
    *((relation, pattern, False) for relation, pattern in _patterns(_CUES)),
]
_ITSELF = re.compile(r"(?:this|it|that)?(?: \w+)?", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|never|cannot|without)|n['’]t)(?: \w+)?\s*$", re.IGNORECASE)
_LONGEST_OBJECT = 160
# What comes behind these is not meant, or not in the same way.
_HOWEVER = re.compile(r"[,;]?\s*\b(?:but|although|though|however)\b", re.IGNORECASE)
# Where another clause begins, as far as one can tell: replaces X, and the login was fixed by Y.
_BREAK = re.compile(r"[,;:(–—]?\s*\b(?:and|but|while|whereas|which|so|then)\b(?: also)?|[,;:(–—]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that say how a memory stands to another, and the words behind them that say to which."""

    relation: str
    words: str
    object: str


def identifiers(text: str) -> dict[str, str]:
    """What the text names, each with the kind of name it is."""
    found: dict[str, str] = {}
    for kinds in (_TELLING, _NAMING):
        for kind, pattern in kinds.items():
            for match in pattern.finditer(text[:READ]):
                found.setdefault(match.group().lstrip("-").rstrip("."), kind)
    return found


def is_telling(kind: str) -> bool:
    """Whether names of this kind hardly ever stand for two things."""
    return kind in _TELLING


def named_by(memory: Memory) -> dict[str, str]:
    """What a memory names in its text and in its context."""
    found = identifiers(memory.text())
    found.update((name, "file") for name in files_of(memory))
    if memory.external_id:
        found.setdefault(memory.external_id, "issue")
    return found


def files_of(memory: Memory) -> list[str]:
    """The files that a memory's context lists."""
    return list(_files(memory.context_json))


def _files(context: Mapping[str, object]) -> Iterator[str]:
    for key in ("files", "file_paths", "paths", "file", "file_path", "path"):
        value = context.get(key)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and each.strip():
                yield each


def possible_ids(text: str) -> list[str]:
    """Words of a text that may be ids: those with a digit, or too long for a word."""
    words = dict.fromkeys(match.group() for match in _ID.finditer(text[:READ]))
    return [word for word in words if len(word) >= 24 or any(c.isdigit() for c in word)][:200]


def cues(text: str) -> list[Cue]:
    """Where a text says how it stands to something else; of cues in one place the first listed counts."""
    return [cue for sentence in _SENTENCE.findall(text[:READ]) for cue in _cues_in(sentence)]


class _Found(NamedTuple):
    """Where a cue stands in its sentence, and whether what it speaks of stands before it."""

    start: int
    end: int
    relation: str
    is_behind: bool


def _cues_in(sentence: str) -> Iterator[Cue]:
    found = _found_in(sentence)
    for previous, cue, following in zip([None, *found], found, [*found[1:], None], strict=False):
        before = sentence[_begin(sentence, previous, cue) : cue.start].strip()
        rest = _HOWEVER.split(sentence[cue.end : _end(sentence, cue, following)][:_LONGEST_OBJECT], maxsplit=1)[0]
        tells_of_itself = cue.is_behind and _ITSELF.fullmatch(before)
        spoken_of = before[-_LONGEST_OBJECT:] if cue.is_behind and not tells_of_itself else rest.strip()
        if spoken_of and not _DENIED.search(sentence[: cue.start]):
            relation = _TOLD_BACK[Relation(cue.relation)] if tells_of_itself else cue.relation
            yield Cue(relation, sentence[cue.start : cue.end].strip(), spoken_of)


def _found_in(sentence: str) -> list[_Found]:
    """The cues of a sentence in their order; of those in one place the first listed."""
    taken: list[_Found] = []
    for relation, pattern, is_behind in _CUE_PATTERNS:
        for match in pattern.finditer(sentence):
            if not any(other.start < match.end() and match.start() < other.end for other in taken):
                taken.append(_Found(*match.span(), relation, is_behind))
    return sorted(taken)


def _begin(sentence: str, previous: _Found | None, cue: _Found) -> int:
    """Where the clause of a cue begins: behind the last break since the cue before, or behind that."""
    if previous is None:
        return 0
    breaks = list(_BREAK.finditer(sentence, previous.end, cue.start))
    return breaks[-1].end() if breaks else previous.end


def _end(sentence: str, cue: _Found, following: _Found | None) -> int:
    """Where the clause of a cue ends: where that of the next one begins."""
    if following is None:
        return len(sentence)
    breaks = list(_BREAK.finditer(sentence, cue.end, following.start))
    # Fixes login and logout, based on the audit: before most cues stands at most who does it.
    if not breaks or not (
        following.is_behind or _ITSELF.fullmatch(sentence[breaks[-1].end() : following.start].strip())
    ):
        return following.start
    return breaks[-1].start()
