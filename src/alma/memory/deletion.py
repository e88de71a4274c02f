"""Deleting many memories at once, in batches that do not hold up other writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alma import clock
from alma.memory.erasure import erase
from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.query import Predicate, matches
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class BulkDeletion:
    """The memories that were deleted, or in a dry run would be."""

    ids: tuple[str, ...]
    dry_run: bool = False

    @property
    def count(self) -> int:
        return len(self.ids)


def delete_many(
    storage: StorageBackend, scope: Scope, where: Predicate, by: Attribution, *, hard: bool, dry_run: bool
) -> BulkDeletion:
    """Delete the memories inside the scope that fulfil the predicate when their turn comes, batch by batch."""
    ids = [key for (key,) in storage.values(Memory, ("id",), scope, where)]
    if dry_run:
        return BulkDeletion(tuple(ids), dry_run=True)
    gone: list[str] = []
    for start in range(0, len(ids), _AT_ONCE):
        batch = ids[start : start + _AT_ONCE]

        def delete(tx: Transaction, batch: Sequence[str] = batch) -> list[str]:
            # Another process may have changed them since they were found.
            held = [memory for memory in tx.lock(Memory, batch, scope) if matches(where, memory)]
            if hard:
                erase(tx, held, scope)
            else:
                moment = clock.now()
                with tx.audited_as("delete"):
                    tx.save(*(memory.replace(is_active=False, updated_at=moment) for memory in held))
            return [memory.id for memory in held]

        gone.extend(storage.write(delete, by))
    return BulkDeletion(tuple(gone))
