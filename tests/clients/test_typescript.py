"""The TypeScript client: made from the OpenAPI document, packed, installed in a new folder, and run by Node."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from alma import ALMA
from tests.faces.rest import memory_at, served
from tests.support.node import NODE, NPM, installed

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
TOOLS = {"@types/node": "22.20.5", "ai": "7.0.173", "typescript": "7.0.2"}
SOURCES = ("LICENSE", "README.md", "package.json", "src", "tsconfig.json")


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tools() -> Path:
    return installed(TOOLS) / "node_modules"


@pytest.fixture(scope="module")
def app(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new folder with the packed client."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("app")
    for name in SOURCES:
        copy = shutil.copytree if (CLIENT / name).is_dir() else shutil.copy
        copy(CLIENT / name, source / name)
    (source / "node_modules").symlink_to(tools)
    run(NODE, str(tools / "typescript" / "bin" / "tsc"), cwd=source)
    packed = json.loads(run(*NPM, "pack", "--json", "--ignore-scripts", cwd=source))
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    archive = str(source / packed[0]["filename"])
    run(*NPM, "install", "--offline", "--no-audit", "--no-fund", archive, cwd=folder)
    return folder


def node_tests(app: Path, name: str, alma: ALMA) -> str:
    shutil.copy(Path(__file__).parent / name, app / name)
    with served(alma) as address:
        return run(NODE, "--test", "--test-timeout=120000", name, cwd=app, ADDRESS=address)


def test_the_types_are_those_of_the_service() -> None:
    generator = runpy.run_path(str(CLIENT / "generate.py"))
    assert generator["module"]() == (CLIENT / "src" / "schema.ts").read_text(encoding="utf-8")


def test_the_package_has_no_dependency_and_only_what_runs(app: Path) -> None:
    package = app / "node_modules" / "alma-agent-memory"
    assert "dependencies" not in json.loads((package / "package.json").read_text())
    assert {each.name for each in package.iterdir()} == {"LICENSE", "README.md", "dist", "package.json"}


def test_it_works_with_a_service(app: Path, tmp_path: Path) -> None:
    with memory_at(tmp_path / "alma.db") as alma:
        node_tests(app, "client.test.mjs", alma)


def test_it_works_with_the_vercel_ai_sdk(app: Path, tools: Path, tmp_path: Path) -> None:
    for each in tools.iterdir():
        if not (app / "node_modules" / each.name).exists() and not each.name.startswith("."):
            (app / "node_modules" / each.name).symlink_to(each)
    with memory_at(tmp_path / "alma.db") as alma:
        node_tests(app, "ai.test.mjs", alma)


def test_the_types_of_the_package_check(app: Path, tools: Path) -> None:
    (app / "typed.ts").write_text(
        """
import { AlmaClient, type Retrieved } from "alma-agent-memory";
const client = new AlmaClient();
export const found: Promise<Retrieved> = client.retrieve({ task: "x", agent: "a" });
// @ts-expect-error an agent is required
client.retrieve({ task: "x" });
// @ts-expect-error there is no such operation
client.nothing();
"""
    )
    options = [
        "--noEmit",
        "--strict",
        "--module",
        "NodeNext",
        "--target",
        "ES2023",
        "--types",
        "",
        "--lib",
        "ES2023,DOM",
    ]
    run(NODE, str(tools / "typescript" / "bin" / "tsc"), *options, "typed.ts", cwd=app)
