"""The site of the documentation is built without a network, and its pages ask for nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.run import FRAMEWORKS

ROOT = Path(__file__).parents[2]
# Any connection fails the build.
_OFFLINE = """
import socket, sys
def refuse(*_, **__): raise OSError("the build of the site asked for the network")
socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--quiet", "--site-dir", sys.argv[1]])
"""
_ELSEWHERE = re.compile(r'<(?:script|img|iframe)[^>]* src="https?:|<link[^>]* rel="stylesheet"[^>]*https?:')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-c", _OFFLINE, str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")
    return place


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in (ROOT / "docs" / "how-to").glob("*.md"):
        assert (site / "how-to" / page.stem / "index.html").exists()
    pages = list(site.rglob("*.html"))
    assert [page for page in pages if _ELSEWHERE.search(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("alma", "alma.core.ALMA.retrieve"),
        ("alma", "alma.core.ALMA.remember"),
        ("async", "alma.aio.AsyncALMA.quickstart"),
        ("client", "alma.client.Client.call"),
        ("operations", "alma.operations.retrieving.retrieve"),
    ],
)
def test_the_reference_comes_from_docstrings(site: Path, page: str, name: str) -> None:
    assert f'id="{name}"' in (site / "reference" / "api" / page / "index.html").read_text(encoding="utf-8")


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    folders = ("how-to", "tutorial", "reference/api")
    pages = [f"{folder}/{page.name}" for folder in folders for page in (ROOT / "docs" / folder).glob("*.md")]
    assert [page for page in pages if page not in listed] == []


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_program_on_the_page_of_a_framework_is_the_example_that_is_run(framework: str) -> None:
    chosen, page = FRAMEWORKS[framework], (ROOT / "docs" / "how-to" / f"{framework}.md").read_text(encoding="utf-8")
    assert (ROOT / "examples" / chosen.example).read_text(encoding="utf-8").strip() in page
    assert all(f"assistant: {said}" in " ".join(page.split()) for said in (chosen.first, chosen.second))
