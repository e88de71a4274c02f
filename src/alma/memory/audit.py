"""Audit: who did what to which record, from where and with which result; reading and verifying the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma import clock
from alma.errors import ALMAError, ConflictError, StorageError
from alma.lazy import lazy_regex
from alma.memory.audit_chain import (
    CHAIN_BEGINNINGS,
    RETENTION,
    Beginning,
    ChainCheck,
    Unreadable,
    Verification,
    beginnings_in,
)
from alma.model.common import checked_whole
from alma.model.fields import LONGEST_NAME, JsonObject, JsonValue
from alma.model.governance import ANONYMOUS, Attribution, AuditEvent, audit_event, checked_by
from alma.model.query import EVERYTHING, And, Compare, Has, Or, Order, Predicate
from alma.model.scope import Scope
from alma.redaction.names import is_secret_name
from alma.redaction.redactor import redact_text
from alma.storage.base import ChainHead, StorageBackend, Transaction, checked_storage

_log = logging.getLogger("alma.memory")
_PAGE = 1000
_RETENTION_BATCH = 5_000
_MAX_EVENTS = 1000
_MAX_ERROR_LENGTH = 500
_MAX_IDS_PER_EVENT = 500
_EVERYWHERE = Scope.everywhere()
_BY_NUMBER = (Order("id"),)
_POSITION_FIELDS = ("id", "chain", "chain_position", "chain_hash")
Mask = Callable[[str], str]
_HIDDEN = "***"
_MAX_VALUE_LENGTH = 200
_MAX_ITEMS = 50
_MAX_DEPTH = 6
# Names of values that contain secrets, besides the names of secrets themselves.
_SECRET_CARRIER = lazy_regex(r"(?:^|[_\-.\s])(?:auth|authorization|cookies?|dsn|connection_?string)$", re.IGNORECASE)
_WORD_START = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")
# Content can be erased from records but not from the log, so only its length is logged.
_CONTENT_NAMES = frozenset(("content", "content_json", "text", "summary", "embedding", "vector", "state_data"))


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who requested the current operation, and the request as far as it is known."""

    by: Attribution = ANONYMOUS
    request: Mapping[str, Any] | None = None


_UNKNOWN = RequestContext()
_CONTEXT: ContextVar[RequestContext] = ContextVar("alma_request", default=_UNKNOWN)


@contextmanager
def request_context(by: Attribution, request: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Set the request context for the code inside the block."""
    before = _CONTEXT.set(RequestContext(by, request))
    try:
        yield
    finally:
        _CONTEXT.reset(before)


def current_request() -> RequestContext:
    """The request context of the current operation."""
    return _CONTEXT.get()


def mask_secrets(text: str) -> str:
    """The text with its secrets masked by the default redactor."""
    return redact_text(text).text


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Events, newest first; `next_before` continues after them and is None at the end."""

    events: tuple[AuditEvent, ...]
    next_before: int | None

    def __iter__(self) -> Iterator[AuditEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)


class AuditTrail:
    """The audit log of a store. Writes are logged by the store; failures and optionally reads are recorded here.

    `mask` hides secrets in logged requests.
    """

    def __init__(self, storage: StorageBackend, *, log_reads: bool = False, mask: Mask = mask_secrets) -> None:
        self._storage = checked_storage("audit", storage)
        self._log_reads = log_reads
        self._mask = mask

    # ------------------------------------------------------------------ reading

    def find(
        self,
        scope: Scope,
        *,
        agent: str | None = None,
        action: str | None = None,
        resource_type: str | None = None,
        resource_id: str | None = None,
        success: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> AuditPage:
        """The events inside the scope that match every given filter, newest first, with numbers below `before`.

        `resource_id` also finds events of bulk operations on that record; `until` is excluded.
        """
        checked_whole("audit", "limit", limit, 1, _MAX_EVENTS)
        equal = {"agent_id": agent, "action": action, "resource_type": resource_type, "success": success}
        parts: list[Predicate] = [Compare(name, "eq", value) for name, value in equal.items() if value is not None]
        if resource_id is not None:
            parts.append(Or(Compare("resource_id", "eq", resource_id), Has("resource_ids", resource_id)))
        if since is not None:
            parts.append(Compare("created_at", "ge", since))
        if until is not None:
            parts.append(Compare("created_at", "lt", until))
        if before is not None:
            parts.append(Compare("id", "lt", before))
        found = self._storage.find(AuditEvent, scope, And(*parts), (Order("id", "desc"),), limit + 1)
        events = tuple(found[:limit])
        return AuditPage(events, events[-1].id if len(found) > limit else None)

    # ------------------------------------------------------------------ recording

    def record_failure(
        self,
        action: str,
        resource_type: str,
        error: BaseException | str,
        by: Attribution = ANONYMOUS,
        *,
        resource_id: str = "*",
        request: Mapping[str, Any] | None = None,
    ) -> None:
        """Record that an operation was refused or failed, in a separate transaction.

        Call it after the failed transaction has ended: inside it, the event would be rolled back.
        """
        if self._storage.is_writing:
            raise StorageError("a failure must be recorded after the transaction that failed has ended, not inside it")
        message = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
        # The id may not exist and can be any text.
        named = self._mask(resource_id)
        self._save(action, resource_type, [named], by, request, short(message, self._mask, _MAX_ERROR_LENGTH))

    @contextmanager
    def attempt(
        self,
        action: str,
        resource_type: str,
        by: Attribution = ANONYMOUS,
        *,
        resource_id: str = "*",
        request: Mapping[str, Any] | None = None,
    ) -> Iterator[None]:
        """Record an ALMAError raised inside the block as a failure, once, and raise it again.

        Inside a transaction nothing is recorded; the caller that ends the transaction does so.
        """
        try:
            yield
        except ALMAError as exc:
            # A store that is down cannot record the failure either.
            down = isinstance(exc, StorageError) and not isinstance(exc, ConflictError)
            if not down and not exc.audited and not self._storage.is_writing:
                exc.audited = self._recorded(action, resource_type, exc, by, resource_id, request)
            raise

    def _recorded(
        self,
        action: str,
        resource_type: str,
        exc: ALMAError,
        by: Attribution,
        resource_id: str,
        request: Mapping[str, Any] | None,
    ) -> bool:
        named = resource_id if isinstance(resource_id, str) and 0 < len(resource_id) <= LONGEST_NAME else "*"
        try:
            self.record_failure(action, resource_type, exc, by, resource_id=named, request=request)
        except ALMAError as second:
            # The first error is the one to report.
            _log.warning("a failure could not be recorded", extra={"action": action, "error": str(second)})
            return False
        return True

    def record_read(
        self,
        resource_type: str,
        resource_ids: Iterable[str],
        by: Attribution = ANONYMOUS,
        *,
        action: str = "read",
        request: Mapping[str, Any] | None = None,
    ) -> None:
        """Record that these records were read or found, if the trail logs reads."""
        if self._log_reads:
            self._save(action, resource_type, list(resource_ids), by, request, None)

    def _save(
        self,
        action: str,
        resource_type: str,
        ids: list[str],
        by: Attribution,
        request: Mapping[str, Any] | None,
        error: str | None,
    ) -> None:
        details: JsonObject = {} if request is None else {"request": sanitized(request, self._mask)}
        checked_by("audit", by)
        if by.reason is not None:
            details["reason"] = self._mask(by.reason)
        chunks = [ids[start : start + _MAX_IDS_PER_EVENT] for start in range(0, len(ids), _MAX_IDS_PER_EVENT)] or [[]]
        moment = clock.now()
        events = [
            audit_event(
                by,
                action,
                resource_type,
                chunk,
                details_json=details or None,
                success=error is None,
                error_message=error,
                user_agent=None if by.user_agent is None else self._mask(by.user_agent),
                created_at=moment,
            )
            for chunk in chunks
        ]
        self._storage.save_many(events, by)

    # ------------------------------------------------------------------ verifying

    def heads(self) -> list[ChainHead]:
        """The current heads of the audit chains; kept elsewhere and passed to `verify` later, they prove that the log
        was not rewritten."""
        return self._storage.audit_heads()

    def verify(self, anchors: Iterable[ChainHead] = ()) -> Verification:
        """Check the whole log and report every event that was changed, removed or inserted.

        `anchors` are heads that were noted earlier; each must still be part of its chain.
        """
        with self._storage.snapshot() as tx:
            check = ChainCheck(tx.audit_heads(), anchors, _beginnings(tx))
            for event in _whole_log(tx):
                check.see(event)
            return check.finished()

    # ------------------------------------------------------------------ retention

    def count_before(self, moment: datetime) -> int:
        """The number of chained events from before a moment."""
        return self._storage.count(AuditEvent, _EVERYWHERE, _old(moment))

    def delete_before(
        self, moment: datetime, by: Attribution = ANONYMOUS, renew: Callable[..., object] = lambda *_: None
    ) -> int:
        """Delete the events from before a moment; returns how many.

        A new event records where each chain begins now, so that the rest of the log still verifies. Events from before
        the store kept chains stay.
        """
        # Not the events that this writes, whatever the clock says.
        newest = self._storage.values(AuditEvent, ("id",), _EVERYWHERE, EVERYTHING, (Order("id", "desc"),), 1)
        old = And(_old(moment), Compare("id", "le", newest[0][0] if newest else 0))
        deleted = 0
        while count := self._storage.write(lambda tx: _delete_oldest(tx, old), by):
            deleted += count
            renew()
        return deleted


def _old(moment: datetime) -> Predicate:
    return And(Compare("created_at", "lt", moment), Compare("chain_position", "ge", 1))


def _beginnings(tx: Transaction) -> dict[int, Beginning]:
    """Where each chain begins, according to the newest event that records a retention."""
    found: dict[int, Beginning] = {}
    recorded = And(Compare("action", "eq", RETENTION), Compare("resource_type", "eq", AuditEvent.spec.kind))
    for event in tx.find(AuditEvent, _EVERYWHERE, recorded, _BY_NUMBER):
        found.update(beginnings_in(event))
    return found


def _delete_oldest(tx: Transaction, old: Predicate) -> int:
    """Delete a batch of the oldest events, of each chain without a gap."""
    tx.hold("audit.retention")
    begins = _beginnings(tx)
    deleted: list[AuditEvent] = []
    moved: dict[int, AuditEvent] = {}
    stopped: set[int] = set()
    for event in tx.find(AuditEvent, _EVERYWHERE, old, _BY_NUMBER, _RETENTION_BATCH):
        chain, position = event.chain or 0, event.chain_position or 0
        last = moved[chain].chain_position if chain in moved else begins[chain].position if chain in begins else 0
        if chain in stopped or position != (last or 0) + 1:
            stopped.add(chain)
            continue
        moved[chain] = event
        deleted.append(event)
    if deleted:
        ends = {str(chain): {"position": e.chain_position, "hash": e.chain_hash} for chain, e in moved.items()}
        told = {**{str(chain): each.values() for chain, each in begins.items()}, **ends}
        details = {CHAIN_BEGINNINGS: told, "deleted": len(deleted)}
        # Before the deletion: a database may give the number of the newest event away again.
        tx.save(audit_event(tx.by, RETENTION, AuditEvent.spec.kind, details_json=details))
        tx.delete_events(deleted)
    return len(deleted)


def _whole_log(tx: Transaction) -> Iterator[AuditEvent | Unreadable]:
    """Every event by number; an unreadable event is replaced by its position."""
    last: int | None = None
    while True:
        behind = EVERYTHING if last is None else Compare("id", "gt", last)
        try:
            page: Sequence[AuditEvent | Unreadable] = tx.find(AuditEvent, _EVERYWHERE, behind, _BY_NUMBER, _PAGE)
        except StorageError:
            rows = tx.values(AuditEvent, _POSITION_FIELDS, _EVERYWHERE, behind, _BY_NUMBER, _PAGE)
            page = [_read_again(tx, Unreadable(*row)) for row in rows]
        yield from page
        if len(page) < _PAGE:
            return
        last = page[-1].id


def _read_again(tx: Transaction, place: Unreadable) -> AuditEvent | Unreadable:
    try:
        (event,) = tx.find(AuditEvent, _EVERYWHERE, Compare("id", "eq", place.id))
    except StorageError:
        return place
    return event


# ---------------------------------------------------------------------- masking requests


def sanitized(request: Mapping[str, Any], mask: Mask = mask_secrets) -> JsonObject:
    """A request as it is logged: secrets masked, content replaced by its length, long values cut."""
    return _object(request, mask, 0)


def short(text: str, mask: Mask = mask_secrets, longest: int = _MAX_VALUE_LENGTH) -> str:
    """A text with secrets masked, without NULs and lone surrogates, cut to length."""
    clean = mask(text.encode("utf-8", "replace").decode().replace("\x00", ""))
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _named(name: str, value: Any, mask: Mask, depth: int) -> JsonValue:
    if value is not None and _hides(_WORD_START.sub("_", name)):
        return _HIDDEN
    if name in _CONTENT_NAMES and hasattr(value, "__len__"):
        return f"({len(value):,} {'characters' if isinstance(value, str) else 'items'})"
    return _value(value, mask, depth)


def _hides(name: str) -> bool:
    """Whether any value under this name is masked."""
    return is_secret_name(name) or _SECRET_CARRIER.search(name) is not None


def _value(value: Any, mask: Mask, depth: int) -> JsonValue:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < 1e300 else str(value)
    if isinstance(value, str):
        return short(value, mask)
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return _object(value, mask, depth + 1)
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(item, mask, depth + 1) for item in _first(value)]
    return short(str(value), mask)


def _object(given: Mapping[Any, Any], mask: Mask, depth: int) -> JsonObject:
    return {short(str(key), mask): _named(str(key), item, mask, depth) for key, item in _first(given.items())}


def _first(items: Any) -> list[Any]:
    return list(items)[:_MAX_ITEMS]
