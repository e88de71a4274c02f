"""The pages about the MCP server say what is so."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

from alma.mcp.server import parse_options

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_up_to_date() -> None:
    generator = runpy.run_path(str(DOCS / "generate_mcp_reference.py"))
    assert generator["TARGET"].read_text(encoding="utf-8") == generator["reference"]()


def test_the_settings_for_clients_start_the_server() -> None:
    page = (DOCS / "how-to" / "mcp.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    servers = [block.get("mcpServers", block.get("servers"))["alma"] for block in blocks]
    assert len(servers) == 3
    for server in servers:
        if "url" in server:
            options = parse_options(["--http"])
            assert server["url"] == f"http://{options.host}:{options.port}/mcp"
        else:
            assert server["args"][:2] == ["-m", "alma.mcp"]
            parse_options(server["args"][2:])
