"""Patterns: what recurs in a project, similar patterns elsewhere, and what works in several projects."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from alma import clock
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ValidationError
from alma.graph.walks import MemoryGraph
from alma.memory.mining import Facts, Mined, mine
from alma.memory.repository import Writer
from alma.memory.walking import related_among
from alma.model.common import checked_name, checked_names, checked_whole
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.memory import Memory, MemoryRelationship, ProjectPattern
from alma.model.query import And, Compare, In, Predicate
from alma.model.relations import Relation
from alma.model.scope import Scope, alive
from alma.model.workspace import Project
from alma.retrieval.writing import join_space
from alma.storage.base import StorageBackend, checked_storage
from alma.text.tokens import query_terms

_EVERYWHERE = Scope.everywhere()
_CHUNK = 500
_MAX_SIMILAR = 100
_RELEVANT = (Relation.RESOLVES, Relation.SUPERSEDES, Relation.CONTRADICTS)
_MINED = "mined"
# Fields that are not part of the content of a pattern.
_BOOKKEEPING = ("created_at", "updated_at", "embedding")


@dataclass(frozen=True, slots=True)
class Mining:
    """The changes of one mining run, by pattern ids."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SimilarPattern:
    """A similar pattern, its similarity and the shared words."""

    pattern: ProjectPattern
    similarity: float
    shared_words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Insight:
    """A pattern that recurs in several projects of one user, with its evidence by project."""

    pattern_type: str
    name: str
    description: str
    success_rate: float
    usage_count: int
    evidence: dict[str, tuple[str, ...]]

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(self.evidence)


class Patterns:
    """The patterns of projects. Mining is deterministic and writes only what changed."""

    def __init__(
        self,
        storage: StorageBackend,
        embedder: EmbeddingProvider | None = None,
        writer: Writer | None = None,
        graph: MemoryGraph | None = None,
    ) -> None:
        self._storage = checked_storage("patterns", storage)
        if embedder is not None:
            join_space(storage, embedder)
        self._embedder = embedder
        self._writer: Writer = storage if writer is None else writer
        self._graph = graph

    # ------------------------------------------------------------------ mining

    def mine(self, project_id: str, *, min_occurrences: int = 2, by: Attribution = ANONYMOUS) -> Mining:
        """Mine the memories of a project and store the patterns; mined patterns without support are deleted.

        Private memories are left out, because the whole project can see its patterns. Patterns that were not mined are
        kept.
        """
        checked_whole("patterns", "min_occurrences", min_occurrences, 2)
        scope = Scope(project_id=project_id)
        where = And(alive(clock.now()), Compare("is_private", "eq", False))
        memories = list(self._storage.iterate(Memory, scope, where))
        mined = {
            each.id: each
            for each in self._named(project_id, mine(memories, _facts(self._relevant_edges(memories)), min_occurrences))
        }
        known = {each.id: each for each in self._storage.find(ProjectPattern, scope)}
        created = [key for key in mined if key not in known]
        updated = [key for key in mined if key in known and not _same(mined[key], known[key])]
        removed = [
            key for key, each in known.items() if key not in mined and each.pattern_data_json.get(_MINED) is True
        ]
        if removed:
            # First, because a new pattern may have the name of a deleted one.
            self._storage.delete(ProjectPattern, removed, scope, by)
        for key in created:
            self._writer.save(mined[key], by)
        for key in updated:
            self._writer.save(_continued(mined[key], known[key]), by)
        unchanged = sorted(mined.keys() - set(created) - set(updated))
        return Mining(tuple(created), tuple(updated), tuple(removed), tuple(unchanged))

    def _named(self, project_id: str, mined: Iterable[Mined]) -> Iterator[ProjectPattern]:
        own = Compare("project_id", "eq", project_id)
        by_hand = [
            each
            for each in self._storage.find(ProjectPattern, _EVERYWHERE, own)
            if not each.pattern_data_json.get(_MINED)
        ]
        taken = {(each.pattern_type, each.pattern_name) for each in by_hand}
        for each in mined:
            key = hashlib.sha256(f"{project_id}\n{each.pattern_type}\n{each.key}".encode()).hexdigest()[:32]
            name = each.name if (each.pattern_type, each.name) not in taken else f"{each.name} ({key[:6]})"
            taken.add((each.pattern_type, name))
            yield ProjectPattern(
                id=key,
                project_id=project_id,
                pattern_type=each.pattern_type,
                pattern_name=name,
                pattern_description=each.description,
                pattern_data_json={**each.data, _MINED: True},
                success_rate=each.success_rate,
                usage_count=each.usage_count,
                memory_ids=each.memory_ids,
                last_used_at=each.last_used_at,
            )

    def _relevant_edges(self, memories: Sequence[Memory]) -> Iterator[MemoryRelationship]:
        """Relationships among these memories that resolve, supersede or contradict."""
        ids = {memory.id for memory in memories}
        wanted = In("relationship_type", _RELEVANT)
        ordered = sorted(ids)
        for start in range(0, len(ordered), _CHUNK):
            chunk = In("to_memory_id", ordered[start : start + _CHUNK])
            found = self._storage.find(MemoryRelationship, _EVERYWHERE, And(wanted, chunk))
            yield from (edge for edge in found if edge.from_memory_id in ids)

    def _edges_of_user(self, user_id: str, memories: Sequence[Memory]) -> Iterable[MemoryRelationship]:
        """The same for memories of one user, in one query of a graph server that has caught up."""
        with self._storage.snapshot() as tx:
            found = related_among(tx, self._graph, user_id, _RELEVANT)
        if found is None:
            return self._relevant_edges(memories)
        ids = {memory.id for memory in memories}
        return [edge for edge in found if {edge.from_memory_id, edge.to_memory_id} <= ids]

    # ------------------------------------------------------------------ across projects

    def find_similar_patterns(
        self,
        pattern: ProjectPattern | str,
        project_id: str,
        *,
        user_id: str | None = None,
        projects: Iterable[str] = (),
        limit: int = 10,
        min_similarity: float = 0.3,
        within: Scope = _EVERYWHERE,
    ) -> list[SimilarPattern]:
        """Patterns similar to one that is given as record, id or text, most similar first.

        Searches this project, the other projects of the user and the named ones. Patterns of memories outside of
        `within` are left out.
        """
        checked_whole("patterns", "limit", limit, 1)
        wanted = self._resolved(pattern, project_id, within)
        allowed = {
            project_id,
            *checked_names("patterns", "projects", projects),
            *(self._projects_of(user_id) if user_id is not None else ()),
        }
        where = In("project_id", sorted(checked_name("patterns", "project_id", each) for each in allowed))
        own_id = wanted.id if isinstance(wanted, ProjectPattern) else None
        text = wanted.text() if isinstance(wanted, ProjectPattern) else wanted
        cosines = self._near(text, where)
        found = dict.fromkeys(cosines) | dict.fromkeys(
            key for key, _ in self._storage.matching_ids(ProjectPattern, text, _EVERYWHERE, where, _MAX_SIMILAR)
        )
        found_records = self._storage.find(ProjectPattern, _EVERYWHERE, And(where, In("id", list(found))))
        records = self.shown_by(found_records, within)
        similar = [_similar(record, text, cosines.get(record.id, 0.0)) for record in records if record.id != own_id]
        kept = (each for each in similar if each.similarity >= min_similarity)
        return sorted(kept, key=lambda each: (-each.similarity, each.pattern.id))[:limit]

    def shown_by(self, patterns: Sequence[ProjectPattern], within: Scope) -> list[ProjectPattern]:
        """The patterns whose evidence lies inside the scope completely."""
        if within == _EVERYWHERE:
            return list(patterns)
        wanted = {memory_id for pattern in patterns for memory_id in pattern.memory_ids}
        seen = {memory.id for memory in self._storage.get_many(Memory, sorted(wanted), within)}
        return [pattern for pattern in patterns if seen.issuperset(pattern.memory_ids)]

    def get_cross_project_insights(
        self, user_id: str, *, min_projects: int = 2, min_success_rate: float = 0.5, limit: int = 20
    ) -> list[Insight]:
        """What recurs and works in several projects of one user, most reliable first.

        Only memories of this user are mined, so nothing of other users is disclosed.
        """
        checked_whole("patterns", "min_projects", min_projects, 2)
        checked_whole("patterns", "limit", limit, 1)
        memories = [
            m for m in self._storage.iterate(Memory, Scope(user_id=user_id), alive(clock.now())) if m.project_id
        ]
        projects = {memory.id: memory.project_id or "" for memory in memories}
        insights = []
        facts = _facts(self._edges_of_user(user_id, memories))
        for each in mine(memories, facts, min_occurrences=min_projects):
            shown: dict[str, list[str]] = defaultdict(list)
            for memory_id in each.memory_ids:
                shown[projects[memory_id]].append(memory_id)
            if len(shown) >= min_projects and each.success_rate >= min_success_rate:
                insights.append(_insight(each, shown))
        surest = sorted(
            insights, key=lambda i: (-len(i.evidence), -i.success_rate * i.usage_count, i.pattern_type, i.name)
        )
        return surest[:limit]

    def _resolved(self, pattern: ProjectPattern | str, project_id: str, within: Scope) -> ProjectPattern | str:
        if isinstance(pattern, ProjectPattern):
            return pattern
        if not isinstance(pattern, str) or not pattern.strip():
            raise ValidationError("patterns", "pattern", pattern, "must be a pattern, its id or a text")
        named = self._storage.get(ProjectPattern, pattern, Scope(project_id=project_id))
        return next(iter(self.shown_by([named] if named else [], within)), pattern)

    def _projects_of(self, user_id: str) -> set[str]:
        """The projects of a user, or without project records those the user has memories in."""
        mine = Scope(user_id=user_id)
        owned = {str(key) for (key,) in self._storage.values(Project, ["id"], mine)}
        if owned:
            return owned
        return {str(key) for (key,) in self._storage.values(Memory, ["project_id"], mine) if key is not None}

    def _near(self, text: str, where: Predicate) -> dict[str, float]:
        if self._embedder is None:
            return {}
        wanted = self._embedder.encode(text)
        return dict(self._storage.nearest_ids(ProjectPattern, wanted, _EVERYWHERE, where, _MAX_SIMILAR))


def _facts(edges: Iterable[MemoryRelationship]) -> Facts:
    """The relationships of memories."""
    solutions: dict[str, set[str]] = defaultdict(set)
    flawed: set[str] = set()
    for edge in edges:
        if edge.relationship_type == Relation.RESOLVES:
            solutions[edge.to_memory_id].add(edge.from_memory_id)
        else:
            flawed.add(edge.to_memory_id)
            if edge.relationship_type == Relation.CONTRADICTS:
                flawed.add(edge.from_memory_id)
    return Facts({key: frozenset(found) for key, found in solutions.items()}, frozenset(flawed))


def _similar(record: ProjectPattern, text: str, cosine: float) -> SimilarPattern:
    queried, own = set(query_terms(text)), set(query_terms(record.text()))
    shared = queried & own
    # Overlap by the shorter text, because a short query can be covered by a long pattern.
    words = len(shared) / max(1, min(len(queried), len(own)))
    return SimilarPattern(record, round(max(cosine, words), 4), tuple(sorted(shared)))


def _insight(mined: Mined, shown: dict[str, list[str]]) -> Insight:
    evidence = {project: tuple(ids) for project, ids in sorted(shown.items())}
    return Insight(mined.pattern_type, mined.name, mined.description, mined.success_rate, mined.usage_count, evidence)


def _same(one: ProjectPattern, other: ProjectPattern) -> bool:
    mine, theirs = one.values(), other.values()
    return all(mine[name] == theirs[name] for name in mine if name not in _BOOKKEEPING)


def _continued(new: ProjectPattern, old: ProjectPattern) -> ProjectPattern:
    """The new pattern with the creation time and, for the same text, the embedding of the old one."""
    return new.replace(created_at=old.created_at, embedding=old.embedding if new.text() == old.text() else None)
