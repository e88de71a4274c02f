"""Working context: what matters now for an activity, files and a branch, within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import PurePath
from typing import Any

from alma import clock
from alma.errors import ValidationError
from alma.memory.filters import ALIVE, viewer, visible_in_session
from alma.memory.git import GitContext
from alma.memory.layers import LayerPlan, route_layers
from alma.memory.search import search
from alma.model.common import checked_whole
from alma.model.governance import Attribution
from alma.model.learning import UserPreference
from alma.model.memory import Memory, MemoryRelationship
from alma.model.prompt import as_data
from alma.model.query import And, At, Compare, In, Or, Order, Predicate
from alma.model.record import Record
from alma.model.relations import Relation
from alma.model.scope import Scope, checked_scope
from alma.model.workspace import SessionMemory, WorkItem, WorkItemStatus
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.supersession import successors_of
from alma.storage.base import StorageBackend
from alma.tokens import count_tokens

_MAX_PER_SECTION = 8
_MAX_FILES = 50
_MAX_TASKS = 2_000
_BATCH_SIZE = 32
# Contexts are not indexed, so only the newest memories are scanned.
_MAX_SCANNED = 5_000
_MAX_TEXT_LENGTH = 600
_NEWEST = (Order("created_at", "desc"),)
_DONE_STATUSES = ("done", "completed", "closed", "cancelled", "failed")
_OPEN_ITEMS = tuple(status for status in WorkItemStatus if status not in (WorkItemStatus.DONE, WorkItemStatus.FAILED))
_ABOUT_FILES = ("error", "solution", "decision", "insight", "pattern")


@dataclass(frozen=True, slots=True)
class ContextItem:
    """A record that matters now, its section and the reason."""

    record: Record
    section: str
    reason: str
    text: str

    @property
    def id(self) -> str:
        return str(self.record.key)


@dataclass(frozen=True, slots=True)
class WorkingContext:
    """The working context by section, and the items that did not fit into the budget."""

    items: tuple[ContextItem, ...]
    left_out: tuple[ContextItem, ...]
    plan: LayerPlan
    git: GitContext | None = None
    degraded: str = ""

    def section(self, name: str) -> tuple[ContextItem, ...]:
        """The items of one section, most relevant first."""
        return tuple(item for item in self.items if item.section == name)

    def to_prompt(self) -> str:
        """The items as text for a language model, each with its reason."""
        return _written(self.items)


SectionReader = Callable[[], Iterable[tuple[Record, str]]]


class ContextReader:
    """Gathers the working context from the store."""

    def __init__(self, storage: StorageBackend, retrieval: RetrievalEngine) -> None:
        self._storage = storage
        self._retrieval = retrieval

    def read(
        self,
        scope: Scope,
        by: Attribution,
        activity: str,
        files: Sequence[str],
        branch: str | None,
        max_tokens: int,
        git: GitContext | None = None,
    ) -> WorkingContext:
        """The working context: the best items of each section in turn, up to the budget."""
        if not isinstance(activity, str):
            raise ValidationError("get_context", "activity", activity, "must be text that describes the activity")
        checked_whole("get_context", "max_tokens", max_tokens, 0)
        checked_scope("get_context", scope)
        request = _ContextRequest(
            self._storage, self._retrieval, scope, by, activity.strip(), _checked_files(files), branch
        )
        sections = [list(_items(name, read())) for name, read in request.sections().items()]
        chosen, left_out = _packed(sections, max_tokens)
        return WorkingContext(chosen, left_out, request.plan(), git, request.degraded)


class _ContextRequest:
    """One request for a working context."""

    def __init__(
        self,
        storage: StorageBackend,
        retrieval: RetrievalEngine,
        scope: Scope,
        by: Attribution,
        activity: str,
        files: tuple[str, ...],
        branch: str | None,
    ) -> None:
        self._storage, self._retrieval = storage, retrieval
        self._scope, self._by = scope, by
        self._activity, self._files, self._branch = activity, files, branch
        self._session = by.session_id or scope.session_id
        self._user = viewer(scope, by)
        self._now = clock.now()
        self._seen = And(visible_in_session(scope, by, ALIVE), ALIVE.predicate(self._now))
        self._horizons: dict[Scope, list[Predicate]] = {}
        self.degraded = ""

    def sections(self) -> dict[str, SectionReader]:
        """The sections in display order, and how each is read."""
        return {
            "Working set": self._working_set,
            "Open tasks": self._open_tasks,
            "These files": self._about_files,
            "This branch": self._on_branch,
            "Preferences": self._preferences,
            "Recent decisions": self._decisions,
            "Related": self._related,
        }

    def plan(self) -> LayerPlan:
        return route_layers(
            self._activity,
            user_id=self._user,
            project_id=self._scope.project_id,
            session_id=self._session,
            now=self._now,
        )

    # ------------------------------------------------------------------ the sections

    def _working_set(self) -> Iterator[tuple[Record, str]]:
        if self._session is None:
            return
        held = And(Compare("session_id", "eq", self._session), Compare("working_memory", "eq", True))
        order = (Order("context_window_position"), Order("position_in_session"))
        places = self._storage.find(SessionMemory, Scope.everywhere(), held, order, 4 * _MAX_PER_SECTION)
        ids = [place.memory_id for place in places]
        memories = {memory.id: memory for memory in self._memories(In("id", ids), 4 * _MAX_PER_SECTION)} if ids else {}
        for key in ids:
            if key in memories:
                yield memories[key], "it is being worked on in this session"

    def _open_tasks(self) -> Iterator[tuple[Record, str]]:
        for item in self._work_items():
            yield item, f"the work item is {item.status.replace('_', ' ')}"
        where = And(self._seen, Compare("memory_type", "eq", "task"))
        tasks = islice(self._storage.iterate(Memory, self._scope, where, _NEWEST, page_size=100), _MAX_TASKS)
        for memory in islice(self._in_force(task for task in tasks if not _is_done(task)), _MAX_PER_SECTION):
            yield memory, "a task that is not marked as done"

    def _work_items(self) -> list[WorkItem]:
        if self._scope.project_id is None:
            return []
        is_open = In("status", [str(status) for status in _OPEN_ITEMS])
        in_project = Scope(project_id=self._scope.project_id, agent=self._scope.agent)
        return self._storage.find(WorkItem, in_project, is_open, (Order("priority", "desc"),), _MAX_PER_SECTION)

    def _about_files(self) -> Iterator[tuple[Record, str]]:
        if not self._files:
            return
        about = Or(*(At("context_json", "files", name) for name in self._files))
        for memory in self._memories(And(about, *self._recent(self._scope)), _MAX_PER_SECTION):
            named = [name for name in self._files if name in _listed(memory.context_json.get("files"))]
            yield memory, f"it is about {', '.join(named[:3])}"
        of_type = And(self._seen, In("memory_type", _ABOUT_FILES))
        for name in self._files:
            base = PurePath(name).name
            for hit in self._storage.search_text(Memory, base, self._scope, of_type, _MAX_PER_SECTION):
                if base.casefold() in hit.record.text().casefold():
                    yield hit.record, f"it names {base}"

    def _on_branch(self) -> Iterator[tuple[Record, str]]:
        if self._branch is None:
            return
        here = At("git_context_json", "branch", self._branch)
        for memory in self._memories(And(here, *self._recent(self._scope)), _MAX_PER_SECTION):
            yield memory, f"it was written on the branch {self._branch}"

    def _preferences(self) -> Iterator[tuple[Record, str]]:
        if self._user is None:
            return
        mine = Scope(user_id=self._user)
        for preference in self._storage.find(
            UserPreference, mine, order=(Order("timestamp", "desc"),), limit=_MAX_PER_SECTION
        ):
            yield preference, f"a preference of {self._user}"
        of_type = Compare("memory_type", "eq", "user_preference")
        where = self._scope if self._scope.sealed else mine
        own = And(self._seen, Compare("user_id", "eq", self._user), of_type, *self._recent(where))
        for memory in self._in_force(self._storage.find(Memory, where, own, _NEWEST, _MAX_PER_SECTION)):
            yield memory, f"a preference of {self._user}"

    def _decisions(self) -> Iterator[tuple[Record, str]]:
        decisions = self._memories(Compare("memory_type", "eq", "decision"), 4 * _MAX_PER_SECTION)
        for memory in islice(self._in_force(decisions), _MAX_PER_SECTION):
            yield memory, f"decided {_ago(memory, self._now)}"

    def _related(self) -> Iterator[tuple[Record, str]]:
        if not self._activity:
            return
        found = search(self._retrieval, self._activity, self._scope, self._by, limit=_MAX_PER_SECTION, routed=True)
        self.degraded = found.degraded
        for hit in found:
            yield (
                hit.memory,
                f"it is relevant to the activity ({hit.score:.2f}, found by {', '.join(hit.explanation.found_by)})",
            )

    def _recent(self, scope: Scope) -> list[Predicate]:
        """Predicates that limit a scan of a large scope to its newest memories."""
        if scope not in self._horizons:
            newest = self._storage.values(Memory, ("created_at",), scope, order=_NEWEST, limit=_MAX_SCANNED)
            is_large = len(newest) == _MAX_SCANNED
            self._horizons[scope] = [Compare("created_at", "ge", newest[-1][0])] if is_large else []
        return self._horizons[scope]

    def _in_force(self, memories: Iterable[Memory]) -> Iterator[Memory]:
        """The memories that no visible memory has superseded or resolved."""
        waiting = iter(memories)
        while some := list(islice(waiting, _BATCH_SIZE)):
            inactive = self._superseded_or_resolved([memory.id for memory in some])
            yield from (memory for memory in some if memory.id not in inactive)

    def _superseded_or_resolved(self, ids: list[str]) -> set[str]:
        with self._storage.snapshot() as tx:
            later = {old: set(new) for old, new in successors_of(tx, ids).items() if old in ids}
        resolving = And(In("to_memory_id", ids), Compare("relationship_type", "eq", Relation.RESOLVES))
        for edge in self._storage.find(MemoryRelationship, Scope.everywhere(), resolving):
            later.setdefault(edge.to_memory_id, set()).add(edge.from_memory_id)
        ends = sorted({end for ends in later.values() for end in ends})
        there = And(self._seen, In("id", ends))
        seen = {key for (key,) in self._storage.values(Memory, ("id",), self._scope, there)} if ends else set()
        return {old for old, ends_of in later.items() if ends_of & seen}

    def _memories(self, where: Predicate, limit: int) -> list[Memory]:
        return self._storage.find(Memory, self._scope, And(self._seen, where), _NEWEST, limit)


# ---------------------------------------------------------------------- packing


def _items(section: str, found: Iterable[tuple[Record, str]]) -> Iterator[ContextItem]:
    for record, reason in found:
        yield ContextItem(record, section, reason, f"- {_line(record)} ({as_data(reason)})")


def _packed(
    sections: Sequence[Sequence[ContextItem]], max_tokens: int
) -> tuple[tuple[ContextItem, ...], tuple[ContextItem, ...]]:
    """Choose the best of each section in turn; an item appears in one section only."""
    chosen: list[ContextItem] = []
    left_out: list[ContextItem] = []
    known: set[tuple[str, str]] = set()
    room = max_tokens
    for turn in range(max((len(section) for section in sections), default=0)):
        for section in sections:
            if turn >= len(section) or (key := (section[turn].record.spec.kind, section[turn].id)) in known:
                continue
            known.add(key)
            cost = _cost(section[turn], chosen)
            (chosen if cost <= room else left_out).append(section[turn])
            room -= cost if cost <= room else 0
    # Joined text can take more tokens than its parts.
    while chosen and count_tokens(_written(chosen)) > max_tokens:
        left_out.append(chosen.pop())
    order = {item.section: number for number, section in enumerate(sections) for item in section}
    return tuple(sorted(chosen, key=lambda item: order[item.section])), tuple(left_out)


def _cost(item: ContextItem, chosen: Sequence[ContextItem]) -> int:
    """The tokens of an item, with the heading if it is the first of its section."""
    heading = "" if any(other.section == item.section for other in chosen) else f"\n## {item.section}\n"
    return count_tokens(f"{heading}{item.text}\n")


def _written(items: Iterable[ContextItem]) -> str:
    by_section: dict[str, list[str]] = {}
    for item in items:
        by_section.setdefault(item.section, []).append(item.text)
    return "\n\n".join(f"## {name}\n" + "\n".join(lines) for name, lines in by_section.items())


def _line(record: Any) -> str:
    if isinstance(record, Memory):
        moment = record.event_time or record.created_at
        return f"[{moment:%Y-%m-%d}] {record.memory_type}: {_shown(': '.join(filter(None, _title_and_text(record))))}"
    if isinstance(record, WorkItem):
        return f"{record.item_type}: {_shown(record.title)}"
    return _shown(record.text())


def _title_and_text(memory: Memory) -> tuple[str, str]:
    long = len(memory.content) > _MAX_TEXT_LENGTH and memory.summary
    return memory.title, (memory.summary or memory.content) if long else memory.content


def _shown(text: str) -> str:
    shown = as_data(text)
    return shown if len(shown) <= _MAX_TEXT_LENGTH else shown[:_MAX_TEXT_LENGTH].rstrip() + "…"


def _is_done(task: Memory) -> bool:
    status = (task.content_json or {}).get("status")
    return not set(_DONE_STATUSES).isdisjoint({str(status).casefold(), *(tag.casefold() for tag in task.tags)})


def _ago(memory: Memory, now: datetime) -> str:
    days = (now - (memory.event_time or memory.created_at)).days
    return "today" if days <= 0 else "yesterday" if days == 1 else f"{days:,} days ago"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _checked_files(files: Sequence[str]) -> tuple[str, ...]:
    if isinstance(files, str) or not all(isinstance(name, str) and name.strip() for name in files):
        raise ValidationError("get_context", "files", files, "must be a list of file names")
    return tuple(dict.fromkeys(files))[:_MAX_FILES]
