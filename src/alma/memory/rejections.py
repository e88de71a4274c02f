"""Rejections: texts that a person refused in review, and that are not stored again.

Only a fingerprint is kept, as a setting, so that it outlives a purge of the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from alma.clock import now
from alma.model.governance import ArchiveCause, ArchivedRecord, Setting, SettingType
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import Transaction
from alma.text.canonical import fingerprint, ordered_words

_EVERYWHERE = Scope.everywhere()
_PREFIX = "rejected."
_STATEMENTS: dict[type[Record], str] = {
    Memory: "content",
    Heuristic: "strategy",
    DomainKnowledge: "fact",
    AntiPattern: "pattern",
    UserPreference: "preference",
}


def rejection_key(record: Record) -> str | None:
    """The key of the rejection of what a record says in its project, or of its user; None for kinds without one."""
    name = _STATEMENTS.get(type(record))
    if name is None:
        return None
    owner = getattr(record, "project_id", None) or getattr(record, "user_id", None)
    return _PREFIX + fingerprint(owner, " ".join(ordered_words(getattr(record, name) or "")))


def is_rejected(tx: Transaction, record: Record) -> bool:
    """Whether what the record says was rejected."""
    key = rejection_key(record)
    return key is not None and tx.get(Setting, key, _EVERYWHERE) is not None


def note_rejection(tx: Transaction, record: Record, before: ArchiveCause | None) -> None:
    """Remember that what the record says was rejected, and why it was in the archive before, if it was."""
    key = rejection_key(record)
    if key is not None:
        value = json.dumps({"before": before, "at": now().isoformat()})
        tx.save(Setting(key=key, value=value, value_type=SettingType.JSON, description="A rejected text"))


def forget_rejections(tx: Transaction, records: Iterable[Record]) -> None:
    """Allow what these records say to be stored again."""
    keys = [key for record in records if (key := rejection_key(record)) is not None]
    if keys:
        tx.delete(Setting, keys, _EVERYWHERE)


def cause_before(tx: Transaction, record: Record) -> ArchiveCause | None:
    """Why a rejected record was in the archive before its rejection; None if it was in use."""
    key = rejection_key(record)
    noted = None if key is None else tx.get(Setting, key, _EVERYWHERE)
    before = None if noted is None else noted.typed_value.get("before")
    return None if before is None else ArchiveCause(before)


def set_cause(tx: Transaction, archived: ArchivedRecord, cause: ArchiveCause) -> None:
    """Change why a record is in the archive."""
    tx.update(ArchivedRecord, archived.id, {"cause": cause}, _EVERYWHERE)
