"""The heads of the audit chains as a table."""

from __future__ import annotations

from functools import cache

from alma.storage.chain import ChainHead, ChainTable
from alma.storage.sql.connected import Connected
from alma.storage.sql.names import Names


class SqlChains(ChainTable):
    """The heads of the audit chains as a table."""

    def __init__(self, tx: Connected) -> None:
        self._tx = tx

    def take(self) -> ChainHead:
        # SQLite has one writer at a time. On a server a chain that another writer holds is left to it, and where all
        # are held a new one is begun: so nobody waits, and there are as many as ever wrote at once.
        only_free = "" if self._tx.dialect.name == "sqlite" else " FOR UPDATE SKIP LOCKED"
        found = self._tx.rows(f"{self._heads()} LIMIT 1{only_free}", {})
        if not found:
            table = self._tx.names.audit_chains
            begun = f"INSERT INTO {table} (length) VALUES (0) RETURNING chain, length, hash, unchained"
            found = self._tx.rows(begun, {})
        return ChainHead(*found[0])

    def move(self, head: ChainHead) -> None:
        self._tx.run(_moving(self._tx.names), {"length": head.length, "hash": head.hash, "chain": head.chain})

    def heads(self) -> list[ChainHead]:
        return [ChainHead(*row) for row in self._tx.rows(self._heads(), {})]

    def _heads(self) -> str:
        return f"SELECT chain, length, hash, unchained FROM {self._tx.names.audit_chains} ORDER BY chain"


@cache
def _moving(names: Names) -> str:
    """Writes down where a chain ends."""
    named = names.parameter
    return (
        f"UPDATE {names.audit_chains} SET length = {named('length')}, hash = {named('hash')} "
        f"WHERE chain = {named('chain')}"
    )
