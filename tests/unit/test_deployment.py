"""The container image and the compose file of the hybrid: checked by linters, and against what ALMA takes."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from alma.config.loader import load_settings
from tests.faces.rest import memory_at, served
from tests.support.command_line import run
from tests.support.node import NODE, installed

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose.hybrid.yaml"
LINTERS = {"dclint": "3.1.0", "dockerfilelint": "1.8.0"}
PASSWORDS = ("POSTGRES_PASSWORD", "NEO4J_PASSWORD", "REDIS_PASSWORD", "QDRANT_API_KEY")
ENGINES = {"neo4j", "postgres", "qdrant", "redis"}

Services = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def services() -> Services:
    found: Services = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def linted(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [NODE, str(installed(LINTERS) / "node_modules" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.slow
def test_the_compose_file_is_valid_and_has_no_warnings(tmp_path: Path) -> None:
    found = linted("dclint/bin/dclint.cjs", "--max-warnings", "0", "--formatter", "json", str(COMPOSE))
    assert (found.returncode, json.loads(found.stdout)[0]["messages"]) == (0, [])
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE.read_text().replace("    image:", "    imagine:"))
    assert linted("dclint/bin/dclint.cjs", str(wrong)).returncode == 1


@pytest.mark.slow
def test_the_dockerfile_has_no_issues() -> None:
    found = linted("dockerfilelint/bin/dockerfilelint", "--output", "json", "Dockerfile")
    assert json.loads(found.stdout)["totalIssues"] == 0


def test_every_server_is_checked_private_and_has_its_own_volume(services: Services) -> None:
    assert services.keys() == {"alma", *ENGINES}
    for name in ENGINES:
        assert services[name]["healthcheck"]["test"]
        assert "ports" not in services[name]
        assert ":" in services[name]["image"]
        assert not services[name]["image"].endswith(":latest")
    assert services["alma"]["ports"] == ["127.0.0.1:8080:8080"]
    assert services["alma"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_the_configuration_is_one_and_names_the_services(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PASSWORDS:
        monkeypatch.setenv(name, f"secret-{name.lower()}")
    settings = load_settings(ROOT / "deploy" / "hybrid.yaml")
    assert settings.qdrant is not None
    assert settings.neo4j is not None
    assert settings.redis is not None
    assert settings.redis.projection
    assert settings.postgres.host == "postgres"
    assert "http://qdrant:6333" in settings.qdrant.url
    assert "//neo4j:" in settings.neo4j.uri
    assert "@redis:" in settings.redis.url.reveal()
    # Every password of the configuration is an environment variable of the service that must be set.
    assert {name: f"${{{name}:?set {name}}}" for name in PASSWORDS}.items() <= services["alma"]["environment"].items()
    assert any(volume.startswith("./hybrid.yaml:") for volume in services["alma"]["volumes"])


def test_the_image_is_made_in_two_stages_of_what_is_there_and_runs_without_root() -> None:
    steps = [line.split(maxsplit=1) for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:1].isalpha()]
    assert [step for step, _ in steps].count("FROM") == 2
    sources = [words for step, said in steps if step == "COPY" and "--from" not in said for words in said.split()[:-1]]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    allowed = (ROOT / ".dockerignore").read_text().split()
    assert [source for source in sources if f"!{source}" not in allowed] == []
    assert dict(steps)["USER"] == "10001", "a number, so that Kubernetes knows that it is not root"
    (command,) = (json.loads(said) for step, said in steps if step == "CMD")
    assert run(*command[:1], "--help").returncode == 0
    assert all(option in run("serve", "--help").stdout for option in command if option.startswith("--"))


def test_the_health_check_of_the_image_asks_the_service(tmp_path: Path) -> None:
    (check,) = (line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("HEALTHCHECK"))
    command = json.loads(check.partition(" CMD ")[2])
    with memory_at(tmp_path / "alma.db") as alma, served(alma) as address:
        there = [sys.executable, *(part.replace("http://127.0.0.1:8080", address) for part in command[1:])]
        assert subprocess.run(there, check=False).returncode == 0
        with urllib.request.urlopen(f"{address}/health") as answer:
            assert json.load(answer)["status"] == "ok"
    assert subprocess.run(there, check=False, stderr=subprocess.DEVNULL).returncode == 1


def test_the_page_on_containers_names_files_and_commands_that_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (ROOT / "docs" / "how-to" / "run-in-a-container.md").read_text().splitlines()
    monkeypatch.chdir(tmp_path)
    inside = [line.split(" alma alma ")[1].split() for line in lines if " alma alma " in line]
    assert len(inside) == 3
    for command in inside:
        assert run(*command).returncode == 0, command
    published = next(line for line in lines if line.startswith("$ docker run"))
    assert "EXPOSE 8080" in (ROOT / "Dockerfile").read_text()
    assert "127.0.0.1:8080:8080" in published
