"""Detect the relationships that the text of a memory states, each with its evidence."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from alma.memory.tuning import DETECTION, patterns, phrase_pattern, table
from alma.model.fields import JsonObject
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Or, Predicate
from alma.model.relations import Relation, stored_ends
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.storage.nearest import cosines
from alma.text.tokens import query_terms

PROBLEMS, ANSWERS = ("error", "bug", "issue", "problem"), ("solution", "fix")
"""The types of memories that state a problem, and those that solve one."""

LOOSE = (Relation.RELATES_TO, Relation.SAME_CONTEXT)
"""Relations that only say that two memories have something in common."""

MOST_CHARACTERS_READ = 20_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """A piece of evidence for a relationship, and its weight."""

    kind: str
    detail: str
    weight: float

    def to_json(self) -> JsonObject:
        return {"kind": self.kind, "detail": self.detail, "weight": round(self.weight, 4)}

    @classmethod
    def from_json(cls, stored: JsonObject) -> Evidence:
        return cls(str(stored.get("kind", "")), str(stored.get("detail", "")), float(stored.get("weight", 0.0)))


@dataclass(frozen=True, slots=True)
class DetectedRelation:
    """A detected relationship, as it would be stored, with its evidence."""

    relation: str
    from_id: str
    to_id: str
    evidence: tuple[Evidence, ...]

    @property
    def strength(self) -> float:
        return combined(self.evidence)


def combined(evidence: Iterable[Evidence]) -> float:
    """The strength that follows from independent pieces of evidence."""
    return round(1.0 - math.prod(1.0 - each.weight for each in evidence), 4)


class Detector:
    """Finds the relationships of a memory to others inside a scope; it stores nothing."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage

    def detect(self, memory: Memory, scope: Scope, shown: Predicate) -> list[DetectedRelation]:
        """The relationships of the memory to those that fulfil the predicate, strongest first."""
        others = self._candidates(memory, scope, shown)
        found: dict[tuple[str, str, str], list[Evidence]] = defaultdict(list)

        def note(relation: str, other: Memory, evidence: Evidence) -> None:
            found[stored_ends(relation, memory.id, other.id)].append(evidence)

        for relation, other, evidence in _stated(memory, others):
            note(relation, other, evidence)
        for other in others:
            for relation, evidence in _implied(memory, other, others):
                note(relation, other, evidence)
        detected = [DetectedRelation(*ends, tuple(_distinct(evidence))) for ends, evidence in found.items()]
        return _worth_keeping(detected)

    def _candidates(self, memory: Memory, scope: Scope, shown: Predicate) -> list[Memory]:
        """Memories that are mentioned by id, share words or have a similar meaning; oldest first."""
        text = memory.text()
        ids = dict.fromkeys(possible_ids(text))
        names = " ".join(named_by(memory))
        for query in (names, text, *(cue.object for cue in cues(text))):
            hits = self._storage.matching_ids(Memory, query, scope, shown, DETECTION.max_hits) if query.strip() else []
            ids.update(dict.fromkeys(key for key, _ in hits))
        if memory.embedding is not None:
            near = self._storage.nearest_ids(Memory, memory.embedding, scope, shown, DETECTION.max_hits)
            ids.update(dict.fromkeys(key for key, _ in near))
        # Issue trackers number issues with or without the sign.
        external_ids = {spelled for name in named_by(memory) for spelled in (name, name.lstrip("#"))}
        known = Or(In("id", list(ids)), In("external_id", sorted(external_ids)))
        where = And(shown, known, Compare("id", "ne", memory.id))
        return sorted(self._storage.find(Memory, scope, where), key=lambda each: (each.created_at, each.id))


def _implied(memory: Memory, other: Memory, others: Sequence[Memory]) -> Iterable[tuple[str, Evidence]]:
    """Relationships that follow from shared names, files and meaning."""
    shared = _shared_names(memory, other, others)
    if shared:
        answers = _answers(memory, other)
        relation = Relation.RELATES_TO if answers is None else answers
        yield from ((relation, each) for each in shared)
    if memory.session_id is not None and memory.session_id == other.session_id:
        for name in sorted(set(files_of(memory)) & set(files_of(other))):
            yield Relation.SAME_CONTEXT, Evidence("same session and file", name, DETECTION.same_session_and_file)
    cosine = _cosine(memory.embedding, other.embedding)
    if cosine >= DETECTION.similar_meaning:
        yield (
            Relation.RELATES_TO,
            Evidence("similar meaning", f"cosine {cosine:.2f}", min(0.95, cosine - DETECTION.similar_meaning_discount)),
        )


def _stated(memory: Memory, others: Sequence[Memory]) -> Iterable[tuple[str, Memory, Evidence]]:
    """Relationships that the memory states in words."""
    text = memory.text()
    earlier = [other for other in others if other.created_at <= memory.created_at]
    stated: set[str] = set()
    for cue in cues(text):
        referent = _resolved(cue, others, earlier)
        if referent is not None:
            other, weight, how = referent
            stated.add(other.id)
            yield cue.relation, other, Evidence("explicit words", f"{cue.words!r} {how}", weight)
    for other in others:
        if other.id in stated:
            continue
        if other.id in possible_ids(text):
            yield Relation.REFERENCES, other, Evidence("id mentioned", other.id, DETECTION.by_id)
        elif _has_title(text, other) and other in earlier:
            yield Relation.REFERENCES, other, Evidence("title mentioned", other.title, DETECTION.title_mentioned)


def _resolved(cue: Cue, others: Sequence[Memory], earlier: Sequence[Memory]) -> tuple[Memory, float, str] | None:
    """The memory that a cue refers to: by id, by title, by a shared name, or by most of its words."""
    ids = set(possible_ids(cue.object))
    for other in others:
        if other.id in ids:
            return other, DETECTION.by_id, f"id {other.id}"
    for other in sorted(earlier, key=lambda each: -len(each.title)):
        if _has_title(cue.object, other):
            return other, DETECTION.by_title, f"title {other.title!r}"
    return _resolved_by_name(cue, earlier) or _resolved_by_words(cue, earlier)


def _resolved_by_name(cue: Cue, earlier: Sequence[Memory]) -> tuple[Memory, float, str] | None:
    wanted = [name for name, kind in named_by(Memory(content=cue.object)).items() if is_distinctive(kind)]
    for name in wanted:
        having = [other for other in earlier if name in named_by(other) or other.external_id == name.lstrip("#")]
        titled = [other for other in having if name in other.title or other.external_id in (name, name.lstrip("#"))]
        if having:
            # The first memory with the name is about it; later ones only mention it.
            return (titled or having)[0], DETECTION.by_name, f"shares {name}"
    return None


def _resolved_by_words(cue: Cue, earlier: Sequence[Memory]) -> tuple[Memory, float, str] | None:
    if cue.words.lower().startswith("see"):
        # "see" refers to a memory only by id, title or name.
        return None
    if cue.relation == Relation.RESOLVES:
        # Only problems and tasks are resolved.
        earlier = [other for other in earlier if other.memory_type in (*PROBLEMS, "task")]
    # The object ends with its clause, unless the other memory quotes all of it.
    whole, clause = (
        set(query_terms(text)[:24])
        for text in (cue.object, patterns("text")["clause_end"].split(cue.object, maxsplit=1)[0])
    )
    best: tuple[float, Memory] | None = None
    for other in earlier:
        own = set(query_terms(other.text()))
        covered = max(_share(clause, own), _share(own, whole))
        if covered >= DETECTION.min_covered_words and (best is None or covered > best[0]):
            best = covered, other
    return None if best is None else (best[1], DETECTION.by_words * best[0], f"words {cue.object[:60]!r}")


def _share(wanted: set[str], having: set[str]) -> float:
    """The share of the wanted words that is there; 0 for a single word, which says too little."""
    return len(wanted & having) / len(wanted) if len(wanted) > 1 else 0.0


def _has_title(text: str, other: Memory) -> bool:
    title = other.title.strip().casefold()
    if len(title) < DETECTION.min_title_length or (" " not in title and len(title) < 2 * DETECTION.min_title_length):
        return False
    return re.search(rf"(?<![^\W_]){re.escape(title)}(?![^\W_])", text.casefold()) is not None


def _shared_names(memory: Memory, other: Memory, others: Sequence[Memory]) -> list[Evidence]:
    """Evidence from names that both mention; frequent names count less."""
    mine, theirs = named_by(memory), named_by(other)
    found: list[Evidence] = []
    for name in sorted(mine.keys() & theirs.keys()):
        having = sum(name in each.text() for each in others)
        weight = (DETECTION.distinctive_name if is_distinctive(mine[name]) else DETECTION.common_name) / (
            1.0 + math.log(max(1.0, having / 3))
        )
        found.append(Evidence(f"shared {mine[name]}", name, weight))
    return found


def _answers(memory: Memory, other: Memory) -> str | None:
    """The relation between a problem and a solution, by the types of the two memories."""
    if memory.memory_type in ANSWERS and other.memory_type in PROBLEMS:
        return Relation.RESOLVES
    if memory.memory_type in PROBLEMS and other.memory_type in ANSWERS and other.created_at >= memory.created_at:
        return Relation.RESOLVED_BY
    return None


def _cosine(one: Vector | Sequence[float] | None, other: Vector | Sequence[float] | None) -> float:
    if one is None or other is None:
        return 0.0
    return cosines(Vector(one), [Vector(other).to_bytes()])[0]


def _distinct(evidence: Iterable[Evidence]) -> Iterable[Evidence]:
    return {(each.kind, each.detail): each for each in evidence}.values()


def _worth_keeping(detected: Iterable[DetectedRelation]) -> list[DetectedRelation]:
    """Those that are strong enough; of loose relations the strongest, and none for pairs with a specific relation."""
    strong = sorted(
        (each for each in detected if each.strength >= DETECTION.min_strength),
        key=lambda each: (-each.strength, each.relation, each.from_id, each.to_id),
    )
    named = {frozenset((each.from_id, each.to_id)) for each in strong if each.relation not in LOOSE}
    kept = [each for each in strong if each.relation not in LOOSE]
    merely = [each for each in strong if each.relation in LOOSE and frozenset((each.from_id, each.to_id)) not in named]
    return sorted(
        [*kept, *merely[: DETECTION.max_loose]],
        key=lambda each: (-each.strength, each.relation, each.from_id, each.to_id),
    )


# ---------------------------------------------------------------------- names and phrases in text


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase that states a relation, and the words that say to which memory."""

    relation: str
    words: str
    object: str


def identifiers(text: str) -> dict[str, str]:
    """The names in a text, such as issues, errors, files and code, each with its kind."""
    found: dict[str, str] = {}
    for section in ("distinctive_names", "common_names"):
        for kind, pattern in patterns(section).items():
            for match in pattern.finditer(text[:MOST_CHARACTERS_READ]):
                found.setdefault(match.group().lstrip("-").rstrip("."), kind)
    return found


def is_distinctive(kind: str) -> bool:
    """Whether names of this kind rarely stand for two things."""
    return kind in patterns("distinctive_names")


def named_by(memory: Memory) -> dict[str, str]:
    """The names in the text and the context of a memory."""
    found = identifiers(memory.text())
    found.update((name, "file") for name in files_of(memory))
    if memory.external_id:
        found.setdefault(memory.external_id, "issue")
    return found


def files_of(memory: Memory) -> list[str]:
    """The files that the context of a memory lists."""
    return list(_files(memory.context_json))


def _files(context: Mapping[str, object]) -> Iterator[str]:
    for key in ("files", "file_paths", "paths", "file", "file_path", "path"):
        value = context.get(key)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and each.strip():
                yield each


def possible_ids(text: str) -> list[str]:
    """Words of a text that may be ids: those with a digit, and very long ones."""
    words = dict.fromkeys(match.group() for match in patterns("text")["id"].finditer(text[:MOST_CHARACTERS_READ]))
    return [word for word in words if len(word) >= 24 or any(c.isdigit() for c in word)][:200]


def cues(text: str) -> list[Cue]:
    """The phrases of a text that state relations; where phrases overlap, the one listed first counts."""
    return [
        cue
        for sentence in patterns("text")["sentence"].findall(text[:MOST_CHARACTERS_READ])
        for cue in _cues_in(sentence)
    ]


class _Match(NamedTuple):
    """A phrase in a sentence; `is_passive` means that its object comes before it."""

    start: int
    end: int
    relation: str
    is_passive: bool


@cache
def _relation_phrases() -> list[tuple[str, re.Pattern[str], bool]]:
    listed = table("phrases")["relations"]
    return [(each["relation"], phrase_pattern(each["phrases"]), each["object"] == "before") for each in listed]


def _cues_in(sentence: str) -> Iterator[Cue]:
    found = _matches(sentence)
    for previous, match, following in zip([None, *found], found, [*found[1:], None], strict=False):
        before = sentence[_clause_start(sentence, previous, match) : match.start].strip()
        after = sentence[match.end : _clause_end(sentence, match, following)][: DETECTION.max_object_length]
        is_about_itself = match.is_passive and patterns("text")["pronoun"].fullmatch(before)
        takes_before = match.is_passive and not is_about_itself
        target = (
            before[-DETECTION.max_object_length :]
            if takes_before
            else patterns("text")["concession"].split(after, maxsplit=1)[0].strip()
        )
        if target and not patterns("text")["negated"].search(sentence[: match.start]):
            # "Replaced by X" says of the memory itself that X supersedes it.
            relation = f"{match.relation.removesuffix('s')}d_by" if is_about_itself else match.relation
            yield Cue(relation, sentence[match.start : match.end].strip(), target)


def _matches(sentence: str) -> list[_Match]:
    """The phrases of a sentence in their order, without overlaps."""
    taken: list[_Match] = []
    for relation, pattern, is_passive in _relation_phrases():
        for match in pattern.finditer(sentence):
            if not any(other.start < match.end() and match.start() < other.end for other in taken):
                taken.append(_Match(*match.span(), relation, is_passive))
    return sorted(taken)


def _clause_start(sentence: str, previous: _Match | None, match: _Match) -> int:
    if previous is None:
        return 0
    breaks = list(patterns("text")["clause_break"].finditer(sentence, previous.end, match.start))
    return breaks[-1].end() if breaks else previous.end


def _clause_end(sentence: str, match: _Match, following: _Match | None) -> int:
    if following is None:
        return len(sentence)
    breaks = list(patterns("text")["clause_break"].finditer(sentence, match.end, following.start))
    # In "fixes login and logout, based on the audit" the second phrase does not begin a clause with another subject.
    begins_clause = breaks and (
        following.is_passive
        or patterns("text")["pronoun"].fullmatch(sentence[breaks[-1].end() : following.start].strip())
    )
    return breaks[-1].start() if begins_clause else following.start
