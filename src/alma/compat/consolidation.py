"""The consolidation tool of alma-memory 0.5, in terms of the consolidation engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alma.consolidation import ConsolidationEngine

if TYPE_CHECKING:
    from alma.core import ALMA

_KINDS = {"heuristics": "heuristic", "domain_knowledge": "domain_knowledge", "anti_patterns": "anti_pattern"}
_TYPES = ("heuristics", "outcomes", "domain_knowledge", "anti_patterns")


def consolidated(
    alma: ALMA, agent: str, memory_type: str, similarity_threshold: float, dry_run: bool
) -> dict[str, Any]:
    """Merge what says the same, and say what was merged; outcomes are evidence, and are never merged."""
    if not agent.strip():
        raise ValueError("agent cannot be empty")
    if memory_type not in _TYPES:
        raise ValueError(f"memory_type must be one of: {', '.join(_TYPES)}")
    if not 0.0 <= similarity_threshold <= 1.0:
        raise ValueError("similarity_threshold must be between 0.0 and 1.0")
    groups: list[Any] = []
    processed = 0
    if memory_type in _KINDS:
        result = ConsolidationEngine(alma).consolidate(
            agent, alma.project_id, _KINDS[memory_type], similarity_threshold, dry_run
        )
        groups, processed = list(result.groups), result.memories_processed
    merged = sum(len(group.merged_ids) for group in groups)
    did = "Would merge" if dry_run else "Merged"
    return {
        "dry_run": dry_run,
        "merged_count": merged,
        "groups_found": len(groups),
        "memories_processed": processed,
        "merge_details": [str(group) for group in groups],
        "errors": [],
        "message": f"{did} {merged} memories from {len(groups)} similar groups (processed {processed} total)",
    }
