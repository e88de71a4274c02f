"""A project folder with the documented configuration, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg.conninfo
import pytest

from alma import ALMA

_PASSWORD = "ALMA_DOCUMENTED_PASSWORD"
_CONFIGURATION = """\
alma:
  project_id: "my-project"
  storage: {storage}
  embedding_provider: local
  storage_dir: .alma
  db_name: alma.db
  embedding_dim: 384

  agents:
    helena:
      domain: coding
      can_learn:
        - testing_strategies
        - selector_patterns
      cannot_learn:
        - backend_logic
      min_occurrences_for_heuristic: 3

    victor:
      domain: coding
      can_learn:
        - api_patterns
        - database_queries
      cannot_learn:
        - frontend_selectors
"""
_POSTGRES = """
  postgres:
    host: {host}
    port: {port}
    database: {dbname}
    user: {user}
    password: ${{{variable}}}
"""


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with `.alma/config.yaml` in it."""
    text = _CONFIGURATION.format(storage=request.param)
    if request.param == "postgres":
        place = psycopg.conninfo.conninfo_to_dict(request.getfixturevalue("postgres_dsn"))
        monkeypatch.setenv(_PASSWORD, str(place.pop("password")))
        text += _POSTGRES.format(**place, variable=_PASSWORD)
    (tmp_path / ".alma").mkdir()
    (tmp_path / ".alma" / "config.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def alma(project: Path) -> Iterator[ALMA]:
    """The memory that the configuration describes."""
    with ALMA.from_config(".alma/config.yaml") as memory:
        yield memory
