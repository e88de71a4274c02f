"""Resolve unique names: an arriving record whose unique name is taken is identified with its holder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from alma.model.query import In
from alma.model.record import Record, RecordSpec, Unique
from alma.storage.base import RecordVector, Transaction
from alma.transfer.parcels import EVERYWHERE, Parcel
from alma.transfer.report import Refused, Renamed, TransferReport

_HOLDS = {"user_id": "user", "created_by": "user", "updated_by": "user", "project_id": "project"}
"""Reference fields to kinds with unique names."""


class Names:
    """The stored ids of arriving ids."""

    def __init__(self, ids: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._ids = {kind: dict(some) for kind, some in (ids or {}).items()}

    def copy(self) -> Names:
        return Names(self._ids)

    def settled(
        self, tx: Transaction, cls: type[Record], parcels: Sequence[Parcel], report: TransferReport
    ) -> list[Parcel]:
        """The parcels with their ids in this store; conflicting ones are refused."""
        known = [self._readdressed(parcel) for parcel in parcels]
        holders = {
            rule.name: holders_of(tx, cls, rule, [parcel.record for parcel in known]) for rule in cls.spec.unique
        }
        settled: dict[str, Parcel] = {}
        for parcel in known:
            fitting = self._settled(cls.spec, parcel, holders, report)
            if fitting is not None:
                settled.setdefault(fitting.record.key, fitting)
        return list(settled.values())

    def _readdressed(self, parcel: Parcel) -> Parcel:
        record = parcel.record
        changes: dict[str, Any] = {}
        for name, kind in _HOLDS.items():
            if name in record.spec.by_name:
                other = self._ids.get(kind, {}).get(getattr(record, name))
                if other is not None:
                    changes[name] = other
        return replace(parcel, record=record.replace(**changes)) if changes else parcel

    def _settled(
        self,
        spec: RecordSpec,
        parcel: Parcel,
        holders: Mapping[str, Mapping[tuple[Any, ...], str]],
        report: TransferReport,
    ) -> Parcel | None:
        chosen: str | None = None
        for rule in spec.unique:
            holder = holders[rule.name].get(unique_values(rule, parcel.record))
            if holder is None or holder == (chosen or parcel.record.key):
                continue
            if chosen is None:
                parcel, chosen = self._under(spec, parcel, holder, rule, report), holder
            elif all(spec.by_name[name].nullable for name in rule.fields):
                report.refused.append(Refused(spec.kind, parcel.record.key, _taken(rule, parcel.record, holder)))
                parcel = replace(parcel, record=parcel.record.replace(**dict.fromkeys(rule.fields)))
            else:
                report.refused.append(Refused(spec.kind, parcel.record.key, _taken(rule, parcel.record, holder)))
                return None
        return parcel

    def _under(self, spec: RecordSpec, parcel: Parcel, holder: str, rule: Unique, report: TransferReport) -> Parcel:
        record = parcel.record
        self._ids.setdefault(spec.kind, {})[record.key] = holder
        by = {name: getattr(record, name) for name in rule.fields}
        report.renamed.append(Renamed(spec.kind, record.key, holder, by))
        vectors = tuple(RecordVector(holder, part.model, part.part, part.vector) for part in parcel.vectors)
        return Parcel(record.replace(**{spec.key: holder}), vectors, left_as=record.key)


def holders_of(
    tx: Transaction, cls: type[Record], rule: Unique, records: Iterable[Record]
) -> Mapping[tuple[Any, ...], str]:
    """The stored records that hold the arriving unique values."""
    wanted = {values for record in records if (values := unique_values(rule, record))}
    if not wanted:
        return {}
    names = [*rule.fields, cls.spec.key]
    where = In(rule.fields[0], {values[0] for values in wanted})
    rows = tx.values(cls, names, EVERYWHERE, where)
    return {row[:-1]: row[-1] for row in rows if row[:-1] in wanted}


def unique_values(rule: Unique, record: Record) -> tuple[Any, ...]:
    """The unique values of a record; empty if one is missing."""
    values = tuple(getattr(record, name) for name in rule.fields)
    return () if None in values and not rule.nulls_equal else values


def _taken(rule: Unique, record: Record, holder: str) -> str:
    said = ", ".join(f"{name} {getattr(record, name)!r}" for name in rule.fields)
    return f"its {said} belongs to {holder!r} in this store"
