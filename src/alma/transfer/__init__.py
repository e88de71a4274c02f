"""Move data: export and import, backup and restore, merge."""

from __future__ import annotations

from alma.transfer.backup import BackedUp, backup_store, restore_store
from alma.transfer.exporting import Exported, export_store
from alma.transfer.importing import ExportHeader, import_store, merge_stores, verify_export
from alma.transfer.lines import Limits
from alma.transfer.parcels import Conflict, Refused, Renamed, TransferReport

__all__ = [
    "BackedUp",
    "Conflict",
    "ExportHeader",
    "Exported",
    "Limits",
    "Refused",
    "Renamed",
    "TransferReport",
    "backup_store",
    "export_store",
    "import_store",
    "merge_stores",
    "restore_store",
    "verify_export",
]
