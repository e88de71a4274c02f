"""Supersession: a memory that is superseded, contradicted or out of its validity comes behind what holds now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.memory import FactRelationship, Memory, MemoryRelationship
from alma.model.query import And, In, Or
from alma.model.record import Record
from alma.model.relations import Relation
from alma.model.scope import Scope
from alma.retrieval.router import Target
from alma.retrieval.scoring import ScoredRecord, moment_of
from alma.storage.base import StorageBackend
from alma.text.timeexpr.vocabulary import EARLIEST

Edge = MemoryRelationship | FactRelationship
SUPERSEDED, CONTRADICTED = "superseded", "contradicted"
"""How the note on a memory begins that another one supersedes or contradicts."""

EDGES: Mapping[type[Record], type[MemoryRelationship] | type[FactRelationship]] = {
    Memory: MemoryRelationship,
    DomainKnowledge: FactRelationship,
    UserPreference: FactRelationship,
}
"""The kind of relationship for each kind of memory that has some."""

_LONGEST_CHAIN = 16
_MOST_EDGES = 1_000
_CHARACTERS_SHOWN = 120
_AHEAD = 1e-6
# What does not hold keeps its order, but is older than everything that does.
_AGES = 1_000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Relations:
    """What supersedes each memory, over any number of steps, and what contradicts it."""

    successors: dict[str, set[str]] = field(default_factory=dict)
    contradictions: dict[str, set[str]] = field(default_factory=dict)


def relations_of(storage: StorageBackend, cls: type[Record], ids: Iterable[str]) -> Relations:
    """What supersedes and what contradicts these memories, visible or not; most stores have no relationships."""
    found = Relations()
    if cls not in EDGES or not storage.values(EDGES[cls], ("id",), Scope.everywhere(), limit=1):
        return found
    direct: dict[str, set[str]] = defaultdict(set)
    frontier = sorted(ids)
    for _ in range(_LONGEST_CHAIN):
        if not frontier:
            break
        edges, frontier = _edges(storage, cls, frontier), []
        for edge in edges:
            if edge.relationship_type == Relation.CONTRADICTS:
                found.contradictions.setdefault(edge.from_memory_id, set()).add(edge.to_memory_id)
                found.contradictions.setdefault(edge.to_memory_id, set()).add(edge.from_memory_id)
            elif edge.from_memory_id not in direct[edge.to_memory_id]:
                direct[edge.to_memory_id].add(edge.from_memory_id)
                frontier.append(edge.from_memory_id)
    found.successors = {old: _all_after(old, direct) for old in list(direct)}
    return found


def successors_of(storage: StorageBackend, ids: Sequence[str]) -> Mapping[str, set[str]]:
    """What supersedes these general memories, directly or over others."""
    return relations_of(storage, Memory, ids).successors


def current_first(
    storage: StorageBackend,
    items: Sequence[ScoredRecord],
    targets: Iterable[Target],
    scored: Callable[[Record, Sequence[str]], ScoredRecord],
    now: datetime,
) -> list[ScoredRecord]:
    """Memories of one kind, what is no longer true with a note and a lower score than what replaced it.

    What supersedes or contradicts one of them and was not found is added; `scored` makes it an item. What becomes true
    only after `now` replaces nothing yet.
    """
    placed = list(items)
    if not placed:
        return placed
    cls = type(placed[0].record)
    relations = relations_of(storage, cls, [item.key for item in placed])
    if not relations.successors and not relations.contradictions:
        return placed
    by_key = {item.key: item for item in placed}
    others = _visible(storage, cls, _related(relations, by_key), targets)
    relations = _true_by_now(relations, {**others, **{key: item.record for key, item in by_key.items()}}, now)
    for old in items:
        newer = _later_than(old, relations, by_key, others)
        for new in newer:
            if new.key not in by_key:
                by_key[new.key] = scored(new, (f"{_how(relations, old, new)[1]} {old.key}",))
                by_key[new.key].strength = "weak"
                placed.append(by_key[new.key])
            # Where the old version is shown, the new one is shown as well.
            if old.strength == "strong":
                by_key[new.key].strength = "strong"
        if newer:
            _note(old, max(newer, key=_age), relations)
    _put_in_order(relations, by_key)
    _note_contradicting(relations, by_key)
    return placed


def holds(record: Record, now: datetime) -> bool:
    """Whether a memory is inside its validity period."""
    return holds_from(record, now) is None and _held_until(record, now) is None


def holds_from(record: Record, now: datetime) -> datetime | None:
    """When the validity of a memory begins, if that is still to come."""
    start: datetime | None = getattr(record, "valid_from", None)
    return start if start is not None and start > now else None


def _held_until(record: Record, now: datetime) -> datetime | None:
    end: datetime | None = getattr(record, "valid_until", None)
    return end if end is not None and end <= now else None


def validity_notes(record: Record, now: datetime) -> tuple[str, ...]:
    """The note on a memory that is outside its validity period."""
    start, end = holds_from(record, now), _held_until(record, now)
    if end is not None:
        return (f"held until {end:%Y-%m-%d}",)
    return () if start is None else (f"holds from {start:%Y-%m-%d}",)


def known_since(record: Record, now: datetime) -> datetime | None:
    """Since when a memory is known; what does not hold counts as older than anything that does."""
    moment = moment_of(record)
    return moment if moment is None or holds(record, now) else EARLIEST + (moment - EARLIEST) / _AGES


def _true_by_now(relations: Relations, known: Mapping[str, Record], now: datetime) -> Relations:
    """The relations to visible memories that are true by now."""
    true = {key for key, record in known.items() if _begins(record, now) <= now}
    return Relations(
        {old: later & true for old, later in relations.successors.items() if later & true},
        {one: others & true for one, others in relations.contradictions.items() if others & true},
    )


def _begins(record: Record, now: datetime) -> datetime:
    """When a memory becomes true, as far as it says so; when it was stored tells nothing."""
    begins = getattr(record, "valid_from", None) or getattr(record, "event_time", None)
    return now if begins is None else begins


def true_from(record: Record) -> datetime:
    """From when on a memory is true, as far as it says so."""
    return record.true_from if isinstance(record, Memory) else _age(record)


def _later_than(
    old: ScoredRecord, relations: Relations, by_key: Mapping[str, ScoredRecord], others: Mapping[str, Record]
) -> list[Record]:
    """What supersedes a memory, and what contradicts it and is newer."""
    known = {key: item.record for key, item in by_key.items()} | dict(others)
    later = [known[key] for key in sorted(relations.successors.get(old.key, ())) if key in known]
    denied = [known[key] for key in sorted(relations.contradictions.get(old.key, ())) if key in known]
    return [*later, *(other for other in denied if other not in later and _age(other) > _age(old.record))]


def _related(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> list[str]:
    related = (*relations.successors.items(), *relations.contradictions.items())
    return sorted({other for old, found in related if old in by_key for other in found} - by_key.keys())


def _visible(
    storage: StorageBackend, cls: type[Record], ids: Sequence[str], targets: Iterable[Target]
) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for target in targets if ids else ():
        if target.cls is cls and target.searched:
            named = And(target.where, In("id", ids))
            found.update((str(each.key), each) for each in storage.find(cls, target.scope, named))
    return found


def _how(relations: Relations, old: ScoredRecord, new: Record) -> tuple[str, str]:
    replaced = str(new.key) in relations.successors.get(old.key, ())
    return (SUPERSEDED, "supersedes") if replaced else (CONTRADICTED, "contradicts")


def _note(old: ScoredRecord, new: Record, relations: Relations) -> None:
    since = moment_of(new)
    when = "" if since is None else f" on {since:%Y-%m-%d}"
    said = " ".join(stated(new).split())
    shown = said if len(said) <= _CHARACTERS_SHOWN else f"{said[:_CHARACTERS_SHOWN].rstrip()} …"
    old.notes = (*old.notes, f"{_how(relations, old, new)[0]}{when} by {new.key}: {shown}")


def stated(record: Record) -> str:
    """The statement of a memory, without its category."""
    match record:
        case DomainKnowledge():
            return record.fact
        case UserPreference():
            return record.preference
        case Memory():
            return f"{record.title}: {record.content}" if record.title else record.content
    return record.text()


def _note_contradicting(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> None:
    """Let the newer of two contradicting memories name the older one."""
    for key, others in relations.contradictions.items():
        if key in by_key:
            item = by_key[key]
            noted = " ".join(item.notes)
            named = [other for other in sorted(others & by_key.keys()) if f" by {other}: " not in noted]
            item.notes = (*item.notes, *(f"contradicts {other}" for other in named))


def _put_in_order(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> None:
    """Let what is true score above what no longer is; a chain is put in order from its end."""
    pairs = _pairs(relations, by_key)
    for _ in range(_LONGEST_CHAIN):
        changed = [_lifted(by_key[old], by_key[new]) for old, new in pairs]
        if not any(changed):
            return


def _pairs(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> list[tuple[str, str]]:
    replaced = [(old, new) for old, later in relations.successors.items() for new in later]
    denied = [(old, new) for old, others in relations.contradictions.items() for new in others]
    known = [(old, new) for old, new in replaced if old in by_key and new in by_key]
    both = [(old, new) for old, new in denied if old in by_key and new in by_key and (new, old) not in known]
    return sorted({*known, *((o, n) for o, n in both if _age(by_key[n].record) > _age(by_key[o].record))})


def _lifted(old: ScoredRecord, new: ScoredRecord) -> bool:
    """Let the new version score above the old one, unless only the old one is of the time range of the query."""
    gap = old.score - new.score
    if gap < 0 or old.terms.get("time", 0.0) > new.terms.get("time", 0.0):
        return False
    new.terms["supersedes"] = new.terms.get("supersedes", 0.0) + gap + _AHEAD
    return True


def _age(record: Record) -> datetime:
    return moment_of(record) or _LONG_AGO


def _edges(storage: StorageBackend, cls: type[Record], ids: Sequence[str]) -> list[Edge]:
    """The edges that supersede or contradict these memories; their ends are checked against the scope when read."""
    where = Or(
        And(In("to_memory_id", ids), In("relationship_type", [Relation.SUPERSEDES, Relation.CONTRADICTS])),
        And(In("from_memory_id", ids), In("relationship_type", [Relation.CONTRADICTS])),
    )
    return list(storage.find(EDGES[cls], Scope.everywhere(), where, limit=_MOST_EDGES))


def _all_after(old: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    frontier = [old]
    while frontier:
        after = {new for each in frontier for new in direct.get(each, ())} - found - {old}
        found |= after
        frontier = list(after)
    return found
