"""The port of importers: rows of another system become records, or say why they cannot."""

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
    """One row of a source: where it stands, what it says, and the key it was found under, if any.

    A row of a `list` was found in a list with that name; otherwise the key is the row's own.
    """

    where: str
    data: Any
    under: str | None = None
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row, or a part of one, that could not come, and why."""

    where: str
    id: str | None
    reason: str


class RowRefused(ValueError):
    """Why a whole row cannot come."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part that is not meant to come, as a tool's message in a conversation."""

    reason: str


@dataclass(frozen=True, slots=True)
class Item:
    """A record that a row becomes.

    `changed_at` is when the source says that it was last changed: only a later change replaces what is stored, and
    a row that does not say never does. A `mention` stands for something that the row only names, and gives way to
    whoever knows more. `instead` is stored where what must be unique is taken.
    """

    record: Record
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    changed_at: datetime | None = None
    mention: bool = False
    instead: tuple[Record, ...] = ()


Found = Item | Rejected | LeftOut


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a source does not say: the zone of naive times, the model of its embeddings, whose everything is."""

    zone: tzinfo = UTC
    embedding_model: str | None = None
    embedding_dim: int | None = None
    user_id: str | None = None
    project_id: str | None = None
    agent: str | None = None

    def __post_init__(self) -> None:
        for name in ("embedding_model", "user_id", "project_id", "agent"):
            if getattr(self, name) is not None:
                checked_name("import", name, getattr(self, name))
        if not isinstance(self.zone, tzinfo):
            raise ValidationError(
                "import", "zone", self.zone, "must be a time zone, for example ZoneInfo('Asia/Manila')"
            )


class Importer(ABC):
    """Knows one system's rows.

    `key` is the field that names a row, `lists` those that hold many entries (and may be tables of their own in a
    database), `fields` all that a row is known by. Rows are gone through once for every stage.
    """

    name: str
    key: str | None = None
    fields: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    stages: tuple[str, ...] = ("all",)
    file_in_zip: str | None = None

    @abstractmethod
    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        """What the row becomes; RowRefused or a ValidationError refuses all of it."""

    def derived_id(self, *parts: object) -> str:
        """The id of what had none of its own that could be kept: the same for the same row, whenever it comes."""
        text = "\x00".join((self.name, *map(str, parts)))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True)
class ImportReport:
    """How many records of each kind came, were there already or were brought up to date, and what could not come.

    `masked` says how many secrets of each kind were found in the source and taken out, `quarantined` how many records
    of each kind came that look like orders to their reader: they wait in the archive until somebody releases them.
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
