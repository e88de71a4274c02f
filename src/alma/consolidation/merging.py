"""Merging: the result of a consolidation, and the values of merged and unmerged memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma import clock
from alma.errors import ValidationError
from alma.learning.heuristics import HeuristicExtractor
from alma.model.fields import FieldType, JsonObject
from alma.model.learning import AntiPattern, Belief, DomainKnowledge, Heuristic, UserPreference, belief_in
from alma.model.record import Record


@dataclass(frozen=True, slots=True)
class MergedGroup:
    """A group of near-duplicates: the kept memory, and the reason of the merge for each of the others."""

    memory_type: str
    kept_id: str
    kept_text: str
    merged: Mapping[str, str]

    @property
    def merged_ids(self) -> tuple[str, ...]:
        """The ids of the archived memories."""
        return tuple(self.merged)

    def __str__(self) -> str:
        others = "; ".join(f"{record_id} ({why})" for record_id, why in self.merged.items())
        return f"{self.memory_type} {self.kept_id} replaces {others}"


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """The groups that were merged, or in a dry run would be, and how many memories were compared."""

    groups: tuple[MergedGroup, ...]
    memories_processed: int
    dry_run: bool

    @property
    def groups_found(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    @property
    def merged_count(self) -> int:
        """How many memories were merged into others, or would be."""
        return sum(len(group.merged) for group in self.groups)

    def __str__(self) -> str:
        done = "would be merged" if self.dry_run else "were merged"
        others = "other" if self.groups_found == 1 else "others"
        return f"{self.merged_count} of {self.memories_processed} memories {done} into {self.groups_found} {others}"


MERGES = "merges"
"""The metadata key under which a memory keeps its merges, so that they can be undone."""

_EVIDENCE = ("outcomes_for", "outcomes_against")
_WEIGHTS = ("weight_for", "weight_against")
_ADDED_UP = ("occurrence_count", "success_count", *_WEIGHTS)


@dataclass(frozen=True, slots=True)
class Kind:
    """How memories of one kind are compared and merged.

    `owners` must be equal for two memories to be compared at all; `statements` are the texts that must say the same.
    """

    cls: type[Record]
    owners: tuple[str, ...]
    statements: tuple[str, ...]
    merged: Callable[[Any, Sequence[Any], HeuristicExtractor], dict[str, Any]]

    def owner(self, record: Record) -> tuple[Any, ...]:
        """The values of the fields in `owners`."""
        return tuple(getattr(record, name) for name in self.owners)

    def texts(self, record: Record) -> tuple[str, ...]:
        """The statements of the memory."""
        return tuple(getattr(record, name) for name in self.statements)


def merged_values(kind: Kind, kept: Record, others: Sequence[Record], extractor: HeuristicExtractor) -> dict[str, Any]:
    """The changes that merge the others into one memory, including the note for undoing them."""
    changes = kind.merged(kept, others, extractor)
    entry: JsonObject = {"ids": [str(each.key) for each in others], "before": {}, "after": {}, "added": {}}
    for name, value in changes.items():
        before = getattr(kept, name)
        if name in _EVIDENCE:
            entry["added"][name] = [each for each in value if each not in before]
        elif name in _ADDED_UP and before is not None:
            entry["added"][name] = value - before
        else:
            entry["before"][name], entry["after"][name] = _as_json(before), _as_json(value)
    metadata: JsonObject = getattr(kept, "metadata", {})
    return {**changes, "metadata": {**metadata, MERGES: [*metadata.get(MERGES, ()), entry]}}


def unmerged_values(record: Record) -> tuple[list[str], dict[str, Any]]:
    """The ids of the last merge into a memory, and the changes that undo it.

    Counts and evidence are subtracted, so the memory keeps what it has learned since.
    """
    metadata: JsonObject = getattr(record, "metadata", {})
    merges: list[JsonObject] = list(metadata.get(MERGES, ()))
    if not merges:
        raise ValidationError(record.spec.kind, "id", record.key, "has nothing merged into it")
    entry = merges.pop()
    changes: dict[str, Any] = {}
    for name, before in entry["before"].items():
        if _as_json(getattr(record, name)) == entry["after"][name]:
            changes[name] = _from_json(record, name, before)
    for name, added in entry["added"].items():
        current = getattr(record, name)
        changes[name] = (
            tuple(each for each in current if each not in added)
            if isinstance(added, list)
            else max(0, (current or 0) - added)
        )
    if all(changes.get(name) is not None for name in _WEIGHTS):
        changes["confidence"] = Belief(changes["weight_for"], changes["weight_against"]).mean
    rest = {key: value for key, value in metadata.items() if key != MERGES}
    return entry["ids"], {**changes, "metadata": {**rest, MERGES: merges} if merges else rest}


def _merged_heuristic(kept: Heuristic, others: Sequence[Heuristic], extractor: HeuristicExtractor) -> dict[str, Any]:
    every = (kept, *others)
    moment = _latest(each.last_validated for each in every)
    changes: dict[str, Any] = {
        **_counted(every, ("outcomes_for", "outcomes_against")),
        "success_count": _sum([each.success_count for each in every], _repeated(every, "outcomes_for")),
        "last_validated": moment,
        "created_at": _earliest(each.created_at for each in every),
        "confidence": max(each.confidence for each in every),
    }
    if any(belief_in(each) is not None or each.occurrence_count for each in every):
        beliefs = [extractor.current_belief(each, moment or clock.now()) for each in every]
        total = Belief(sum(each.weight_for for each in beliefs), sum(each.weight_against for each in beliefs))
        changes |= {"weight_for": total.weight_for, "weight_against": total.weight_against, "confidence": total.mean}
    return changes


def _merged_anti_pattern(
    kept: AntiPattern, others: Sequence[AntiPattern], extractor: HeuristicExtractor
) -> dict[str, Any]:
    every = (kept, *others)
    return {
        **_counted(every, ("outcomes_for",)),
        "why_bad": _first(each.why_bad for each in every),
        "better_alternative": _first(each.better_alternative for each in every),
        "last_seen": _latest(each.last_seen for each in every),
        "created_at": _earliest(each.created_at for each in every),
    }


def _merged_statement(latest: str) -> Callable[[Any, Sequence[Any], HeuristicExtractor], dict[str, Any]]:
    """How statements are merged; `latest` is the field with their time."""

    def merged(kept: Any, others: Sequence[Any], extractor: HeuristicExtractor) -> dict[str, Any]:
        every = (kept, *others)
        return {
            "confidence": max(each.confidence for each in every),
            "source": _first(each.source for each in every),
            latest: _latest(getattr(each, latest) for each in every),
        }

    return merged


def _counted(every: Sequence[Heuristic | AntiPattern], evidence: Sequence[str]) -> dict[str, Any]:
    """The summed counts, in which shared outcomes count once, and the ids of all outcomes."""
    repeated = sum(_repeated(every, name) for name in evidence)
    united = {name: tuple(dict.fromkeys(i for each in every for i in getattr(each, name))) for name in evidence}
    return {"occurrence_count": _sum([each.occurrence_count for each in every], repeated), **united}


def _sum(counts: Sequence[int], repeated: int) -> int:
    """The sum of the counts without duplicates, and at least the highest single count."""
    return max(sum(counts) - repeated, *counts)


def _repeated(every: Sequence[Record], name: str) -> int:
    named = [outcome for each in every for outcome in getattr(each, name)]
    return len(named) - len(set(named))


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _first(texts: Iterable[str | None]) -> str | None:
    return next((text for text in texts if text), None)


def _as_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _from_json(record: Record, name: str, value: Any) -> Any:
    is_moment = value is not None and record.spec.field(name).type is FieldType.TIMESTAMP
    return datetime.fromisoformat(value) if is_moment else value


_OF_AGENT = ("project_id", "agent")

KINDS: Mapping[str, Kind] = {
    kind.cls.spec.kind: kind
    for kind in (
        Kind(Heuristic, _OF_AGENT, ("condition", "strategy"), _merged_heuristic),
        Kind(AntiPattern, _OF_AGENT, ("pattern",), _merged_anti_pattern),
        Kind(DomainKnowledge, (*_OF_AGENT, "domain"), ("fact",), _merged_statement("last_verified")),
        Kind(UserPreference, ("user_id", "category"), ("preference",), _merged_statement("timestamp")),
    )
}


def kind_of(memory_type: str | type[Record]) -> Kind:
    """How memories of this type are merged; the plural is accepted as well."""
    name: object = memory_type
    if isinstance(memory_type, type) and issubclass(memory_type, Record):
        name = memory_type.spec.kind
    plurals = {f"{each}s": each for each in KINDS} | {"preferences": "user_preference", "knowledge": "domain_knowledge"}
    found = KINDS.get(plurals.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise ValidationError("consolidate", "memory_type", name, f"must be one of {', '.join(KINDS)}")
    return found
