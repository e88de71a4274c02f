"""Audit: who did what to which record, from where and how it went; and whether the log still says so."""

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
from alma.errors import ALMAError, ConflictError, StorageError, ValidationError
from alma.memory.audit_chain import ChainCheck, Unreadable, Verification
from alma.model.fields import LONGEST_NAME, JsonObject, JsonValue
from alma.model.governance import ANONYMOUS, Attribution, AuditEvent, checked_by
from alma.model.query import EVERYTHING, And, Compare, Has, Or, Order, Predicate
from alma.model.scope import Scope
from alma.redaction.names import is_secret_name
from alma.redaction.redactor import redact_text
from alma.storage.base import ChainHead, StorageBackend, Transaction, checked_storage

_log = logging.getLogger("alma.memory")
_PAGE = 1000
_MOST_EVENTS = 1000
_LONGEST_ERROR = 500
_MOST_IDS = 500
_EVERYWHERE = Scope.everywhere()
_BY_NUMBER = (Order("id"),)
_PLACE = ("id", "chain", "chain_position", "chain_hash")
Mask = Callable[[str], str]
_HIDDEN = "***"
_LONGEST_VALUE = 200
_MOST_ITEMS = 50
_DEEPEST = 6
# Names of what carries secrets, beside the names of secrets themselves.
_CARRIER = re.compile(r"(?:^|[_\-.\s])(?:auth|authorization|cookies?|dsn|connection_?string)$", re.IGNORECASE)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What memories say belongs to their own records, which can be deleted; of it only the length is noted.
_CONTENT_NAMES = frozenset(("content", "content_json", "text", "summary", "embedding", "vector", "state_data"))


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked for what is being done, and how, as far as whoever was asked knows."""

    by: Attribution = ANONYMOUS
    request: Mapping[str, Any] | None = None


_NOBODY = Asked()
_ASKED: ContextVar[Asked] = ContextVar("asked", default=_NOBODY)


@contextmanager
def asked_by(by: Attribution, request: Mapping[str, Any] | None = None) -> Iterator[None]:
    """What is done inside was asked for like this: what is called without knowing may look it up, in `asked`."""
    before = _ASKED.set(Asked(by, request))
    try:
        yield
    finally:
        _ASKED.reset(before)


def asked() -> Asked:
    """Who asked for what is being done."""
    return _ASKED.get()


def mask_secrets(text: str) -> str:
    """The text as the redactor leaves it."""
    return redact_text(text).text


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Events, newest first, and the number to go on behind; None where there are no more."""

    events: tuple[AuditEvent, ...]
    next_before: int | None

    def __iter__(self) -> Iterator[AuditEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)


class AuditTrail:
    """The audit log of a store. Writes log themselves; failures and, where switched on, reads are recorded here.

    `mask` hides secrets in what is logged of a request.
    """

    def __init__(self, storage: StorageBackend, *, log_reads: bool = False, mask: Mask = mask_secrets) -> None:
        self._storage = checked_storage("audit", storage)
        self._log_reads = log_reads
        self._mask = mask

    # ------------------------------------------------------------------ asking

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
        """The events inside the scope that fit every given filter, newest first, from before the number `before`.

        `resource_id` also finds acts on many records at once that touched it; `until` is excluded.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST_EVENTS:
            raise ValidationError("audit", "limit", limit, f"must be a whole number from 1 to {_MOST_EVENTS:,}")
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
        """Record that something was tried and refused or went wrong, in a transaction of its own.

        To be called when the transaction that failed has ended: inside it, the event would vanish with the rest.
        """
        if self._storage.is_writing:
            raise StorageError("a failure must be recorded after the transaction that failed has ended, not inside it")
        message = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
        # Nothing may have this id, so it can be any text.
        named = self._mask(resource_id)
        self._save(action, resource_type, [named], by, request, short(message, self._mask, _LONGEST_ERROR))

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
        """What is done inside is tried: an error of ALMA's is recorded as a failure, once, and goes on its way.

        Inside a transaction it is not: whoever ended that can say what became of it.
        """
        try:
            yield
        except ALMAError as exc:
            # A store that fails could not write that down either, and would only let the caller wait again.
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
            # What was wrong first is what the caller must hear of.
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
        """Record that these records were read or found, if this trail logs reads; otherwise do nothing."""
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
        chunks = [ids[start : start + _MOST_IDS] for start in range(0, len(ids), _MOST_IDS)] or [[]]
        moment = clock.now()
        events = [
            AuditEvent(
                user_id=by.user_id,
                session_id=by.session_id,
                agent_id=by.agent,
                action=action,
                resource_type=resource_type,
                resource_id=chunk[0] if len(chunk) == 1 else "*",
                resource_ids=None if len(chunk) == 1 else chunk,
                details_json=details or None,
                success=error is None,
                error_message=error,
                ip_address=by.ip_address,
                user_agent=None if by.user_agent is None else self._mask(by.user_agent),
                created_at=moment,
            )
            for chunk in chunks
        ]
        self._storage.save_many(events, by)

    # ------------------------------------------------------------------ verifying

    def heads(self) -> list[ChainHead]:
        """Where the log ends now; kept elsewhere and given to `verify` later, it proves that nothing was redone."""
        return self._storage.audit_heads()

    def verify(self, anchors: Iterable[ChainHead] = ()) -> Verification:
        """Go through the whole log and tell of every event that was changed, removed or inserted.

        `anchors` are heads that were noted earlier: each must still be part of its chain.
        """
        with self._storage.snapshot() as tx:
            check = ChainCheck(tx.audit_heads(), anchors)
            for event in _whole_log(tx):
                check.see(event)
            return check.finished()


def _whole_log(tx: Transaction) -> Iterator[AuditEvent | Unreadable]:
    """Every event by number; of one that cannot be read any more, the place that it has."""
    last: int | None = None
    while True:
        behind = EVERYTHING if last is None else Compare("id", "gt", last)
        try:
            page: Sequence[AuditEvent | Unreadable] = tx.find(AuditEvent, _EVERYWHERE, behind, _BY_NUMBER, _PAGE)
        except StorageError:
            rows = tx.values(AuditEvent, _PLACE, _EVERYWHERE, behind, _BY_NUMBER, _PAGE)
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


def sanitized(request: Mapping[str, Any], mask: Mask = mask_secrets) -> JsonObject:
    """A request as it may be logged: secrets hidden, content by its length alone, long values cut."""
    return _object(request, mask, 0)


def short(text: str, mask: Mask = mask_secrets, longest: int = _LONGEST_VALUE) -> str:
    """A text without secrets, NULs and lone surrogates, cut where it is long."""
    clean = mask(text.encode("utf-8", "replace").decode().replace("\x00", ""))
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _named(name: str, value: Any, mask: Mask, depth: int) -> JsonValue:
    if value is not None and _hides(_WORD_START.sub("_", name)):
        return _HIDDEN
    if name in _CONTENT_NAMES and hasattr(value, "__len__"):
        return f"({len(value):,} {'characters' if isinstance(value, str) else 'items'})"
    return _value(value, mask, depth)


def _hides(name: str) -> bool:
    """Whether all that stands under this name is hidden, whatever it looks like."""
    return is_secret_name(name) or _CARRIER.search(name) is not None


def _value(value: Any, mask: Mask, depth: int) -> JsonValue:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < 1e300 else str(value)
    if isinstance(value, str):
        return short(value, mask)
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return _object(value, mask, depth + 1)
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(item, mask, depth + 1) for item in _first(value)]
    return short(str(value), mask)


def _object(given: Mapping[Any, Any], mask: Mask, depth: int) -> JsonObject:
    return {short(str(key), mask): _named(str(key), item, mask, depth) for key, item in _first(given.items())}


def _first(items: Any) -> list[Any]:
    return list(items)[:_MOST_ITEMS]
