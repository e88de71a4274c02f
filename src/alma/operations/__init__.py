"""The typed operations that the command line, the MCP server and the REST service offer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from alma.errors import NotFoundError
from alma.operations.base import Operation
from alma.operations.corrections import CORRECTIONS
from alma.operations.engines import SYNC
from alma.operations.facts import FACTS
from alma.operations.history import FORGETTING, HISTORY
from alma.operations.learning import LEARNING
from alma.operations.maintenance import MAINTENANCE, STATUS
from alma.operations.memories import CONTEXT, MEMORIES
from alma.operations.relations import RELATIONS
from alma.operations.sessions import SESSIONS
from alma.operations.workspace import WORKSPACE

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    *LEARNING,
    *FORGETTING,
    *STATUS,
    *MEMORIES,
    *FACTS,
    *CORRECTIONS,
    *CONTEXT,
    *MAINTENANCE,
    *SESSIONS,
    *WORKSPACE,
    *RELATIONS,
    *HISTORY,
    *SYNC,
)

BY_NAME: Mapping[str, Operation[Any, Any]] = MappingProxyType({each.name: each for each in OPERATIONS})


def operation_named(name: str) -> Operation[Any, Any]:
    """The operation with this name, or NotFoundError."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise NotFoundError("operation", name) from None
