"""What has an end is removed when that is past, by a service that runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from alma import ALMA
from alma.clock import now
from alma.errors import ConfigurationError
from alma.learning.lifecycle import Expiry
from alma.model.governance import ApiKey, KeptAnswer, ServedText
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import AgentState
from tests.faces.rest import memory_at, on_both_stores, place_of, served

READY_SECONDS = 60.0
EVERYWHERE = Scope.everywhere()
KINDS = (Memory, KeptAnswer, ServedText, AgentState)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    return place_of(request)


def fill(alma: ALMA) -> None:
    """Of each kind one that is over, and one that is not."""
    for name, end in (("over", now() - timedelta(seconds=1)), ("alive", now() + timedelta(days=1))):
        alma.storage.save_many(
            [
                Memory(id=name, content=name, project_id="shop", expires_at=end),
                KeptAnswer(id=name, request="r", claim="c", claimed_until=end, expires_at=end),
                ServedText(id=name, agent="helena", fingerprints="f", expires_at=end),
                AgentState(id=name, agent_id=name, state_data={"a": 1}, expires_at=end),
                ApiKey(id=name, name=name, prefix=name, hash="h", rights=("read",), expires_at=end),
            ]
        )


def ids(alma: ALMA) -> list[list[str]]:
    return [[record.key for record in alma.storage.find(cls, EVERYWHERE)] for cls in KINDS]


@on_both_stores
def test_a_running_service_removes_what_is_over(place: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "alma.learning")
    with memory_at(place, expiry_interval_seconds=0.1) as alma, served(alma):
        fill(alma)
        wait_until(lambda: ids(alma) == [["alive"]] * len(KINDS))
        assert alma.storage.count(ApiKey, EVERYWHERE) == 2
        assert [row.record_id for row in alma.archive.find(EVERYWHERE, Memory)] == ["over"]
        wait_until(lambda: any(record.message == "expired rows were removed" for record in caplog.records))


def test_nothing_is_written_while_nothing_is_over(place: str) -> None:
    with memory_at(place) as alma:
        fill(alma)
        expiry = Expiry(alma.storage, alma.archive)
        assert expiry.run_once() == {"memory": 1, "kept_answer": 1, "served_text": 1, "agent_state": 1}
        before = alma.storage.generation()
        assert expiry.run_once() == {}
        assert alma.storage.generation() == before


def test_a_configuration_says_how_often_and_what_a_write_survives(tmp_path: Path) -> None:
    with memory_at(tmp_path / "a.db", expiry_interval_seconds=0, durability="power") as alma:
        alma.start_background()
        assert alma._expiry is None
        with alma.storage._connections.lent() as connection:  # type: ignore[attr-defined]
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    with pytest.raises(ConfigurationError, match="durability"):
        memory_at(tmp_path / "a.db", durability="hope")
    with memory_at("memory://", durability="power"):
        pass
