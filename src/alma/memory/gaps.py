"""Gaps: what the memories of a project lack for the current work, each with the memories that show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from alma import clock
from alma.errors import ValidationError
from alma.lazy import lazy_regex
from alma.memory.mining import Facts, solved
from alma.memory.relation_detection import ANSWERS, PROBLEMS, files_of, identifiers
from alma.memory.tuning import GAPS, phrases
from alma.model.common import checked_prose, checked_whole
from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import In, Or
from alma.model.relations import Relation
from alma.model.scope import Scope, visible
from alma.storage.base import StorageBackend, checked_storage
from alma.text.tokens import query_terms

_EVERYWHERE = Scope.everywhere()
_CHUNK = 500
_MAX_MEMORIES = 5_000
_QUESTION = lazy_regex(r"\?\s*$|\bopen question\b|^\s*(?:todo|tbd)\b", re.IGNORECASE | re.MULTILINE)
_KNOWLEDGE_TYPES = ("decision", "pattern", "insight", "solution")
_ANSWER_RELATIONS = (Relation.REPLY_TO, Relation.RESOLVES, Relation.FOLLOW_UP)


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing knowledge: its kind and subject, why it counts as missing, and what would fill the gap."""

    kind: str
    subject: str
    reason: str
    suggestion: str
    memory_ids: tuple[str, ...]


class ContextGaps:
    """Finds open problems, contradictions and questions, missing reasons, stale knowledge and unknown files."""

    def __init__(self, storage: StorageBackend, stale_after: timedelta = timedelta(days=180)) -> None:
        self._storage = checked_storage("gaps", storage)
        self._stale_after = stale_after

    def suggest_context_gaps(
        self,
        scope: Scope,
        *,
        activity: str | None = None,
        files: Iterable[str] = (),
        limit: int = 20,
        now: datetime | None = None,
    ) -> list[Gap]:
        """The gaps in the memories inside the scope, most urgent first.

        `activity` and `files` describe the current work: then only gaps that concern it are returned, and files that
        no memory mentions are gaps as well.
        """
        if isinstance(files, str) or not isinstance(files, Iterable):
            raise ValidationError("gaps", "files", files, "must be a list of files")
        if activity is not None:
            checked_prose("gaps", "activity", activity)
        checked_whole("gaps", "limit", limit, 1)
        moment = clock.now() if now is None else now
        wanted = [name for name in dict.fromkeys(files) if checked_prose("gaps", "files", name).strip()]
        with self._storage.snapshot() as tx:
            memories = tx.find(Memory, scope, visible(scope, moment), limit=_MAX_MEMORIES)
            ordered = sorted(memories, key=lambda each: (each.created_at, each.id))
            edges = self._edges(ordered)
        concerned = _concerned(ordered, activity, wanted)
        gaps = [
            *_unsolved(ordered, concerned, edges),
            *_contradictions(ordered, concerned, edges),
            *_unanswered(ordered, concerned, edges),
            *_without_reason(concerned, edges),
            *self._stale(concerned, moment),
            *_unknown_files(wanted, ordered),
        ]
        return gaps[:limit]

    def _edges(self, memories: Sequence[Memory]) -> list[MemoryRelationship]:
        ids = sorted(memory.id for memory in memories)
        found: dict[str, MemoryRelationship] = {}
        for start in range(0, len(ids), _CHUNK):
            chunk = ids[start : start + _CHUNK]
            ends = Or(In("from_memory_id", chunk), In("to_memory_id", chunk))
            found.update((edge.id, edge) for edge in self._storage.find(MemoryRelationship, _EVERYWHERE, ends))
        seen = set(ids)
        return [edge for edge in found.values() if {edge.from_memory_id, edge.to_memory_id} <= seen]

    def _stale(self, concerned: Sequence[Memory], now: datetime) -> Iterator[Gap]:
        for memory in concerned:
            touched = max(memory.updated_at, memory.last_accessed_at, memory.created_at)
            if memory.memory_type in _KNOWLEDGE_TYPES and now - touched > self._stale_after:
                days = (now - touched).days
                yield Gap(
                    "stale_knowledge",
                    _subject(memory),
                    f"it was neither changed nor read for {days:,} days",
                    "check whether it still holds, then update or supersede it",
                    (memory.id,),
                )


def _concerned(memories: Sequence[Memory], activity: str | None, files: Sequence[str]) -> list[Memory]:
    """The memories that concern the current work; all of them if no work is described."""
    if not activity and not files:
        return list(memories)
    terms = set(query_terms(activity or ""))
    return [memory for memory in memories if _names_any(memory, files) or (terms and _about(memory, terms))]


def _about(memory: Memory, terms: set[str]) -> bool:
    return len(terms & set(query_terms(memory.text()))) / len(terms) >= GAPS.min_shared_words


def _names_any(memory: Memory, files: Sequence[str]) -> bool:
    named = {*files_of(memory), *(name for name, kind in identifiers(memory.text()).items() if kind == "file")}
    return any(_same_file(one, other) for one in named for other in files)


def _same_file(one: str, other: str) -> bool:
    """Paths of one file, of which either may begin higher up."""
    longer, shorter = sorted((one, other), key=len, reverse=True)
    return longer == shorter or longer.endswith(f"/{shorter.lstrip('./')}")


def _unsolved(
    ordered: Sequence[Memory], concerned: Sequence[Memory], edges: Sequence[MemoryRelationship]
) -> Iterator[Gap]:
    solutions: dict[str, set[str]] = {}
    for edge in edges:
        if edge.relationship_type == Relation.RESOLVES:
            solutions.setdefault(edge.to_memory_id, set()).add(edge.from_memory_id)
    facts = Facts({key: frozenset(found) for key, found in solutions.items()})
    done = {problem.id for problem, _ in solved(ordered, facts)}
    by_file: dict[str, list[Memory]] = {}
    for memory in concerned:
        if memory.memory_type in PROBLEMS and memory.id not in done:
            names = files_of(memory) or [n for n, kind in identifiers(memory.text()).items() if kind == "file"]
            by_file.setdefault(names[0] if names else _subject(memory), []).append(memory)
    for subject, problems in sorted(by_file.items(), key=lambda each: (-len(each[1]), each[0])):
        times = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        yield Gap(
            "unsolved_problem",
            subject,
            f"{times} and no solution: {_subject(problems[-1])}",
            "record what solved it, as a solution that resolves it",
            tuple(problem.id for problem in problems),
        )


def _contradictions(
    ordered: Sequence[Memory], concerned: Sequence[Memory], edges: Sequence[MemoryRelationship]
) -> Iterator[Gap]:
    by_id = {memory.id: memory for memory in ordered}
    wanted = {memory.id for memory in concerned}
    superseded = {edge.to_memory_id for edge in edges if edge.relationship_type == Relation.SUPERSEDES}
    for edge in sorted(edges, key=lambda each: (each.from_memory_id, each.to_memory_id)):
        ends = (edge.from_memory_id, edge.to_memory_id)
        if edge.relationship_type == Relation.CONTRADICTS and wanted & {*ends} and not superseded & {*ends}:
            yield Gap(
                "open_contradiction",
                _subject(by_id[ends[0]]),
                f"it contradicts: {_subject(by_id[ends[1]])}",
                "say which one holds: let it supersede the other",
                ends,
            )


def _unanswered(
    ordered: Sequence[Memory], concerned: Sequence[Memory], edges: Sequence[MemoryRelationship]
) -> Iterator[Gap]:
    answered = {edge.to_memory_id for edge in edges if edge.relationship_type in _ANSWER_RELATIONS}
    for memory in concerned:
        if memory.id in answered or memory.memory_type in PROBLEMS or not _QUESTION.search(memory.content):
            continue
        if not _answered_later(memory, ordered):
            yield Gap(
                "open_question",
                _subject(memory),
                "nothing answers it",
                "record the answer, as a reply to it",
                (memory.id,),
            )


def _answered_later(question: Memory, ordered: Sequence[Memory]) -> bool:
    """Whether a later memory of the session, or a later solution or decision anywhere, is about the same."""
    terms = set(query_terms(question.content))
    for memory in ordered:
        if (memory.created_at, memory.id) <= (question.created_at, question.id) or _QUESTION.search(memory.content):
            continue
        near = memory.session_id is not None and memory.session_id == question.session_id
        if (near or memory.memory_type in (*ANSWERS, "decision")) and terms and _about(memory, terms):
            return True
    return False


def _without_reason(concerned: Sequence[Memory], edges: Sequence[MemoryRelationship]) -> Iterator[Gap]:
    grounded = {
        edge.from_memory_id for edge in edges if edge.relationship_type in (Relation.BUILDS_ON, Relation.RESOLVES)
    }
    for memory in concerned:
        if (
            memory.memory_type == "decision"
            and memory.id not in grounded
            and not phrases("states_reason").search(memory.text())
        ):
            yield Gap(
                "decision_without_reason",
                _subject(memory),
                "it does not say why",
                "add the reason, or relate it to what it builds on",
                (memory.id,),
            )


def _unknown_files(files: Sequence[str], memories: Sequence[Memory]) -> Iterator[Gap]:
    for name in files:
        if not any(_names_any(memory, [name]) for memory in memories):
            yield Gap("unknown_file", name, "no memory mentions it", "note what it does and what to watch out for", ())


def _subject(memory: Memory) -> str:
    text = memory.title.strip() or memory.content.strip()
    line = " ".join(text.splitlines()[0].split()) if text else memory.id
    return line if len(line) <= 100 else f"{line[:99]}…"
