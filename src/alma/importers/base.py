"""The importer port: rows of another system, the records they become, options and the report."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from alma.errors import ValidationError
from alma.model.common import checked_name
from alma.model.fields import JsonObject
from alma.model.record import Record
from alma.model.vector import Vector


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a source: its location, its data, and the key it was found under, if any.

    A `listed` row was found in a list with that name; otherwise the key is the row's own.
    """

    where: str
    data: Any
    under: str | None = None
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row, or a part of one, that cannot be imported, and why."""

    where: str
    id: str | None
    reason: str


class RowRefused(ValueError):
    """A whole row cannot be imported."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part that is skipped on purpose, for example a tool message in a conversation."""

    reason: str


@dataclass(frozen=True, slots=True)
class Item:
    """A record made from a row.

    `changed_at` is the source's time of the last change: only a later change replaces a stored record. A `mention` is a
    record that the row only names, and gives way to any record with more data. `instead` is stored if a unique value
    is already taken.
    """

    record: Record
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    changed_at: datetime | None = None
    mention: bool = False
    instead: tuple[Record, ...] = ()


Found = Item | Rejected | Skipped


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Defaults for what a source does not say: time zone, embedding model, owner."""

    zone: tzinfo = UTC
    embedding_model: str | None = None
    embedding_dim: int | None = None
    user_id: str | None = None
    project_id: str | None = None
    agent: str | None = None
    decay_rate: float | None = None

    def __post_init__(self) -> None:
        for name in ("embedding_model", "user_id", "project_id", "agent"):
            if getattr(self, name) is not None:
                checked_name("import", name, getattr(self, name))
        if not isinstance(self.zone, tzinfo):
            raise ValidationError(
                "import", "zone", self.zone, "must be a time zone, for example ZoneInfo('Asia/Manila')"
            )


class Importer(ABC):
    """Converts the rows of one system.

    `key` is the field that identifies a row, `lists` are fields with many entries (tables of their own in a database),
    and `fields` are all known fields. Rows are read once for every stage.
    """

    name: str
    key: str | None = None
    fields: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    stages: tuple[str, ...] = ("all",)
    file_in_zip: str | None = None

    @abstractmethod
    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        """The records of a row; RowRefused or ValidationError rejects the whole row."""

    def derived_id(self, *parts: object) -> str:
        """A deterministic id for a row without a usable id."""
        text = "\x00".join((self.name, *map(str, parts)))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True)
class ImportReport:
    """Counts of new, changed and unchanged records by kind, and the rejected rows.

    `masked` counts removed secrets by kind, `quarantined` the records that look like prompt injections; they stay in
    the archive until they are restored.
    """

    system: str
    dry_run: bool = False
    rows: int = 0
    new: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    vectors: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    masked: Counter[str] = field(default_factory=Counter)
    rejected: list[Rejected] = field(default_factory=list)

    def to_dict(self) -> JsonObject:
        """The report as JSON."""
        names = ("new", "changed", "unchanged", "vectors", "quarantined", "left_out", "masked")
        return {
            "system": self.system,
            "dry_run": self.dry_run,
            "rows": self.rows,
            **{name: dict(getattr(self, name)) for name in names},
            "rejected": [asdict(each) for each in self.rejected],
        }
