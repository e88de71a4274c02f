"""Lessons: which earlier outcomes a new one belongs together with.

A lesson is one strategy on similar tasks. Its outcomes share a `lesson_id`, which is also the id of the heuristic that
the lesson becomes, so that there is never a second one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from alma import clock
from alma.embeddings.base import EmbeddingProvider
from alma.learning.book import Books
from alma.learning.meanings import Meanings
from alma.learning.shelf import Entry, Floats, unit
from alma.learning.stored import NEWEST_FIRST, Seen, StoredLessons
from alma.learning.strategies import contradicts, strategy_key
from alma.learning.tasks import (
    SIMILAR,
    SIMILAR_IN_WORDS,
    SIMILAR_OF_A_TYPE,
    UNWORDED,
    are_similar,
    word_overlap,
    wording_of,
)
from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.query import Compare, In
from alma.model.scope import Scope
from alma.model.text import query_terms
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.storage.transaction import Transaction
from alma.vectors.base import VectorIndex

_LOOKED_AT = 24
_KNOWN_RULES_LOOKED_AT = 8
_BOOKED_LOOKED_AT = 64
# From so high a cosine on, two tasks are one.
_SAME_TASK = 0.95
# A search takes no minute, but clocks of two machines differ.
_MEANWHILE = timedelta(minutes=10)
# How many words tasks share that the same strategy is compared on, where there are no vectors.
_SIMILAR_WORDS = 0.5


@dataclass(slots=True)
class Neighbourhood:
    """What is known around a new outcome: its lesson, and what happened on similar tasks.

    `neighbours` are the outcomes on similar tasks, nearest first, where the store was searched for them; the
    lessons that `failed` there are known without. `succeeded` are those, nearest first, in which another strategy
    did, where these are known without a search. `begins` says that no lesson was found, so that one begins here.
    `like` is an earlier outcome that is the same but for its moment. `vector` is that of the task, of length one,
    where it was needed.
    """

    lesson_id: str
    neighbours: Sequence[Seen] | None = None
    failed: frozenset[str] = frozenset()
    succeeded: Sequence[str] | None = None
    begins: bool = False
    like: str | None = None
    position: int | None = None
    vector: Floats | None = None


def new_lesson_id(outcome: Outcome) -> str:
    """The id of the lesson that begins with this outcome: the same whoever sees it first."""
    parts = (
        outcome.project_id,
        outcome.agent,
        strategy_key(outcome.strategy_used or ""),
        strategy_key(outcome.task_description),
    )
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def in_lesson(outcome: Outcome, lesson_id: str) -> Outcome:
    """The outcome as evidence for a lesson; everything else of it was checked already."""
    return Outcome.trusted({**outcome.values(), "lesson_id": lesson_id})


class LessonFinder:
    """Finds the lesson that an outcome is evidence for, by what was done and on which task."""

    def __init__(self, storage: StorageBackend, index: VectorIndex, embedder: EmbeddingProvider) -> None:
        self._storage = storage
        self._index = index
        self._books = Books(storage)
        self.meanings = Meanings(embedder)

    def known(self, stored: StoredLessons, outcome: Outcome) -> Neighbourhood | None:
        """The lesson of an outcome, if the book of its agent knows it, or that it is a new one; inside a transaction.

        None says that only `searched` can tell.
        """
        if not isinstance(outcome.embedding, Vector) or not stored.tx.writable:
            return None
        vector, kind, wording = unit(outcome.embedding), outcome.task_type, wording_of(outcome.task_description)
        least = SIMILAR if kind is None else SIMILAR_OF_A_TYPE
        near, complete = self._books.near(stored.tx, stored.scope, vector, wording, least, _BOOKED_LOOKED_AT)
        if kind is not None:
            near = [
                each for each in near if are_similar(each[0], (kind, each[1].task_type), (wording, each[1].wording))
            ]
        around = self._booked_lesson(stored, outcome.strategy_used or "", near)
        if around is None:
            if not complete:
                return None
            around = Neighbourhood(self._booked_rule(stored, outcome, vector) or new_lesson_id(outcome))
        others = [entry for _, entry in near if entry.lesson_id != around.lesson_id]
        around.vector = vector
        around.failed = frozenset([entry.lesson_id for entry in others if entry.failed])
        if complete:
            around.succeeded = [entry.lesson_id for entry in others if entry.succeeded]
        around.position = self._books.position
        return around

    def _booked_lesson(
        self, stored: StoredLessons, strategy: str, near: Sequence[tuple[float, Entry]]
    ) -> Neighbourhood | None:
        """The lesson of the nearest task with this strategy; lessons are merged, outcomes archived: the store says."""
        same = self.meanings.among(strategy, (entry.strategy for _, entry in near))
        for cosine, entry in self._in_turn(stored.scope, near, same):
            like = entry.id if cosine >= _SAME_TASK and entry.strategy == strategy else None
            if stored.rule(entry.lesson_id) is not None or stored.tried(entry.lesson_id):
                return Neighbourhood(entry.lesson_id, like=like)
            found = stored.tx.values(Outcome, ("lesson_id",), stored.scope, Compare("id", "eq", entry.id))
            if found and found[0][0] is not None:
                return Neighbourhood(found[0][0], like=like)
            self._books.drop(stored.scope, entry)
        return None

    def _in_turn(
        self, scope: Scope, near: Sequence[tuple[float, Entry]], same: Callable[[str], bool]
    ) -> Iterator[tuple[float, Entry]]:
        """The nearest entry of each lesson with one strategy: of the same task, of rules, and of those most like it."""
        rules = self._books.of(scope).rules
        for lesson in in_turn([(cosine, entry.lesson_id) for cosine, entry in near], rules.__contains__):
            nearest = next((each for each in near if each[1].lesson_id == lesson and same(each[1].strategy)), None)
            if nearest is not None:
                yield nearest

    def _booked_rule(self, stored: StoredLessons, outcome: Outcome, vector: Floats) -> str | None:
        wording = wording_of(outcome.task_description)
        near = self._books.rules_near(stored.scope, vector, wording, SIMILAR_OF_A_TYPE, _KNOWN_RULES_LOOKED_AT)
        same = self.meanings.among(outcome.strategy_used or "", (entry.strategy for _, entry in near))
        for _, entry in near:
            if same(entry.strategy):
                if stored.rule(entry.id) is not None:
                    return entry.id
                self._books.drop(stored.scope, entry)
        return None

    def opposed(self, tx: Transaction, scope: Scope, around: Neighbourhood, strategy: str) -> list[Heuristic] | None:
        """The rules for tasks like this one that say the opposite; None where only a search can tell."""
        if around.vector is None or not self._books.is_complete(scope):
            return None
        near = self._books.rules_near(scope, around.vector, UNWORDED, SIMILAR_OF_A_TYPE, _KNOWN_RULES_LOOKED_AT)
        rivals = [entry.id for _, entry in near if contradicts(strategy, entry.strategy)]
        return tx.get_many(Heuristic, rivals, scope) if rivals else []

    def searched(self, outcome: Outcome) -> Neighbourhood:
        """The lesson of an outcome, new or known, and what happened on similar tasks, from the whole store."""
        self._books.searched(scope_of(outcome))
        near = self._neighbours(outcome)
        neighbours = [seen for _, seen in near]
        found = self._searched_lesson(outcome, near) or self._known_rule(outcome)
        lesson = found or new_lesson_id(outcome)
        failed = {seen.lesson_id for seen in neighbours if not seen.success and seen.lesson_id} - {lesson}
        vector = unit(outcome.embedding) if isinstance(outcome.embedding, Vector) else None
        return Neighbourhood(lesson, neighbours, frozenset(failed), begins=found is None, vector=vector)

    def begun_meanwhile(self, stored: StoredLessons, outcome: Outcome, around: Neighbourhood) -> str | None:
        """The lesson that somebody else began since the store was searched; whoever would begin another one waits."""
        stored.tx.hold(f"new lessons of {outcome.agent} in {outcome.project_id}")
        lately = Compare("timestamp", "ge", clock.now() - _MEANWHILE)
        rows = stored.tx.values(Outcome, Seen._fields, stored.scope, lately, (NEWEST_FIRST,), _LOOKED_AT)
        met = {seen.id for seen in around.neighbours or ()}
        new = [seen for seen in map(Seen._make, rows) if seen.id not in met and seen.lesson_id is not None]
        strategy = outcome.strategy_used or ""
        same = self.meanings.among(strategy, (seen.strategy_used or "" for seen in new))
        near = self._like(stored.tx, outcome, [seen for seen in new if same(seen.strategy_used or "")])
        return max(near, key=lambda each: each[0])[1].lesson_id if near else None

    def _like(self, tx: Transaction, outcome: Outcome, others: Sequence[Seen]) -> list[tuple[float, Seen]]:
        """Those of these outcomes that are on tasks like that of this one, with how alike they are."""
        if not others or not isinstance(outcome.embedding, Vector):
            return _alike_in_words(outcome, others)
        mine, ids = unit(outcome.embedding), [seen.id for seen in others]
        stored = (each for each in tx.vectors_of(Outcome, ids) if each.model == tx.embedding_model and each.part == 0)
        cosines = {each.record_id: float(mine.dot(unit(each.vector))) for each in stored}
        return _alike(outcome, cosines, [seen for seen in others if seen.id in cosines])

    def must_search(self, outcome: Outcome) -> bool:
        """Whether there is no use in asking the book, because nothing of this agent is in it."""
        if not isinstance(outcome.embedding, Vector) or self._storage.is_writing:
            return True
        return self._books.of(scope_of(outcome)).is_empty

    def written(self, tx: Transaction) -> int | None:
        """How far the store is written at the end of a transaction, to be told to `note`."""
        return self._books.end_of_feed(tx)

    def note(
        self, outcome: Outcome, around: Neighbourhood, made: Sequence[Heuristic | AntiPattern], written: int | None
    ) -> None:
        """Remember an outcome that was committed, and what was made of it, so that the next is known without a search.

        `written` is what `written` said at the end of the transaction.
        """
        if around.vector is not None and not self._storage.is_writing:
            entry = Entry(
                outcome.id,
                outcome.strategy_used or "",
                around.lesson_id,
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
            self._books.note(scope_of(outcome), around.vector, entry, around.like, rules, span)

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

    def _searched_lesson(self, outcome: Outcome, neighbours: Sequence[tuple[float, Seen]]) -> str | None:
        """The lesson with the strategy that the task belongs to, if there is one."""
        strategy, found = outcome.strategy_used or "", list[tuple[float, str]]()
        for cosine, seen in neighbours:
            if seen.lesson_id and self.meanings.same(strategy, seen.strategy_used or ""):
                found.append((cosine, seen.lesson_id))
                if cosine >= _SAME_TASK:
                    break
        lessons = list({lesson for _, lesson in found})
        if len(lessons) < 2:
            return lessons[0] if lessons else None
        rules = self._storage.values(Heuristic, ("id",), scope_of(outcome), In("id", lessons))
        return in_turn(found, {key for (key,) in rules}.__contains__)[0]

    def _known_rule(self, outcome: Outcome) -> str | None:
        """The heuristic that says so already, whoever wrote it."""
        strategy = outcome.strategy_used or ""
        return next((rule.id for rule in self.rules_near(outcome) if self.meanings.same(strategy, rule.strategy)), None)

    def rules_near(self, outcome: Outcome) -> list[Heuristic]:
        """The heuristics for tasks like this one."""
        vector = outcome.embedding
        if vector is None:
            return []
        near = self._index.search(Heuristic, vector, scope_of(outcome), limit=_KNOWN_RULES_LOOKED_AT)
        likely = [found.record_id for found in near if found.cosine >= SIMILAR_OF_A_TYPE]
        return self._storage.get_many(Heuristic, likely, scope_of(outcome))


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
