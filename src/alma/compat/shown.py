"""Slices as dictionaries and as text, as alma-memory 0.4 showed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alma.model.slice import MemorySlice

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "heuristics": ("id", "condition", "strategy", "confidence", "occurrence_count", "success_rate"),
    "outcomes": ("id", "task_type", "task_description", "success", "strategy_used", "duration_ms"),
    "domain_knowledge": ("id", "domain", "fact", "confidence"),
    "anti_patterns": ("id", "pattern", "why_bad", "better_alternative"),
    "preferences": ("id", "category", "preference"),
}


def plain_slice(found: MemorySlice) -> dict[str, Any]:
    """The memories of a slice as dictionaries, by kind."""
    kinds = {
        kind: [{name: getattr(record, name) for name in names} for record in getattr(found, kind)]
        for kind, names in _FIELDS.items()
    }
    told = {"query": found.query, "agent": found.agent, "retrieval_time_ms": found.retrieval_time_ms}
    return {**kinds, **told, "total_items": found.total_items}
