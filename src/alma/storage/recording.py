"""Recording: what every write leaves behind it: versions, audit events and marks for the indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from alma import clock
from alma.model.governance import AuditEvent
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.record import Record, RecordSpec
from alma.storage import versions
from alma.storage.audit import audit_events
from alma.storage.chain import ChainHead, placed
from alma.storage.changes import Act
from alma.storage.reading import Reading


class Recording(Reading):
    """Writes down what is done to records, in the transaction that does it."""

    # What was done to records, kept where somebody wants to be told of it after the commit.
    acts: list[Act] | None = None
    _chain_head: ChainHead | None = None
    _change: ChangeType | None = None
    _action = "update"

    @contextmanager
    def known_as(self, change: ChangeType) -> Iterator[None]:
        """What is saved inside is remembered as this kind of change."""
        before, self._change = self._change, change
        try:
            yield
        finally:
            self._change = before

    @contextmanager
    def audited_as(self, action: str) -> Iterator[None]:
        """What is changed inside is called so by the audit log."""
        before, self._action = self._action, action
        try:
            yield
        finally:
            self._action = before

    # ------------------------------------------------------------------ history

    def _write_history(
        self,
        spec: RecordSpec,
        records: Sequence[Record],
        previous: Mapping[str, Record],
        last: Mapping[str, MemoryVersion] | None,
        moment: datetime,
    ) -> None:
        keys = list(map(spec.key_of, records))
        if (
            last is None
            and len(previous) == len(records) == 1
            and self._supersede(records[0], previous[keys[0]], moment)
        ):
            return
        last = self._last_versions(spec.kind, keys) if last is None else last
        if not previous and not last:
            self._insert_first_versions(spec.kind, keys, moment)
            return
        rows = [
            versions.next_version(record, key, previous.get(key), last.get(key), self.by, moment, self._change)
            for key, record in zip(keys, records, strict=True)
        ]
        self._insert(MemoryVersion.spec, rows)
        self._fill_superseded(list(previous.values()), last)

    def _supersede(self, record: Record, previous: Record, moment: datetime) -> bool:
        """Write the version that a change of one record makes, where a database knows a short way; says whether."""
        return False

    def _insert_first_versions(self, kind: str, keys: Sequence[str], moment: datetime) -> None:
        """Write that these records were created; a database may know a shorter way to say so of many."""
        rows = [versions.creation(kind, key, self.by, moment) for key in keys]
        self._insert(MemoryVersion.spec, rows)

    def _write_history_of_deleted(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        moment = clock.now()
        last = self._last_versions(spec.kind, [record.key for record in records])
        rows = [versions.deletion(spec.kind, record.key, last.get(record.key), self.by, moment) for record in records]
        self._insert(MemoryVersion.spec, rows)
        self._fill_superseded(records, last)

    def _fill_superseded(self, records: Sequence[Record], last: Mapping[str, MemoryVersion]) -> None:
        """Give the versions that just ceased to be the newest the content that only the record held until now."""
        ceased = [(last[record.key], record) for record in records if record.key in last]
        if ceased:
            filled = [versions.with_content(version, record) for version, record in ceased]
            self._replace(MemoryVersion.spec, filled, [version for version, _ in ceased])

    # ------------------------------------------------------------------ audit

    def _write_audit(self, spec: RecordSpec, action: str, records: Sequence[Record], moment: datetime) -> None:
        self._audit(spec, action, records, moment)
        if self.acts is not None:
            self.acts.append((action, spec, records))

    def _audit(self, spec: RecordSpec, action: str, records: Sequence[Record], moment: datetime) -> None:
        """Say in the audit log what was done; a database may know a shorter way to say it of one record."""
        self._append_events(audit_events(spec, action, records, self.by, moment))

    def _append_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Write audit events behind each other into a chain that is this transaction's until it ends."""
        chained, self._chain_head = placed(events, self._take_head())
        self._insert_events(chained)
        self._chains().move(self._chain_head)

    def _take_head(self) -> ChainHead:
        """Where the transaction's chain ends."""
        return self._chains().take() if self._chain_head is None else self._chain_head

    def _insert_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Write events that have their places; a database may know a shorter way."""
        self._insert(AuditEvent.spec, list(map(AuditEvent.trusted, events)))

    # ------------------------------------------------------------------ marks

    def _mark(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        marks = self._marks()
        for projection in marks.projections(spec.kind):
            marks.mark(projection, spec.kind, keys, clock.now())
