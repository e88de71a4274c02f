"""A dry run: everything is done in one transaction, which is then taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alma.model.governance import Attribution
from alma.storage.base import StorageBackend


class _TakenBackError(Exception):
    """Ends a transaction on purpose."""


@contextmanager
def undone(storage: StorageBackend, by: Attribution, *, only_if: bool) -> Iterator[None]:
    """Take back what is stored inside, where that is asked for."""
    if not only_if:
        yield
        return
    try:
        with storage.transaction(by):
            yield
            raise _TakenBackError
    except _TakenBackError:
        return
