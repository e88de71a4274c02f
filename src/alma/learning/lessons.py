"""Lessons: which earlier outcomes a new one belongs together with.

A lesson is one strategy on similar tasks. Its outcomes share a `lesson_id`, which is also the id of the heuristic that
the lesson becomes, so that there is never a second one. Which strategies are one is judged outside of the transaction,
for the few that are most likely; inside it only what was judged is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from alma import clock
from alma.learning.heuristics import SAME_STRATEGY, Seen
from alma.learning.lesson_index import Books, Entry, Floats, unit
from alma.learning.stored import NEWEST_FIRST, NOT_THE_SAME, StoredLessons
from alma.learning.strategies import Strategies, shared_words, strategy_key
from alma.learning.task_similarity import (
    SIMILAR,
    SIMILAR_IN_WORDS,
    SIMILAR_OF_A_TYPE,
    are_similar,
    word_overlap,
    wording_of,
)
from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.query import Compare, In
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.storage.transaction import Transaction
from alma.text.tokens import query_terms
from alma.vectors.base import VectorIndex

_LOOKED_AT = 24
_RULES_LOOKED_AT = 8
_BOOKED_LOOKED_AT = 64
# From so high a cosine on, two tasks are one.
_SAME_TASK = 0.95
# A search takes no minute, but clocks of two machines differ.
_MEANWHILE = timedelta(minutes=10)
# How many words tasks share that the same strategy is compared on, where there are no vectors.
_SIMILAR_WORDS = 0.5


@dataclass(slots=True)
class Neighbourhood:
    """What was tried on tasks like that of a new outcome, and the rules for such tasks; both nearest first.

    `complete` says that nothing else is near. `met` are the outcomes that a search of the store went through; None
    where the book told. `vector` is that of the task, of length one.
    """

    near: Sequence[tuple[float, Entry]]
    rules: Sequence[tuple[float, Entry]]
    complete: bool
    met: frozenset[str] | None = None
    position: int | None = None
    vector: Floats | None = None


class Belonging(NamedTuple):
    """The lesson that an outcome belongs to, and how likely it is that its strategy is that of the lesson.

    `like` is an earlier outcome that is the same but for its moment. `begins` says that the lesson is a new one.
    """

    lesson_id: str
    probability: float = 1.0
    like: str | None = None
    begins: bool = False


def new_lesson_id(outcome: Outcome) -> str:
    """The id of the lesson that begins with this outcome: the same whoever sees it first."""
    parts = (
        outcome.project_id,
        outcome.agent,
        strategy_key(outcome.strategy_used or ""),
        strategy_key(outcome.task_description),
    )
    return hashlib.sha256("\x1f".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def in_lesson(outcome: Outcome, belonging: Belonging) -> Outcome:
    """The outcome as evidence for a lesson; everything else of it was checked already."""
    metadata = outcome.metadata
    if belonging.probability < 1.0:
        metadata = {**metadata, SAME_STRATEGY: round(belonging.probability, 3)}
    return Outcome.trusted({**outcome.values(), "lesson_id": belonging.lesson_id, "metadata": metadata})


class LessonFinder:
    """Finds the lesson that an outcome is evidence for, by what was done and on which task."""

    def __init__(self, storage: StorageBackend, index: VectorIndex, strategies: Strategies) -> None:
        self._storage = storage
        self._index = index
        self._books = Books(storage)
        self._strategies = strategies

    # ------------------------------------------------------------------ what is near

    def booked(self, outcome: Outcome, tx: Transaction | None = None) -> Neighbourhood | None:
        """What the book of the agent knows, with a transaction as far as that sees; None where it cannot tell."""
        if not isinstance(outcome.embedding, Vector) or (tx is not None and not tx.writable):
            return None
        vector, kind, wording = unit(outcome.embedding), outcome.task_type, wording_of(outcome.task_description)
        least = SIMILAR if kind is None else SIMILAR_OF_A_TYPE
        scope = scope_of(outcome)
        near, complete = self._books.near(tx, scope, vector, wording, least, _BOOKED_LOOKED_AT)
        if kind is not None:
            near = [
                each for each in near if are_similar(each[0], (kind, each[1].task_type), (wording, each[1].wording))
            ]
        rules = self._books.rules_near(scope, vector, wording, SIMILAR_OF_A_TYPE, _RULES_LOOKED_AT)
        return Neighbourhood(near, rules, complete, position=self._books.position, vector=vector)

    def searched(self, outcome: Outcome) -> Neighbourhood:
        """What is near in the whole store."""
        self._books.searched(scope_of(outcome))
        near = [(cosine, _entry(seen)) for cosine, seen in self._neighbours(outcome) if seen.lesson_id]
        vector = unit(outcome.embedding) if isinstance(outcome.embedding, Vector) else None
        met = frozenset(entry.id for _, entry in near)
        return Neighbourhood(near, self._rules_near(outcome), complete=True, met=met, vector=vector)

    def must_search(self, outcome: Outcome) -> bool:
        """Whether there is no use in asking the book, because nothing of this agent is in it."""
        if not isinstance(outcome.embedding, Vector) or self._storage.is_writing:
            return True
        return self._books.of(scope_of(outcome)).is_empty

    # ------------------------------------------------------------------ which lesson

    def candidates(self, strategy: str, around: Neighbourhood) -> list[str]:
        """The strategies that are compared with one: those of the rules near the task, and the likeliest of others.

        A strategy in the very words of one that is near is compared with the rules alone.
        """
        key = strategy_key(strategy)
        rules = {strategy_key(entry.strategy): entry.strategy for _, entry in around.rules}
        others: dict[str, tuple[float, str]] = {}
        for cosine, entry in around.near:
            other = strategy_key(entry.strategy)
            if other not in others and other not in rules:
                others[other] = (cosine + shared_words(strategy, entry.strategy), entry.strategy)
        is_known = key in others or any(strategy_key(entry.strategy) == key for _, entry in around.near)
        ranked = [] if is_known else [text for _, text in sorted(others.values(), key=lambda each: -each[0])]
        rules.pop(key, None)
        return [*rules.values(), *ranked][: self._strategies.tuning.pairs]

    def consider(self, strategy: str, around: Neighbourhood) -> None:
        """Judge what has to be known to tell which lesson a strategy belongs to; outside of a transaction."""
        self._strategies.consider((strategy, other) for other in self.candidates(strategy, around))

    def is_considered(self, strategy: str, around: Neighbourhood) -> bool:
        """Whether all of that is known."""
        return all(self._strategies.known(strategy, other) is not None for other in self.candidates(strategy, around))

    def belonging(self, stored: StoredLessons, outcome: Outcome, around: Neighbourhood) -> Belonging:
        """The lesson of an outcome, or a new one; lessons are merged, outcomes archived: the store says."""
        strategy = outcome.strategy_used or ""
        probable = self._probable(strategy, around)
        found = [(cosine, entry.lesson_id) for cosine, entry in around.near if entry.lesson_id in probable]
        is_rule = {entry.id for _, entry in around.rules}.__contains__
        booked_rules = self._books.of(stored.scope).rules
        lessons = in_turn(found, lambda key: is_rule(key) or key in booked_rules)
        for lesson in dict.fromkeys([*lessons, *(e.id for _, e in around.rules if e.id in probable)]):
            nearest = next((each for each in around.near if each[1].lesson_id == lesson), None)
            held = self._held_as(stored, lesson, nearest)
            if held is not None and not _is_separated(stored.rule(held), strategy):
                return Belonging(held, probable[lesson], _like(strategy, lesson, around.near))
        return Belonging(new_lesson_id(outcome), begins=True)

    def _probable(self, strategy: str, around: Neighbourhood) -> dict[str, float]:
        """The lessons that a strategy may belong to, each with how likely that is.

        Those that have it in the same words go before all others. Of one that also holds what says the opposite
        nothing is sure, so it is none of them.
        """
        tuning, found, opposed = self._strategies.tuning, dict[str, float](), set[str]()
        for _, entry in (*around.near, *around.rules):
            verdict = self._strategies.known(strategy, entry.strategy)
            if verdict is None:
                continue
            found[entry.lesson_id] = max(found.get(entry.lesson_id, 0.0), verdict["same"])
            if verdict["opposite"] >= tuning.opposite:
                opposed.add(entry.lesson_id)
        exact = {lesson: 1.0 for lesson, probability in found.items() if probability >= 1.0}
        return exact or {
            lesson: probability
            for lesson, probability in found.items()
            if probability >= tuning.same and lesson not in opposed
        }

    def _held_as(self, stored: StoredLessons, lesson: str, nearest: tuple[float, Entry] | None) -> str | None:
        """The id under which a lesson is stored today; None where nothing is left of it."""
        if stored.rule(lesson) is not None or stored.tried(lesson):
            return lesson
        if nearest is not None:
            key = nearest[1].id
            found = stored.tx.values(Outcome, ("lesson_id",), stored.scope, Compare("id", "eq", key))
            if found and found[0][0] is not None:
                return str(found[0][0])
            self._books.drop(stored.scope, nearest[1])
        else:
            self._books.drop(stored.scope, Entry(lesson, "", lesson))
        return None

    def begun_meanwhile(self, stored: StoredLessons, outcome: Outcome, around: Neighbourhood) -> Neighbourhood | None:
        """What others began since the store was searched; whoever would begin another lesson waits for them."""
        if around.met is None:
            return None
        stored.tx.hold(f"new lessons of {outcome.agent} in {outcome.project_id}")
        lately = Compare("timestamp", "ge", clock.now() - _MEANWHILE)
        rows = stored.tx.values(Outcome, Seen._fields, stored.scope, lately, (NEWEST_FIRST,), _LOOKED_AT)
        new = [seen for seen in map(Seen._make, rows) if seen.id not in around.met and seen.lesson_id is not None]
        near = [(cosine, _entry(seen)) for cosine, seen in self._near_among(stored.tx, outcome, new)]
        return Neighbourhood(sorted(near, key=lambda each: -each[0]), (), complete=True) if near else None

    def _near_among(self, tx: Transaction, outcome: Outcome, others: Sequence[Seen]) -> list[tuple[float, Seen]]:
        """Those of these outcomes that are on tasks like that of this one, with how alike they are."""
        if not others or not isinstance(outcome.embedding, Vector):
            return _alike_in_words(outcome, others)
        mine, ids = unit(outcome.embedding), [seen.id for seen in others]
        stored = (each for each in tx.vectors_of(Outcome, ids) if each.model == tx.embedding_model and each.part == 0)
        cosines = {each.record_id: float(mine.dot(unit(each.vector))) for each in stored}
        return _alike(outcome, cosines, [seen for seen in others if seen.id in cosines])

    # ------------------------------------------------------------------ what is remembered for the next one

    def written(self, tx: Transaction) -> int | None:
        """How far the store is written at the end of a transaction, to be told to `note`."""
        return self._books.end_of_feed(tx)

    def note(
        self,
        outcome: Outcome,
        around: Neighbourhood,
        like: str | None,
        made: Sequence[Heuristic | AntiPattern],
        written: int | None,
    ) -> None:
        """Remember an outcome that was committed, and what was made of it, so that the next is known without a search.

        `written` is what `written` said at the end of the transaction.
        """
        if around.vector is not None and not self._storage.is_writing:
            entry = Entry(
                outcome.id,
                outcome.strategy_used or "",
                outcome.lesson_id or "",
                outcome.task_type,
                outcome.success,
                not outcome.success,
                wording_of(outcome.task_description),
            )
            rules = [
                (unit(rule.embedding), Entry(rule.id, rule.strategy, rule.id, wording=wording_of(rule.condition)))
                for rule in made
                if isinstance(rule, Heuristic) and isinstance(rule.embedding, Vector)
            ]
            span = (around.position, written, 1 + sum(each.embedding is not None for each in made))
            self._books.note(scope_of(outcome), around.vector, entry, like, rules, span)

    # ------------------------------------------------------------------ the whole store

    def _neighbours(self, outcome: Outcome) -> list[tuple[float, Seen]]:
        """The outcomes on tasks like this one, nearest first, from the whole store."""
        vector = outcome.embedding
        if vector is None:
            return self._by_words(outcome)
        near = self._index.search(Outcome, vector, scope_of(outcome), limit=_LOOKED_AT)
        cosines = {found.record_id: found.cosine for found in near if found.cosine >= SIMILAR_IN_WORDS}
        rows = map(Seen._make, self._storage.values(Outcome, Seen._fields, scope_of(outcome), In("id", list(cosines))))
        return sorted(_alike(outcome, cosines, rows), key=lambda each: -each[0])

    def _by_words(self, outcome: Outcome) -> list[tuple[float, Seen]]:
        """The similar tasks of an outcome that has no vector: those that share most of their words."""
        found = self._storage.matching_ids(Outcome, outcome.task_description, scope_of(outcome), limit=_LOOKED_AT)
        ids = [record_id for record_id, _ in found]
        rows = map(Seen._make, self._storage.values(Outcome, Seen._fields, scope_of(outcome), In("id", ids)))
        return sorted(_alike_in_words(outcome, rows), key=lambda each: -each[0])

    def _rules_near(self, outcome: Outcome) -> list[tuple[float, Entry]]:
        """The heuristics for tasks like this one, whoever wrote them."""
        vector, scope = outcome.embedding, scope_of(outcome)
        if vector is None:
            return []
        near = self._index.search(Heuristic, vector, scope, limit=_RULES_LOOKED_AT)
        cosines = {found.record_id: found.cosine for found in near if found.cosine >= SIMILAR_OF_A_TYPE}
        rows = self._storage.values(Heuristic, ("id", "strategy", "condition"), scope, In("id", list(cosines)))
        rules = ((cosines[key], Entry(key, text, key, wording=wording_of(task))) for key, text, task in rows)
        return sorted(rules, key=lambda each: -each[0])


def in_turn(found: Iterable[tuple[float, str]], is_rule: Callable[[str], bool]) -> list[str]:
    """The lessons that a task may belong to, in turn, of tasks given nearest first with how alike each is to it.

    That of the very same task is first, then the rules, then all others; and of these those that have more such tasks
    and nearer ones. By the nearest task alone two lessons of one strategy would grow side by side and say the same.
    """
    nearest: dict[str, float] = {}
    together: dict[str, float] = {}
    for cosine, lesson in found:
        nearest.setdefault(lesson, cosine)
        together[lesson] = together.get(lesson, 0.0) + cosine
    if len(nearest) < 2:
        return list(nearest)
    return sorted(nearest, key=lambda each: (nearest[each] < _SAME_TASK, not is_rule(each), -together[each]))


def scope_of(outcome: Outcome) -> Scope:
    """Where an outcome is compared with others: its agent's in its project."""
    return _scope(outcome.project_id, outcome.agent)


@lru_cache(maxsize=1024)
def _scope(project_id: str, agent: str) -> Scope:
    return Scope(project_id=project_id, agent=agent)


def _entry(seen: Seen) -> Entry:
    wording = wording_of(seen.task_description)
    lesson = seen.lesson_id or ""
    return Entry(seen.id, seen.strategy_used or "", lesson, seen.task_type, seen.success, not seen.success, wording)


def _like(strategy: str, lesson: str, near: Sequence[tuple[float, Entry]]) -> str | None:
    """An outcome of the lesson on the very same task with the very same strategy."""
    same = (e.id for c, e in near if c >= _SAME_TASK and e.lesson_id == lesson and e.strategy == strategy)
    return next(same, None)


def _is_separated(rule: Heuristic | None, strategy: str) -> bool:
    """Whether somebody said that a strategy is not that of a rule."""
    return rule is not None and strategy_key(strategy) in rule.metadata.get(NOT_THE_SAME, ())


def _alike(outcome: Outcome, cosines: Mapping[str, float], others: Iterable[Seen]) -> list[tuple[float, Seen]]:
    """Those of these outcomes whose tasks are similar, by their vectors and their words."""
    wording = wording_of(outcome.task_description)
    return [
        (cosines[seen.id], seen)
        for seen in others
        if are_similar(
            cosines[seen.id], (outcome.task_type, seen.task_type), (wording, wording_of(seen.task_description))
        )
    ]


def _alike_in_words(outcome: Outcome, others: Iterable[Seen]) -> list[tuple[float, Seen]]:
    """Those of these outcomes whose tasks share most of their words."""
    words = set(query_terms(outcome.task_description))
    shared = ((word_overlap(words, query_terms(seen.task_description)), seen) for seen in others)
    return [each for each in shared if each[0] >= _SIMILAR_WORDS]
