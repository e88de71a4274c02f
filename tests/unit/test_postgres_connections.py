"""Consecutive reads on PostgreSQL reuse one connection with its prepared statements."""

from __future__ import annotations

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make

_CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'"


def test_reads_one_after_the_other_take_one_connection(postgres_dsn: str) -> None:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        store.save(make.a_heuristic())
        for _ in range(3):
            with store.reading() as (tx, generation):
                assert generation
                assert len(tx.find(Heuristic, Scope.everywhere())) == 1
        with store.connection() as connection:
            # The one that asks is not idle.
            assert connection.execute(_CONNECTED).fetchall() == [(0,)]
