"""The snapshot of one transaction: the documents of the service, corrected by commits up to its time.

A reader sees the state after one commit. Of later ones it takes the documents from before, of earlier ones whose
documents are still being written those from after; both are in the log. A writer sees its own writes the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from alma.model.record import Record
from alma.storage.cosmos.account import Account, Charges
from alma.storage.cosmos.documents import Document, bare, container_of, decoded, encoded, key_of
from alma.storage.cosmos.log import STATE, CommitLog, Entry, Turn, Write
from alma.storage.cosmos.queries import KEY, Condition

T = TypeVar("T")
_LONGEST_LIST = 200


class Seen:
    """A document in place of that of the service, None for none, and the record in it."""

    __slots__ = ("_record", "document")

    def __init__(self, document: Document | None, record: Record | None = None) -> None:
        self.document = document
        self._record = record

    def record(self, cls: type[Record]) -> Record:
        if self._record is None:
            self._record = decoded(cls, self.document or {})
        return self._record


class View:
    """The documents as one transaction sees them."""

    def __init__(self, account: Account, log: CommitLog, charges: Charges, turn: Turn | None) -> None:
        self._account = account
        self._log = log
        self._charges = charges
        self._turn = turn
        self._covered: dict[str, dict[Any, Seen]] = defaultdict(dict)
        self._read: dict[tuple[str, Any], Document] = {}
        self._absent: set[tuple[str, Any]] = set()
        self._before: dict[tuple[str, Any], Document | None] = {}
        self._state: Document | None = None if turn is None else turn.state
        self._looked = self.number = 0 if turn is None else turn.applied
        if turn is not None:
            return
        self.number, pending = log.begun(charges)
        # Later commits are looked for behind this one.
        self._looked = self.number
        for entry in pending:
            for write in entry.writes:
                self._covered[write.table][write.key] = Seen(write.after)
            self._state = entry.after

    @property
    def writable(self) -> bool:
        return self._turn is not None

    # ------------------------------------------------------------------ the store's state

    @property
    def state(self) -> Document:
        """Models, projections, counters and audit chain of the store; a writer may change it."""
        if self._state is None:
            state = self.consistently(lambda: self._log.head(self._charges)[STATE])
            # A commit that was seen meanwhile has given the state before it.
            self._state = state if self._state is None else self._state
        return self._state

    # ------------------------------------------------------------------ reading

    def consistently(self, read: Callable[[], T]) -> T:
        """The result of reading, with no commit in between that it may show half."""
        while True:
            found = read()
            if self._turn is not None:
                self._turn.renew()
                return found
            later = self._log.after(self._looked, self._charges)
            if not later:
                return found
            self._undo(later)

    def _undo(self, later: Iterable[Entry]) -> None:
        """See the documents that later commits changed as they were before."""
        for entry in later:
            for write in entry.writes:
                self._covered[write.table].setdefault(write.key, Seen(write.before))
            if self._state is None:
                self._state = entry.before
            self._looked = entry.number

    def covered(self, table: str) -> dict[Any, Seen]:
        return self._covered[table]

    def documents(
        self,
        table: str,
        condition: Condition,
        fits: Callable[[Seen], bool],
        keys: Sequence[Any] | None = None,
        partition: str | None = None,
        order: str = "",
        top: int | None = None,
        select: str = "*",
    ) -> list[Seen]:
        """The documents of a table that fulfil a condition, with those that this transaction sees otherwise."""
        if keys is not None and all(self._is_known(table, key) for key in keys):
            fetched: list[Document] = []
        else:
            fetched = self.consistently(lambda: self._fetched(table, condition, partition, order, top, select))
        covered = self._covered[table]
        if self.writable and select == "*":
            self._remember(table, fetched, keys)
        found = [Seen(document) for document in fetched if key_of(document) not in covered]
        listed = covered.values() if keys is None else [covered[key] for key in dict.fromkeys(keys) if key in covered]
        found += [seen for seen in listed if seen.document is not None and fits(seen)]
        return found

    def _is_known(self, table: str, key: Any) -> bool:
        return key in self._covered[table] or (table, key) in self._absent

    def _fetched(
        self, table: str, condition: Condition, partition: str | None, order: str, top: int | None, select: str
    ) -> list[Document]:
        most = None if top is None else top + len(self._covered[table])
        return self._account.query(
            container_of(table),
            condition,
            self._charges,
            select=select,
            order=order,
            top=most,
            partition=partition,
        )

    def _remember(self, table: str, fetched: Sequence[Document], keys: Sequence[Any] | None) -> None:
        for document in fetched:
            self._read[table, key_of(document)] = document

    def absent(self, table: str, keys: Iterable[Any]) -> None:
        """Remember that the service has no documents of these keys."""
        self._absent.update((table, key) for key in keys if (table, key) not in self._read)

    def count(self, table: str, condition: Condition, fits: Callable[[Seen], bool], partition: str | None) -> int:
        """The number of documents of a table that fulfil a condition."""
        return int(self.total("COUNT(1)", lambda _: 1, table, condition, fits, partition))

    def total(
        self,
        what: str,
        of: Callable[[Seen], float],
        table: str,
        condition: Condition,
        fits: Callable[[Seen], bool],
        partition: str | None,
    ) -> float:
        """An aggregate over the documents of a table that fulfil a condition."""
        covered = self._covered[table]

        def read() -> float:
            if len(covered) > _LONGEST_LIST:
                keys = self._fetched(table, condition, partition, "", None, f"{KEY} AS key, c.alma.length")
                return sum(of(_aggregated(each)) for each in keys if each["key"] not in covered)
            outside = condition.outside(list(covered))
            found = self._account.query(
                container_of(table), outside, self._charges, select=f"VALUE {what}", partition=partition
            )
            return sum(each for each in found if isinstance(each, int | float))

        total = self.consistently(read)
        return total + sum(of(seen) for seen in covered.values() if seen.document is not None and fits(seen))

    def answers(
        self,
        table: str,
        condition: Condition,
        select: str,
        order: str = "",
        top: int | None = None,
        partition: str | None = None,
    ) -> list[Any]:
        """Parts of the documents of a table that this transaction sees as the service does."""
        found = self.consistently(lambda: self._fetched(table, condition, partition, order, top, select))
        covered = self._covered[table]
        return [each for each in found if each["key"] not in covered]

    # ------------------------------------------------------------------ writing

    def current(self, table: str, key: Any) -> Document | None:
        """The document of a key as a writer sees it, which it has read or written before."""
        if key in self._covered[table]:
            return self._covered[table][key].document
        return self._read.get((table, key))

    def put(self, table: str, document: Document, record: Record | None = None) -> None:
        """Write a document, new or changed."""
        self._change(table, key_of(document), Seen(document, record))

    def put_record(self, record: Record, embedding: Any) -> None:
        name = record.spec.vector_field
        self.put(record.spec.table, encoded(record, embedding), record if name is None else None)

    def delete(self, table: str, key: Any) -> None:
        self._change(table, key, Seen(None))

    def _change(self, table: str, key: Any, seen: Seen) -> None:
        if (table, key) not in self._before:
            self._before[table, key] = self._read.get((table, key))
        self._covered[table][key] = seen

    def writes(self) -> list[Write]:
        """The changes of the transaction."""
        made: list[Write] = []
        for (table, key), before in self._before.items():
            after = self._covered[table][key].document
            if before is None and after is None:
                continue
            etag = None if before is None else before["_etag"]
            made.append(
                Write(table, None if before is None else bare(before), None if after is None else bare(after), etag)
            )
        return made


def _aggregated(answer: Document) -> Seen:
    return Seen({"alma": {"length": answer.get("length", 0)}})
