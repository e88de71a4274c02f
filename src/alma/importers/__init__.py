"""Importers: convert the exports of other memory systems and chat services into records."""

from __future__ import annotations

import os
from collections.abc import Callable

from alma.embeddings.base import EmbeddingProvider
from alma.errors import ConfigurationError, shown
from alma.importers.base import Importer, ImportOptions, ImportReport, Rejected
from alma.importers.conversations import ChatGPT, Claude
from alma.importers.engine import DEFAULT_BATCH, DEFAULT_LIMITS, ImportProgress, OnImportProgress, import_rows
from alma.importers.memory_systems import ContextualMemory, JarvisMemory, McpMemory, Mem0
from alma.importers.session_memory_agent import SessionMemoryAgent
from alma.model.governance import Attribution
from alma.model.record import Record
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor
from alma.storage.base import StorageBackend
from alma.transfer.lines import Limits

IMPORTERS: dict[str, type[Importer]] = {
    "session-memory-agent": SessionMemoryAgent,
    "contextual-memory": ContextualMemory,
    "jarvis": JarvisMemory,
    "mem0": Mem0,
    "mcp-memory": McpMemory,
    "chatgpt": ChatGPT,
    "claude": Claude,
}

__all__ = [
    "IMPORTERS",
    "ImportOptions",
    "ImportProgress",
    "ImportReport",
    "Importer",
    "Rejected",
    "import_into",
    "importer_named",
]


def importer_named(system: str) -> Importer:
    """The importer of a system, by its name on the command line or the system's own name."""
    for word, cls in IMPORTERS.items():
        if system in (word, cls.name):
            return cls()
    raise ConfigurationError(f"unknown system {shown(system)}: choose {', '.join(IMPORTERS)}")


def import_into(
    storage: StorageBackend,
    source: str | os.PathLike[str],
    system: str | Importer,
    *,
    options: ImportOptions | None = None,
    dry_run: bool = False,
    embedder: EmbeddingProvider | None = None,
    prepare: Callable[[Record], Record] | None = None,
    redactor: Redactor | None = DEFAULT_REDACTOR,
    trusted: bool = False,
    batch_size: int = DEFAULT_BATCH,
    by: Attribution | None = None,
    limits: Limits = DEFAULT_LIMITS,
    on_progress: OnImportProgress = lambda progress: None,
) -> ImportReport:
    """Import a file of another system; the report says what was imported, and what was rejected and why.

    The file is JSON, JSON lines, an SQLite database or its SQL dump, or (for chats) the zip archive. Every batch is a
    transaction and ids are derived from the source, so an interrupted import can be repeated, and importing twice
    changes nothing. `redactor=None` keeps secrets, and `trusted` disables the injection screen.
    """
    importer = system if isinstance(system, Importer) else importer_named(system)
    return import_rows(
        storage,
        source,
        importer,
        options=options,
        dry_run=dry_run,
        embedder=embedder,
        prepare=prepare,
        redactor=redactor,
        trusted=trusted,
        batch_size=batch_size,
        by=by,
        limits=limits,
        on_progress=on_progress,
    )
