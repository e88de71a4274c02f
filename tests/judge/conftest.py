"""The shipped judge, loaded once."""

from __future__ import annotations

import pytest

from alma.judge import LocalJudge


@pytest.fixture(scope="session")
def judge() -> LocalJudge:
    return LocalJudge()
