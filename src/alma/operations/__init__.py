"""The typed operations that the command line, the MCP server and the REST service offer.

A single operation is imported from its module: all of them describe hundreds of fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.operations.catalog import BY_NAME as BY_NAME
    from alma.operations.catalog import OPERATIONS as OPERATIONS
    from alma.operations.catalog import operation_named as operation_named

__getattr__ = loader(__name__, dict.fromkeys(("BY_NAME", "OPERATIONS", "operation_named"), "alma.operations.catalog"))
