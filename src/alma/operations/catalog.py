"""All operations, in the order of the references."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from alma.errors import NotFoundError
from alma.operations.base import Operation
from alma.operations.benefit import BENEFIT
from alma.operations.browsing import BROWSING
from alma.operations.care import CARE
from alma.operations.corrections import CORRECTIONS
from alma.operations.engines import SYNC
from alma.operations.facts import FACTS
from alma.operations.history import FORGETTING, HISTORY
from alma.operations.keys import KEYS
from alma.operations.learning import LEARNING
from alma.operations.lessons import LESSONS
from alma.operations.maintenance import MAINTENANCE, STATUS
from alma.operations.memories import CONTEXT, MEMORIES
from alma.operations.relations import RELATIONS
from alma.operations.retrieving import RETRIEVING
from alma.operations.review import REVIEW
from alma.operations.sessions import SESSIONS
from alma.operations.skills import SKILLS
from alma.operations.store import STORE
from alma.operations.surroundings import SURROUNDINGS
from alma.operations.timeline import TIMELINE
from alma.operations.upkeep import UPKEEP
from alma.operations.workspace import WORKSPACE

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    *RETRIEVING,
    *LEARNING,
    *FORGETTING,
    *STATUS,
    *MEMORIES,
    *CONTEXT,
    *FACTS,
    *CORRECTIONS,
    *MAINTENANCE,
    *SESSIONS,
    *WORKSPACE,
    *RELATIONS,
    *HISTORY,
    *SYNC,
    *UPKEEP,
    *BROWSING,
    *TIMELINE,
    *LESSONS,
    *BENEFIT,
    *SKILLS,
    *CARE,
    *REVIEW,
    *SURROUNDINGS,
    *KEYS,
    *STORE,
)

BY_NAME: Mapping[str, Operation[Any, Any]] = MappingProxyType({each.name: each for each in OPERATIONS})


def operation_named(name: str) -> Operation[Any, Any]:
    """The operation with this name, or NotFoundError."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise NotFoundError("operation", name) from None
