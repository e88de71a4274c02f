"""Supersession: what replaced or denied a memory stands before it, and the older one says so."""

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
from alma.retrieval.ranked import Ranked
from alma.retrieval.router import Target
from alma.retrieval.scoring import moment_of
from alma.storage.base import StorageBackend

Edge = MemoryRelationship | FactRelationship
SUPERSEDED, CONTRADICTED = "superseded", "contradicted"
"""How the note of a memory begins that another one replaced or denies."""

EDGES: Mapping[type[Record], type[MemoryRelationship] | type[FactRelationship]] = {
    Memory: MemoryRelationship,
    DomainKnowledge: FactRelationship,
    UserPreference: FactRelationship,
}
"""What holds the relationships between memories of each kind that has some."""

_LONGEST_LINE = 16
_MOST_EDGES = 1_000
_SHOWN = 120
# Just enough to stand before what was superseded.
_NEARLY = 1e-6
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Relations:
    """Which memories superseded which, over any number of steps, and which contradict each other."""

    successors: dict[str, set[str]] = field(default_factory=dict)
    contradictions: dict[str, set[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.successors or self.contradictions)


def has_relations(storage: StorageBackend, cls: type[Record]) -> bool:
    """Whether there may be relationships of memories of this kind: most stores have none."""
    edges = EDGES.get(cls)
    return edges is not None and bool(storage.values(edges, ("id",), Scope.everywhere(), limit=1))


def relations_of(storage: StorageBackend, cls: type[Record], ids: Iterable[str]) -> Relations:
    """What superseded and what contradicts these memories, whether or not it is still there to see."""
    found = Relations()
    direct: dict[str, set[str]] = defaultdict(set)
    frontier = sorted(ids)
    for _ in range(_LONGEST_LINE):
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
    """What superseded these general memories, directly or over others."""
    return relations_of(storage, Memory, ids).successors


def put_current_first(
    storage: StorageBackend,
    items: Sequence[Ranked],
    targets: Iterable[Target],
    scored: Callable[[Record, Sequence[str]], Ranked],
    now: datetime,
    *,
    former: bool = False,
) -> list[Ranked]:
    """Memories of one kind, in which what is no longer so stands behind what is, and notes since when.

    What superseded or denied one of them and was not found by itself is found by it; `scored` makes it an item. Where
    the question asks for a time, what was so then stays where it is; where it asks for what was so before, `former`,
    that comes first. What is said to be so only after `now` has replaced nothing yet.
    """
    placed = list(items)
    cls = type(items[0].record) if items else Memory
    if not placed or not has_relations(storage, cls):
        return placed
    relations = relations_of(storage, cls, [item.key for item in items])
    by_key = {item.key: item for item in items}
    others = _visible(storage, cls, _related(relations, by_key), targets)
    relations = _so_far(relations, {**others, **{key: item.record for key, item in by_key.items()}}, now)
    for old in [item for item in items if item.key in relations.successors or item.key in relations.contradictions]:
        newer = _later_than(old, relations, by_key, others)
        for new in newer:
            if new.key not in by_key:
                by_key[new.key] = scored(new, (f"{_how(relations, old, new)[1]} {old.key}",))
                by_key[new.key].strength = "weak"
                placed.append(by_key[new.key])
            # Where what was so is shown, what is so now is shown as well.
            if old.strength == "strong":
                by_key[new.key].strength = "strong"
        if newer:
            _mark(old, max(newer, key=_age), relations)
    _put_in_order(relations, by_key, former)
    _note_denying(relations, by_key)
    return placed


def _so_far(relations: Relations, known: Mapping[str, Record], now: datetime) -> Relations:
    """The relations to what is there, and is so by now."""
    so = {key for key, record in known.items() if _begins(record, now) <= now}
    return Relations(
        {old: later & so for old, later in relations.successors.items() if later & so},
        {one: others & so for one, others in relations.contradictions.items() if others & so},
    )


def _begins(record: Record, now: datetime) -> datetime:
    """When what a memory says begins to be so, where it says that itself; when it was written down tells nothing."""
    begins = getattr(record, "valid_from", None) or getattr(record, "event_time", None)
    return now if begins is None else begins


def true_from(record: Record) -> datetime:
    """From when on what a memory says is so, as far as it tells."""
    return record.true_from if isinstance(record, Memory) else _age(record)


def _later_than(
    old: Ranked, relations: Relations, by_key: Mapping[str, Ranked], others: Mapping[str, Record]
) -> list[Record]:
    """What superseded a memory, and what contradicts it and is newer."""
    known = {key: item.record for key, item in by_key.items()} | dict(others)
    later = [known[key] for key in sorted(relations.successors.get(old.key, ())) if key in known]
    denied = [known[key] for key in sorted(relations.contradictions.get(old.key, ())) if key in known]
    return [*later, *(other for other in denied if other not in later and _age(other) > _age(old.record))]


def _related(relations: Relations, by_key: Mapping[str, Ranked]) -> list[str]:
    related = (*relations.successors.items(), *relations.contradictions.items())
    return sorted({other for old, found in related if old in by_key for other in found} - by_key.keys())


def _visible(
    storage: StorageBackend, cls: type[Record], ids: Sequence[str], targets: Iterable[Target]
) -> dict[str, Record]:
    """Those of the memories that may be seen where the others were looked for."""
    found: dict[str, Record] = {}
    for target in targets if ids else ():
        if target.cls is cls and target.searched:
            named = And(target.where, In("id", ids))
            found.update((str(each.key), each) for each in storage.find(cls, target.scope, named))
    return found


def _how(relations: Relations, old: Ranked, new: Record) -> tuple[str, str]:
    replaced = str(new.key) in relations.successors.get(old.key, ())
    return (SUPERSEDED, "supersedes") if replaced else (CONTRADICTED, "contradicts")


def _mark(old: Ranked, new: Record, relations: Relations) -> None:
    since = moment_of(new)
    when = "" if since is None else f" on {since:%Y-%m-%d}"
    said = " ".join(stated(new).split())
    shown = said if len(said) <= _SHOWN else f"{said[:_SHOWN].rstrip()} …"
    old.notes = (*old.notes, f"{_how(relations, old, new)[0]}{when} by {new.key}: {shown}")


def stated(record: Record) -> str:
    """What a memory states, without what it is filed under."""
    match record:
        case DomainKnowledge():
            return record.fact
        case UserPreference():
            return record.preference
        case Memory():
            return f"{record.title}: {record.content}" if record.title else record.content
    return record.text()


def _note_denying(relations: Relations, by_key: Mapping[str, Ranked]) -> None:
    """Let the newer of two that contradict each other name the older one, for those who ask for reasons."""
    for key, others in relations.contradictions.items():
        if key in by_key:
            marked = [other for other in sorted(others & by_key.keys()) if not _is_marked(by_key[key], other)]
            by_key[key].notes = (*by_key[key].notes, *(f"contradicts {other}" for other in marked))


def _is_marked(item: Ranked, other: str) -> bool:
    return any(f" by {other}: " in note for note in item.notes)


def _put_in_order(relations: Relations, by_key: Mapping[str, Ranked], former: bool) -> None:
    """Let what is so score above what no longer is; a line of several is put in order from its end."""
    for _ in range(_LONGEST_LINE):
        pairs = [(by_key[old], by_key[new]) for old, new in _pairs(relations, by_key)]
        changed = [_lifted(new, old, "asked") if former else _lifted(old, new, "supersedes") for old, new in pairs]
        if not any(changed):
            return


def _pairs(relations: Relations, by_key: Mapping[str, Ranked]) -> list[tuple[str, str]]:
    replaced = [(old, new) for old, later in relations.successors.items() for new in later]
    denied = [(old, new) for old, others in relations.contradictions.items() for new in others]
    known = [(old, new) for old, new in replaced if old in by_key and new in by_key]
    both = [(old, new) for old, new in denied if old in by_key and new in by_key and (new, old) not in known]
    return sorted({*known, *((o, n) for o, n in both if _age(by_key[n].record) > _age(by_key[o].record))})


def _lifted(ahead: Ranked, behind: Ranked, term: str) -> bool:
    """Let the one behind score above the other one, unless that is of the time that is asked for."""
    gap = ahead.score - behind.score
    if gap < 0 or ahead.terms.get("time", 0.0) > behind.terms.get("time", 0.0):
        return False
    behind.terms[term] = behind.terms.get(term, 0.0) + gap + _NEARLY
    # It keeps its score, and takes no place for matching best by one source alone.
    ahead.terms.setdefault("superseded" if term == "supersedes" else "not asked", 0.0)
    return True


def _age(record: Record) -> datetime:
    return moment_of(record) or _LONG_AGO


def _edges(storage: StorageBackend, cls: type[Record], ids: Sequence[str]) -> list[Edge]:
    """What supersedes these memories, and what contradicts them."""
    contradicts = In("relationship_type", [Relation.CONTRADICTS])
    where = Or(
        And(In("to_memory_id", ids), In("relationship_type", [Relation.SUPERSEDES, Relation.CONTRADICTS])),
        And(In("from_memory_id", ids), contradicts),
    )
    # What these lead to is checked against the scope when it is read.
    return list(storage.find(EDGES[cls], Scope.everywhere(), where, limit=_MOST_EDGES))


def _all_after(old: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    frontier = [old]
    while frontier:
        after = {new for each in frontier for new in direct.get(each, ())} - found - {old}
        found |= after
        frontier = list(after)
    return found
