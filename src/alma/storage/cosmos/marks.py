"""The outbox: marks as documents, the projections in the state of the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import islice
from typing import Any

from alma.storage.cosmos.documents import OURS, OUTBOX, table_document, vector_key
from alma.storage.cosmos.queries import Condition
from alma.storage.cosmos.view import Seen, View
from alma.storage.document import timestamp_of, timestamp_text
from alma.storage.outbox import Backlog, Mark, MarkTable

_TIMES = ("marked_at", "leased_until")


class CosmosMarks(MarkTable):
    """The marks of the outbox; those of a projection are one partition."""

    def __init__(self, view: View) -> None:
        self._view = view

    def register(self, name: str, kinds: Sequence[str]) -> None:
        self._view.state["projections"][name] = sorted(set(kinds))

    def drop(self, name: str) -> None:
        self._view.state["projections"].pop(name, None)
        self.remove(self.pending(name))

    def registered(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(kinds) for name, kinds in sorted(self._view.state["projections"].items())}

    def mark(self, kind: str, keys: Sequence[str], moment: datetime, only: str | None = None) -> None:
        followers = [name for name, kinds in self.registered().items() if kind in kinds and only in (None, name)]
        for projection in followers:
            known = {mark.record_id: mark for mark in self.of_records(projection, kind, keys)}
            for key in dict.fromkeys(keys):
                old = known.get(key)
                generation, lease = (1, None) if old is None else (old.generation + 1, old.leased_until)
                self.put([Mark(projection, kind, key, generation, moment, lease)])

    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        free = (mark for mark in self.pending(projection) if _is_free(mark, moment))
        claimed = [replace(mark, leased_until=until) for mark in islice(free, limit)]
        self.put(claimed)
        return claimed

    def of_records(self, projection: str, kind: str, keys: Collection[str]) -> list[Mark]:
        listed = [_key(projection, kind, key) for key in dict.fromkeys(keys)]
        found: list[Mark] = []
        for start in range(0, len(listed), 100):
            part = listed[start : start + 100]
            named = {f"@k{number}": key for number, key in enumerate(part)}
            asked = Condition(f"c.{OURS}.key IN ({', '.join(named)})", named)
            found += self._marks(projection, asked, part)
        return found

    def put(self, marks: Sequence[Mark]) -> None:
        for mark in marks:
            self._view.put(OUTBOX, _document(mark))

    def remove(self, marks: Sequence[Mark]) -> None:
        for mark in marks:
            self._view.delete(OUTBOX, _key(*mark.key))

    def pending(self, projection: str) -> list[Mark]:
        marks = self._marks(projection, Condition())
        return sorted(marks, key=lambda mark: (mark.marked_at, mark.kind, mark.record_id))

    def _marks(self, projection: str, asked: Condition, keys: Sequence[str] | None = None) -> list[Mark]:
        def fits(seen: Seen) -> bool:
            return bool((seen.document or {})["projection"] == projection)

        found = self._view.documents(OUTBOX, asked, fits, keys=keys, partition=projection)
        return [_mark(seen.document or {}) for seen in found]

    def backlog(self, projection: str) -> Backlog:
        marks = self.pending(projection)
        waiting = [mark.marked_at for mark in marks if not mark.parked]
        return Backlog(len(marks), len(marks) - len(waiting), waiting[0] if waiting else None)

    def can_claim(self, projection: str, moment: datetime) -> bool:
        return any(_is_free(mark, moment) for mark in self.pending(projection))


def _is_free(mark: Mark, moment: datetime) -> bool:
    return not mark.parked and (mark.leased_until is None or mark.leased_until <= moment)


def _key(projection: str, kind: str, record_id: str) -> str:
    return vector_key(projection, kind, record_id, 0)


def _document(mark: Mark) -> dict[str, Any]:
    times = {name: None if value is None else timestamp_text(value) for name, value in _times(mark)}
    return table_document(_key(*mark.key), mark.projection, {**asdict(mark), **times, "type": "outbox_mark"})


def _times(mark: Mark) -> list[tuple[str, datetime | None]]:
    return [(name, getattr(mark, name)) for name in _TIMES]


def _mark(document: dict[str, Any]) -> Mark:
    values = {name: document[name] for name in Mark.__dataclass_fields__}
    times = {name: None if document[name] is None else timestamp_of(document[name]) for name in _TIMES}
    return Mark(**{**values, **times})
