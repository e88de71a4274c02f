"""Keeps the engines beside a store equal to it, and moves stores to other models; names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.sync.background import Relays as Relays
    from alma.sync.coordinator import CommitResult as CommitResult
    from alma.sync.coordinator import RollbackResult as RollbackResult
    from alma.sync.coordinator import TransactionCoordinator as TransactionCoordinator
    from alma.sync.manager import DataSyncManager as DataSyncManager
    from alma.sync.options import RelayOptions as RelayOptions
    from alma.sync.projection import Change as Change
    from alma.sync.projection import Difference as Difference
    from alma.sync.projection import Mismatch as Mismatch
    from alma.sync.projection import Projection as Projection
    from alma.sync.relay import Relay as Relay
    from alma.sync.results import ConsistencyIssue as ConsistencyIssue
    from alma.sync.results import RepairResult as RepairResult
    from alma.sync.results import SyncResult as SyncResult
    from alma.sync.results import ValidationReport as ValidationReport

_HOME_OF = {
    "Change": "alma.sync.projection",
    "CommitResult": "alma.sync.coordinator",
    "ConsistencyIssue": "alma.sync.results",
    "DataSyncManager": "alma.sync.manager",
    "Difference": "alma.sync.projection",
    "Mismatch": "alma.sync.projection",
    "Projection": "alma.sync.projection",
    "Relay": "alma.sync.relay",
    "RelayOptions": "alma.sync.options",
    "Relays": "alma.sync.background",
    "RepairResult": "alma.sync.results",
    "RollbackResult": "alma.sync.coordinator",
    "SyncResult": "alma.sync.results",
    "TransactionCoordinator": "alma.sync.coordinator",
    "ValidationReport": "alma.sync.results",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
