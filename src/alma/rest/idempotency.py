"""Once: a request that brings an idempotency key is carried out one time, however often and wherever it is sent.

The transaction that makes the change also notes under the key that it was made, so the two are never apart: a second
copy of the request, in this process or another, fails to note it again and is given the first one's answer.
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
# For so long, somebody who has noted a change is believed to be at work on the answer.
_AT_WORK = timedelta(seconds=10)
_WAITS_SECONDS = 15.0
_CLEANED_EVERY_SECONDS = 600.0
_MOST_TOUCHED = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that may come again: who sends it under which name, what it asks, and whether to repeat does harm."""

    caller: str
    key: str
    digest: str
    repeatable: bool

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.caller}\x1f{self.key}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Answered:
    """A status and a body; `replayed` when they were given before."""

    status: int
    body: str
    replayed: bool = False


class _DoneElsewhere(Exception):
    """Another copy of the request has made the change."""


class Once:
    """Carries requests out once. All of it is kept in the store, and so outlives the process."""

    def __init__(
        self, storage: StorageBackend, kept: timedelta, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage = storage
        self._kept = kept
        self._monotonic = monotonic
        self._clean_at = 0.0
        self._ended = threading.Event()

    def close(self) -> None:
        """Let those that wait for another's answer go."""
        self._ended.set()

    def answer(self, asked: Asked, work: Callable[[], Answered]) -> Answered:
        """Do the work and keep what it answers, or give what was answered before."""
        self._clean()
        for _ in self._patience():
            found = self._storage.get(KeptAnswer, asked.id, _EVERYWHERE)
            given = None if found is None else self._given(found, asked)
            if given is not None:
                return given
            if found is not None and not self._may_take_over(found, asked):
                continue
            try:
                return self._carried_out(asked, work, None if found is None else found.claim)
            except _DoneElsewhere:
                continue
        raise HttpError(
            409,
            "the same request is still being carried out: send it again later",
            "conflict",
            headers={"Retry-After": "1"},
        )

    # ------------------------------------------------------------------ what was answered before

    def _given(self, found: KeptAnswer, asked: Asked) -> Answered | None:
        if found.expires_at <= clock.now():
            return None
        if found.request != asked.digest:
            raise HttpError(
                409, "this idempotency key was used for another request: use a new key for each", "conflict"
            )
        if found.answer is not None and found.status is not None:
            return Answered(found.status, found.answer, replayed=True)
        return None

    def _may_take_over(self, found: KeptAnswer, asked: Asked) -> bool:
        moment = clock.now()
        if found.expires_at <= moment:
            return True
        if found.claimed_until > moment:
            return False
        if not asked.repeatable:
            raise HttpError(
                409,
                "this request was carried out, at least in part, and its answer was lost: look at what it changed",
                "conflict",
                {"carried_out": True, "changed": list(found.touched or ())},
            )
        return True

    def _patience(self) -> Iterator[None]:
        """Tries, some time apart, for as long as it is sensible to wait."""
        deadline, wait = self._monotonic() + _WAITS_SECONDS, 0.02
        yield
        while self._monotonic() < deadline and not self._ended.wait(wait):
            wait = min(0.5, wait * 1.5)
            yield

    # ------------------------------------------------------------------ doing it

    def _carried_out(self, asked: Asked, work: Callable[[], Answered], ended: str | None) -> Answered:
        """Do the work; `ended` is the claim of whoever began it before and did not come to an end."""
        claim = new_id()

        def note(tx: Transaction) -> None:
            held = tx.lock(KeptAnswer, [asked.id], _EVERYWHERE)
            if held and held[0].claim not in (claim, ended):
                raise _DoneElsewhere
            before = held[0].touched or () if held and held[0].claim == claim else ()
            tx.save(self._row(asked, claim, touched=(*before, *_touched(tx))[:_MOST_TOUCHED]))

        try:
            with self._storage.along(note):
                answered = work()
        except ConflictError as exc:
            # On a server, two that note the same key at the same time find out when they write it.
            if self._claim_of(asked) not in (None, claim, ended):
                raise _DoneElsewhere from exc
            raise
        self._keep(asked, claim, ended, answered)
        return answered

    def _keep(self, asked: Asked, claim: str, ended: str | None, answered: Answered) -> None:
        def keep(tx: Transaction) -> None:
            held = tx.lock(KeptAnswer, [asked.id], _EVERYWHERE)
            if held and held[0].claim not in (claim, ended):
                return
            touched = held[0].touched if held else None
            tx.save(self._row(asked, claim, touched=touched, status=answered.status, answer=answered.body))

        try:
            self._storage.write(keep)
        except ALMAError as exc:
            # The change is made and noted; only its answer could not be given a second time.
            _log.warning("an answer could not be kept", extra={"error": str(exc)})

    def _row(
        self,
        asked: Asked,
        claim: str,
        touched: Sequence[str] | None,
        status: int | None = None,
        answer: str | None = None,
    ) -> KeptAnswer:
        moment = clock.now()
        return KeptAnswer(
            id=asked.id,
            request=asked.digest,
            claim=claim,
            created_at=moment,
            claimed_until=moment + _AT_WORK,
            expires_at=moment + self._kept,
            touched=touched,
            status=status,
            answer=answer,
        )

    def _claim_of(self, asked: Asked) -> str | None:
        found = self._storage.get(KeptAnswer, asked.id, _EVERYWHERE)
        return None if found is None else found.claim

    def _clean(self) -> None:
        """Now and then, delete the answers that nobody will be given any more."""
        moment = self._monotonic()
        if moment < self._clean_at:
            return
        self._clean_at = moment + _CLEANED_EVERY_SECONDS
        self._storage.delete_where(KeptAnswer, _EVERYWHERE, Compare("expires_at", "le", clock.now()))


def digest_of(*parts: bytes | str) -> str:
    """A short text that two requests share if they ask the same."""
    whole = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        whole.update(len(raw).to_bytes(8, "big"))
        whole.update(raw)
    return whole.hexdigest()


def _touched(tx: Transaction) -> Iterator[str]:
    for _, spec, records in tx.acts or ():
        yield from (f"{spec.kind}/{spec.key_of(record)}" for record in records)
