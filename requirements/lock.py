"""Pin everything that is installed, with the hashes of all files of each release, into requirements/*.txt.

Versions stay as they are where they still fit pyproject.toml; `--upgrade` takes the newest ones. The files name no
package index, and serve every platform and Python from 3.11 on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PROJECT = "../pyproject.toml"
HYBRID = [part for extra in ("server", "postgres", "qdrant", "neo4j", "redis") for part in ("--extra", extra)]
# The largest set is first: the others take its versions.
SETS = {
    # The wheel of this SDK brings a command of 350 MB, which no test runs; its source has the Python code alone.
    "dev": ["--extra", "dev", "--no-binary", "claude-agent-sdk", "--emit-build-options", PROJECT, "build.in"],
    # What the container image has.
    "hybrid": [*HYBRID, PROJECT, "build.in"],
    "server": ["--extra", "server", PROJECT, "build.in"],
    "default": [PROJECT, "build.in"],
    "weights": ["--no-deps", "weights.in"],
}
FRAMEWORKS = ("agent-framework", "autogen", "crewai", "google-adk", "llama-index", "pydantic-ai", "strands")
OPTIONS = ["--universal", "--generate-hashes", "--python-version", "3.11", "--no-header", "--no-annotate", "--quiet"]
OPTIONS += ["--no-emit-index-url", "--no-emit-find-links"]
HEAD = "# Made by `make lock`. Installed with `pip install --require-hashes -r`.\n"


def lock(name: str, inputs: list[str], upgrade: list[str]) -> None:
    """Write one file."""
    file = FOLDER / f"{name}.txt"
    same = [] if name == "dev" else ["--constraint", "dev.txt"]
    command = [sys.executable, "-m", "uv", "pip", "compile", *OPTIONS, *upgrade, *same, *inputs]
    subprocess.run([*command, "--output-file", file.name], check=True, cwd=FOLDER)
    pinned = file.read_text()
    if "://" in pinned:
        raise SystemExit(f"{file} names an address: every package must come from the index")
    file.write_text(HEAD + pinned)


def lock_framework(name: str, upgrade: list[str]) -> None:
    """Write the versions of an environment for one framework; without hashes, which would fill ten thousand lines."""
    options = [option for option in OPTIONS if option != "--generate-hashes"]
    inputs = ["--extra", name, PROJECT, "build.in", "frameworks/tests.in"]
    file = FOLDER / "frameworks" / f"{name}.txt"
    command = [sys.executable, "-m", "uv", "pip", "compile", *options, *upgrade, *inputs]
    subprocess.run([*command, "--output-file", f"frameworks/{file.name}"], check=True, cwd=FOLDER)
    pinned = file.read_text()
    if "://" in pinned:
        raise SystemExit(f"{file} names an address: every package must come from the index")


if __name__ == "__main__":
    for framework in FRAMEWORKS:
        lock_framework(framework, [option for option in sys.argv[1:] if option == "--upgrade"])
    for name, inputs in SETS.items():
        lock(name, inputs, [option for option in sys.argv[1:] if option == "--upgrade"])
