"""A relay of its own process, which stops in the middle of a batch when a file tells it to."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from alma.bootstrap import open_storage
from alma.sync import Change, Relay, RelayOptions
from tests.support.second_store import SecondStore


def main() -> None:
    """Run a relay until nothing waits; with a file `stop` beside the engine, hang after the first batch was applied."""
    address, engine, lease_seconds = sys.argv[1:]
    path = Path(engine)
    second = SecondStore(path, before_apply=lambda changes: _hang(path, changes))
    with open_storage(address, 4) as storage:
        Relay(storage, second, RelayOptions(batch_size=10, lease_seconds=float(lease_seconds))).run()


def _hang(path: Path, changes: Sequence[Change]) -> None:
    path.with_name("claimed").write_text(str(len(changes)))
    while path.with_name("stop").exists():
        time.sleep(0.02)


if __name__ == "__main__":
    main()
