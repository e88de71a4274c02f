"""Detection: which relationships a memory shows by what it says, each with the evidence for it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from alma.model.fields import JsonObject
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Or, Predicate
from alma.model.relations import Relation, stored_ends
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.storage.nearest import cosines
from alma.text.tokens import query_terms

_BY_ID, _BY_TITLE, _BY_NAME, _BY_WORDS = 0.95, 0.9, 0.85, 0.7
_MENTIONED = 0.6
_TELLING, _NAMED = 0.4, 0.2
_SIMILAR = 0.72
_SAME_CONTEXT = 0.5
_LEAST = 0.35
LOOSE = (Relation.RELATES_TO, Relation.SAME_CONTEXT)
"""Relations that say no more than that two memories have something to do with each other."""
_MOST_LOOSE = 10
_COVERED = 0.6
_CLAUSE_END = re.compile(r"[,;:(–—]| because | since | so that ")
_SHORTEST_TITLE = 5
_BY_SEARCH = 30
_PROBLEMS, _ANSWERS = ("error", "bug", "issue", "problem"), ("solution", "fix")
READ = 20_000
"""How many characters of a text are looked at."""
# What names one thing and hardly ever anything else.
_DISTINCTIVE = {
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
_ITSELF = re.compile(r"(?:this|it|that)?(?: \w+)?", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|never|cannot|without)|n['’]t)(?: \w+)?\s*$", re.IGNORECASE)
_LONGEST_OBJECT = 160
# What comes behind these is not meant, or not in the same way.
_HOWEVER = re.compile(r"[,;]?\s*\b(?:but|although|though|however)\b", re.IGNORECASE)
# Where another clause begins, as far as one can tell: replaces X, and the login was fixed by Y.
_BREAK = re.compile(r"[,;:(–—]?\s*\b(?:and|but|while|whereas|which|so|then)\b(?: also)?|[,;:(–—]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that speaks for a relationship, and how much."""

    kind: str
    detail: str
    weight: float

    def to_json(self) -> JsonObject:
        return {"kind": self.kind, "detail": self.detail, "weight": round(self.weight, 4)}

    @classmethod
    def from_json(cls, said: JsonObject) -> Evidence:
        return cls(str(said.get("kind", "")), str(said.get("detail", "")), float(said.get("weight", 0.0)))


@dataclass(frozen=True, slots=True)
class Detected:
    """A relationship that was found, as it would be stored, and why."""

    relation: str
    from_id: str
    to_id: str
    evidence: tuple[Evidence, ...]

    @property
    def strength(self) -> float:
        return combined(self.evidence)


def combined(evidence: Iterable[Evidence]) -> float:
    """How strong a relationship is: each piece of evidence takes away part of the remaining doubt."""
    return round(1.0 - math.prod(1.0 - each.weight for each in evidence), 4)


class Detector:
    """Finds the relationships of a memory among those that a scope shows; it stores nothing."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage

    def detect(self, memory: Memory, scope: Scope, shown: Predicate) -> list[Detected]:
        """Every relationship the memory shows to those that fulfil the predicate, strongest first."""
        others = self._candidates(memory, scope, shown)
        found: dict[tuple[str, str, str], list[Evidence]] = defaultdict(list)

        def note(relation: str, other: Memory, evidence: Evidence) -> None:
            found[stored_ends(relation, memory.id, other.id)].append(evidence)

        for relation, other, evidence in _spoken(memory, others):
            note(relation, other, evidence)
        for other in others:
            for relation, evidence in _implied(memory, other, others):
                note(relation, other, evidence)
        detected = [Detected(*ends, tuple(_distinct(evidence))) for ends, evidence in found.items()]
        return _worth_keeping(detected)

    # ------------------------------------------------------------------ where to look

    def _candidates(self, memory: Memory, scope: Scope, shown: Predicate) -> list[Memory]:
        """Memories that this one may speak of: named by id, sharing words, or near in meaning; oldest first."""
        text = memory.text()
        ids = dict.fromkeys(possible_ids(text))
        names = " ".join(named_by(memory))
        for query in (names, text, *(cue.object for cue in cues(text))):
            hits = self._storage.matching_ids(Memory, query, scope, shown, _BY_SEARCH) if query.strip() else []
            ids.update(dict.fromkeys(key for key, _ in hits))
        if memory.embedding is not None:
            near = self._storage.nearest_ids(Memory, memory.embedding, scope, shown, _BY_SEARCH)
            ids.update(dict.fromkeys(key for key, _ in near))
        # Issues are known by their numbers outside, with or without the sign.
        outside = {spelled for name in named_by(memory) for spelled in (name, name.lstrip("#"))}
        known = Or(In("id", list(ids)), In("external_id", sorted(outside)))
        where = And(shown, known, Compare("id", "ne", memory.id))
        return sorted(self._storage.find(Memory, scope, where), key=lambda each: (each.created_at, each.id))


def _implied(memory: Memory, other: Memory, others: Sequence[Memory]) -> Iterable[tuple[str, Evidence]]:
    """What both say, without either speaking of the other."""
    shared = _shared_names(memory, other, others)
    if shared:
        answers = _answers(memory, other)
        relation = Relation.RELATES_TO if answers is None else answers
        yield from ((relation, each) for each in shared)
    if memory.session_id is not None and memory.session_id == other.session_id:
        for name in sorted(set(files_of(memory)) & set(files_of(other))):
            yield Relation.SAME_CONTEXT, Evidence("same session and file", name, _SAME_CONTEXT)
    cosine = _cosine(memory.embedding, other.embedding)
    if cosine >= _SIMILAR:
        yield Relation.RELATES_TO, Evidence("similar meaning", f"cosine {cosine:.2f}", min(0.95, cosine - 0.3))


def _spoken(memory: Memory, others: Sequence[Memory]) -> Iterable[tuple[str, Memory, Evidence]]:
    """What the memory says of others in so many words."""
    text = memory.text()
    earlier = [other for other in others if other.created_at <= memory.created_at]
    said: set[str] = set()
    for cue in cues(text):
        meant = _meant(cue, others, earlier)
        if meant is not None:
            other, weight, how = meant
            said.add(other.id)
            yield cue.relation, other, Evidence("explicit words", f"{cue.words!r} {how}", weight)
    for other in others:
        if other.id in said:
            continue
        if other.id in possible_ids(text):
            yield Relation.REFERENCES, other, Evidence("id mentioned", other.id, _BY_ID)
        elif _has_title(text, other) and other in earlier:
            yield Relation.REFERENCES, other, Evidence("title mentioned", other.title, _MENTIONED)


def _meant(cue: Cue, others: Sequence[Memory], earlier: Sequence[Memory]) -> tuple[Memory, float, str] | None:
    """Which memory a cue speaks of: one whose id or title it gives, that carries the same name, or says the same."""
    ids = set(possible_ids(cue.object))
    for other in others:
        if other.id in ids:
            return other, _BY_ID, f"id {other.id}"
    for other in sorted(earlier, key=lambda each: -len(each.title)):
        if _has_title(cue.object, other):
            return other, _BY_TITLE, f"title {other.title!r}"
    return _meant_by_name(cue, earlier) or _meant_by_words(cue, earlier)


def _meant_by_name(cue: Cue, earlier: Sequence[Memory]) -> tuple[Memory, float, str] | None:
    wanted = [name for name, kind in named_by(Memory(content=cue.object)).items() if is_telling(kind)]
    for name in wanted:
        having = [other for other in earlier if name in named_by(other) or other.external_id == name.lstrip("#")]
        titled = [other for other in having if name in other.title or other.external_id in (name, name.lstrip("#"))]
        if having:
            # The first that spoke of it is what it is about; later ones only mention it.
            return (titled or having)[0], _BY_NAME, f"shares {name}"
    return None


def _meant_by_words(cue: Cue, earlier: Sequence[Memory]) -> tuple[Memory, float, str] | None:
    if cue.words.lower().startswith("see"):
        # One sees many things; which memory is meant must be said by name.
        return None
    if cue.relation == Relation.RESOLVES:
        # Much is fixed and closed; what is resolved by a memory was a problem or a task.
        earlier = [other for other in earlier if other.memory_type in (*_PROBLEMS, "task")]
    # What is spoken of ends where the next clause begins, or all of it is quoted.
    whole, clause = (set(query_terms(said)[:24]) for said in (cue.object, _CLAUSE_END.split(cue.object, maxsplit=1)[0]))
    best: tuple[float, Memory] | None = None
    for other in earlier:
        own = set(query_terms(other.text()))
        covered = max(_share(clause, own), _share(own, whole))
        if covered >= _COVERED and (best is None or covered > best[0]):
            best = covered, other
    return None if best is None else (best[1], _BY_WORDS * best[0], f"words {cue.object[:60]!r}")


def _share(wanted: set[str], having: set[str]) -> float:
    """How much of what is wanted is there; of a single word one cannot tell."""
    return len(wanted & having) / len(wanted) if len(wanted) > 1 else 0.0


def _has_title(text: str, other: Memory) -> bool:
    title = other.title.strip().casefold()
    if len(title) < _SHORTEST_TITLE or (" " not in title and len(title) < 2 * _SHORTEST_TITLE):
        return False
    at = text.casefold().find(title)
    folded = text.casefold()
    return at >= 0 and not folded[at - 1 : at].isalnum() and not folded[at + len(title) : at + len(title) + 1].isalnum()


def _shared_names(memory: Memory, other: Memory, others: Sequence[Memory]) -> list[Evidence]:
    """What both name; a name that many have says less."""
    mine, theirs = named_by(memory), named_by(other)
    found: list[Evidence] = []
    for name in sorted(mine.keys() & theirs.keys()):
        having = sum(name in each.text() for each in others)
        weight = (_TELLING if is_telling(mine[name]) else _NAMED) / (1.0 + math.log(max(1.0, having / 3)))
        found.append(Evidence(f"shared {mine[name]}", name, weight))
    return found


def _answers(memory: Memory, other: Memory) -> str | None:
    """Whether one of the two is the answer to the other, by what kind of memories they are."""
    if memory.memory_type in _ANSWERS and other.memory_type in _PROBLEMS:
        return Relation.RESOLVES
    if memory.memory_type in _PROBLEMS and other.memory_type in _ANSWERS and other.created_at >= memory.created_at:
        return Relation.RESOLVED_BY
    return None


def _cosine(one: Vector | Sequence[float] | None, other: Vector | Sequence[float] | None) -> float:
    if one is None or other is None:
        return 0.0
    return cosines(Vector(one), [Vector(other).to_bytes()])[0]


def _distinct(evidence: Iterable[Evidence]) -> Iterable[Evidence]:
    return {(each.kind, each.detail): each for each in evidence}.values()


def _worth_keeping(detected: Iterable[Detected]) -> list[Detected]:
    """Strong ones; of those that merely relate, the strongest few, and none where a pair has a better name for it."""
    strong = sorted(
        (each for each in detected if each.strength >= _LEAST),
        key=lambda each: (-each.strength, each.relation, each.from_id, each.to_id),
    )
    named = {frozenset((each.from_id, each.to_id)) for each in strong if each.relation not in LOOSE}
    kept = [each for each in strong if each.relation not in LOOSE]
    merely = [each for each in strong if each.relation in LOOSE and frozenset((each.from_id, each.to_id)) not in named]
    return sorted(
        [*kept, *merely[:_MOST_LOOSE]], key=lambda each: (-each.strength, each.relation, each.from_id, each.to_id)
    )


def _patterns(cues: Mapping[str, tuple[str, ...]]) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (relation, re.compile(rf"(?:(?<=\W)|^)(?:{'|'.join(words)})(?=\W|$)", re.IGNORECASE))
        for relation, words in cues.items()
    ]


_CUE_PATTERNS = [
    *((relation, pattern, True) for relation, pattern in _patterns(_CUES_BEHIND)),
    *((relation, pattern, False) for relation, pattern in _patterns(_CUES)),
]


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that say how a memory stands to another, and the words behind them that say to which."""

    relation: str
    words: str
    object: str


def identifiers(text: str) -> dict[str, str]:
    """What the text names, each with the kind of name it is."""
    found: dict[str, str] = {}
    for kinds in (_DISTINCTIVE, _NAMING):
        for kind, pattern in kinds.items():
            for match in pattern.finditer(text[:READ]):
                found.setdefault(match.group().lstrip("-").rstrip("."), kind)
    return found


def is_telling(kind: str) -> bool:
    """Whether names of this kind hardly ever stand for two things."""
    return kind in _DISTINCTIVE


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
