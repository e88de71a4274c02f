"""Quarantine: what looks like orders in a foreign file comes as well, but nobody is handed it until it is released."""

from __future__ import annotations

from collections.abc import Iterator

from alma.importers.base import Importer, ImportOptions, Item
from alma.importers.said import IMPORT, a_memory
from alma.ingest.screening import injection_in, injection_in_record
from alma.memory.archive import ARCHIVABLE
from alma.model.record import Record
from alma.redaction.nested import Masked, Redacted
from alma.redaction.redactor import redact_record

SOURCE = "import"
"""Where imported records come from, as the reason of a quarantine says it."""

PLACE = "[quarantined]"
"""What stands where orders stood in a record that cannot be put away, as a session."""

Screened = tuple[Item, str | None]


class Quarantine:
    """Takes what looks like orders out of the items of one import."""

    def __init__(self, importer: Importer, options: ImportOptions) -> None:
        self._importer = importer
        self._options = options

    def screened(self, item: Item) -> Iterator[Screened]:
        """The item with the reason why it is to be put away, or None; orders that stand in others apart from them."""
        reason = injection_in_record(item.record, SOURCE)
        if reason is None:
            yield item, None
        elif isinstance(item.record, ARCHIVABLE):
            yield item, reason
        else:
            yield from self._apart(item, reason)

    def _apart(self, item: Item, reason: str) -> Iterator[Screened]:
        orders = _Orders()
        clean = redact_record(item.record, orders)[0]
        instead = tuple(redact_record(each, _Orders())[0] for each in item.instead)
        yield Item(clean, item.vectors, item.changed_at, item.mention, instead), None
        if orders.found:
            yield Item(self._note(item.record, "\n".join(orders.found), item), changed_at=item.changed_at), reason

    def _note(self, record: Record, said: str, item: Item) -> Record:
        """A memory of what stood in a record that cannot be put away itself."""
        kind, values = record.spec.kind, record.values()
        return a_memory(
            self._options,
            system=self._importer.name,
            id=self._importer.derived_id("quarantined", kind, record.key, said),
            external_id=str(record.key)[:200],
            title=f"From the {kind} {record.key}"[:200],
            memory_type="note",
            content=said,
            context_json={IMPORT: {"system": self._importer.name, "kind": kind, "id": str(record.key)}},
            user_id=values.get("user_id"),
            project_id=values.get("project_id"),
            created_at=item.changed_at or values.get("created_at"),
        )


class _Orders:
    """Redacts orders instead of secrets, and keeps what it found."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def redact(self, text: str, name: str = "") -> Redacted:
        if text == PLACE or injection_in([text]) is None:
            return Redacted(text)
        self.found.append(text)
        return Redacted(PLACE, (Masked("orders", name),))
