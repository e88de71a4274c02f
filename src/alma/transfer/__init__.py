"""Move data: export and import, backup and restore, merge."""

from __future__ import annotations

from alma.transfer.exporting import Exported, export_store
from alma.transfer.importing import (
    BackedUp,
    ExportHeader,
    backup_store,
    import_store,
    merge_stores,
    restore_store,
    verify_export,
)
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
