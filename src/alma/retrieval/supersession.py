"""Supersession: rank memories that are superseded, contradicted or not valid now after those that hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations, takewhile

from alma import clock
from alma.model.facts import stated
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import FactRelationship, Memory, MemoryRelationship
from alma.model.query import And, In, Or
from alma.model.record import Record
from alma.model.relations import Relation
from alma.model.scope import Scope
from alma.model.slice import MemorySlice
from alma.retrieval.router import Target
from alma.retrieval.scoring import ScoredRecord, moment_of
from alma.retrieval.tuning import TUNING
from alma.storage.base import Transaction
from alma.text.tokens import terms

Edge = MemoryRelationship | FactRelationship
SUPERSEDED, CONTRADICTED = "superseded", "contradicted"
"""The beginning of the note on a superseded or contradicted memory."""

EDGES: Mapping[type[Record], type[MemoryRelationship] | type[FactRelationship]] = {
    Memory: MemoryRelationship,
    DomainKnowledge: FactRelationship,
    UserPreference: FactRelationship,
}
"""The relationship kind for each memory kind."""

_LONGEST_CHAIN = 16
_MOST_EDGES = 1_000
_CHARACTERS_SHOWN = 120
_AHEAD = 1e-6
# Memories that are not valid keep their order, but count as older than all valid ones.
_AGES = 1_000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Relations:
    """The memories that supersede each memory, transitively, and those that contradict it."""

    superseding: dict[str, set[str]] = field(default_factory=dict)
    contradictions: dict[str, set[str]] = field(default_factory=dict)


def relations_of(tx: Transaction, cls: type[Record], ids: Iterable[str]) -> Relations:
    """The relations that supersede or contradict these memories, visible or not; most stores have none."""
    found = Relations()
    if cls not in EDGES or not tx.values(EDGES[cls], ("id",), Scope.everywhere(), limit=1):
        return found
    direct: dict[str, set[str]] = defaultdict(set)
    frontier = sorted(ids)
    for _ in range(_LONGEST_CHAIN):
        if not frontier:
            break
        edges, frontier = _edges(tx, cls, frontier), []
        for edge in edges:
            if edge.relationship_type == Relation.CONTRADICTS:
                found.contradictions.setdefault(edge.from_memory_id, set()).add(edge.to_memory_id)
                found.contradictions.setdefault(edge.to_memory_id, set()).add(edge.from_memory_id)
            elif edge.from_memory_id not in direct[edge.to_memory_id]:
                direct[edge.to_memory_id].add(edge.from_memory_id)
                frontier.append(edge.from_memory_id)
    found.superseding = {old: _all_after(old, direct) for old in list(direct)}
    return found


def successors_of(tx: Transaction, ids: Sequence[str]) -> Mapping[str, set[str]]:
    """The memories that supersede these general memories, transitively."""
    return relations_of(tx, Memory, ids).superseding


def current_first(
    tx: Transaction,
    items: Sequence[ScoredRecord],
    targets: Iterable[Target],
    scored: Callable[[Record, Sequence[str]], ScoredRecord],
    now: datetime,
) -> list[ScoredRecord]:
    """Memories of one kind; superseded ones get a note and a lower score than those that replaced them. Superseding or
    contradicting memories that were not found are added, as items made by `scored`. A memory that becomes valid after
    `now` does not supersede yet.
    """
    ordered = list(items)
    if not ordered:
        return ordered
    cls = type(ordered[0].record)
    relations = relations_of(tx, cls, [item.key for item in ordered])
    if not relations.superseding and not relations.contradictions:
        return ordered
    by_key = {item.key: item for item in ordered}
    others = _visible(tx, cls, _related(relations, by_key), targets)
    relations = _true_by_now(relations, {**others, **{key: item.record for key, item in by_key.items()}}, now)
    for old in items:
        newer = _later_than(old, relations, by_key, others)
        for new in newer:
            if new.key not in by_key:
                by_key[new.key] = scored(new, (f"{_how(relations, old, new)[1]} {old.key}",))
                by_key[new.key].strength = "weak"
                ordered.append(by_key[new.key])
            # If the old version is shown, the new one is shown as well.
            if old.strength == "strong":
                by_key[new.key].strength = "strong"
        if newer:
            _note(old, max(newer, key=_age), relations)
    _put_in_order(relations, by_key)
    _note_contradicting(relations, by_key)
    return ordered


def holds(record: Record, now: datetime) -> bool:
    """Whether a memory is inside its validity period."""
    return holds_from(record, now) is None and _held_until(record, now) is None


def next_change(tx: Transaction, memories: Sequence[Memory], now: datetime) -> datetime | None:
    """When a result changes without a write: when one of these memories, or one that supersedes it, begins or ends."""
    found = {memory.id: memory for memory in memories}
    newer = {key for keys in relations_of(tx, Memory, found).superseding.values() for key in keys} - found.keys()
    every = [*memories, *(tx.get_many(Memory, sorted(newer), Scope.everywhere()) if newer else ())]
    times = [getattr(each, name) for each in every for name in ("valid_from", "valid_until", "expires_at")]
    return min((each for each in times if each is not None and each > now), default=None)


def still_valid(cached: MemorySlice) -> bool:
    """Whether no memory of a cached slice has expired since, and all its instructions are still valid."""
    moment = clock.now()
    ends = (getattr(record, "expires_at", None) for record in cached)
    return all(end is None or end > moment for end in ends) and all(
        holds(record, moment) for record in cached.instructions
    )


def holds_from(record: Record, now: datetime) -> datetime | None:
    """The start of the validity period of a memory, if it is in the future."""
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
    """The time since which a memory is known; memories that are not valid count as older than all valid ones."""
    moment = moment_of(record)
    return moment if moment is None or holds(record, now) else _LONG_AGO + (moment - _LONG_AGO) / _AGES


def _true_by_now(relations: Relations, known: Mapping[str, Record], now: datetime) -> Relations:
    """The relations to visible memories that are valid by now."""
    true = {key for key, record in known.items() if _begins(record, now) <= now}
    return Relations(
        {old: later & true for old, later in relations.superseding.items() if later & true},
        {one: others & true for one, others in relations.contradictions.items() if others & true},
    )


def _begins(record: Record, now: datetime) -> datetime:
    """The stated time when a memory becomes true; its creation time does not count."""
    begins = getattr(record, "valid_from", None) or getattr(record, "event_time", None)
    return now if begins is None else begins


def true_from(record: Record) -> datetime:
    """The stated time since which a memory is true, or None."""
    return record.true_from if isinstance(record, Memory) else _age(record)


def _later_than(
    old: ScoredRecord, relations: Relations, by_key: Mapping[str, ScoredRecord], others: Mapping[str, Record]
) -> list[Record]:
    """The memories that supersede a memory, and newer ones that contradict it."""
    known = {key: item.record for key, item in by_key.items()} | dict(others)
    later = [known[key] for key in sorted(relations.superseding.get(old.key, ())) if key in known]
    denied = [known[key] for key in sorted(relations.contradictions.get(old.key, ())) if key in known]
    return [*later, *(other for other in denied if other not in later and _age(other) > _age(old.record))]


def _related(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> list[str]:
    related = (*relations.superseding.items(), *relations.contradictions.items())
    return sorted({other for old, found in related if old in by_key for other in found} - by_key.keys())


def _visible(tx: Transaction, cls: type[Record], ids: Sequence[str], targets: Iterable[Target]) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for target in targets if ids else ():
        if target.cls is cls and target.searched:
            named = And(target.where, In("id", ids))
            found.update((str(each.key), each) for each in tx.find(cls, target.scope, named))
    return found


def _how(relations: Relations, old: ScoredRecord, new: Record) -> tuple[str, str]:
    replaced = str(new.key) in relations.superseding.get(old.key, ())
    return (SUPERSEDED, "supersedes") if replaced else (CONTRADICTED, "contradicts")


def _note(old: ScoredRecord, new: Record, relations: Relations) -> None:
    since = moment_of(new)
    when = "" if since is None else f" on {since:%Y-%m-%d}"
    said = " ".join(stated(new).split())
    shown = said if len(said) <= _CHARACTERS_SHOWN else f"{said[:_CHARACTERS_SHOWN].rstrip()} …"
    old.notes = (*old.notes, f"{_how(relations, old, new)[0]}{when} by {new.key}: {shown}")


def _note_contradicting(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> None:
    """Add a note about the older one of two contradicting memories to the newer one."""
    for key, others in relations.contradictions.items():
        if key in by_key:
            item = by_key[key]
            noted = " ".join(item.notes)
            named = [other for other in sorted(others & by_key.keys()) if f" by {other}: " not in noted]
            item.notes = (*item.notes, *(f"contradicts {other}" for other in named))


def _put_in_order(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> None:
    """Raise the scores of valid memories above those that they superseded; chains are processed from their end."""
    pairs = _pairs(relations, by_key)
    for _ in range(_LONGEST_CHAIN):
        changed = [_lifted(by_key[old], by_key[new]) for old, new in pairs]
        if not any(changed):
            return


def _pairs(relations: Relations, by_key: Mapping[str, ScoredRecord]) -> list[tuple[str, str]]:
    replaced = [(old, new) for old, later in relations.superseding.items() for new in later]
    denied = [(old, new) for old, others in relations.contradictions.items() for new in others]
    known = [(old, new) for old, new in replaced if old in by_key and new in by_key]
    both = [(old, new) for old, new in denied if old in by_key and new in by_key and (new, old) not in known]
    return sorted({*known, *((o, n) for o, n in both if _age(by_key[n].record) > _age(by_key[o].record))})


def _lifted(old: ScoredRecord, new: ScoredRecord) -> bool:
    """Raise the new version above the old one, unless only the old one is in the time range of the query."""
    gap = old.score - new.score
    if gap < 0 or old.terms.get("time", 0.0) > new.terms.get("time", 0.0):
        return False
    new.terms["supersedes"] = new.terms.get("supersedes", 0.0) + gap + _AHEAD
    return True


def _age(record: Record) -> datetime:
    return moment_of(record) or _LONG_AGO


def _edges(tx: Transaction, cls: type[Record], ids: Sequence[str]) -> list[Edge]:
    """The edges that supersede or contradict these memories; their ends are checked against the scope when read."""
    where = Or(
        And(In("to_memory_id", ids), In("relationship_type", [Relation.SUPERSEDES, Relation.CONTRADICTS])),
        And(In("from_memory_id", ids), In("relationship_type", [Relation.CONTRADICTS])),
    )
    return list(tx.find(EDGES[cls], Scope.everywhere(), where, limit=_MOST_EDGES))


def _all_after(old: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    frontier = [old]
    while frontier:
        after = {new for each in frontier for new in direct.get(each, ())} - found - {old}
        found |= after
        frontier = list(after)
    return found


# Two facts have the same subject if they match the query by the same words, share this part of their text, and begin
# with this many equal words.
_SAME_MATCH, _SAME_TEXT, _SAME_BEGINNING = 0.95, 0.4, 2


@dataclass(slots=True)
class Statement:
    """A scored record with a short text, as it is compared with others.

    `matched` are its terms that the query has. `voice` is the title or speaker of the text, `result` whether an outcome
    succeeded.
    """

    scored: ScoredRecord
    text: str
    owner: str = ""
    voice: str = ""
    result: str = ""
    moment: datetime | None = None
    terms: frozenset[str] = frozenset()
    matched: frozenset[str] = frozenset()


def statements_of(items: Iterable[ScoredRecord], query_terms: frozenset[str], as_of: datetime) -> list[Statement]:
    """The best records that are short enough to be compared, best first; `as_of` is the time that is asked about."""
    best = [(scored, scored.record.text()) for scored in items]
    short = [each for each in best[: TUNING.statements_compared] if len(each[1]) <= TUNING.longest_statement]
    return [_statement(scored, text, query_terms, as_of) for scored, text in short]


def newest_first(statements: Iterable[Statement], weight_of: Mapping[str, float], query: str) -> None:
    """Exchange the scores of a newer and an older version of a fact, if the older one is ahead. Only words are
    compared, for facts that the judge has not compared, such as thousands of imported ones that follow a template.
    `weight_of` has the weights of the query's words.
    """
    in_query = frozenset(word for word in query.strip(" ?!.").split() if not word.islower())
    by_owner: dict[str, list[tuple[datetime, str, Statement]]] = defaultdict(list)
    for each in statements:
        if each.moment is not None:
            by_owner[each.owner].append((each.moment, each.scored.key, each))
    for dated in by_owner.values():
        for (before, _, older), (after, _, newer) in combinations(sorted(dated, key=lambda each: each[:2]), 2):
            ahead = older.scored.score >= newer.scored.score and before != after
            if ahead and _is_new_version(older, newer, weight_of, in_query):
                _exchange(newer.scored, older.scored)


def _is_new_version(
    older: Statement, newer: Statement, weight_of: Mapping[str, float], in_query: frozenset[str]
) -> bool:
    """Whether both match the query by the same words and differ in one place, which is not what the query names."""
    either = sum(weight_of.get(word, 1.0) for word in older.matched | newer.matched)
    both = sum(weight_of.get(word, 1.0) for word in older.matched & newer.matched)
    if not either or both < _SAME_MATCH * either or _is_about_something_else(older, newer):
        return False
    ours, theirs = older.text.casefold().split(), newer.text.casefold().split()
    shorter, longer = sorted((len(ours), len(theirs)))
    before = _equal(zip(ours, theirs, strict=False))
    after = min(_equal(zip(reversed(ours), reversed(theirs), strict=False)), shorter - before)
    if ours == theirs or before < _SAME_BEGINNING or before + after < _SAME_TEXT * longer:
        return False
    # "Vitamin A is ..." stays before "vitamin C is ..." in a query about vitamin A.
    replaced, by = older.text.split()[before : before + 1], newer.text.split()[before : before + 1]
    return not in_query.intersection(replaced).difference(by)


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_about_something_else(older: Statement, newer: Statement) -> bool:
    """Whether only the older one is in the time range of the query, or its cosine is much higher."""
    if older.scored.terms.get("time", 0.0) > newer.scored.terms.get("time", 0.0):
        return True
    near, far = older.scored.similarity, newer.scored.similarity
    return near is not None and far is not None and near - far > TUNING.fact_distance


def _exchange(newer: ScoredRecord, older: ScoredRecord) -> None:
    gap = older.score - newer.score
    newer.terms["newer"] = newer.terms.get("newer", 0.0) + gap + _AHEAD
    older.terms["overruled"] = older.terms.get("overruled", 0.0) - gap


def _statement(scored: ScoredRecord, text: str, query_terms: frozenset[str], as_of: datetime) -> Statement:
    record = scored.record
    voice = getattr(record, "title", "").partition("(")[0]
    words = scored.words or frozenset(terms(text))
    # A lesson is ranked by its evidence: a newer one for the same task does not replace it.
    known = None if isinstance(record, Heuristic | AntiPattern | Outcome) else known_since(record, as_of)
    return Statement(
        scored,
        text,
        owner=getattr(record, "agent", None) or voice,
        voice=voice,
        result=_result(record),
        moment=known if known is not None and known <= as_of else None,
        terms=words,
        matched=words & query_terms,
    )


def _result(record: Record) -> str:
    if not isinstance(record, Outcome):
        return ""
    return "succeeded" if record.success else "failed"
