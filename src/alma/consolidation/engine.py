"""The consolidation engine: merges near-duplicate memories, and undoes merges."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from alma.bootstrap import open_vector_index
from alma.consolidation.merging import (
    KINDS,
    ConsolidationResult,
    Kind,
    MergedGroup,
    kind_of,
    merged_values,
    unmerged_values,
)
from alma.core import ALMA
from alma.errors import NotFoundError, ValidationError
from alma.events.emitter import EventEmitter, MemoryEvent, MemoryEventType, checked_emitter, get_emitter
from alma.judge.base import Judge, normalised
from alma.judge.default import default_judge
from alma.learning.heuristics import HeuristicExtractor
from alma.learning.lessons import NOT_THE_SAME
from alma.memory.archive import Archive
from alma.model.common import checked_part
from alma.model.governance import ANONYMOUS, ArchiveCause, Attribution
from alma.model.learning import Heuristic, Outcome, UserPreference
from alma.model.memory import ChangeType
from alma.model.query import Compare, Cursor, In
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.nearest import cosines
from alma.storage.transaction import Transaction
from alma.text.prose import is_prose
from alma.vectors.base import VectorIndex

_log = logging.getLogger("alma.consolidation")

_OUTCOMES_AT_ONCE = 200
_OLD_LESSON = "merged_lesson"


class ConsolidationEngine:
    """Merges near-duplicates among heuristics, anti-patterns, facts and preferences.

    Two memories of one owner are merged if their words are the same, or if their vectors are near (a cosine of at least
    `similarity_threshold`) and the judge finds all their statements the same. The memory with most evidence is kept,
    with the counts and evidence of the whole group; the others are archived.
    """

    def __init__(
        self,
        memory: ALMA | StorageBackend,
        similarity_threshold: float = 0.85,
        *,
        emitter: EventEmitter | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._alma = memory if isinstance(memory, ALMA) else None
        self._storage = memory.storage if isinstance(memory, ALMA) else _checked_store(memory)
        self._extractor = self._alma.learning.extractor if self._alma else HeuristicExtractor()
        known = self._alma.learning.strategies.judge if self._alma else None
        self._judge: Judge = judge or known or default_judge()
        self._archive = Archive(self._storage)
        self._threshold = _checked_threshold(similarity_threshold)
        self._emitter = get_emitter() if emitter is None else checked_emitter("consolidation", emitter)

    def consolidate(
        self,
        agent: str | None = None,
        project_id: str | None = None,
        memory_type: str | type[Record] | None = None,
        similarity_threshold: float | None = None,
        dry_run: bool = False,
        *,
        user_id: str | None = None,
        by: Attribution = ANONYMOUS,
    ) -> ConsolidationResult:
        """Merge near-duplicates of a project, or of one agent in it; each group in a separate transaction.

        Without a `memory_type` it merges heuristics, anti-patterns and facts, and with a `user_id` the preferences of
        that user. With `dry_run` nothing changes, and the result says what would be merged and why.
        """
        threshold = self._threshold if similarity_threshold is None else _checked_threshold(similarity_threshold)
        chosen = self._chosen(memory_type, user_id)
        scopes = [(kind, self._scope(kind, agent, project_id, user_id)) for kind in chosen]
        groups: list[MergedGroup] = []
        processed = 0
        with self._index() as index:
            for kind, scope in scopes:
                # Count first: merged memories are no longer in the store.
                processed += self._storage.count(kind.cls, scope)
                found = Search(self._storage, index, self._judge, kind, scope, threshold).groups()
                merged = (group.shown() if dry_run else self._merge(kind, scope, group, by) for group in found)
                groups.extend(each for each in merged if each is not None)
        return ConsolidationResult(tuple(groups), processed, dry_run)

    def undo(
        self,
        merged: str | MergedGroup | ConsolidationResult,
        memory_type: str | type[Record] | None = None,
        project_id: str | None = None,
        *,
        user_id: str | None = None,
        by: Attribution = ANONYMOUS,
    ) -> list[str]:
        """Undo the last merge into a memory; returns the ids of the restored memories.

        `merged` is the id of the memory, one group of a `ConsolidationResult`, or the whole result. `memory_type`
        defaults to the type of the memory with this id; a preference also needs its `user_id`.
        """
        if isinstance(merged, ConsolidationResult):
            if merged.dry_run:
                raise ValidationError("consolidate", "merged", merged, "was a dry run, which merged nothing")
            apart = (self.undo(group, None, project_id, user_id=user_id, by=by) for group in merged.groups)
            return [back for ids in apart for back in ids]
        if isinstance(merged, MergedGroup):
            return self._undo(merged.kept_id, merged.memory_type, project_id, user_id, by)
        return self._undo(merged, memory_type, project_id, user_id, by)

    def _undo(
        self,
        kept_id: str,
        memory_type: str | type[Record] | None,
        project_id: str | None,
        user_id: str | None,
        by: Attribution,
    ) -> list[str]:
        kind, scope = self._holder(kept_id, memory_type, project_id, user_id)

        def take_apart(tx: Transaction) -> list[str]:
            held = tx.lock(kind.cls, [kept_id], scope)
            if not held:
                raise NotFoundError(kind.cls.spec.kind, kept_id)
            ids, changes = unmerged_values(held[0])
            self._archive.restore(ids, scope, by, kind.cls)
            tx.update(kind.cls, kept_id, changes, scope)
            if kind.cls is Heuristic:
                _give_back_outcomes(tx, kept_id, ids, scope)
            return ids

        return self._storage.write(take_apart, _because(by, f"the merge into {kept_id} was undone"))

    # ------------------------------------------------------------------ kind and scope

    def _holder(
        self, kept_id: str, memory_type: str | type[Record] | None, project_id: str | None, user_id: str | None
    ) -> tuple[Kind, Scope]:
        """The kind and the scope of the memory with this id."""
        places = [(kind, self._scope(kind, None, project_id, user_id)) for kind in self._chosen(memory_type, user_id)]
        there = (each for each in places if self._storage.get(each[0].cls, kept_id, each[1]) is not None)
        found = next(there, places[0] if memory_type is not None else None)
        if found is None:
            raise NotFoundError("merged memory", kept_id)
        return found

    def _chosen(self, memory_type: str | type[Record] | None, user_id: str | None) -> list[Kind]:
        if memory_type is not None:
            return [kind_of(memory_type)]
        return [kind for kind in KINDS.values() if kind.cls is not UserPreference or user_id is not None]

    def _scope(self, kind: Kind, agent: str | None, project_id: str | None, user_id: str | None) -> Scope:
        if kind.cls is UserPreference:
            if user_id is None:
                raise ValidationError("consolidate", "user_id", user_id, "must say whose preferences are meant")
            return Scope(user_id=user_id)
        project = project_id or (self._alma.project_id if self._alma else None)
        if project is None:
            raise ValidationError("consolidate", "project_id", project_id, "must say which project is meant")
        return Scope(project_id=project, agent=agent)

    @contextmanager
    def _index(self) -> Iterator[VectorIndex]:
        if self._alma is not None:
            yield self._alma.retrieval.index
            return
        index = open_vector_index(self._storage)
        try:
            yield index
        finally:
            index.close()

    # ------------------------------------------------------------------ merging

    def _merge(self, kind: Kind, scope: Scope, group: Group, by: Attribution) -> MergedGroup | None:
        because = _because(by, f"merged what says the same into {group.kept.key}")
        merged = self._storage.write(lambda tx: self._merge_in(tx, kind, scope, group, by), because)
        if merged is None:
            _log.info("a group of memories was skipped: it has changed meanwhile", extra={"memory_id": group.kept.key})
            return None
        self._emit(group.kept, merged, by)
        return merged

    def _merge_in(self, tx: Transaction, kind: Kind, scope: Scope, group: Group, by: Attribution) -> MergedGroup | None:
        """Merge the memories that have not changed since they were compared."""
        compared = {str(each.key): kind.texts(each) for each in (group.kept, *group.others)}
        held = {str(each.key): each for each in tx.lock(kind.cls, list(compared), scope)}
        same = {key: each for key, each in held.items() if kind.texts(each) == compared[key]}
        kept = same.pop(str(group.kept.key), None)
        if kept is None or not same:
            return None
        ids = list(same)
        self._archive.put(kind.cls, ids, scope, ArchiveCause.MERGED, f"merged into {kept.key}", by)
        with tx.known_as(ChangeType.MERGED):
            tx.update(kind.cls, kept.key, merged_values(kind, kept, list(same.values()), self._extractor), scope)
        if kind.cls is Heuristic:
            _take_outcomes(tx, ids, kept.key, scope)
        return MergedGroup(kind.cls.spec.kind, kept.key, kept.text(), {key: group.why[key] for key in ids})

    def _emit(self, kept: Record, merged: MergedGroup, by: Attribution) -> None:
        self._emitter.emit(
            MemoryEvent(
                MemoryEventType.CONSOLIDATED,
                memory_type=merged.memory_type,
                memory_id=merged.kept_id,
                project_id=getattr(kept, "project_id", None),
                agent=getattr(kept, "agent", None),
                user_id=getattr(kept, "user_id", None),
                author=by.author,
                reason=by.reason,
                payload={"merged_ids": list(merged.merged)},
            )
        )


def _take_outcomes(tx: Transaction, lessons: Sequence[str], lesson: str, scope: Scope) -> None:
    """Make the outcomes of merged lessons evidence of the kept one, so that they do not create the lessons again."""
    while outcomes := tx.find(Outcome, scope, In("lesson_id", lessons), limit=_OUTCOMES_AT_ONCE):
        tx.save(
            *(
                each.replace(lesson_id=lesson, metadata={**each.metadata, _OLD_LESSON: each.lesson_id})
                for each in outcomes
            )
        )


def _give_back_outcomes(tx: Transaction, lesson: str, lessons: Sequence[str], scope: Scope) -> None:
    """Return their outcomes to the restored lessons."""
    after: Cursor | None = None
    while outcomes := tx.find(Outcome, scope, Compare("lesson_id", "eq", lesson), limit=_OUTCOMES_AT_ONCE, after=after):
        after = Cursor.after(outcomes[-1], ())
        theirs = [each for each in outcomes if each.metadata.get(_OLD_LESSON) in lessons]
        tx.save(*(_given_back(each) for each in theirs))


def _given_back(outcome: Outcome) -> Outcome:
    metadata = {key: value for key, value in outcome.metadata.items() if key != _OLD_LESSON}
    return outcome.replace(lesson_id=outcome.metadata[_OLD_LESSON], metadata=metadata)


def _because(by: Attribution, reason: str) -> Attribution:
    return by if by.reason is not None else replace(by, reason=reason)


def _checked_threshold(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValidationError("consolidate", "similarity_threshold", value, "must be a number above 0 and up to 1")
    return float(value)


def _checked_store(memory: StorageBackend) -> StorageBackend:
    return checked_part("consolidation", "memory", memory, StorageBackend, "a memory or an open store, as alma.storage")


_PAGE = 200
_LOOKED_AT, _MOST_LOOKED_AT = 16, 1024
# Stricter than the threshold of learning, where a mistake changes a count; here it hides a memory.
_SURE = 0.85
# The maximum number of neighbours of a memory that are judged.
_JUDGED = 16


@dataclass(frozen=True, slots=True)
class Group:
    """A memory, its near-duplicates, and the reason for each of them."""

    kept: Record
    others: Sequence[Record]
    why: dict[str, str]

    def shown(self) -> MergedGroup:
        kept = self.kept
        return MergedGroup(
            kept.spec.kind, str(kept.key), kept.text(), {str(o.key): self.why[str(o.key)] for o in self.others}
        )


class Search:
    """Finds near-duplicates of earlier memories of a kind, page by page.

    Every member of a group is compared with the kept memory: similarity is not transitive.
    """

    def __init__(
        self,
        storage: StorageBackend,
        index: VectorIndex,
        judge: Judge,
        kind: Kind,
        scope: Scope,
        threshold: float,
    ) -> None:
        self._storage = storage
        self._judge = judge
        self._index = index
        self._kind = kind
        self._scope = scope
        self._threshold = threshold
        self._taken: set[str] = set()

    def groups(self) -> Iterator[Group]:
        for record in self._storage.iterate(self._kind.cls, self._scope, page_size=_PAGE):
            if record.key in self._taken:
                continue
            alike = self._alike(record)
            if not alike:
                continue
            group = self._group([record, *alike])
            if group.others:
                self._taken.update(str(other.key) for other in group.others)
                yield group

    def _group(self, members: Sequence[Record]) -> Group:
        kept = max(members, key=_worth)
        others = {str(each.key): each for each in members if each is not kept and not _are_separated(kept, each)}
        near = {key: self._cosine(kept, each) for key, each in others.items()}
        why = self._why(self._kind.texts(kept), {key: self._kind.texts(each) for key, each in others.items()}, near)
        return Group(kept, [others[key] for key in why], why)

    def _alike(self, record: Record) -> list[Record]:
        """The later near-duplicates of this memory."""
        looked_at = _LOOKED_AT
        while True:
            alike = self._matching(record, self._near(record, looked_at))
            if len(alike) < looked_at // 2 or looked_at >= _MOST_LOOKED_AT:
                # Earlier memories have already been compared with this one.
                later = [key for key in alike if key > record.key and key not in self._taken]
                return self._storage.get_many(self._kind.cls, later, self._scope) if later else []
            looked_at *= 4

    def _near(self, record: Record, limit: int) -> dict[str, float | None]:
        """The ids of possible near-duplicates with their cosine, or None for those found by words."""
        cls = self._kind.cls
        near: dict[str, float | None] = {
            key: None
            for key, _ in self._storage.matching_ids(cls, record.text(), self._scope, limit=limit, exact=False)
        }
        vector = getattr(record, "embedding", None)
        if vector is not None:
            found = self._index.search(cls, vector, self._scope, limit=limit)
            near |= {each.record_id: each.cosine for each in found if each.cosine >= self._threshold}
        near.pop(record.key, None)
        return near

    def _matching(self, record: Record, near: Mapping[str, float | None]) -> list[str]:
        """The near-duplicates among them; only texts are read, because most are not duplicates."""
        if not near:
            return []
        kind, key = self._kind, self._kind.cls.spec.key
        owner, texts, width = kind.owner(record), kind.texts(record), len(kind.owners)
        rows = self._storage.values(kind.cls, (key, *kind.owners, *kind.statements), self._scope, In(key, tuple(near)))
        others = {row[0]: row[1 + width :] for row in rows if row[1 : 1 + width] == owner}
        return list(self._why(texts, others, near))

    def _why(
        self, mine: Sequence[str], others: Mapping[str, Sequence[str]], near: Mapping[str, float | None]
    ) -> dict[str, str]:
        """The near-duplicates, each with the reason; those found by meaning must have near vectors, too."""
        why = {key: "the same words" for key, theirs in others.items() if _same_words(mine, theirs)}
        left = [
            (cosine, key)
            for key, theirs in others.items()
            if key not in why and (cosine := near[key]) is not None and all(map(is_prose, (*mine, *theirs)))
        ]
        likely = [key for _, key in sorted(left, reverse=True)[:_JUDGED]]
        pairs = [pair for key in likely for pair in zip(mine, others[key], strict=True)]
        verdicts = self._judge.compare(pairs) if pairs else []
        for place, key in enumerate(likely):
            found = verdicts[place * len(mine) : (place + 1) * len(mine)]
            sure = min(verdict["same"] for verdict in found)
            if sure >= _SURE:
                why[key] = f"judged the same with {sure:.0%}, meaning {near[key]:.2f}"
        return why

    def _cosine(self, one: Record, other: Record) -> float | None:
        """The cosine of two memories, if it is high enough to count."""
        mine, theirs = getattr(one, "embedding", None), getattr(other, "embedding", None)
        if mine is None or theirs is None:
            return None
        cosine = cosines(mine, [theirs.to_bytes()])[0]
        return cosine if cosine >= self._threshold else None


def _same_words(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    return [normalised(text) for text in mine] == [normalised(text) for text in theirs]


def _are_separated(one: Record, other: Record) -> bool:
    """Whether one of these rules is marked as different from the other."""
    return any(
        normalised(getattr(theirs, "strategy", "")) in getattr(ours, "metadata", {}).get(NOT_THE_SAME, ())
        for ours, theirs in ((one, other), (other, one))
    )


def _worth(record: Record) -> tuple[float, float, float, str]:
    """The sort key of the memory to keep: most evidence, then highest confidence, shortest text, and id."""
    return (
        getattr(record, "occurrence_count", 0),
        getattr(record, "confidence", 0.0),
        -len(record.text()),
        str(record.key),
    )
