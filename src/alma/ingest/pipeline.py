"""Ingest: redact, screen, deduplicate and echo-check text, then store it."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar, cast

from alma.embeddings.base import EmbeddingProvider
from alma.errors import ProviderError, RefusedError
from alma.ingest.deduplication import EVENTS, duplicate_key, is_alike, known_duplicate, merge
from alma.ingest.echo_guard import EchoGuard, said_by
from alma.ingest.screening import DefaultScreen, InjectionScreen, injection_in, injection_in_record
from alma.judge import default_judge
from alma.judge.base import Judge
from alma.memory.archive import ARCHIVABLE, Archive
from alma.memory.fact_comparison import NOTHING, Comparison, FactComparison, Verdict, of_the_same_owner
from alma.memory.fact_relations import forget_judged, restate, supersede
from alma.model.common import checked_name, checked_part
from alma.model.facts import FACTS, stated
from alma.model.governance import ANONYMOUS, ArchiveCause, Attribution, checked_by
from alma.model.learning import Outcome
from alma.model.memory import Memory
from alma.model.provenance import TRUSTED_SOURCES
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.redaction.nested import Masked
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor, redact_record
from alma.retrieval.writing import Embedded, embedded, join_space
from alma.storage.base import StorageBackend, Transaction
from alma.storage.deleted_values import DeletedValues
from alma.storage.tombstones import Because, Tombstone, drop_tombstones, is_from_before, lift_tombstones, tombstone_of
from alma.vectors.base import VectorIndex

T = TypeVar("T", bound=Record)

_log = logging.getLogger("alma.ingest")

_BATCH_SIZE = 64
_EVERYWHERE = Scope.everywhere()


class Status(StrEnum):
    """The result of saving a record."""

    STORED = "stored"
    MERGED = "merged"
    QUARANTINED = "quarantined"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Written:
    """The result for a record: its id, the masked secrets, and the reason when it was not simply stored.

    `archive_id` is the archive entry of a quarantined or merged record, from which it can be released.
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
class _Incoming:
    """A redacted record on its way in."""

    record: Record
    by: Attribution
    masked: tuple[Masked, ...]
    source: str
    returns: str | None = None
    lifts: tuple[str, ...] = ()


class Ingest:
    """Redacts, screens and deduplicates records, guards against echoes, and stores the result.

    `redactor=None` and `echo_guard=False` switch these steps off. Writes of other processes are seen, and two processes
    that save the same thing at once store it once. Text from `trusted_sources` is not screened; `screen` replaces the
    default screen for prompt injection.
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
        self._deleted: DeletedValues | None = DeletedValues(storage, self.judging)

    def judging(self) -> Judge:
        """The judge that was given, or the default one of the process."""
        if self._judge is None:
            self._judge = default_judge()
        return self._judge

    def keeping_each(self, redactor: Redactor | None) -> Ingest:
        """The same ingest, with another redactor, for records that their writer reads back one by one.

        It neither merges duplicates nor refuses echoes or what was deleted before.
        """
        kept = copy.copy(self)
        kept._echo_guard, kept._merges, kept._redactor, kept._prepared = None, False, redactor, {}
        kept._deleted = None
        return kept

    def ready(
        self, records: Sequence[T], embed: Callable[[T], bool] = lambda _: True
    ) -> list[tuple[T, tuple[Vector, ...]]]:
        """The records without secrets and with vectors, those of their passages apart, for a transaction of the caller.

        Those of which `embed` says no get no vector.
        """
        clean = [self.clean(record)[0] for record in records]
        encoded = iter(embedded(self._embedder, [record for record in clean if embed(record)]))
        made = [next(encoded) if embed(record) else Embedded(record) for record in clean]
        return [(cast(T, each.record), each.passages) for each in made]

    def save(
        self, record: Record, by: Attribution = ANONYMOUS, source: str = "agent", supersedes: Iterable[str] = ()
    ) -> Written:
        """Store a record from a source: "user", "agent", "tool", "web" or another one.

        A fact is compared with the stored ones, and supersedes the facts with the ids in `supersedes`. A refusal is a
        `RefusedError` with the reason.
        """
        incoming = self._redact(record, by, source)
        quarantined = self._quarantine(incoming)
        if quarantined is not None:
            return quarantined
        echo = self._is_echo(incoming)
        (ready,) = embedded(self._embedder, [incoming.record])
        incoming = self._returning(incoming, self.deleted([ready.record]).get(str(ready.record.key)))
        compared = self._compared(ready.record, incoming.source)
        replaced = tuple(supersedes)
        return self._storage.write(lambda tx: self._store(tx, incoming, ready, echo, compared, replaced), incoming.by)

    def prepare(self, record: Record, source: str | None = None) -> None:
        """Compare a record before it is saved inside a transaction, which must not wait for the judge."""
        (ready,) = embedded(self._embedder, [self.clean(record)[0]])
        if len(self._prepared) >= _BATCH_SIZE:
            self._prepared.clear()
        self._prepared[_prepared_key(ready.record)] = self._compared(ready.record, source or "agent")

    def _compared(self, record: Record, source: str) -> Comparison:
        """How a fact relates to the stored ones; text from untrusted sources is not compared."""
        if source not in self._trusted:
            return NOTHING
        if self._storage.is_writing:
            # A transaction must not wait for the judge; a record that was not prepared is compared later.
            return self._prepared.get(_prepared_key(record), NOTHING)
        try:
            return self.facts.of(record)
        except ProviderError as exc:
            _log.warning("facts could not be compared", extra={"error": repr(exc)})
            return NOTHING

    def save_many(self, records: Iterable[Record], by: Attribution = ANONYMOUS, source: str = "agent") -> list[Written]:
        """Store records in batches; a refused one has the status "refused"."""
        every = list(records)
        return [
            written
            for i in range(0, len(every), _BATCH_SIZE)
            for written in self._batch(every[i : i + _BATCH_SIZE], by, source)
        ]

    def clean(self, record: T) -> tuple[T, tuple[Masked, ...]]:
        """A record with its secrets masked, and what was masked."""
        return (record, ()) if self._redactor is None else redact_record(record, self._redactor)

    def screen_outcome(self, outcome: Outcome) -> tuple[Outcome, str | None]:
        """The outcome without an error message that looks like a prompt injection, and a note about it.

        Error messages come from pages, files and programs, and appear in warnings. Such a message is quarantined as a
        memory of the type "error"; the outcome itself counts.
        """
        said = outcome.error_message or ""
        reason = injection_in([said], self._screen)
        if reason is None:
            return outcome, None
        message = Memory(
            project_id=outcome.project_id,
            source_agent=outcome.agent,
            memory_type="error",
            provenance="tool",
            title=f"The error of outcome {outcome.id}",
            content=said,
        )
        reason = f"from an error message, and {reason}"
        # Without a vector, so that a learning protocol needs no embedding model.
        archive_id = self._archive.add(message, ArchiveCause.QUARANTINED, reason, Attribution(agent=outcome.agent))
        noted = {**outcome.metadata, "quarantined": reason, "archive_id": archive_id}
        return outcome.replace(error_message=None, metadata=noted), f"the error message is quarantined: {reason}"

    def injection_reason(self, record: Record, source: str) -> str | None:
        """Why a record from this source would be quarantined; None when it passes."""
        return None if source in self._trusted else injection_in_record(record, source, self._screen)

    def deleted(self, records: Sequence[Record]) -> dict[str, Tombstone]:
        """The tombstones of those of these records that say what was deleted or rejected, by their ids.

        Inside a transaction, which must not wait for the judge, only the same words are found.
        """
        return {} if self._deleted is None else self._deleted.among(records, judged=not self._storage.is_writing)

    def served(self, items: Iterable[Record | str], agent: str, scope: Scope) -> None:
        """Note what an agent was served, so that it is not learned back as new; returns at once."""
        if self._echo_guard is not None:
            self._echo_guard.served(items, agent, scope)

    def echoes(self, texts: Iterable[str], agent: str, project_id: str | None) -> bool:
        """Whether these texts only repeat what the agent was served lately."""
        return self._echo_guard is not None and self._echo_guard.echoes(texts, agent, project_id)

    def flush(self) -> None:
        """Store what was served so far."""
        if self._echo_guard is not None:
            self._echo_guard.flush()

    def close(self) -> None:
        """Store what was served and end the thread of the echo guard; the storage stays open."""
        if self._echo_guard is not None:
            self._echo_guard.close()

    # ------------------------------------------------------------------ the steps

    def _redact(self, record: Record, by: Attribution, source: str) -> _Incoming:
        checked_part("ingest", "record", record, Record, "a record, for example a Heuristic")
        checked_by("ingest", by)
        checked_name("ingest", "source", source)
        clean, masked = self.clean(record)
        if isinstance(clean, Memory):
            clean = _coming_from(clean, source)
        if self._redactor is not None and by.reason is not None:
            by = replace(by, reason=self._redactor.redact(by.reason).text)
        return _Incoming(clean, by, masked, source)

    def _quarantine(self, incoming: _Incoming) -> Written | None:
        """Archive text from an untrusted source that looks like a prompt injection; it is kept and not served."""
        reason = self.injection_reason(incoming.record, incoming.source)
        if reason is None:
            return None
        if type(incoming.record) not in ARCHIVABLE:
            raise RefusedError("untrusted", f"this {incoming.record.spec.kind} was not stored: {reason}")
        (ready,) = embedded(self._embedder, [incoming.record])
        archive_id = self._archive.add(ready.record, ArchiveCause.QUARANTINED, reason, incoming.by, ready.passages)
        return Written(str(incoming.record.key), Status.QUARANTINED, incoming.masked, None, reason, archive_id)

    def _is_echo(self, incoming: _Incoming) -> bool:
        if self._echo_guard is None or incoming.source == "user" or isinstance(incoming.record, EVENTS):
            return False
        record = incoming.record
        agent = getattr(record, "agent", None) or getattr(record, "source_agent", None) or incoming.by.agent
        if agent is None or not record.spec.text:
            return False
        return self.echoes(said_by(record), agent, getattr(record, "project_id", None))

    def _store(
        self,
        tx: Transaction,
        incoming: _Incoming,
        ready: Embedded,
        echo: bool,
        compared: Comparison = NOTHING,
        supersedes: Sequence[str] = (),
    ) -> Written:
        """Store the record, update the one with its id, or count it for one that says the same."""
        cls, key = type(ready.record), str(ready.record.key)
        if self._merges and ready.record.spec.embeds:
            tx.hold(duplicate_key(ready.record))
        self._lift(tx, incoming, ready.record)
        stored = tx.lock(cls, [ready.record.key], _EVERYWHERE)
        if not stored:
            known = known_duplicate(tx, ready.record) if self._merges and ready.record.spec.embeds else None
            if known is not None:
                return self._merged(tx, incoming, known, echo, supersedes)
            if echo:
                raise RefusedError("echo", f"this {cls.spec.kind} only repeats what the agent was served a moment ago")
            same = self._same(tx, ready.record, compared) if self._merges and not supersedes else None
            if same is not None:
                return self._counted(tx, incoming, ready, same, compared)
        elif isinstance(ready.record, FACTS) and stated(stored[0]) != stated(ready.record):
            forget_judged(tx, ready.record)
        if stored:
            ready = replace(ready, record=self._with_provenance(ready.record, stored[0], incoming.source))
        ready.save(tx)
        self.facts.relate(tx, ready.record, compared)
        _replace(tx, ready.record, supersedes)
        return Written(key, Status.STORED, incoming.masked, reason=incoming.returns)

    def _returning(self, incoming: _Incoming, found: Tombstone | None) -> _Incoming:
        """The incoming record with the reason why a deleted value is stored again: the user says it again, a memory is
        written again, or it was erased with all else of its owner.

        What returns in another way is refused, and what was rejected in review in any case.
        """
        record, source = incoming.record, incoming.source
        if found is None:
            return incoming
        if found.because is Because.REJECTED:
            raise RefusedError("rejected", f"this {record.spec.kind} {found}; allow it there to store it")
        with self._storage.snapshot() as tx:
            again = is_from_before(tx, found, record)
        fresh = isinstance(record, Memory) or found.because is Because.ERASED
        direct = source == "user" or (fresh and source in self._trusted)
        if again or not direct:
            raise RefusedError("deleted", f"this {record.spec.kind} {found}; restore it, or let the user say it again")
        why = f"said again by the {source}: it {found}"
        by = replace(incoming.by, reason=incoming.by.reason or why)
        return replace(incoming, by=by, returns=why, lifts=(found.name,))

    def _with_provenance(self, changed: Any, stored: Record, source: str) -> Any:
        """A changed memory keeps its provenance where a trusted source changed something else than its text."""
        if not isinstance(stored, Memory) or stored.content != changed.content or source not in self._trusted:
            return changed
        return _coming_from(changed, stored.provenance)

    def _lift(self, tx: Transaction, incoming: _Incoming, record: Record) -> None:
        """Let a value return that may; whether it may was decided before the transaction."""
        drop_tombstones(tx, incoming.lifts)
        found = tombstone_of(tx, record)
        if found is None:
            return
        if incoming.returns is None and (self._deleted is not None or found.because is Because.REJECTED):
            raise RefusedError(str(found.because), f"this {record.spec.kind} {found}")
        lift_tombstones(tx, [record])

    def _same(self, tx: Transaction, record: Record, compared: Comparison) -> Verdict | None:
        """The most certain verdict that a stored fact says the same and agrees in all else."""
        same = (each for each in compared.same if is_alike(each.known, record))
        return next(iter(self.facts.unchanged(tx, list(same)[:1])), None)

    def _merged(
        self, tx: Transaction, incoming: _Incoming, known: Record, echo: bool, supersedes: Sequence[str] = ()
    ) -> Written:
        merge(tx, known, incoming.record, counted=not echo)
        if not echo and isinstance(known, FACTS):
            restate(tx, known)
        _replace(tx, known, supersedes)
        why = "it was served to the agent a moment ago, so it is not counted" if echo else "it is known already"
        return Written(str(known.key), Status.MERGED, incoming.masked, str(known.key), why)

    def _counted(
        self, tx: Transaction, incoming: _Incoming, ready: Embedded, same: Verdict, compared: Comparison
    ) -> Written:
        """Count a paraphrase for the stored fact and archive it, as the judge may be wrong."""
        known = str(same.known.key)
        why = f"it says the same as {known}, {same.judgement['same']:.2f} by {compared.judge}"
        archive_id = self._archive.add(ready.record, ArchiveCause.MERGED, why, incoming.by, ready.passages)
        merge(tx, same.known, incoming.record, counted=True)
        restate(tx, same.known)
        for held in tx.lock(type(same.known), [known], _EVERYWHERE):
            self.facts.relate(tx, held, compared)
        return Written(known, Status.MERGED, incoming.masked, known, why, archive_id)

    def _batch(self, records: Sequence[Record], by: Attribution, source: str) -> Iterator[Written]:
        incoming, answers = self._redact_all(records, by, source)
        for i, each in incoming.items():
            answers |= {i: written} if (written := self._refusable(self._quarantine, each)) is not None else {}
        admitted = [i for i in incoming if i not in answers]
        echoes = {i: self._is_echo(incoming[i]) for i in admitted}
        ready = dict(zip(admitted, embedded(self._embedder, [incoming[i].record for i in admitted]), strict=True))
        deleted = self.deleted([ready[i].record for i in admitted])
        for i in admitted:
            try:
                incoming[i] = self._returning(incoming[i], deleted.get(str(ready[i].record.key)))
            except RefusedError as refused:
                answers[i] = Written(str(records[i].key), Status.REFUSED, incoming[i].masked, None, refused.reason)
        admitted = [i for i in admitted if i not in answers]

        def store(tx: Transaction) -> dict[int, Written]:
            # In a fixed order, so that two batches with the same texts do not deadlock.
            ordered = sorted(
                admitted, key=lambda i: duplicate_key(ready[i].record) if ready[i].record.spec.embeds else ""
            )
            return {
                i: written
                for i in ordered
                if (written := self._refusable(self._store, tx, incoming[i], ready[i], echoes[i])) is not None
            }

        if admitted:
            answers |= self._storage.write(store, incoming[admitted[0]].by)
        return iter([answers[i] for i in range(len(records))])

    def _redact_all(
        self, records: Sequence[Record], by: Attribution, source: str
    ) -> tuple[dict[int, _Incoming], dict[int, Written]]:
        """The redacted records, and the results for those at which the redactor failed."""
        incoming: dict[int, _Incoming] = {}
        answers: dict[int, Written] = {}
        for i, record in enumerate(records):
            try:
                incoming[i] = self._redact(record, by, source)
            except RefusedError as refused:
                answers[i] = Written(str(record.key), Status.REFUSED, reason=refused.reason)
        return incoming, answers

    @staticmethod
    def _refusable(step: Any, *args: Any) -> Written | None:
        try:
            written: Written | None = step(*args)
        except RefusedError as refused:
            incoming = next(arg for arg in args if isinstance(arg, _Incoming))
            return Written(str(incoming.record.key), Status.REFUSED, incoming.masked, None, refused.reason)
        return written


def _coming_from(memory: Any, source: str | None) -> Any:
    """The memory with this provenance."""
    return memory.trusted({**memory.values(), "provenance": source})


def _prepared_key(record: Record) -> tuple[str, str, str]:
    """The key of a prepared comparison."""
    return record.spec.kind, str(record.key), record.text()


def _replace(tx: Transaction, record: Record, supersedes: Sequence[str]) -> None:
    if supersedes:
        supersede(tx, record, supersedes, of_the_same_owner(record)[0])


def _guard(storage: StorageBackend, given: EchoGuard | bool) -> EchoGuard | None:
    if isinstance(given, EchoGuard):
        return given
    return EchoGuard(storage) if given else None
