"""Verify the audit chains in one pass over the log, keeping the last hash of each chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from alma.model.governance import AuditEvent
from alma.storage.audit import digest, digest_before_erasure, seal
from alma.storage.base import ChainHead

Tampering = Literal["changed", "removed", "inserted"]
# The key under which the event of an erasure lists the events whose details were erased, each with its seal.
ERASED_EVENTS = "erased_events"
# The action of an event that records the deletion of old events, and the key under which it says where chains begin.
RETENTION = "retention"
CHAIN_BEGINNINGS = "chain_beginnings"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The last deleted event of a chain, and the event that records its deletion."""

    position: int
    hash: str
    recorded_by: int | None

    def values(self) -> dict[str, int | str]:
        """The values as an event records them."""
        return {"position": self.position, "hash": self.hash}


def beginnings_in(event: AuditEvent) -> dict[int, Beginning]:
    """Where chains begin according to this event; what cannot be read is left out."""
    found: dict[int, Beginning] = {}
    said = (event.details_json or {}).get(CHAIN_BEGINNINGS)
    for chain, values in said.items() if isinstance(said, dict) else ():
        with suppress(TypeError, ValueError, KeyError):
            found[int(chain)] = Beginning(int(values["position"]), str(values["hash"]), event.id)
    return found


@dataclass(frozen=True, slots=True)
class Finding:
    """A change of the log: its kind, the event if known, and a message."""

    kind: Tampering
    event_id: int | None
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying the whole log.

    `first_id` is the first chained event; `unchained` events before it were written before the store kept chains and
    are only counted.
    """

    checked: int
    chains: int
    unchained: int
    first_id: int | None
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The position of an event that cannot be read."""

    id: int | None
    chain: int | None
    chain_position: int | None
    chain_hash: str | None


class ChainCheck:
    """Takes every event in the order of its number and collects findings."""

    def __init__(
        self,
        heads: Sequence[ChainHead],
        anchors: Iterable[ChainHead] = (),
        beginnings: Mapping[int, Beginning] | None = None,
    ) -> None:
        self._beginnings = dict(beginnings or {})
        # Intact events that record a retention.
        self._records: set[int | None] = set()
        self._heads = {head.chain: head for head in heads}
        self._anchors: dict[int, dict[int, str]] = defaultdict(dict)
        for anchor in anchors:
            if anchor.length:
                self._anchors[anchor.chain][anchor.length] = anchor.hash
        self._ends: dict[int, ChainHead] = {}
        self._last_ids: dict[int, int] = {}
        self._first_id: int | None = None
        self._checked = 0
        self._unchained = 0
        self._findings: list[Finding] = []
        # Chains in which hashes cover a digest of the details, from some event on.
        self._erasable: set[int] = set()
        # Changed events, unless a later event proves that their details were erased.
        self._unproven: dict[str, tuple[str, Finding]] = {}

    def see(self, event: AuditEvent | Unreadable) -> None:
        if event.chain is None or event.chain_position is None or event.chain_hash is None:
            self._see_unchained(event)
            return
        if not _are_numbers(event.chain, event.chain_position):
            self._checked += 1
            self._add_finding("changed", event.id, "has a position that is not a number")
            return
        if self._first_id is None:
            self._first_id = event.id
        self._checked += 1
        end = self._ends.get(event.chain) or self._start(event.chain)
        if event.chain_position <= end.length:
            self._add_finding("inserted", event.id, "takes the place of another one in its chain")
            return
        if event.chain_position > end.length + 1:
            self._add_gap(event, end)
        elif isinstance(event, Unreadable):
            self._add_finding("changed", event.id, "is not as it was written, it cannot be read")
        else:
            self._check_statement(event, end.hash)
        self._check_anchor(event)
        self._ends[event.chain] = ChainHead(event.chain, event.chain_position, event.chain_hash)
        self._last_ids[event.chain] = event.id or 0

    def finished(self) -> Verification:
        """The verification, once every event was seen."""
        self._findings.extend(finding for _, finding in self._unproven.values())
        for chain, beginning in self._beginnings.items():
            if beginning.recorded_by not in self._records:
                gone = f"{_events(beginning.position)} removed from the beginning of chain {chain}"
                self._findings.append(Finding("removed", None, f"{gone}, and the event that records it is not intact"))
        for chain in sorted(self._heads.keys() | self._ends.keys()):
            self._check_end(chain, self._ends.get(chain) or self._start(chain))
        self._check_unchained()
        for chain, noted in self._anchors.items():
            reached = (self._ends.get(chain) or self._start(chain)).length
            for length in (length for length in noted if length > reached):
                self._findings.append(
                    Finding("removed", None, f"chain {chain} had {length} events once, now {reached}")
                )
        return Verification(self._checked, len(self._heads), self._unchained, self._first_id, tuple(self._findings))

    # ------------------------------------------------------------------ findings

    def _start(self, chain: int) -> ChainHead:
        """Where a chain begins: after the events that a retention deleted."""
        beginning = self._beginnings.get(chain)
        return ChainHead(chain) if beginning is None else ChainHead(chain, beginning.position, beginning.hash)

    def _check_statement(self, event: AuditEvent, before: str) -> None:
        chain = event.chain or 0
        if _hash_matches(digest, event, before):
            if event.action == RETENTION:
                self._records.add(event.id)
            if event.details_json is not None or event.error_message is not None:
                self._erasable.add(chain)
                self._accept_erasures(event)
            return
        if chain not in self._erasable and _hash_matches(digest_before_erasure, event, before):
            return
        last = self._last_ids.get(chain)
        beside = "" if last is None else f"(or {last}, which it follows) "
        finding = Finding("changed", event.id, f"event {event.id} {beside}is not as it was written")
        with suppress(TypeError, ValueError):
            if chain not in self._erasable:
                self._unproven[str(event.id)] = (seal(event), finding)
                return
        self._findings.append(finding)

    def _accept_erasures(self, event: AuditEvent) -> None:
        """Accept that the details of older events were erased if an intact event lists them with their seals."""
        details = event.details_json or {}
        erased = details.get(ERASED_EVENTS)
        for event_id, sealed in erased.items() if isinstance(erased, dict) else ():
            if event_id in self._unproven and self._unproven[event_id][0] == sealed:
                del self._unproven[event_id]

    def _see_unchained(self, event: AuditEvent | Unreadable) -> None:
        if self._first_id is None and event.chain_hash is None:
            self._unchained += 1
        else:
            self._add_finding("inserted", event.id, "has no place in any chain, but came after the first that has")

    def _add_gap(self, event: AuditEvent | Unreadable, end: ChainHead) -> None:
        missing = (event.chain_position or 0) - end.length - 1
        before = self._last_ids.get(event.chain or 0)
        where = f"before event {event.id}" if before is None else f"between the events {before} and {event.id}"
        self._findings.append(Finding("removed", None, f"{_events(missing)} removed from chain {event.chain}, {where}"))

    def _check_anchor(self, event: AuditEvent | Unreadable) -> None:
        noted = self._anchors[event.chain or 0].get(event.chain_position or 0)
        if noted is not None and noted != event.chain_hash:
            self._add_finding("changed", event.id, "or one before it was changed since its hash was noted")

    def _check_end(self, chain: int, end: ChainHead) -> None:
        head = self._heads.get(chain)
        last = self._last_ids.get(chain)
        if head is None:
            self._findings.append(Finding("removed", None, f"chain {chain} has events, but its head was removed"))
        elif end.length < head.length:
            gone = _events(head.length - end.length)
            self._findings.append(Finding("removed", None, f"{gone} removed from the end of chain {chain}"))
        elif end.length > head.length:
            self._add_finding("inserted", last, f"lies behind the end of chain {chain}")
        elif end.hash != head.hash:
            self._add_finding("changed", last, f"is not the one that chain {chain} ended with")

    def _check_unchained(self) -> None:
        counted = sum(head.unchained for head in self._heads.values())
        if self._unchained < counted:
            gone = f"{_events(counted - self._unchained)} from before the chains removed"
            self._findings.append(Finding("removed", None, gone))
        elif self._unchained > counted:
            more = f"{self._unchained - counted:,} more events than expected are older than the chains"
            self._findings.append(Finding("inserted", None, more))

    def _add_finding(self, kind: Tampering, event_id: int | None, what: str) -> None:
        self._findings.append(Finding(kind, event_id, f"event {event_id} {what}"))


def _are_numbers(*values: object) -> bool:
    """Whether all are integers; SQLite accepts any value in an integer column."""
    return all(isinstance(value, int) for value in values)


def _hash_matches(digested: Callable[[AuditEvent, str], str], event: AuditEvent, before: str) -> bool:
    """Whether the hash of an event matches, given the hash before it."""
    try:
        return digested(event, before) == event.chain_hash
    except (TypeError, ValueError):
        # A column has a value of the wrong type.
        return False


def _events(count: int) -> str:
    return f"{count:,} event{' was' if count == 1 else 's were'}"
