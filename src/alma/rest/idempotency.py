"""Idempotency keys: a request with an Idempotency-Key header is executed once, however often it is sent.

The transaction that makes the change also stores the key, so both commit together: a second copy of the request, in
this process or another, fails to store the key again and gets the stored response.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from alma import clock
from alma.clock import new_id
from alma.errors import ALMAError, ConflictError
from alma.model.governance import KeptAnswer
from alma.model.query import Compare
from alma.model.scope import Scope
from alma.rest.responses import HttpError
from alma.storage.base import StorageBackend, Transaction

_log = logging.getLogger("alma.rest")

_EVERYWHERE = Scope.everywhere()
# A claim that is older than this belongs to a process that died.
_CLAIM_TIMEOUT = timedelta(seconds=10)
_WAIT_SECONDS = 15.0
_CLEANUP_SECONDS = 600.0
_MAX_TOUCHED = 100


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with an idempotency key: its caller, key, digest, and whether executing it twice is harmless."""

    caller: str
    key: str
    digest: str
    repeatable: bool

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.caller}\x1f{self.key}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The status and body of a response; `replayed` if it was stored before."""

    status: int
    body: str
    replayed: bool = False


class _ExecutedElsewhere(Exception):
    """Another copy of the request has made the change."""


class Idempotency:
    """Executes requests once; keys and responses are kept in the store and survive a restart."""

    def __init__(
        self, storage: StorageBackend, kept: timedelta, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage = storage
        self._kept = kept
        self._monotonic = monotonic
        self._cleanup_at = 0.0
        self._ended = threading.Event()

    def close(self) -> None:
        """Wake requests that wait for the response of another copy."""
        self._ended.set()

    def execute(self, request: IdempotentRequest, work: Callable[[], StoredResponse]) -> StoredResponse:
        """Do the work and store its response, or return the response stored before."""
        self._delete_expired()
        for _ in self._backoff():
            found = self._storage.get(KeptAnswer, request.id, _EVERYWHERE)
            given = None if found is None else self._stored_response(found, request)
            if given is not None:
                return given
            if found is not None and not self._may_retry(found, request):
                continue
            try:
                return self._execute(request, work, None if found is None else found.claim)
            except _ExecutedElsewhere:
                continue
        raise HttpError(
            409,
            "the same request is still being carried out: send it again later",
            "conflict",
            headers={"Retry-After": "1"},
        )

    # ------------------------------------------------------------------ stored responses

    def _stored_response(self, found: KeptAnswer, request: IdempotentRequest) -> StoredResponse | None:
        if found.expires_at <= clock.now():
            return None
        if found.request != request.digest:
            raise HttpError(
                409, "this idempotency key was used for another request: use a new key for each", "conflict"
            )
        if found.answer is not None and found.status is not None:
            return StoredResponse(found.status, found.answer, replayed=True)
        return None

    def _may_retry(self, found: KeptAnswer, request: IdempotentRequest) -> bool:
        moment = clock.now()
        if found.expires_at <= moment:
            return True
        if found.claimed_until > moment:
            return False
        if not request.repeatable:
            raise HttpError(
                409,
                "this request was carried out, at least in part, and its answer was lost: look at what it changed",
                "conflict",
                {"carried_out": True, "changed": list(found.touched or ())},
            )
        return True

    def _backoff(self) -> Iterator[None]:
        """Retry with backoff until the timeout."""
        deadline, wait = self._monotonic() + _WAIT_SECONDS, 0.02
        yield
        while self._monotonic() < deadline and not self._ended.wait(wait):
            wait = min(0.5, wait * 1.5)
            yield

    # ------------------------------------------------------------------ execution

    def _execute(
        self, request: IdempotentRequest, work: Callable[[], StoredResponse], ended: str | None
    ) -> StoredResponse:
        """Do the work; `ended` is the claim of an earlier attempt that died."""
        claim = new_id()

        def note(tx: Transaction) -> None:
            held = tx.lock(KeptAnswer, [request.id], _EVERYWHERE)
            if held and held[0].claim not in (claim, ended):
                raise _ExecutedElsewhere
            before = held[0].touched or () if held and held[0].claim == claim else ()
            tx.save(self._row(request, claim, touched=(*before, *_touched(tx))[:_MAX_TOUCHED]))

        try:
            with self._storage.before_commit(note):
                response = work()
        except ConflictError as exc:
            # On PostgreSQL, two transactions that store the same key conflict at the write.
            if self._stored_claim(request) not in (None, claim, ended):
                raise _ExecutedElsewhere from exc
            raise
        self._store(request, claim, ended, response)
        return response

    def _store(self, request: IdempotentRequest, claim: str, ended: str | None, response: StoredResponse) -> None:
        def keep(tx: Transaction) -> None:
            held = tx.lock(KeptAnswer, [request.id], _EVERYWHERE)
            if held and held[0].claim not in (claim, ended):
                return
            touched = held[0].touched if held else None
            tx.save(self._row(request, claim, touched=touched, status=response.status, answer=response.body))

        try:
            self._storage.write(keep)
        except ALMAError as exc:
            # The change is committed; only its response cannot be replayed.
            _log.warning("a response could not be stored", extra={"error": str(exc)})

    def _row(
        self,
        request: IdempotentRequest,
        claim: str,
        touched: Sequence[str] | None,
        status: int | None = None,
        answer: str | None = None,
    ) -> KeptAnswer:
        moment = clock.now()
        return KeptAnswer(
            id=request.id,
            request=request.digest,
            claim=claim,
            created_at=moment,
            claimed_until=moment + _CLAIM_TIMEOUT,
            expires_at=moment + self._kept,
            touched=touched,
            status=status,
            answer=answer,
        )

    def _stored_claim(self, request: IdempotentRequest) -> str | None:
        found = self._storage.get(KeptAnswer, request.id, _EVERYWHERE)
        return None if found is None else found.claim

    def _delete_expired(self) -> None:
        """Delete expired responses, once in a while."""
        moment = self._monotonic()
        if moment < self._cleanup_at:
            return
        self._cleanup_at = moment + _CLEANUP_SECONDS
        self._storage.delete_where(KeptAnswer, _EVERYWHERE, Compare("expires_at", "le", clock.now()))


def request_digest(*parts: bytes | str) -> str:
    """A hash that is equal for equal requests."""
    whole = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        whole.update(len(raw).to_bytes(8, "big"))
        whole.update(raw)
    return whole.hexdigest()


def _touched(tx: Transaction) -> Iterator[str]:
    for _, spec, records in tx.acts or ():
        yield from (f"{spec.kind}/{spec.key_of(record)}" for record in records)
