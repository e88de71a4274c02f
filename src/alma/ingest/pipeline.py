"""Ingest: redact, screen, deduplicate and echo-check text, then store it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from alma.embeddings.base import EmbeddingProvider
from alma.errors import ProviderError, RefusedError
from alma.ingest.deduplication import EVENTS, duplicate_key, is_alike, known_duplicate, merge
from alma.ingest.echo_guard import EchoGuard, said_by
from alma.ingest.screening import DefaultScreen, InjectionScreen, injection_in, injection_in_record
from alma.judge import default_judge
from alma.judge.base import Judge
from alma.memory.archive import ARCHIVABLE, Archive
from alma.memory.fact_comparison import NOTHING, Comparison, FactComparison, Verdict, of_the_same_owner
from alma.memory.fact_relations import FACTS, forget_judged, restate, supersede
from alma.model.common import checked_name, checked_part
from alma.model.governance import ANONYMOUS, ArchiveCause, Attribution, checked_by
from alma.model.learning import Outcome
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.redaction.nested import Masked
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor, redact_record
from alma.retrieval.supersession import stated
from alma.retrieval.writing import Embedded, embedded, join_space
from alma.storage.base import StorageBackend, Transaction
from alma.vectors.base import VectorIndex

TRUSTED_SOURCES = frozenset({"user", "agent", "system"})
"""Whose words are taken as they are; what comes from anywhere else must not look like orders."""

T = TypeVar("T", bound=Record)

_log = logging.getLogger("alma.ingest")

_AT_ONCE = 64
_EVERYWHERE = Scope.everywhere()


class Status(StrEnum):
    """What became of something that was given to ingest."""

    STORED = "stored"
    MERGED = "merged"
    QUARANTINED = "quarantined"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a record: the id it lives under, what was masked in it, and why, where that needs saying.

    `archive_id` is where something that is quarantined waits to be released or purged.
    """

    id: str
    status: Status
    masked: tuple[Masked, ...] = ()
    merged_into: str | None = None
    reason: str | None = None
    archive_id: str | None = None

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class _Guest:
    """A record in ingest, without its secrets."""

    record: Record
    by: Attribution
    masked: tuple[Masked, ...]
    source: str


class Ingest:
    """Lets records in: without secrets, without echoes, without a second copy, and orders from strangers not at all.

    `redactor=None` and `echo_guard=False` switch these steps off; by default both are on. Everything that another
    process did before is seen; two processes that save the same thing at once save it once.
    """

    def __init__(
        self,
        storage: StorageBackend,
        embedder: EmbeddingProvider,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        echo_guard: EchoGuard | bool = True,
        merge_duplicates: bool = True,
        trusted_sources: Iterable[str] = TRUSTED_SOURCES,
        judge: Judge | None = None,
        index: VectorIndex | None = None,
        screen: InjectionScreen | None = None,
    ) -> None:
        self._embedder = join_space(storage, embedder)
        self._storage = storage
        self._redactor = checked_redactor("ingest", redactor)
        self._echo_guard = _guard(storage, echo_guard)
        self._merges = merge_duplicates
        self._trusted = frozenset(trusted_sources)
        self._archive = Archive(storage)
        self._judge = judge
        self._screen = screen or DefaultScreen(judge)
        self._prepared: dict[tuple[str, str, str], Comparison] = {}
        self.facts = FactComparison(storage, self.judging, index)

    def judging(self) -> Judge:
        """What judges texts here: the one that was given, or that of this process."""
        if self._judge is None:
            self._judge = default_judge()
        return self._judge

    def save(
        self, record: Record, by: Attribution = ANONYMOUS, source: str = "agent", supersedes: Iterable[str] = ()
    ) -> Written:
        """Remember a record that came from a source: "user", "agent", "tool", "web" or another one.

        A fact is compared with those that are stored, and takes the place of the facts with the ids in `supersedes`. A
        refusal is a `RefusedError` that says why.
        """
        guest = self._without_secrets(record, by, source)
        quarantined = self._quarantined(guest)
        if quarantined is not None:
            return quarantined
        echo = self._is_echo(guest)
        (ready,) = embedded(self._embedder, [guest.record])
        compared = self._compared(ready.record, guest.source)
        replaced = tuple(supersedes)
        return self._storage.write(lambda tx: self._let_in(tx, guest, ready, echo, compared, replaced), guest.by)

    def prepare(self, record: Record, source: str | None = None) -> None:
        """Compare a record that is about to be saved inside a transaction, which is not to wait for the judge."""
        (ready,) = embedded(self._embedder, [self.clean(record)[0]])
        if len(self._prepared) >= _AT_ONCE:
            self._prepared.clear()
        self._prepared[_named(ready.record)] = self._compared(ready.record, source or "agent")

    def _compared(self, record: Record, source: str) -> Comparison:
        """What a fact is to those that are stored; what comes from elsewhere is told apart from them by nobody."""
        if source not in self._trusted:
            return NOTHING
        if self._storage.is_writing:
            # Others wait meanwhile: what was not prepared is compared when that is asked for.
            return self._prepared.get(_named(record), NOTHING)
        try:
            return self.facts.of(record)
        except ProviderError as exc:
            _log.warning("facts could not be compared", extra={"error": repr(exc)})
            return NOTHING

    def save_many(self, records: Iterable[Record], by: Attribution = ANONYMOUS, source: str = "agent") -> list[Written]:
        """Remember records in batches; what is refused is in the answer with the status "refused"."""
        every = list(records)
        return [
            written
            for i in range(0, len(every), _AT_ONCE)
            for written in self._batch(every[i : i + _AT_ONCE], by, source)
        ]

    def clean(self, record: T) -> tuple[T, tuple[Masked, ...]]:
        """A record without secrets, and what was masked, for those who store what they make of it themselves."""
        return (record, ()) if self._redactor is None else redact_record(record, self._redactor)

    def screened(self, outcome: Outcome) -> tuple[Outcome, str | None]:
        """An outcome without an error message that gives orders, and what became of that.

        How a task went is the agent's own word, but what an error says comes from a page, a file or a program, and ends
        up in warnings. The message is quarantined, as a memory of the type "error"; the outcome counts as it is.
        """
        said = outcome.error_message or ""
        because = injection_in([said], self._screen)
        if because is None:
            return outcome, None
        told = Memory(
            project_id=outcome.project_id,
            source_agent=outcome.agent,
            memory_type="error",
            title=f"The error of outcome {outcome.id}",
            content=said,
        )
        reason = f"from an error message, and {because}"
        # Without a vector: whoever learns need not have the model, and what happened must not be lost for want of it.
        archive_id = self._archive.add(told, ArchiveCause.QUARANTINED, reason, Attribution(agent=outcome.agent))
        noted = {**outcome.metadata, "quarantined": reason, "archive_id": archive_id}
        return outcome.replace(error_message=None, metadata=noted), f"the error message is quarantined: {reason}"

    def suspicion(self, record: Record, source: str) -> str | None:
        """Why a record from this source would be quarantined; None where it would not."""
        return None if source in self._trusted else injection_in_record(record, source, self._screen)

    def served(self, items: Iterable[Record | str], agent: str, scope: Scope) -> None:
        """Note what an agent was handed, a slice or texts, so that it does not come back as new; it costs no time."""
        if self._echo_guard is not None:
            self._echo_guard.served(items, agent, scope)

    def echoes(self, texts: Iterable[str], agent: str, project_id: str | None) -> bool:
        """Whether these texts say nothing that the agent was not handed lately."""
        return self._echo_guard is not None and self._echo_guard.echoes(texts, agent, project_id)

    def flush(self) -> None:
        """Write down what was served so far."""
        if self._echo_guard is not None:
            self._echo_guard.flush()

    def close(self) -> None:
        """Write down what was served and end the thread that does so; the storage stays open."""
        if self._echo_guard is not None:
            self._echo_guard.close()

    # ------------------------------------------------------------------ the steps

    def _without_secrets(self, record: Record, by: Attribution, source: str) -> _Guest:
        checked_part("ingest", "record", record, Record, "a record, for example a Heuristic")
        checked_by("ingest", by)
        checked_name("ingest", "source", source)
        clean, masked = self.clean(record)
        if self._redactor is not None and by.reason is not None:
            by = replace(by, reason=self._redactor.redact(by.reason).text)
        return _Guest(clean, by, masked, source)

    def _quarantined(self, guest: _Guest) -> Written | None:
        """Put away what a stranger sends and what looks like orders; it is kept, but nobody is handed it."""
        because = self.suspicion(guest.record, guest.source)
        if because is None:
            return None
        if type(guest.record) not in ARCHIVABLE:
            raise RefusedError("untrusted", f"this {guest.record.spec.kind} was not stored: {because}")
        (ready,) = embedded(self._embedder, [guest.record])
        archive_id = self._archive.add(ready.record, ArchiveCause.QUARANTINED, because, guest.by, ready.passages)
        return Written(str(guest.record.key), Status.QUARANTINED, guest.masked, None, because, archive_id)

    def _is_echo(self, guest: _Guest) -> bool:
        if self._echo_guard is None or guest.source == "user" or isinstance(guest.record, EVENTS):
            return False
        record = guest.record
        agent = getattr(record, "agent", None) or getattr(record, "source_agent", None) or guest.by.agent
        if agent is None or not record.spec.text:
            return False
        return self.echoes(said_by(record), agent, getattr(record, "project_id", None))

    def _let_in(
        self,
        tx: Transaction,
        guest: _Guest,
        ready: Embedded,
        echo: bool,
        compared: Comparison = NOTHING,
        supersedes: Sequence[str] = (),
    ) -> Written:
        """Store the record, or let the one that says the same count it; what is known by its id is simply changed."""
        cls, key = type(ready.record), str(ready.record.key)
        if self._merges and ready.record.spec.embeds:
            tx.hold(duplicate_key(ready.record))
        stored = tx.lock(cls, [ready.record.key], _EVERYWHERE)
        if not stored:
            known = known_duplicate(tx, ready.record) if self._merges and ready.record.spec.embeds else None
            if known is not None:
                return self._merged(tx, guest, known, echo, supersedes)
            if echo:
                raise RefusedError("echo", f"this {cls.spec.kind} only repeats what the agent was handed a moment ago")
            same = self._same(tx, ready.record, compared) if self._merges and not supersedes else None
            if same is not None:
                return self._counted(tx, guest, ready, same, compared)
        elif isinstance(ready.record, FACTS) and stated(stored[0]) != stated(ready.record):
            forget_judged(tx, ready.record)
        ready.save(tx)
        self.facts.relate(tx, ready.record, compared)
        _replace(tx, ready.record, supersedes)
        return Written(key, Status.STORED, guest.masked)

    def _same(self, tx: Transaction, record: Record, compared: Comparison) -> Verdict | None:
        """The surest verdict that a stored fact says the same, and is like the new one in all else."""
        same = (each for each in compared.same if is_alike(each.known, record))
        return next(iter(self.facts.unchanged(tx, list(same)[:1])), None)

    def _merged(
        self, tx: Transaction, guest: _Guest, known: Record, echo: bool, supersedes: Sequence[str] = ()
    ) -> Written:
        merge(tx, known, guest.record, counted=not echo)
        if not echo and isinstance(known, FACTS):
            restate(tx, known)
        _replace(tx, known, supersedes)
        why = "it was handed to the agent a moment ago, so it is not counted" if echo else "it is known already"
        return Written(str(known.key), Status.MERGED, guest.masked, str(known.key), why)

    def _counted(self, tx: Transaction, guest: _Guest, ready: Embedded, same: Verdict, compared: Comparison) -> Written:
        """Let a fact count what says the same in other words, which wait in the archive in case they do not."""
        known = str(same.known.key)
        why = f"it says the same as {known}, {same.judgement['same']:.2f} by {compared.judge}"
        archive_id = self._archive.add(ready.record, ArchiveCause.MERGED, why, guest.by, ready.passages)
        merge(tx, same.known, guest.record, counted=True)
        restate(tx, same.known)
        for held in tx.lock(type(same.known), [known], _EVERYWHERE):
            self.facts.relate(tx, held, compared)
        return Written(known, Status.MERGED, guest.masked, known, why, archive_id)

    def _batch(self, records: Sequence[Record], by: Attribution, source: str) -> Iterator[Written]:
        guests, answers = self._guests(records, by, source)
        for i, guest in guests.items():
            answers |= {i: written} if (written := self._or_refusal(self._quarantined, guest)) is not None else {}
        admitted = [i for i in guests if i not in answers]
        echoes = {i: self._is_echo(guests[i]) for i in admitted}
        ready = dict(zip(admitted, embedded(self._embedder, [guests[i].record for i in admitted]), strict=True))

        def let_in(tx: Transaction) -> dict[int, Written]:
            # In one order for all, so that two batches with the same texts do not wait for each other.
            ordered = sorted(
                admitted, key=lambda i: duplicate_key(ready[i].record) if ready[i].record.spec.embeds else ""
            )
            return {
                i: written
                for i in ordered
                if (written := self._or_refusal(self._let_in, tx, guests[i], ready[i], echoes[i])) is not None
            }

        if admitted:
            answers |= self._storage.write(let_in, guests[admitted[0]].by)
        return iter([answers[i] for i in range(len(records))])

    def _guests(
        self, records: Sequence[Record], by: Attribution, source: str
    ) -> tuple[dict[int, _Guest], dict[int, Written]]:
        """The records without their secrets, and what became of those that a redactor failed at."""
        guests: dict[int, _Guest] = {}
        answers: dict[int, Written] = {}
        for i, record in enumerate(records):
            try:
                guests[i] = self._without_secrets(record, by, source)
            except RefusedError as refused:
                answers[i] = Written(str(record.key), Status.REFUSED, reason=refused.reason)
        return guests, answers

    @staticmethod
    def _or_refusal(step: Any, *args: Any) -> Written | None:
        try:
            written: Written | None = step(*args)
        except RefusedError as refused:
            guest = next(arg for arg in args if isinstance(arg, _Guest))
            return Written(str(guest.record.key), Status.REFUSED, guest.masked, None, refused.reason)
        return written


def _named(record: Record) -> tuple[str, str, str]:
    """By what a record is known that was prepared."""
    return record.spec.kind, str(record.key), record.text()


def _replace(tx: Transaction, record: Record, supersedes: Sequence[str]) -> None:
    if supersedes:
        supersede(tx, record, supersedes, of_the_same_owner(record)[0])


def _guard(storage: StorageBackend, given: EchoGuard | bool) -> EchoGuard | None:
    if isinstance(given, EchoGuard):
        return given
    return EchoGuard(storage) if given else None
