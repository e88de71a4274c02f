"""The wheel: built without a network, installed where no checkout is, and run as the README says."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.readme.test_documentation import ROOT, blocks


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel, and the dependencies of this one."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = place.glob("alma_agent_memory-1.0.0-*.whl")
    environment = place / "environment"
    venv.create(environment, with_pip=False)
    programs = environment / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True, capture_output=True, timeout=300)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    # Only the packages: the .pth file there that leads to this checkout is not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


def _run(command: list[str | Path], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_first_example_of_the_readme_runs_on_the_wheel(installed: Path, tmp_path: Path) -> None:
    code, output = (text for _, text in blocks(ROOT / "README.md")[:2])
    (tmp_path / "example.py").write_text(code)
    assert _run([installed / "python", "example.py"], tmp_path) == output
    where = _run([installed / "python", "-c", "import alma; print(alma.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)


def test_the_commands_of_the_wheel_know_their_distribution(installed: Path, tmp_path: Path) -> None:
    assert "retrieve" in _run([installed / "alma", "--help"], tmp_path)
    name = "import importlib.metadata as m; print(m.version('alma-agent-memory'), m.requires('alma-agent-memory'))"
    version, _, requires = _run([installed / "python", "-c", name], tmp_path).partition(" ")
    assert _run([installed / "alma", "--version"], tmp_path) == f"alma-agent-memory {version}\n"
    assert "extra == 'otel'" in requires
    assert "extra == 'server'" in requires
