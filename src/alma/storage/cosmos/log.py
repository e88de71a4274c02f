"""The commit log: how a transaction over several partitions becomes visible at once, and survives a dead writer.

Cosmos DB commits inside one partition only. So a transaction is committed by creating one document, the next numbered
entry of the log, which holds every changed document before and after. Then the documents themselves are written, and
the head of the log says how far that went. A writer that finds entries beyond the head writes their documents first.

Writers take turns: the head names the one whose turn it is. That is a courtesy, not what correctness rests on: an
entry's number can be created only once, and a document is only written over the state that the writer has seen.
"""

from __future__ import annotations

import base64
import copy
import json
import logging
import random
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from alma.clock import new_id
from alma.errors import ConflictError, StorageError
from alma.storage.cosmos.account import Account, Charges, Put, Refused, Unanswered, batches, patiently
from alma.storage.cosmos.documents import (
    OURS,
    PARTITION,
    Container,
    Document,
    bare,
    container_of,
    key_of,
    partition_in,
    stub,
)
from alma.storage.cosmos.queries import Condition

_log = logging.getLogger("alma.storage.azure_cosmos")

LOG = Container("alma-journal", f"/{PARTITION}", embeds=False)
STATE = "state"
_HEAD, _COMMITS = "head", "commits"
_LONGEST_DATA = 1_200_000
_KEPT_SECONDS = 600
_CLEANED_EVERY = 64
_LONGEST_WAIT = 300.0
_COMMIT_PATIENCE = 20.0
_APPLY_ATTEMPTS = 10


class Write(NamedTuple):
    """A document before and after a transaction, None where there is none, and the entity tag it was read with."""

    table: str
    before: Document | None
    after: Document | None
    etag: str | None = None

    @property
    def key(self) -> Any:
        return key_of(self.after or self.before or {})


class Entry(NamedTuple):
    """A committed transaction: its number, who made it, its writes, and the store's state before and after."""

    number: int
    by: str
    writes: tuple[Write, ...]
    before: Document
    after: Document


class CommitLog:
    """The log of one store, as one process reads and extends it."""

    def __init__(self, account: Account, lease_seconds: float) -> None:
        self.account = account
        self.lease_seconds = lease_seconds
        self.store = ""
        self._applied = 0
        self._turns = threading.Lock()

    def create_head(self, state: Mapping[str, Any], charges: Charges) -> None:
        """Begin the log of a new store, unless another process has done so."""
        head = {"id": _HEAD, "store": new_id(), "applied": 0, "holder": None, "turn": 0, STATE: dict(state)}
        condition = Condition("c.id = @id", {"@id": _HEAD})
        if not self.account.query(LOG, condition, charges, partition=_HEAD):
            try:
                self.account.create(LOG, {**head, PARTITION: _HEAD}, charges)
            except Refused:
                _log.debug("another process began the log of this store")
        self.store = self.head(charges)["store"]

    def head(self, charges: Charges) -> Document:
        return self.account.read(LOG, _HEAD, _HEAD, charges)

    def begun(self, charges: Charges) -> tuple[int, list[Entry]]:
        """The number of the last commit, and the committed entries whose documents may not be written yet."""
        found = self._found_after(self._applied, charges)
        if not found:
            return self._applied, []
        self._applied = max(self._applied, self.head(charges)["applied"])
        entries = [self._entry(each, charges) for each in found if each["number"] > self._applied]
        return max(each["number"] for each in found), entries

    def after(self, number: int, charges: Charges) -> list[Entry]:
        """The entries behind a number, in order."""
        entries = [self._entry(each, charges) for each in self._found_after(number, charges)]
        if entries and entries[0].number != number + 1:
            raise StorageError("this snapshot was open for too long, and its state is gone: begin another one")
        return entries

    def _found_after(self, number: int, charges: Charges) -> list[Document]:
        condition = Condition("c.number > @number", {"@number": number})
        found = self.account.query(LOG, condition, charges, partition=_COMMITS)
        return sorted(found, key=lambda each: int(each["number"]))

    def _entry(self, document: Document, charges: Charges) -> Entry:
        data = document["data"]
        if document["parts"]:
            found = self.account.query(LOG, Condition(), charges, partition=document["by"])
            data = "".join(part["data"] for part in sorted(found, key=lambda part: int(part["part"])))
        writes, before, after = json.loads(zlib.decompress(base64.b64decode(data)))
        return Entry(document["number"], document["by"], tuple(Write(*each) for each in writes), before, after)

    def turn(self, charges: Charges) -> Turn:
        """Wait for the turn to write, and complete what earlier writers left."""
        if not self._turns.acquire(timeout=_LONGEST_WAIT):
            raise StorageError("another thread has been writing to this store for five minutes; nothing was stored")
        try:
            turn = Turn(self, *self._taken(charges), charges)
            turn.complete_earlier()
        except BaseException:
            self._turns.release()
            raise
        return turn

    def ended(self) -> None:
        """Release the turn to the next thread."""
        self._turns.release()

    def _taken(self, charges: Charges) -> tuple[Document, str]:
        """The head with this writer's name in it, once it is free or its holder has been silent for the lease."""
        holder, seen, since = new_id(), "", time.monotonic()
        deadline, pause = since + _LONGEST_WAIT, 0.005
        while time.monotonic() < deadline:
            head = self.head(charges)
            if head["_etag"] != seen:
                seen, since = head["_etag"], time.monotonic()
            silent = time.monotonic() - since > self.lease_seconds
            if head["holder"] is None or silent:
                if silent:
                    _log.warning("a writer of Cosmos DB was silent for %.0f seconds: taking over", self.lease_seconds)
                mine = {**bare(head), "holder": holder, "turn": head["turn"] + 1}
                try:
                    return mine, self.account.replace(LOG, mine, seen, charges)
                except Refused:
                    continue
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(0.1, 2 * pause)
        raise StorageError("other processes have been writing to this store for five minutes; nothing was stored")

    # ------------------------------------------------------------------ writing documents

    def apply(self, entry: Entry, charges: Charges, etags: Mapping[tuple[str, str, str], str | None] | None) -> None:
        """Write the documents of a committed entry, those of a partition together."""
        groups: dict[tuple[str, str], list[Document]] = defaultdict(list)
        for write in entry.writes:
            for document in _written(write):
                document[OURS] = {**document[OURS], "commit": entry.number}
                groups[write.table, partition_in(write.table, document)].append(document)
        for (table, partition), documents in groups.items():
            known = (
                None if etags is None else {each["id"]: etags.get((table, partition, each["id"])) for each in documents}
            )
            self._write(entry.number, container_of(table), partition, documents, known, charges)

    def _write(
        self,
        number: int,
        container: Container,
        partition: str,
        documents: Sequence[Document],
        etags: Mapping[str, str | None] | None,
        charges: Charges,
    ) -> None:
        """Write documents over the states with these entity tags, or over what is there if it is older."""
        for _ in range(_APPLY_ATTEMPTS):
            if etags is None:
                stored = self._stored(container, partition, [each["id"] for each in documents], charges)
                newer = {key for key, each in stored.items() if each[OURS]["commit"] >= number}
                documents = [each for each in documents if each["id"] not in newer]
                etags = {key: each["_etag"] for key, each in stored.items()}
            try:
                for group in batches([(each, etags.get(each["id"])) for each in documents], _size):
                    self._run(container, partition, group, charges)
            except Refused:
                # Another writer is completing the same entry, or has.
                etags = None
            else:
                return
        raise Unanswered(f"the documents of {container.name} kept changing while they were written")

    def _stored(
        self, container: Container, partition: str, ids: Sequence[str], charges: Charges
    ) -> dict[str, Document]:
        found: dict[str, Document] = {}
        for start in range(0, len(ids), 100):
            named = {f"@i{number}": key for number, key in enumerate(ids[start : start + 100])}
            condition = Condition(f"c.id IN ({', '.join(named)})", named, stubs=True)
            for each in self.account.query(container, condition, charges, partition=partition):
                found[each["id"]] = each
        return found

    def _run(self, container: Container, partition: str, group: Sequence[Put], charges: Charges) -> None:
        if len(group) > 1:
            try:
                self.account.batch(container, partition, group, charges)
            except StorageError as exc:
                # One after another is as good: what is half written is completed from the log.
                _log.info("a batch of Cosmos DB failed, so its documents are written one by one: %s", exc)
            else:
                return
        for document, etag in group:
            if etag is None:
                self.account.create(container, document, charges)
            else:
                self.account.replace(container, document, etag, charges)

    def clean(self, applied: int, charges: Charges) -> None:
        """Delete entries that no snapshot needs any more, and never the last."""
        old = Condition(
            "c.number < @applied AND c._ts < @before",
            {"@applied": applied, "@before": int(time.time()) - _KEPT_SECONDS},
        )
        self.forget(self.account.query(LOG, old, charges, partition=_COMMITS), charges)

    def forget(self, entries: Sequence[Document], charges: Charges) -> None:
        for each in entries:
            if each["parts"]:
                parts = [part["id"] for part in self.account.query(LOG, Condition(), charges, partition=each["by"])]
                self._delete(each["by"], parts, charges)
        self._delete(_COMMITS, [each["id"] for each in entries], charges)

    def _delete(self, partition: str, ids: Iterable[str], charges: Charges) -> None:
        for group in batches(list(ids), lambda _: 0):
            self.account.delete(LOG, partition, group, charges)

    def scrub(self, charges: Charges) -> None:
        """Delete every entry but the last, whose contents are emptied once its documents are written."""
        turn = self.turn(charges)
        try:
            found = self.account.query(
                LOG, Condition("c.number <= @n", {"@n": turn.applied}), charges, partition=_COMMITS
            )
            found.sort(key=lambda each: int(each["number"]))
            self.forget(found[:-1], charges)
            for last in found[-1:]:
                state = turn.state
                emptied = {**bare(last), "data": _packed([], state, state), "parts": 0}
                self.account.replace(LOG, emptied, last["_etag"], charges)
        finally:
            turn.release()


class Turn:
    """A writer's turn: it alone commits, until it releases the head or is silent for too long."""

    def __init__(self, log: CommitLog, head: Document, etag: str, charges: Charges) -> None:
        self._log = log
        self._head = head
        self._etag = etag
        self._charges = charges
        self._renewed = time.monotonic()

    @property
    def applied(self) -> int:
        """The number of the last commit whose documents are written, which is the last one."""
        return int(self._head["applied"])

    @property
    def state(self) -> Document:
        return copy.deepcopy(self._head[STATE])

    def complete_earlier(self) -> None:
        """Write the documents of commits whose writers did not get that far."""
        for entry in self._log.after(self.applied, self._charges):
            _log.warning("completing a commit that its writer left half-way", extra={"commit": entry.number})
            self._log.apply(entry, self._charges, None)
            self._head |= {"applied": entry.number, STATE: entry.after}

    def renew(self) -> None:
        """Say that the writer is alive, from time to time."""
        if time.monotonic() - self._renewed < self._log.lease_seconds / 3:
            return
        self._head["turn"] += 1
        try:
            self._etag = self._log.account.replace(LOG, self._head, self._etag, self._charges)
        except Refused:
            raise ConflictError(
                f"another writer took over, as this one was silent for more than {self._log.lease_seconds:g} seconds; "
                f"nothing of this transaction was stored: repeat it"
            ) from None
        self._renewed = time.monotonic()

    def commit(self, writes: Sequence[Write], state: Document) -> None:
        """Commit the writes; afterwards they are durable, whether or not their documents could be written at once."""
        plain = tuple(each._replace(etag=None) for each in writes)
        entry = Entry(self.applied + 1, new_id(), plain, self.state, state)
        self._record(entry)
        etags = {
            (each.table, partition_in(each.table, document), document["id"]): each.etag
            for each in writes
            for document in (each.before,)
            if document is not None
        }
        try:
            patiently(lambda: self._log.apply(entry, self._charges, etags), _COMMIT_PATIENCE / 4, (StorageError,))
        except StorageError:
            _log.warning(
                "a commit is durable in the log, but its documents could not be written; the next writer does it",
                extra={"commit": entry.number},
                exc_info=True,
            )
            return
        self._head |= {"applied": entry.number, STATE: state}

    def _record(self, entry: Entry) -> None:
        """Create the entry of the log: from then on the transaction is committed."""
        data = _packed(entry.writes, entry.before, entry.after)
        pieces = [data[start : start + _LONGEST_DATA] for start in range(0, len(data), _LONGEST_DATA)]
        large = len(pieces) > 1
        for number, piece in enumerate(pieces if large else ()):
            part = {"id": f"{entry.by}-{number}", "part": number, "data": piece}
            self._log.account.create(LOG, {**part, PARTITION: entry.by}, self._charges)
        name = f"{entry.number:015d}"
        document: Document = {"id": name, "number": entry.number, "by": entry.by, "parts": len(pieces) if large else 0}
        document |= {"data": None if large else data, PARTITION: _COMMITS}
        try:
            patiently(lambda: self._log.account.create(LOG, document, self._charges), _COMMIT_PATIENCE, (Unanswered,))
        except Refused:
            self._require_mine(entry)
        except Unanswered as exc:
            raise StorageError(
                f"{exc}; whether this transaction was stored is unknown: look before you repeat it"
            ) from exc
        except StorageError as exc:
            raise type(exc)(f"{exc}; nothing of this transaction was stored") from exc

    def _require_mine(self, entry: Entry) -> None:
        """An entry with this number exists: it is this one, if only the answer to its creation was lost."""
        same = Condition("c.number = @number", {"@number": entry.number})
        (found,) = self._log.account.query(LOG, same, self._charges, partition=_COMMITS)
        if found["by"] != entry.by:
            raise ConflictError("another writer committed first; nothing of this transaction was stored: repeat it")

    def release(self) -> None:
        """End the turn."""
        try:
            self._log.account.replace(LOG, {**self._head, "holder": None}, self._etag, self._charges)
            if self.applied % _CLEANED_EVERY == 0:
                self._log.clean(self.applied, self._charges)
        except Refused:
            _log.warning("another writer took over before this one ended")
        except StorageError:
            _log.warning("the turn to write could not be given back; others wait for its lease", exc_info=True)
        finally:
            self._log.ended()


def _packed(writes: Sequence[Write], before: Document, after: Document) -> str:
    text = json.dumps([writes, before, after], ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


def _written(write: Write) -> list[Document]:
    """The documents that a write puts in place: the new one, and a stub where an old one was."""
    before, after = write.before, write.after
    if after is None:
        return [] if before is None else [stub(before)]
    moved = before is not None and partition_in(write.table, before) != partition_in(write.table, after)
    return [dict(after), *([stub(before)] if moved and before is not None else [])]


def _size(put: Put) -> int:
    return len(json.dumps(put[0]))
