"""Every operation is reached from the faces it names, and each face offers nothing that is no operation."""

from __future__ import annotations

from typing import Any

import pytest

from alma.cli.commands import command_path, offered
from alma.mcp.tools import Toolset
from alma.operations import OPERATIONS
from alma.operations.base import EVERY_FACE, Face, Operation
from alma.rest.routes import routes


def faces_of() -> dict[str, set[Face]]:
    """For every operation the faces that really offer it."""
    box = Toolset("full")
    tools = {box.operation(tool.name).name for tool in box.tools if tool.name != "alma_continue"}
    found = {
        Face.CLI: {each.name for each in offered()},
        Face.MCP: tools,
        Face.REST: {route.operation.name for route in routes()},
    }
    return {each.name: {face for face, names in found.items() if each.name in names} for each in OPERATIONS}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_an_operation_is_offered_where_it_says(operation: Operation[Any, Any]) -> None:
    assert faces_of()[operation.name] == set(operation.faces)


def test_every_operation_is_at_every_face() -> None:
    assert {name for name, faces in faces_of().items() if faces != set(EVERY_FACE)} == set()


def test_every_command_has_a_path_of_its_own() -> None:
    paths = [command_path(each) for each in OPERATIONS]
    assert len(set(paths)) >= len(paths) - 2, sorted(path for path in paths if paths.count(path) > 1)
