"""What was just handed to an agent, as fingerprints, so that it is not learned back as new."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from alma.clock import new_id, now
from alma.model.common import Name
from alma.model.record import Index, Record, record


@record(
    "served_text",
    table="served_texts",
    postgres_table="alma_served_texts",
    audited=False,
    indexes=(
        Index("idx_served_texts_agent", ("agent", "served_at DESC")),
        Index("idx_served_texts_expires", ("expires_at",)),
    ),
)
class ServedText(Record):
    """The fingerprints of the texts that one answer handed to an agent; the texts themselves are not kept."""

    id: Name = field(default_factory=new_id)
    agent: Name
    project_id: Name | None = None
    user_id: Name | None = None
    fingerprints: str
    served_at: datetime = field(default_factory=now)
    expires_at: datetime
