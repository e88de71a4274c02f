"""Where a store of the fault tests lives, in a form that can be handed to another process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from alma.storage.base import StorageBackend
from tests.faults.records import DIMENSIONS

if TYPE_CHECKING:
    from alma.vectors.mapped import MappedIndex


def sqlite_address(path: Path) -> str:
    """The address of a store in one SQLite file."""
    return f"sqlite:{path}"


def files_address(folder: Path) -> str:
    """The address of a store in a folder of JSON files."""
    return f"files:{folder}"


def opened(address: str) -> StorageBackend:
    """Open the store at an address."""
    return opener(address)()


def mapped_index(store: StorageBackend, address: str) -> MappedIndex:
    """An index beside the store at an address, with files that change all the time."""
    from alma.vectors.mapped import MappedIndex
    from alma.vectors.mapped.state import Tuning

    tuning = Tuning(
        exact_rows=50, coarse_rows=100, flush_rows=8, inline_rows=200, page_rows=16, sweep_after=4, dead_share=0.1
    )
    return MappedIndex(store, vectors_folder(address), tuning=tuning)


def vectors_folder(address: str) -> Path:
    """Where the index of an SQLite store keeps its files."""
    return Path(f"{address.removeprefix('sqlite:')}.vectors")


def opener(address: str) -> Callable[[], StorageBackend]:
    """What opens the store at an address: one of the above, or the connection URI of a PostgreSQL database."""
    # Imported only when wanted, as a killed process is started again and again.
    scheme, _, rest = address.partition(":")
    match scheme:
        case "sqlite":
            from alma.storage.sqlite_local import SQLiteStorage

            return partial(SQLiteStorage, rest, embedding_dim=DIMENSIONS)
        case "postgresql":
            from alma.storage.postgresql import PostgreSQLStorage

            return partial(PostgreSQLStorage.from_dsn, address, embedding_dim=DIMENSIONS)
        case "files":
            from alma.storage.file_based import FileBasedStorage

            return partial(FileBasedStorage, rest, embedding_dim=DIMENSIONS)
        case _:
            raise ValueError(f"{address!r} is not the address of a store")
