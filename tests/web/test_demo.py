"""`alma demo` serves a month of work from a store that is gone afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow
_SECONDS = 120


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """The command in a process of its own, and the address that it says."""
    code = "from alma.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--port", "0", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "dashboard" in line:
            return process, line.split()[-1].rstrip("/")
    raise AssertionError("the demonstration did not start")


def test_the_demonstration_is_served_and_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process, address = started()
    try:
        assert "<title>ALMA</title>" in httpx.get(f"{address}/", trust_env=False).text
        me = httpx.post(f"{address}/v1/operations/stats", json={}, trust_env=False).json()
        assert me["counts"]["outcomes_count"] > 100
        assert list(tmp_path.glob("alma-demo-*"))
    finally:
        process.terminate()
        process.communicate(timeout=_SECONDS)
    assert process.returncode == 0
    assert list(tmp_path.glob("alma-demo-*")) == []


def test_a_store_that_exists_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "mine.db"
    kept.write_text("mine")
    code = "from alma.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "demo", "--keep", str(kept)], capture_output=True, text=True, check=False
    )
    assert ran.returncode != 0
    assert "exists already: name a new file" in ran.stderr
    assert kept.read_text() == "mine"
