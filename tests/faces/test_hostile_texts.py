"""Hostile texts: whatever is sent to the service, others are answered meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faces.rest import client_of, server_process
from tests.support.hostile import mixed, repeated

SIZE = 100_000
# As designed 0.2; a machine that runs other tests beside this one gets its share.
LONGEST_WAIT_SECONDS = 0.5


def _requests(text: str) -> list[tuple[str, dict[str, Any]]]:
    """What a client may send that holds this text."""
    return [
        ("learn", {"agent": "eve", "task": text, "outcome": "failure", "strategy_used": text, "error_message": text}),
        ("learn_from_conversation", {"agent": "eve", "messages": [{"role": "user", "content": text}]}),
        ("create_memory", {"content": text, "source": "web"}),
        ("retrieve", {"task": text, "agent": "eve"}),
    ]


def _send(address: str, texts: list[str], failures: list[str]) -> None:
    with client_of(address) as client:
        for text in texts:
            for name, body in _requests(text):
                answer = client.post(f"/v1/operations/{name}", json=body, timeout=300)
                if answer.status_code >= 500:
                    failures.append(f"{name}: {answer.status_code} {answer.text[:200]}")


@pytest.mark.parametrize("units", [["`", "@1"], ["eyJ-", " "]], ids=repr)
def test_health_is_answered_while_hostile_texts_are_read(tmp_path: Path, units: list[str]) -> None:
    failures: list[str] = []
    waited: list[float] = []
    texts = [f"Do the work. {text}" for text in (*(repeated(unit, SIZE) for unit in units), mixed(SIZE, seed=1))]
    with server_process(str(tmp_path / "alma.db")) as server, httpx.Client(trust_env=False, timeout=60) as client:
        senders = [threading.Thread(target=_send, args=(server.address, [text], failures)) for text in texts]
        for sender in senders:
            sender.start()
        while any(sender.is_alive() for sender in senders):
            began = time.perf_counter()
            assert client.get(f"{server.address}/health").status_code == 200
            waited.append(time.perf_counter() - began)
            time.sleep(0.02)
        for sender in senders:
            sender.join()
    assert failures == []
    waited.sort()
    assert waited[int(len(waited) * 0.95)] < LONGEST_WAIT_SECONDS, f"of {len(waited)} the slowest: {waited[-5:]}"
