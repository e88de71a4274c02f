"""The system of record: a storage contract and its implementations; each name is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.storage.azure_cosmos import AzureCosmosStorage as AzureCosmosStorage
    from alma.storage.base import StorageBackend as StorageBackend
    from alma.storage.file_based import FileBasedStorage as FileBasedStorage
    from alma.storage.postgresql import PostgreSQLStorage as PostgreSQLStorage
    from alma.storage.sqlite_local import SQLiteStorage as SQLiteStorage

_HOME_OF = {
    "StorageBackend": "alma.storage.base",
    "AzureCosmosStorage": "alma.storage.azure_cosmos",
    "FileBasedStorage": "alma.storage.file_based",
    "PostgreSQLStorage": "alma.storage.postgresql",
    "SQLiteStorage": "alma.storage.sqlite_local",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
