"""Memories as tests tell them, one after the other."""

from __future__ import annotations

from datetime import timedelta

from alma.clock import now
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make

EVERYWHERE = Scope.everywhere()
START = now() - timedelta(days=5)


def said(store: StorageBackend, key: str, content: str, kind: str = "note", **values: object) -> Memory:
    """A memory; the later it is said in a test, the later it was made."""
    moment = START + timedelta(minutes=store.count(Memory, EVERYWHERE))
    memory = make.a_memory(id=key, content=content, memory_type=kind, created_at=moment, **values)
    store.save(memory)
    return memory


def two_timeouts(store: StorageBackend, **values: object) -> None:
    for n in (1, 2):
        session = f"s{n}"
        said(
            store,
            f"e{n}",
            f"TimeoutError calling the payment gateway, attempt {n}",
            "error",
            session_id=session,
            **values,
        )
        said(store, f"f{n}", "Retry the payment gateway with backoff", "solution", session_id=session, **values)
