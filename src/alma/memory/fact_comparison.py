"""Compare a new fact with the nearest stored ones by means of the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from alma import clock
from alma.errors import IndexUnavailable
from alma.judge.base import Judge, Judgement, Label
from alma.memory.fact_relations import edges_of, save_edge
from alma.memory.relation_detection import DetectedRelation, Evidence
from alma.model.facts import is_fact, stated
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, In, Missing, Order, Predicate
from alma.model.record import Record
from alma.model.relations import Relation, stored_ends
from alma.model.scope import Scope, alive
from alma.model.vector import Vector
from alma.retrieval.candidates import nearest
from alma.retrieval.scoring import moment_of
from alma.retrieval.supersession import Edge
from alma.storage.base import StorageBackend, Transaction
from alma.vectors.base import VectorIndex

_EVERYWHERE = Scope.everywhere()
_OWNERS = ("user_id", "project_id", "agent", "source_agent")
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Tuning:
    """Thresholds of the comparison and limits of how much is judged.

    Facts with a cosine below `least_cosine` are about different things.

    Two preferences of one user in one category are about one thing, independent of their cosine: there, *supersedes* or
    *opposite* being more likely than not is enough (`exclusive`). Of 35 contradicting pairs of preferences this marks
    29 instead of 19, of 40 compatible ones 2 instead of 1.
    """

    same: float = 0.8
    related: float = 0.7
    exclusive: float = 0.5
    least_cosine: float = 0.4
    nearest: int = 8


TUNING = Tuning()

_RELATIONS: dict[Label, Relation] = {
    "supersedes": Relation.SUPERSEDES,
    "opposite": Relation.CONTRADICTS,
    "more": Relation.BUILDS_ON,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement about a new fact and a stored one."""

    known: Record
    judgement: Judgement
    of_one_category: bool = False

    @property
    def label(self) -> Label:
        """The most likely label, where two preferences of one category exclude each other that of the exclusion."""
        excluding: tuple[Label, Label] = ("supersedes", "opposite")
        excludes = self.of_one_category and sum(self.judgement[each] for each in excluding) >= TUNING.exclusive
        return max(excluding, key=self.judgement.__getitem__) if excludes else self.judgement.label

    @property
    def probability(self) -> float:
        """The probability of the label; of an exclusion that of either label."""
        if self.of_one_category and self.label in ("supersedes", "opposite"):
            return self.judgement["supersedes"] + self.judgement["opposite"]
        return self.judgement[self.label]

    @property
    def is_same(self) -> bool:
        return self.judgement["same"] >= TUNING.same

    @property
    def relation(self) -> Relation | None:
        """The relation to store, if the judge is sure enough."""
        is_exclusion = self.of_one_category and self.label in ("supersedes", "opposite")
        least = TUNING.exclusive if is_exclusion else TUNING.related
        return _RELATIONS.get(self.label) if self.probability >= least else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdicts about a fact before it is written, surest first, and the name of the judge."""

    judge: str = ""
    verdicts: Sequence[Verdict] = ()

    @property
    def same(self) -> Sequence[Verdict]:
        """The verdicts that say that a stored fact states the same."""
        return [each for each in self.verdicts if each.is_same]


NOTHING = Comparison()


@dataclass(slots=True)
class Compared:
    """The number of compared facts, and the relationships found."""

    facts: int = 0
    found: list[Edge] = field(default_factory=list)


class FactComparison:
    """Compares facts with the nearest facts of the same owner; only `relate` and `compare_stored` write."""

    def __init__(self, storage: StorageBackend, judge: Callable[[], Judge], index: VectorIndex | None = None) -> None:
        self._storage = storage
        self._judge = judge
        self._index = index

    def of(self, record: Record) -> Comparison:
        """Compare one fact; nothing is returned for other records, long text and records without a vector."""
        return self.of_batch([record])[0]

    def of_batch(self, records: Sequence[Record]) -> list[Comparison]:
        """Compare several facts, judging all pairs in one batch."""
        near = [list(self._nearest(record)) for record in records]
        pairs = [
            (stated(record), stated(known)) for record, found in zip(records, near, strict=True) for known in found
        ]
        if not pairs:
            return [NOTHING] * len(records)
        judge = self._judge()
        judged = iter(judge.compare(pairs))
        verdicts = [
            [Verdict(known, next(judged), _of_one_category(record, known)) for known in found]
            for record, found in zip(records, near, strict=True)
        ]
        return [Comparison(judge.name, _by_certainty(_about_one_value(judge, each))) for each in verdicts]

    def relate(self, tx: Transaction, record: Record, comparison: Comparison) -> list[Edge]:
        """Store the relationships that were found, if the other facts are unchanged; the facts stay as they are."""
        wanted = [each for each in comparison.verdicts if each.relation is not None and each.known.key != record.key]
        still = self.unchanged(tx, wanted)
        apart = _marked_distinct(edges_of(tx, type(record), [str(record.key)])) if still else frozenset()
        edges = (_saved(tx, record, each, comparison.judge) for each in still if str(each.known.key) not in apart)
        return [edge for edge in edges if edge is not None]

    def detected(self, record: Record) -> list[DetectedRelation]:
        """Compare a fact and return the relationships with their evidence, without storing them."""
        compared = self.of(record)
        found: list[DetectedRelation] = []
        for each in compared.verdicts:
            if each.relation is not None:
                newer, older = _ends(record, each)
                ends = stored_ends(each.relation, str(newer.key), str(older.key))
                found.append(DetectedRelation(*ends, (_evidence(each, compared.judge),)))
        return found

    def unchanged(self, tx: Transaction, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """The verdicts about facts that still exist unchanged when the transaction writes."""
        if not verdicts:
            return []
        cls = type(verdicts[0].known)
        now = {str(each.key): each for each in tx.lock(cls, sorted(str(v.known.key) for v in verdicts), _EVERYWHERE)}
        return [
            replace(each, known=now[key])
            for each in verdicts
            if (key := str(each.known.key)) in now and stated(now[key]) == stated(each.known)
        ]

    def compare_stored(self, cls: type[Record], scope: Scope, limit: int, by: Attribution = ANONYMOUS) -> Compared:
        """Compare facts that were stored without it, as many at once, the newest first, and store what is found.

        What says the same is left to the consolidation.
        """
        done = Compared()
        newest = self._storage.find(cls, scope, _stated(cls), _NEWEST[cls], limit)
        for start in range(0, len(newest), _AT_ONCE):
            batch = newest[start : start + _AT_ONCE]
            compared = list(zip(batch, self.of_batch(batch), strict=True))

            def relate(tx: Transaction, compared: Sequence[tuple[Record, Comparison]] = compared) -> list[Edge]:
                return [edge for record, comparison in compared for edge in self.relate(tx, record, comparison)]

            done.found += self._storage.write(relate, by)
            done.facts += len(batch)
        return done

    def _nearest(self, record: Record) -> Iterator[Record]:
        vector = getattr(record, "embedding", None)
        if vector is None or not is_fact(record):
            return
        cls, (scope, where) = type(record), of_the_same_owner(record)
        near = [key for key, cosine in self._near(cls, vector, scope, where) if cosine >= TUNING.least_cosine]
        if isinstance(record, UserPreference) and record.category is not None:
            of_category = And(where, Compare("category", "eq", record.category))
            near = [*(key for key, _ in self._near(cls, vector, scope, of_category)), *near]
        ids = [key for key in dict.fromkeys(near) if key != record.key][: TUNING.nearest]
        if not ids:
            return
        apart = _marked_distinct(edges_of(self._storage, cls, [str(record.key)]))
        found = {str(each.key): each for each in self._storage.find(cls, scope, And(where, In("id", ids)))}
        yield from (found[key] for key in ids if key in found and key not in apart and is_fact(found[key]))

    def _near(self, cls: type[Record], vector: Vector, scope: Scope, where: Predicate) -> list[tuple[str, float]]:
        """The ids and cosines of the nearest facts, from the index if it is available."""
        if self._index is not None:
            try:
                return [*nearest(self._index, cls, vector, scope, where, TUNING.nearest + 1)]
            except IndexUnavailable:
                pass
        return self._storage.nearest_ids(cls, vector, scope, where, TUNING.nearest + 1)


def _stated(cls: type[Record]) -> Predicate:
    if cls is not Memory:
        return EVERYTHING
    return And(Missing("session_id"), alive(clock.now()))


_NEWEST: dict[type[Record], tuple[Order, ...]] = {
    DomainKnowledge: (Order("last_verified", "desc"),),
    UserPreference: (Order("timestamp", "desc"),),
    Memory: (Order("created_at", "desc"),),
}


def of_the_same_owner(record: Record) -> tuple[Scope, Predicate]:
    """The scope and predicate of facts with the same user, project and agent."""
    parts: list[Predicate] = []
    for name in (each for each in _OWNERS if each in record.spec.by_name):
        value = getattr(record, name)
        parts.append(Missing(name) if value is None else Compare(name, "eq", value))
    if isinstance(record, Memory):
        parts += [Missing("session_id"), Compare("is_private", "eq", record.is_private), alive(clock.now())]
    scoped = {name: value for name in ("user_id", "project_id") if (value := getattr(record, name, None)) is not None}
    return (Scope(**scoped) if scoped else _EVERYWHERE), And(*parts)


def latest_first(one: Record, other: Record) -> tuple[Record, Record]:
    """Two facts, the later one first."""
    ours, theirs = moment_of(one), moment_of(other)
    return (other, one) if ours is not None and theirs is not None and theirs > ours else (one, other)


def _saved(tx: Transaction, record: Record, verdict: Verdict, judge: str) -> Edge | None:
    if verdict.relation is None:
        return None
    evidence = _evidence(verdict, judge)
    return save_edge(tx, *_ends(record, verdict), verdict.relation, strength=evidence.weight, evidence=(evidence,))


def _ends(record: Record, verdict: Verdict) -> tuple[Record, Record]:
    """The source and target of a relationship: the more detailed fact, else the later one, comes first."""
    says_more = verdict.label == "more"
    return (record, verdict.known) if says_more else latest_first(record, verdict.known)


def _evidence(verdict: Verdict, judge: str) -> Evidence:
    probability = verdict.probability
    return Evidence("judge", f"{verdict.label}, {probability:.2f}, by {judge}", probability)


def _of_one_category(one: Record, other: Record) -> bool:
    """Whether both are preferences of one category; those compared are of one user."""
    return isinstance(one, UserPreference) and isinstance(other, UserPreference) and one.category == other.category


def _marked_distinct(edges: Sequence[Edge]) -> frozenset[str]:
    """The facts that were marked as distinct."""
    apart = (each for each in edges if each.relationship_type == Relation.DISTINCT_FROM)
    return frozenset(end for each in apart for end in (each.from_memory_id, each.to_memory_id))


def _about_one_value(judge: Judge, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Keep only *supersedes* verdicts about the same thing as the nearest superseded fact.

    A fact has one value; where production runs says nothing about where staging runs.
    """
    replaced = [each for each in verdicts if each.relation == Relation.SUPERSEDES]
    if len(replaced) < 2:
        return list(verdicts)
    nearest_one, *others = replaced
    judged = judge.compare([(stated(nearest_one.known), stated(each.known)) for each in others])
    doubtful = {id(each) for each, verdict in zip(others, judged, strict=True) if verdict.label == "other"}
    return [each for each in verdicts if id(each) not in doubtful]


def _by_certainty(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=lambda each: (-each.probability, str(each.known.key)))
