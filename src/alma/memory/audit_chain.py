"""Checking the audit chains: one pass over the log by number, with each chain's last hash in hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from alma.model.governance import AuditEvent
from alma.storage.base import ChainHead
from alma.storage.chain import digest, digest_before_erasure, seal

Tampering = Literal["changed", "removed", "inserted"]
# Under this name the event of an erasure lists the events that lost their details, each with its seal.
ERASED_EVENTS = "erased_events"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written: what happened, to which event where that is known, in a sentence."""

    kind: Tampering
    event_id: int | None
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Verification:
    """What a look at the whole log found.

    `first_id` is the number of the first chained event; what lies before it, `unchained` events, was written before
    the store kept chains and is only counted.
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
    """An event that says nothing that could be read, at the place that it has."""

    id: int | None
    chain: int | None
    chain_position: int | None
    chain_hash: str | None


class ChainCheck:
    """Sees every event in the order of its number and remembers what does not fit."""

    def __init__(self, heads: Sequence[ChainHead], anchors: Iterable[ChainHead] = ()) -> None:
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
        # Chains that have an event whose hash covers a digest of its details: all that follow are such.
        self._erasable: set[int] = set()
        # Older events that are not as they were written, unless a later one says that their details were erased.
        self._unproven: dict[str, tuple[str, Finding]] = {}

    def see(self, event: AuditEvent | Unreadable) -> None:
        if event.chain is None or event.chain_position is None or event.chain_hash is None:
            self._see_unchained(event)
            return
        if not _are_numbers(event.chain, event.chain_position):
            self._checked += 1
            self._note("changed", event.id, "has a place that is none")
            return
        if self._first_id is None:
            self._first_id = event.id
        self._checked += 1
        end = self._ends.get(event.chain, ChainHead(event.chain))
        if event.chain_position <= end.length:
            self._note("inserted", event.id, "takes the place of another one in its chain")
            return
        if event.chain_position > end.length + 1:
            self._note_gap(event, end)
        elif isinstance(event, Unreadable):
            self._note("changed", event.id, "is not as it was written, it cannot be read")
        else:
            self._check_statement(event, end.hash)
        self._check_anchor(event)
        self._ends[event.chain] = ChainHead(event.chain, event.chain_position, event.chain_hash)
        self._last_ids[event.chain] = event.id or 0

    def finished(self) -> Verification:
        """All that was found, once every event was seen."""
        self._findings.extend(finding for _, finding in self._unproven.values())
        for chain in sorted(self._heads.keys() | self._ends.keys()):
            self._check_end(chain, self._ends.get(chain, ChainHead(chain)))
        self._check_unchained()
        for chain, noted in self._anchors.items():
            reached = self._ends.get(chain, ChainHead(chain)).length
            for length in (length for length in noted if length > reached):
                self._findings.append(
                    Finding("removed", None, f"chain {chain} had {length} events once, now {reached}")
                )
        return Verification(self._checked, len(self._heads), self._unchained, self._first_id, tuple(self._findings))

    # ------------------------------------------------------------------ what may be wrong

    def _check_statement(self, event: AuditEvent, before: str) -> None:
        chain = event.chain or 0
        if _is(digest, event, before):
            if event.details_json is not None or event.error_message is not None:
                self._erasable.add(chain)
                self._believe(event)
            return
        if chain not in self._erasable and _is(digest_before_erasure, event, before):
            return
        last = self._last_ids.get(chain)
        beside = "" if last is None else f"(or {last}, which it follows) "
        finding = Finding("changed", event.id, f"event {event.id} {beside}is not as it was written")
        with suppress(TypeError, ValueError):
            if chain not in self._erasable:
                self._unproven[str(event.id)] = (seal(event), finding)
                return
        self._findings.append(finding)

    def _believe(self, event: AuditEvent) -> None:
        """Take the word of an event that is as it was written for older ones whose details it says it erased."""
        details = event.details_json or {}
        erased = details.get(ERASED_EVENTS)
        for event_id, sealed in erased.items() if isinstance(erased, dict) else ():
            if event_id in self._unproven and self._unproven[event_id][0] == sealed:
                del self._unproven[event_id]

    def _see_unchained(self, event: AuditEvent | Unreadable) -> None:
        if self._first_id is None and event.chain_hash is None:
            self._unchained += 1
        else:
            self._note("inserted", event.id, "has no place in any chain, but came after the first that has")

    def _note_gap(self, event: AuditEvent | Unreadable, end: ChainHead) -> None:
        missing = (event.chain_position or 0) - end.length - 1
        before = self._last_ids.get(event.chain or 0)
        where = f"before event {event.id}" if before is None else f"between the events {before} and {event.id}"
        self._findings.append(Finding("removed", None, f"{_events(missing)} removed from chain {event.chain}, {where}"))

    def _check_anchor(self, event: AuditEvent | Unreadable) -> None:
        noted = self._anchors[event.chain or 0].get(event.chain_position or 0)
        if noted is not None and noted != event.chain_hash:
            self._note("changed", event.id, "or one before it was changed since its hash was noted")

    def _check_end(self, chain: int, end: ChainHead) -> None:
        head = self._heads.get(chain)
        last = self._last_ids.get(chain)
        if head is None:
            self._findings.append(Finding("removed", None, f"chain {chain} has events, but its head was removed"))
        elif end.length < head.length:
            gone = _events(head.length - end.length)
            self._findings.append(Finding("removed", None, f"{gone} removed from the end of chain {chain}"))
        elif end.length > head.length:
            self._note("inserted", last, f"lies behind the end of chain {chain}")
        elif end.hash != head.hash:
            self._note("changed", last, f"is not the one that chain {chain} ended with")

    def _check_unchained(self) -> None:
        counted = sum(head.unchained for head in self._heads.values())
        if self._unchained < counted:
            gone = f"{_events(counted - self._unchained)} from before the chains removed"
            self._findings.append(Finding("removed", None, gone))
        elif self._unchained > counted:
            more = f"{self._unchained - counted:,} more events than there were lie before the chains"
            self._findings.append(Finding("inserted", None, more))

    def _note(self, kind: Tampering, event_id: int | None, what: str) -> None:
        self._findings.append(Finding(kind, event_id, f"event {event_id} {what}"))


def _are_numbers(*values: object) -> bool:
    """SQLite takes anything in the place of a number."""
    return all(isinstance(value, int) for value in values)


def _is(digested: Callable[[AuditEvent, str], str], event: AuditEvent, before: str) -> bool:
    """Whether an event has the hash that it must have behind the one before it."""
    try:
        return digested(event, before) == event.chain_hash
    except (TypeError, ValueError):
        # Something stands where a text or a moment must.
        return False


def _events(count: int) -> str:
    return f"{count:,} event{' was' if count == 1 else 's were'}"
