"""Fetch the libraries of the dashboard from npm into `src/alma/web/static/vendor`, with licences and checksums.

Run by `make vendor`. The files are committed, so that installing and running ALMA needs neither Node nor a network.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src" / "alma" / "web" / "static" / "vendor"
MANIFEST = FOLDER / "vendor.json"


class Library(NamedTuple):
    """A file of a package, and its name here."""

    package: str
    version: str
    source: str
    target: str
    license_name: str


LIBRARIES = (
    Library("preact", "10.27.2", "dist/preact.module.js", "preact.js", "MIT"),
    Library("preact", "10.27.2", "hooks/dist/hooks.module.js", "hooks.js", "MIT"),
    Library("htm", "3.1.1", "dist/htm.module.js", "htm.js", "Apache-2.0"),
)
# Browsers resolve no package names.
_IMPORTS = {'from"preact"': 'from"./preact.js"'}


def main() -> None:
    """Write the files, their licences and the manifest."""
    sys.path.insert(0, str(ROOT))
    from tests.support.node import installed

    folder = installed({each.package: each.version for each in LIBRARIES})
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = []
    for each in LIBRARIES:
        package = f"node_modules/{each.package}"
        text = _for_browsers((folder / package / each.source).read_text(encoding="utf-8"))
        (FOLDER / each.target).write_text(text, encoding="utf-8")
        license_text = (folder / package / "LICENSE").read_text(encoding="utf-8")
        (FOLDER / f"{each.package}.LICENSE.txt").write_text(license_text, encoding="utf-8")
        rows.append(
            {
                "package": each.package,
                "version": each.version,
                "license": each.license_name,
                "source": each.source,
                "file": each.target,
                "npm_integrity": locked[package]["integrity"],
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
            }
        )
    MANIFEST.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def _for_browsers(text: str) -> str:
    """The module with relative imports, and without the reference to a source map that is not here."""
    for name, path in _IMPORTS.items():
        text = text.replace(name, path)
    return "\n".join(line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")).strip() + "\n"


if __name__ == "__main__":
    main()
