"""The archive's record: a memory that was put away, whole, with all it takes to bring it back."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum

from alma.clock import new_id, now
from alma.model.common import Name, Prose
from alma.model.record import Index, Record, record


class ArchiveCause(StrEnum):
    """Why a memory is in the archive."""

    FORGOTTEN = "forgotten"
    ARCHIVED = "archived"
    QUARANTINED = "quarantined"
    MERGED = "merged"


@record(
    "archived_record",
    table="archived_records",
    postgres_table="alma_archived_records",
    # What happens to a memory is audited under the memory's own kind.
    audited=False,
    indexes=(
        Index("idx_archived_records_record", ("record_id", "kind")),
        Index("idx_archived_records_scope", ("project_id", "agent", "archived_at")),
        Index("idx_archived_records_user", ("user_id",), where="user_id IS NOT NULL"),
        Index("idx_archived_records_archived", ("archived_at",)),
    ),
)
class ArchivedRecord(Record):
    """A memory of any kind that was taken out of its table, where no search and no index meets it.

    `document` is the record, `vectors` those it had of every model and `dependents` the records that went with it, all
    as JSON; they are texts and not JSON columns so that what comes back is what went in, to the last byte.
    """

    id: Name = field(default_factory=new_id)
    kind: Name
    record_id: Name
    cause: ArchiveCause
    reason: Prose | None = None
    user_id: Name | None = None
    project_id: Name | None = None
    session_id: Name | None = None
    agent: Name | None = None
    document: str
    vectors: str = "[]"
    dependents: str = "[]"
    archived_at: datetime = field(default_factory=now)
    archived_by: Name | None = None
