"""Merge: everything that one store holds enters another, and both may be in use."""

from __future__ import annotations

from alma.errors import ConfigurationError
from alma.model.governance import Attribution, MergeMark
from alma.storage.base import StorageBackend, Transaction
from alma.transfer.arrival import Arrival
from alma.transfer.ledger import MergeLedger, rename_store, store_id
from alma.transfer.parcels import EVERYWHERE, TRAVELLING, count, histories_of_the_deleted, pages
from alma.transfer.report import OnProgress, TransferReport
from alma.transfer.undoing import undone

MERGING = Attribution(reason="merged from another store")


def merge_stores(
    source: StorageBackend,
    target: StorageBackend,
    *,
    dry_run: bool = False,
    by: Attribution = MERGING,
    on_progress: OnProgress = lambda done, total: None,
) -> TransferReport:
    """Bring what the source holds into the target; the source is only read.

    Of a record that both have, the one that was changed later is taken, and its counters are what both counted. Each
    store's share of them is remembered, so that merging again, in either direction, adds nothing twice. A user,
    project or other record that has a name which must be unique is taken for the one that has it here. The audit log
    and the settings of the source stay with it.
    """
    if source is target:
        raise ConfigurationError("a store cannot be merged into itself")
    with undone(target, by, only_if=dry_run):
        arrival = Arrival(target, by, _ledger(source, target, dry_run=dry_run))
        with source.snapshot() as tx:
            _bring(tx, arrival, on_progress)
    arrival.report.dry_run = dry_run
    return arrival.report


def _bring(tx: Transaction, arrival: Arrival, on_progress: OnProgress) -> None:
    kinds = [cls for cls in TRAVELLING if cls is not MergeMark and cls.spec.kind != "setting"]
    total = sum(count(tx, cls, EVERYWHERE) for cls in kinds)
    done = 0
    for cls in kinds:
        for page in pages(tx, cls, EVERYWHERE):
            arrival.take(cls, page)
            done += len(page)
            on_progress(done, max(done, total))
    for rows in histories_of_the_deleted(tx, EVERYWHERE):
        arrival.take_history(rows)


def _ledger(source: StorageBackend, target: StorageBackend, *, dry_run: bool) -> MergeLedger:
    mine = store_id(target)
    theirs = store_id(source, make=not dry_run)
    # A copy came with the name of its original; from now on it has its own.
    return MergeLedger(rename_store(target) if mine == theirs else mine, source, theirs)
