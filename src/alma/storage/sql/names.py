"""The names of tables and the spelling of parameters, in either dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from alma.model.kinds import KINDS
from alma.model.record import RecordSpec

DialectName = Literal["sqlite", "postgresql"]
_WHOSE = ("project_id", "agent", "user_id")


class Names:
    """The names of one dialect's tables."""

    tags = "memory_tags"

    def __init__(self, dialect: DialectName) -> None:
        self.dialect: DialectName = dialect
        # A positional value as the driver wants it written.
        self.mark = "?" if dialect == "sqlite" else "%s"
        # The prefix of tables on a server shared with others.
        prefix = "alma_" if dialect == "postgresql" else ""
        self.embeddings = f"{prefix}embeddings"
        self.models = f"{prefix}embedding_models"
        self.projections = f"{prefix}projections"
        self.outbox = f"{prefix}outbox"
        self.audit_chains = f"{prefix}audit_chains"

    def table(self, spec: RecordSpec) -> str:
        """The table of a kind."""
        return spec.postgres_table if self.dialect == "postgresql" else spec.table

    def fts_table(self, spec: RecordSpec) -> str:
        """The full-text table of a kind on SQLite."""
        return f"{spec.table}_fts"

    def owner_columns(self, spec: RecordSpec) -> list[str]:
        """The owner columns of a kind, except for the session, which has a separate index."""
        return [name for name in _WHOSE if name in spec.by_name]

    def owners(self, spec: RecordSpec) -> str:
        """The owners of a record, as in PostgreSQL's full-text index."""
        return f"ARRAY[{', '.join(self.owner_columns(spec))}]"

    def tables(self) -> Iterator[str]:
        """Every table but those that SQLite's full text needs."""
        yield from (self.table(cls.spec) for cls in KINDS)
        yield from (self.tags, self.embeddings, self.models, self.projections, self.outbox, self.audit_chains)

    def parameter(self, name: str) -> str:
        """A named value as the driver wants it written."""
        return f":{name}" if self.dialect == "sqlite" else f"%({name})s"
