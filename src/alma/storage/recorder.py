"""Recorder: what every write leaves beside the records: versions, audit events and marks for the indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from alma import clock
from alma.model.governance import Attribution, AuditEvent
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.record import Record, RecordSpec
from alma.storage import history
from alma.storage.audit import ChainHead, audit_events, chained
from alma.storage.backend import Backend

Act = tuple[str, RecordSpec, Sequence[Record]]
"""What was done, as the audit log calls it, to which records."""


class Recorder:
    """Records what is done to records, in the transaction that does it."""

    def __init__(self, backend: Backend, by: Attribution) -> None:
        self._backend = backend
        self._by = by
        self._chain_head: ChainHead | None = None
        self._change: ChangeType | None = None
        self._action = "update"
        # What was done to records, for stores with a subscriber.
        self.acts: list[Act] | None = None

    @contextmanager
    def known_as(self, change: ChangeType) -> Iterator[None]:
        """Record the versions written inside as this kind of change."""
        before, self._change = self._change, change
        try:
            yield
        finally:
            self._change = before

    @contextmanager
    def audited_as(self, action: str) -> Iterator[None]:
        """Record the changes made inside as this action in the audit log."""
        before, self._action = self._action, action
        try:
            yield
        finally:
            self._action = before

    def reset(self) -> None:
        """Begin new audit chains after everything was erased."""
        self._chain_head = None

    # ------------------------------------------------------------------ history

    def write_history(
        self,
        spec: RecordSpec,
        records: Sequence[Record],
        previous: Mapping[str, Record],
        last: Mapping[str, MemoryVersion] | None,
        moment: datetime,
    ) -> None:
        """Write the versions that saving these records makes; `last` holds the newest ones where they are known."""
        if last is None and len(previous) == len(records) == 1:
            (old,) = previous.values()
            if self._backend.supersede(records[0], old, self._by, moment, self._change):
                return
        keys = list(map(spec.key_of, records))
        last = self._backend.last_versions(spec.kind, keys) if last is None else last
        if not previous and not last:
            created = self._change or ChangeType.CREATED
            if self._backend.begin_history(spec.kind, keys, self._by, moment, created):
                return
        rows = [
            history.next_version(record, key, previous.get(key), last.get(key), self._by, moment, self._change)
            for key, record in zip(keys, records, strict=True)
        ]
        self._backend.insert(MemoryVersion.spec, rows)
        self._fill_superseded(list(previous.values()), last)

    def write_deletions(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Write the versions that say that these records are gone."""
        moment = clock.now()
        last = self._backend.last_versions(spec.kind, [record.key for record in records])
        rows = [history.deletion(spec.kind, record.key, last.get(record.key), self._by, moment) for record in records]
        self._backend.insert(MemoryVersion.spec, rows)
        self._fill_superseded(records, last)

    def _fill_superseded(self, records: Sequence[Record], last: Mapping[str, MemoryVersion]) -> None:
        """Give the versions that just ceased to be the newest the content that only the record held until now."""
        ceased = [(last[record.key], record) for record in records if record.key in last]
        if ceased:
            filled = [history.with_content(version, record) for version, record in ceased]
            self._backend.replace(MemoryVersion.spec, filled, [version for version, _ in ceased])

    # ------------------------------------------------------------------ audit

    def audit(self, spec: RecordSpec, action: str, records: Sequence[Record], moment: datetime) -> None:
        """Say in the audit log, and to subscribers after the commit, what was done."""
        if not records:
            return
        if spec.audited:
            self.append_events(audit_events(spec, action, records, self._by, moment))
            if self.acts is not None:
                self.acts.append((action, spec, records))

    def audit_change(self, spec: RecordSpec, records: Sequence[Record], moment: datetime) -> None:
        """The same for records that were there before."""
        self.audit(spec, self._action, records, moment)

    def append_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Write audit events behind each other into a chain that is this transaction's until it ends."""
        every = list(events)
        if len(every) == 1 and self._backend.append_event(every[0]):
            # The chain may now be longer than this transaction remembers.
            self._chain_head = None
            return
        chains = self._backend.chains
        placed, self._chain_head = chained(every, chains.take() if self._chain_head is None else self._chain_head)
        self._backend.insert(AuditEvent.spec, list(map(AuditEvent.trusted, placed)))
        chains.move(self._chain_head)

    # ------------------------------------------------------------------ marks

    def mark(self, spec: RecordSpec, keys: Sequence[str], moment: datetime) -> None:
        """Mark changed records for the indexes that follow their kind."""
        self._backend.outbox.mark(spec.kind, keys, moment)
