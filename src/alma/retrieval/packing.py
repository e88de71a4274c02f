"""Packing: deduplicate the best memories of each kind, and record why other memories were dropped."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from alma.errors import shown
from alma.lazy import lazy_regex
from alma.model.common import same_name
from alma.model.governance import ArchivedRecord
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.model.slice import Dropped, MemorySlice, by_id, not_here
from alma.retrieval.router import RETRIEVED, RetrievalRequest, SearchRequest, Target, is_instruction, route
from alma.retrieval.scoring import ScoredRecord
from alma.retrieval.supersession import Statement
from alma.retrieval.tuning import TUNING
from alma.storage.base import StorageBackend, Transaction
from alma.storage.document import unpacked_record
from alma.text.tokens import terms

# Two records with equal texts are still different if these fields differ.
_DISTINGUISHING = ("success",)
_BELOW_ZERO = lazy_regex(r"(?<![\w.])-\d+")
_JOINTS = lazy_regex(r"(?<=\w)[./:\\@](?=\w)")

_SHARED = (Heuristic, Outcome, DomainKnowledge, AntiPattern)
"""The kinds that an agent may read of others."""

DUPLICATE = "repetition"
"""The stage at which duplicates of better memories are dropped."""


@dataclass(slots=True)
class Duplicates:
    """Texts with so many duplicates that too few other memories were read: one record of each spelling."""

    originals: list[Record] = field(default_factory=list)
    spellings: list[Record] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.spellings)

    def add(self, other: Duplicates) -> None:
        self.originals += other.originals
        self.spellings += other.spellings


def deduplicated(
    best_first: Sequence[ScoredRecord], statements: Sequence[Statement], dropped: dict[str, DropReason]
) -> list[ScoredRecord]:
    """The records without duplicates of better ones; exact duplicates are found at any rank."""
    compared = {each.scored.key: each for each in statements}
    kept: list[ScoredRecord] = []
    originals: dict[object, str] = {}
    by_voice: dict[str, list[Statement]] = defaultdict(list)
    for scored in best_first:
        exact = _exact(scored)
        own = compared.get(scored.key)
        others = by_voice[own.voice] if own is not None else []
        same = originals.get(exact)
        if same is None and own is not None:
            same = next((other.scored.key for other in others if say_the_same(own, other)), None)
        if same is not None:
            reason = DropReason(DUPLICATE, "it is a duplicate of {}, which ranks higher", (same,))
            dropped.setdefault(scored.key, reason)
            continue
        if exact is not None:
            originals[exact] = scored.key
        if own is not None:
            others.append(own)
        kept.append(scored)
    return kept


def say_the_same(one: Statement, other: Statement) -> bool:
    """Whether two texts have the same words in the same order, and the same signs. Every word counts: it may be a
    number, a name or a *not*.
    """
    if one.voice != other.voice or one.result != other.result or not one.terms or one.terms != other.terms:
        return False
    return _signs(one.text) == _signs(other.text) and terms(one.text) == terms(other.text)


def duplicates_of(scored: Sequence[ScoredRecord], dropped: dict[str, DropReason], most: int) -> Duplicates:
    """The texts with duplicates, if there are more than `most` duplicates."""
    reasons = {each.key: dropped.get(each.key) for each in scored}
    originals = {
        key: reason.facts[0] for key, reason in reasons.items() if reason is not None and reason.stage == DUPLICATE
    }
    if len(originals) <= most:
        return Duplicates()
    copied = set(originals.values())
    spellings = {each.record.text(): each.record for each in scored if each.key in originals.keys() | copied}
    return Duplicates([each.record for each in scored if each.key in copied], list(spellings.values()))


def without(targets: Sequence[Target], duplicates: Duplicates) -> list[Target]:
    """The same targets without the duplicates of these texts."""
    return [_without(target, duplicates) for target in targets]


def _without(target: Target, duplicates: Duplicates) -> Target:
    spellings = [each for each in duplicates.spellings if isinstance(each, target.cls)]
    if not spellings or not target.searched:
        return target
    originals = In(target.cls.spec.key, [each.key for each in duplicates.originals])
    others = And(*(Or(*_differences(each)) for each in spellings))
    return replace(target, where=And(target.where, Or(originals, others)), selective=True)


def _differences(record: Record) -> Iterator[Predicate]:
    """Predicates; every record that is not a duplicate of this one fulfils at least one of them."""
    spec = record.spec
    for name in (*spec.text, *(name for name in _DISTINGUISHING if name in spec.by_name)):
        value = getattr(record, name)
        if value is None or value == "":
            yield Compare(name, "ne", "")
        else:
            yield Compare(name, "ne", value)
            yield Missing(name)


def _exact(scored: ScoredRecord) -> tuple[str, bool | None, str] | None:
    """A key that is equal for exact duplicates; None for a text that is too long for a predicate."""
    text = scored.record.text()
    if len(text) > TUNING.longest_statement:
        return None
    voice = getattr(scored.record, "title", "").partition("(")[0]
    return voice, getattr(scored.record, "success", None), text


def _signs(text: str) -> list[str]:
    """The signs that change a meaning: comparisons, currencies, arrows, emoji, negative numbers, joints of names."""
    signs = (sign for sign in text if unicodedata.category(sign) in ("Sc", "Sm", "So"))
    return [*signs, *_BELOW_ZERO.findall(text), *_JOINTS.findall(text)]


BEHIND = Dropped("candidates", "its vector and its words are not similar to the task, or less than those of others")


class DropReason(NamedTuple):
    """Why a memory was dropped; the sentence is formatted on demand."""

    stage: str
    sentence: str
    facts: tuple[object, ...] = ()

    def formatted(self) -> Dropped:
        return Dropped(self.stage, self.sentence.format(*self.facts))


class WhyNot:
    """Answers `why_not` with the recorded reason for a memory, or that it was `behind` others or not visible. It does
    not reveal whether a memory exists that the agent must not see.
    """

    __slots__ = ("behind", "dropped", "request", "storage", "targets")

    def __init__(
        self,
        storage: StorageBackend,
        targets: Sequence[Target],
        request: SearchRequest,
        behind: Dropped = BEHIND,
        dropped: Mapping[str, DropReason] | None = None,
    ) -> None:
        self.storage = storage
        self.targets = targets
        self.request = request
        self.behind = behind
        self.dropped = dropped or {}

    def __deepcopy__(self, _: object) -> Callable[[str], Dropped]:
        """`dataclasses.asdict` copies a slice, and a store cannot be copied."""
        return not_here

    def __call__(self, record_id: str) -> Dropped:
        reason = self.dropped.get(record_id)
        with self.storage.snapshot() as tx:
            for target in self.targets:
                if tx.find(target.cls, target.scope, And(target.where, In("id", [record_id]))):
                    return self.behind if reason is None else reason.formatted()
            for target in self.targets:
                record = tx.get(target.cls, record_id, target.scope)
                if record is not None and self._may_know(record, target):
                    # The recorded reason is outdated if the memory is no longer visible.
                    noted = reason is not None and reason.stage != "scope"
                    return reason.formatted() if reason and noted else Dropped("scope", self._hidden(record))
            for target in self.targets:
                archived = self._archived(tx, record_id, target)
                if archived is not None:
                    return Dropped("scope", archived)
            for target in self._other_kinds():
                other = tx.get(target.cls, record_id, target.scope)
                if other is not None and self._may_know(other, target):
                    return Dropped("scope", f"its kind, {target.cls.spec.kind}, was not requested")
        return Dropped("scope", f"there is no memory {shown(record_id)} that this agent may see")

    def _other_kinds(self) -> list[Target]:
        if not isinstance(self.request, RetrievalRequest):
            return []
        return route(replace(self.request, kinds=tuple(cls for cls in RETRIEVED if cls not in self.request.kinds)))

    def _hidden(self, record: Record) -> str:
        """Why a record inside the scope is not visible."""
        if not getattr(record, "is_active", True):
            return "it was deleted"
        if getattr(record, "is_archived", False):
            return "it is archived"
        end = getattr(record, "expires_at", None)
        if end is not None and end <= self.request.now:
            return f"it expired at {end:%Y-%m-%d %H:%M} UTC"
        return "it belongs to another session or layer"

    def _archived(self, tx: Transaction, record_id: str, target: Target) -> str | None:
        """When and why a record inside the scope was archived, or None."""
        where = And(Compare("record_id", "eq", record_id), Compare("kind", "eq", target.cls.spec.kind))
        for archived in tx.find(ArchivedRecord, target.scope, where, (Order("archived_at", "desc"),), 1):
            if self._may_know(unpacked_record(archived), target):
                because = f": {archived.reason}" if archived.reason else ""
                return f"it was {archived.cause} on {archived.archived_at:%Y-%m-%d}{because}"
        return None

    def _may_know(self, record: Record, target: Target) -> bool:
        """Whether the agent may know about a hidden record: not if it is private to another user, or belongs to another
        project without being global.
        """
        if isinstance(self.request, RetrievalRequest) and isinstance(record, Memory):
            elsewhere = record.project_id != self.request.project_id and not record.layer_global
        else:
            elsewhere = False
        owners = (self.request.user_id, target.scope.user_id)
        visible = not getattr(record, "is_private", False) or getattr(record, "user_id", None) in owners
        return visible and not elsewhere


_AHEAD = 1e-6


@dataclass(slots=True)
class Results:
    """The chosen records by kind, best first, and why every other candidate was dropped.

    `changes_at` is when the next instruction comes into force.
    """

    targets: Sequence[Target]
    chosen: dict[type[Record], list[ScoredRecord]] = field(default_factory=lambda: defaultdict(list))
    instructions: list[ScoredRecord] = field(default_factory=list)
    dropped: dict[str, DropReason] = field(default_factory=dict)
    duplicates: Duplicates = field(default_factory=Duplicates)
    changes_at: datetime | None = None

    def drop(self, record_id: str, stage: str, sentence: str, *facts: object) -> None:
        self.dropped.setdefault(record_id, DropReason(stage, sentence, facts))

    @property
    def found_something(self) -> bool:
        """Whether it has results besides those that are included for every query."""
        every = (each for items in (*self.chosen.values(), self.instructions) for each in items)
        return any(each.found_by != ("rule",) for each in every)

    def join(self, other: Results, top_k: int) -> None:
        """Merge the results of a second search for the same task."""
        self.dropped = {**self.dropped, **other.dropped}
        if other.changes_at is not None:
            self.changes_at = min(other.changes_at, self.changes_at or other.changes_at)
        for cls, items in other.chosen.items():
            self.chosen[cls] = self._best_of(self.chosen[cls], items, top_k)
        self.instructions = self._best_of(self.instructions, other.instructions, 0)

    def _best_of(self, ones: Sequence[ScoredRecord], others: Sequence[ScoredRecord], top_k: int) -> list[ScoredRecord]:
        best: dict[str, ScoredRecord] = {}
        for scored in sorted((*ones, *others), key=best_first):
            reason = self.dropped.get(scored.key)
            # The two searches may have kept different ones of two duplicates.
            if reason is None or reason.stage != DUPLICATE or reason.facts[0] not in best:
                best.setdefault(scored.key, scored)
        found = list(best.values())
        most = max(top_k, len(ones), len(others))
        self._drop_behind(found[most:], most)
        return found[:most]

    def pack(self, by_score: Iterable[ScoredRecord], request: SearchRequest, min_score: float) -> list[ScoredRecord]:
        """The best `top_k`, not counting instructions, which are always included."""
        instructions: list[ScoredRecord] = []
        others: list[ScoredRecord] = []
        always = any(target.always for target in self.targets)
        for scored in by_score:
            if scored.score < min_score:
                self.drop(scored.key, "score", "its score of {:.3f} is below {:g}", scored.score, min_score)
            else:
                (instructions if always and is_instruction(scored.record, request) else others).append(scored)
        _lift_top_matches(others, request.top_k)
        others.sort(key=best_first)
        self._drop_behind(others[request.top_k :], request.top_k)
        return sorted((*others[: request.top_k], *instructions), key=best_first)

    def _drop_behind(self, items: Iterable[ScoredRecord], most: int) -> None:
        for scored in items:
            self.drop(scored.key, "rank", "{:,} of its kind have a higher score than {:.3f}", most, scored.score)

    def to_slice(self, storage: StorageBackend, request: SearchRequest, degraded: str) -> MemorySlice:
        every = [scored for items in (*self.chosen.values(), self.instructions) for scored in items]
        return MemorySlice.of(
            {cls: [_shown(scored.record, request.agent) for scored in items] for cls, items in self.chosen.items()},
            instructions=tuple(scored.record for scored in self.instructions),
            query=request.query,
            agent=request.agent,
            degraded=degraded,
            weak=isinstance(request, RetrievalRequest) and request.weak,
            explanations=by_id(scored.explanation() for scored in every),
            _why_not=WhyNot(storage, self.targets, request, dropped=self.dropped),
        )


def _shown(record: Record, agent: str | None) -> Record:
    """The record, with its owner in the metadata if that is another agent."""
    owner = getattr(record, "agent", None)
    if agent is None or owner is None or same_name(owner) == same_name(agent) or not isinstance(record, _SHARED):
        return record
    return record.apart({"metadata": {**record.metadata, "shared_from": owner}})


def best_first(scored: ScoredRecord) -> tuple[float, str]:
    """The order of results."""
    return -scored.score, scored.key


def _lift_top_matches(by_score: Sequence[ScoredRecord], top_k: int) -> None:
    """Move the nearest memory and the best match by words into the first `top_k`, at most half of those: otherwise many
    similar memories with slightly higher scores could displace them.
    """
    current = [each for each in by_score if not each.notes and "overruled" not in each.terms]
    sources = (lambda each: each.similarity or 0.0, lambda each: each.terms.get("words", 0.0))
    top_matches = [max(current, key=source) for source in sources if any(map(source, current))]
    behind = {each.key for each in by_score[top_k:]}
    late = list({each.key: each for each in top_matches if each.key in behind}.values())[: top_k // 2]
    if not late:
        return
    kept = [each for each in top_matches if each.key not in behind] + late
    keys = {each.key for each in kept}
    replaced = [each for each in by_score[:top_k] if each.key not in keys][-len(late)].score
    for each in kept:
        if each.score <= replaced:
            each.terms["top_match"] = replaced - each.score + _AHEAD
