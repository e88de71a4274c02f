"""Two servers of two projects on one store: whatever tool is called, neither shows anything of the other's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from alma.mcp.tools import Toolset
from tests.support.mcp import StdioServer, configured
from tests.support.tenants import EVERY_OPERATION, Json, Tenant, damage, done_by, live, read

FULL = Toolset("full")
CallTool = Callable[[str, Json], Any]


def tenant(word: str, user: str, call_tool: CallTool, shared: str | None = None) -> Tenant:
    """A client that reads every result to its end."""

    def call(operation: str, arguments: Json) -> Json:
        # The brief results of daily tools are a part of the detailed ones.
        details = {"details": True} if FULL.daily(operation) else {}
        result = call_tool(operation, {**arguments, **details})
        if result["isError"]:
            return {"error": result["content"][0]["text"]}
        answer: Json = dict(result["structuredContent"])
        more, answer["pages"] = answer.get("continuation"), []
        while more:
            page = call_tool("alma_continue", {"cursor": more["cursor"]})["structuredContent"]
            answer["pages"].append(page["pieces"])
            more = page.get("continuation")
        return answer

    return Tenant(word, word, call, {"user": user}, shared)


def over_stdio(server: StdioServer) -> CallTool:
    server.greet()
    return lambda name, given: server.answer_to("tools/call", {"name": name, "arguments": given})["result"]


def test_no_byte_of_one_project_reaches_the_other(tmp_path: Path) -> None:
    config = str(configured(tmp_path))
    arguments = ("--config", config, "--toolset", "full", "--max-tokens", "2000", "--project")
    with StdioServer(*arguments, "atlantis") as first, StdioServer(*arguments, "babylon") as second:
        ours, spy = tenant("Zanzibar", "ana", over_stdio(first)), tenant("Quagga", "bob", over_stdio(second))
        live(ours)
        live(spy)
        read(spy)
        read(spy, ours.ids, like="network")
        damage(spy, ours.ids)
        spied = [
            second.answer_to("resources/read", {"uri": uri})
            for uri in (
                f"memory://memories/{ours.ids['memory_id']}",
                "memory://projects/atlantis/context",
                "memory://patterns/decision",
                "alma://config",
                "alma://agents",
            )
        ]
    assert [name for name, answer in spy.answers if "zanzibar" in answer.lower()] == []
    assert "zanzibar" not in str(spied).lower()
    assert done_by(ours, spy) == EVERY_OPERATION
    assert any("Zanzibar" in answer for _, answer in ours.answers)
