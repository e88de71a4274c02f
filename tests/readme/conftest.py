"""A project folder with the documented configuration, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg.conninfo
import pytest

from alma import ALMA
from tests.support.documented import CONFIGURATION

_PASSWORD = "ALMA_DOCUMENTED_PASSWORD"
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
    text = CONFIGURATION.format(provider="local", storage=request.param)
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
