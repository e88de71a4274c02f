"""The site of the documentation: pages from the root of the repository, and links that lead out of `docs`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Files beside the documentation, and the pages of the site that show them.
PAGES = {
    ROOT / "CHANGELOG.md": "project/changelog.md",
    ROOT / "CONTRIBUTING.md": "project/contributing.md",
    ROOT / "SECURITY.md": "project/security.md",
    ROOT / "README.md": "index.md",
    DOCS / "README.md": "index.md",
}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs`."""
    for source, place in PAGES.items():
        if place.startswith("project/"):
            files.append(File.generated(config, place, content=source.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The text with links to pages of the site; a link to a source file becomes its text."""
    place = page.file.src_uri
    source = next((file for file, shown in PAGES.items() if shown == place and shown != "index.md"), DOCS / place)

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        named = Path(os.path.normpath(source.parent / target))
        if named in PAGES:
            shown, anchor = PAGES[named], "" if PAGES[named] == "index.md" else anchor
        elif named.is_relative_to(DOCS) and named.is_file():
            shown = named.relative_to(DOCS).as_posix()
        else:
            return text
        return f"[{text}]({os.path.relpath(shown, Path(place).parent)}{anchor})"

    return _LINK.sub(link, markdown)
