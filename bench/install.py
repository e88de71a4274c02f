"""Compare what an installation takes: packages and megabytes of ALMA and of mem0ai, each in an empty folder.

python bench/install.py                # a minute or two: both are downloaded
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent
RIVAL = "mem0ai"


@dataclass(frozen=True, slots=True)
class Size:
    """What an installation takes."""

    what: str
    packages: int
    megabytes: float
    files: int


def size_of(what: str, *requirements: str) -> Size:
    """Install into an empty folder, and count."""
    with tempfile.TemporaryDirectory(prefix="install-") as folder:
        installer = ["uv", "pip"] if shutil.which("uv") else [sys.executable, "-m", "pip"]
        python = ["--python", sys.executable] if installer[0] == "uv" else []
        command = [*installer, "install", "--quiet", *python, "--target", folder, *requirements]
        subprocess.run(command, check=True)
        files = [each for each in Path(folder).rglob("*") if each.is_file() and "__pycache__" not in each.parts]
        total = sum(each.stat().st_size for each in files)
        return Size(what, len([*Path(folder).glob("*.dist-info")]), round(total / 1e6, 1), len(files))


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    sizes = [
        size_of("alma-agent-memory", str(_ROOT)),
        size_of("alma-agent-memory[server]", f"{_ROOT}[server]"),
        size_of(RIVAL, RIVAL),
    ]
    print(json.dumps([asdict(each) for each in sizes], indent=2))


if __name__ == "__main__":
    main()
