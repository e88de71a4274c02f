"""The same data in every store: populations of records, and stores that take them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from alma.model.graph import GraphEntity
from alma.model.memory import Memory
from alma.model.query import And
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.storage.base import StorageBackend
from alma.testing.strategies import records, texts

DIMS = 3
EVERYWHERE = Scope.everywhere()
REFERRED = {kind: tuple(f"{kind} {number}" for number in range(4)) for kind in ("memory", "session", "graph_entity")}


def population(cls: type[Record], size: int = 6) -> SearchStrategy[list[Record]]:
    """Records that may stand beside each other: ids differ, unique fields too, references lead somewhere."""
    fixed: dict[str, SearchStrategy[Any]] = {}
    for reference in cls.spec.references:
        if reference.must_exist:
            fixed[reference.field] = st.sampled_from(REFERRED[reference.kind])
    if cls.spec.text:
        words = st.lists(st.sampled_from(["form", "Form", "login", "テスト", "naïve", "x1"]), min_size=1, max_size=4)
        fixed[cls.spec.text[0]] = words.map(" ".join) | texts(cls.spec.by_name[cls.spec.text[0]]).map(lambda t: t[:40])
    return st.lists(records(cls, DIMS, **fixed), max_size=size, unique_by=_identities(cls))


def _identities(cls: type[Record]) -> Any:
    """Keys that must differ, for the record and for each of its uniqueness rules."""
    rules = [(rule.fields, rule.nulls_equal) for rule in cls.spec.unique]
    if not cls.spec.numbered:
        rules.append(((cls.spec.key,), True))

    def identity(fields: tuple[str, ...], nulls_equal: bool) -> Any:
        def of(record: Record) -> Any:
            values = tuple(getattr(record, name) for name in fields)
            return id(record) if None in values and not nulls_equal else values

        return of

    return tuple(identity(*rule) for rule in rules) or (id,)


def refill(storage: StorageBackend, cls: type[Record], batch: list[Record]) -> None:
    """Let the store hold exactly these records of the kind, and what they point to."""
    with storage.transaction() as tx:
        if not cls.spec.append_only:
            tx.delete_where(cls, EVERYWHERE, And())
        if any(reference.must_exist for reference in cls.spec.references):
            tx.save(*(Memory(id=each, content="something") for each in REFERRED["memory"]))
            tx.save(*(Session(id=each) for each in REFERRED["session"]))
            tx.save(*(_an_entity(each) for each in REFERRED["graph_entity"]))
        tx.save(*batch)


def _an_entity(key: str) -> GraphEntity:
    names: dict[str, Any] = {"name": key, "name_key": key, "entity_type": "thing", "type_key": "thing"}
    return GraphEntity(id=key, entity_id=key, project_id="shop", **names)
