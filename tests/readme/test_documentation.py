"""README and docs: every Python block runs, prints what the next text block says, and every link leads somewhere."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```(\w+)( no-run)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)[^)]*\)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The code blocks of a page that are meant to run, with what they print."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, code) for language, skipped, code in found if not skipped and language in ("python", "text")]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_the_code_on_a_page_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for language, code in blocks(page):
        if language == "text":
            assert printed == code
            continue
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(code, named(page), "exec"), names)
        printed = output.getvalue()


def test_every_link_leads_somewhere() -> None:
    targets = {(page, target) for page in PAGES for target in _LINK.findall(page.read_text(encoding="utf-8"))}
    assert [(named(page), target) for page, target in targets if not (page.parent / target).exists()] == []


def test_the_first_example_of_the_readme_is_the_one_that_make_example_runs(tmp_path: Path) -> None:
    (code, output), *_ = zip(*[iter(code for _, code in blocks(ROOT / "README.md"))] * 2, strict=False)
    example = ROOT / "examples" / "quickstart.py"
    assert example.read_text(encoding="utf-8") == code
    ran = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == output
    again = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=True)
    # The memory of the first run is still there; the same tasks again within the hour count half.
    learned = output.replace("80%, worked 3 of 3", "85%, worked 6 of 6").replace("failed 3 times", "failed 6 times")
    assert again.stdout == learned


def test_the_references_of_records_and_rest_are_up_to_date() -> None:
    generator = runpy.run_path(str(ROOT / "docs" / "generate_reference.py"))
    assert generator["TARGET"].read_text(encoding="utf-8") == generator["reference"]()
    assert generator["REST_TARGET"].read_text(encoding="utf-8") == generator["rest_reference"]()
