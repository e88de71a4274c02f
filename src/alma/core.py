"""ALMA: the facade; each method says what it does and leaves the doing to a service."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from alma.closeable import Closeable
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ValidationError
from alma.events.emitter import get_emitter
from alma.ingest.deduplication import uncount
from alma.ingest.pipeline import Ingest
from alma.judge.base import Judge
from alma.learning.contradictions import with_contradictions, with_sources
from alma.learning.forgetting import ForgettingEngine, Forgotten
from alma.learning.lessons import HeuristicEvidence, evidence_of
from alma.learning.lifecycle import DEFAULT_INTERVAL_SECONDS, Expiry
from alma.learning.protocols import Execution, Learned, LearningProtocol
from alma.learning.recommendation import Assessed, Recommendation
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail
from alma.memory.fact_relations import Distinguished, FactRelations
from alma.memory.gaps import ContextGaps
from alma.memory.history import History
from alma.memory.journal import Journal
from alma.memory.patterns import Patterns
from alma.memory.projects import Projects
from alma.memory.relationships import Relationships
from alma.memory.sessions import Sessions
from alma.memory.settings import SystemSettings
from alma.memory.states import AgentStates
from alma.memory.updates import screen_with
from alma.memory.users import Users
from alma.memory.working import WorkingMemory
from alma.model.common import checked_name, checked_names, checked_part, same_name
from alma.model.governance import ANONYMOUS, ArchiveCause, Attribution
from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.query import EVERYTHING, Predicate
from alma.model.record import Record
from alma.model.scope import MemoryScope, Scope
from alma.model.slice import MemorySlice
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor, masking
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.router import checked_query as checked_task
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend, Transaction, checked_storage

if TYPE_CHECKING:
    from alma.bootstrap import Parts
    from alma.llm.base import LanguageModel

_log = logging.getLogger("alma.core")

DEFAULT_PROJECT = "default"
# The documented words for where something comes from, and whose words these are.
_SOURCES = {"explicit_instruction": "user", "user_stated": "user", "user_correction": "user", "inferred": "agent"}

T = TypeVar("T", bound=Record)


_ENGINE = "a RetrievalEngine, as RetrievalEngine(storage) makes one"
_PROTOCOL = "a LearningProtocol, as LearningProtocol(storage, engine.embedder, engine.index) makes one"


class ALMA(Closeable):
    """A project's memory: hands an agent what is worth knowing before a task, and learns from what happened after it.

    Open one with `from_config` or `quickstart`, as a context manager or with `close()` at the end. Threads may share
    it, and any number of processes may work on one store.
    """

    def __init__(
        self,
        storage: StorageBackend,
        retrieval_engine: RetrievalEngine,
        learning_protocol: LearningProtocol,
        scopes: Mapping[str, MemoryScope] | None = None,
        project_id: str = DEFAULT_PROJECT,
        *,
        log_reads: bool = False,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        expiry_interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
        judge: Judge | None = None,
        llm: LanguageModel | None = None,
    ) -> None:
        self.storage = checked_storage("alma", storage)
        self.retrieval = checked_part("alma", "retrieval_engine", retrieval_engine, RetrievalEngine, _ENGINE)
        self.learning = checked_part("alma", "learning_protocol", learning_protocol, LearningProtocol, _PROTOCOL)
        if scopes:
            self.scopes = {**self.scopes, **scopes}
        self.project_id = checked_name("alma", "project_id", project_id)
        self.redactor = checked_redactor("alma", redactor)
        self.screen = screen_with(self.redactor)
        if self.redactor is not None and self.redactor is not DEFAULT_REDACTOR:
            # Reasons do not pass ingest; the default's secrets are taken out of them in any case.
            storage.mask = masking(self.redactor)
        self.writer = MemoryWriter(storage, retrieval_engine.embedder, self.redactor)
        self.llm = llm
        self.ingest = Ingest(
            storage, retrieval_engine.embedder, self.redactor, judge=judge, index=retrieval_engine.index
        )
        self.archive = Archive(storage, retrieval_engine.index, retrieval_engine.cache)
        self.forgetting = ForgettingEngine(storage, archive=self.archive)
        self.learning.clean = self.ingest.clean
        self.learning.screen = self.ingest.screen_outcome
        self.retrieval.evidence_half_life_days = self.learning.extractor.half_life_days
        get_emitter().watch(storage)
        self._log_reads = log_reads
        self._expiry_interval_seconds = expiry_interval_seconds
        self._expiry: Expiry | None = None
        self._lent = False

    @cached_property
    def journal(self) -> Journal:
        """The general memories of this store: notes, decisions, conversations, and whatever else is remembered."""
        return Journal(self.storage, self.ingest, self.retrieval, redactor=self.redactor, audit=self.audit)

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions of this store: opened, switched, ended and archived."""
        return Sessions(self.storage, screen=self.screen)

    @cached_property
    def working(self) -> WorkingMemory:
        """What each session holds in its context window."""
        return WorkingMemory(self.storage)

    @cached_property
    def states(self) -> AgentStates:
        """Where agents leave off, with an expiry if they want one."""
        return AgentStates(self.storage, self.screen)

    @cached_property
    def users(self) -> Users:
        """The people this store knows, with their profiles."""
        return Users(self.storage, self.screen)

    @cached_property
    def projects(self) -> Projects:
        """The projects of this store."""
        return Projects(self.storage, self.screen)

    @cached_property
    def settings(self) -> SystemSettings:
        """The documented settings, for all and per user."""
        return SystemSettings(self.storage)

    @cached_property
    def relationships(self) -> Relationships:
        """How general memories are related, and the ways from one to another."""
        return Relationships(self.storage, self.screen, self.ingest.facts.detected)

    @cached_property
    def facts(self) -> FactRelations:
        """How facts and preferences are related: what replaces, denies or repeats what."""
        return FactRelations(self.storage)

    @property
    def judge(self) -> Judge:
        """What tells whether two texts say the same, or one replaces or denies the other."""
        return self.ingest.judging()

    @cached_property
    def patterns(self) -> Patterns:
        """What recurs in a project, and in others like it."""
        return Patterns(self.storage, self.embedder, self.writer)

    @cached_property
    def gaps(self) -> ContextGaps:
        """What a project does not know yet."""
        return ContextGaps(self.storage)

    @cached_property
    def history(self) -> History:
        """Every version of every memory, and what was known at any time."""
        return History(self.storage, self.embedder)

    @cached_property
    def audit(self) -> AuditTrail:
        """Who did what, in chains that show whether a row was changed."""
        return AuditTrail(self.storage, log_reads=self._log_reads, mask=masking(self.redactor))

    @property
    def scopes(self) -> dict[str, MemoryScope]:
        """What each agent may learn and with whom it shares, by its name; what is changed here holds at once."""
        return self.learning.validator.scopes

    @scopes.setter
    def scopes(self, scopes: Mapping[str, MemoryScope]) -> None:
        self.learning.validator.scopes = dict(scopes)

    @property
    def embedder(self) -> EmbeddingProvider:
        """What turns text into vectors here."""
        return self.retrieval.embedder

    # ------------------------------------------------------------------ opening and closing

    @classmethod
    def from_config(
        cls, path: str | Path = ".alma/config.yaml", *, redactor: Redactor | None = DEFAULT_REDACTOR
    ) -> Self:
        """The memory that a configuration file describes; a redactor that is given takes the place of its own."""
        from alma.bootstrap import parts_of_file

        return cls._of(parts_of_file(path), redactor)

    @classmethod
    def quickstart(
        cls,
        path: str | Path | None = None,
        project_id: str = DEFAULT_PROJECT,
        *,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        **settings: Any,
    ) -> Self:
        """A memory without a configuration file: an SQLite file, by default `.alma/alma.db`, and the local model.

        `path` is a file, a folder for it, or the URL of a store. `settings` are the keys of a configuration, as
        `embedding_provider="mock"` or `agents={…}`; without a path they may also say where the store is. `redactor`
        is what takes secrets out of everything that is written, and None lets them pass.
        """
        from alma.bootstrap import parts_at

        checked_redactor("alma", redactor)
        return cls._of(parts_at(path, project_id, settings), redactor)

    @classmethod
    def _of(cls, parts: Parts, redactor: Redactor | None = DEFAULT_REDACTOR) -> Self:
        return cls(
            parts.storage,
            parts.retrieval,
            parts.learning,
            parts.scopes,
            parts.project_id,
            log_reads=parts.log_reads,
            redactor=parts.redactor if redactor is DEFAULT_REDACTOR else redactor,
            expiry_interval_seconds=parts.expiry_interval_seconds,
            judge=parts.judge,
            llm=parts.llm,
        )

    def for_project(self, project_id: str) -> ALMA:
        """The memory of another project in the same store; it is open for as long as this one is."""
        if project_id == self.project_id:
            return self
        # Made before it is shared: a journal of the other's own would be closed by nobody.
        _ = self.journal
        other = copy.copy(self)
        other.project_id = checked_name("alma", "project_id", project_id)
        other._lent = True
        return other

    def start_expiry(self) -> None:
        """Remove what is past its end in the background, until `stop_expiry` or `close`; services do so."""
        if self._expiry is None and self._expiry_interval_seconds:
            self._expiry = Expiry(self.storage, self.archive, self._expiry_interval_seconds)
            self._expiry.start()

    def stop_expiry(self) -> None:
        """End what `start_expiry` began."""
        expiry, self._expiry = self._expiry, None
        if expiry is not None:
            expiry.stop()

    def close(self) -> None:
        """Release the store and its index; closing twice is fine."""
        if self._lent:
            return
        self.stop_expiry()
        if "journal" in self.__dict__:
            self.journal.close()
        self.ingest.close()
        self.retrieval.close()
        self.storage.close()

    # ------------------------------------------------------------------ before a task

    def retrieve(
        self, task: str, agent: str, user_id: str | None = None, top_k: int = 5, **options: Any
    ) -> MemorySlice:
        """The few memories worth knowing for this task, which `to_prompt()` turns into text.

        `options` are those of the engine: session_id, kinds, now, bypass_cache, include_shared, and
        `weak`, which hands over what is only weakly relevant as well.
        """
        agent = self._agent(agent)
        scope = self.learning.validator.readable_scope(agent)
        retrieved = self.retrieval.retrieve(task, agent, self.project_id, user_id, top_k, scope, **options)
        found = with_sources(with_contradictions(retrieved))
        self.ingest.served(found, agent, self.scope(agent))
        if self._log_reads:
            self._log_read(found, Attribution(user_id=user_id, agent=agent))
        _log.debug(
            "memories were retrieved",
            extra={"agent": agent, "found": found.total_items, "milliseconds": found.retrieval_time_ms},
        )
        return found

    def _log_read(self, found: MemorySlice, by: Attribution) -> None:
        for kind, records in groupby(sorted(found, key=_kind_of), _kind_of):
            ids = [str(record.key) for record in records]
            self.audit.record_read(kind, ids, by, action="search", request={"task": found.query})

    def recommend(
        self, task: str, agent: str, among: Sequence[str] | None = None, *, explore: bool = False
    ) -> Recommendation:
        """Which strategy to use for a task: the one that did best on tasks like it, with the evidence.

        Its `strategy` is None, with a reason and the nearest that is known, where nothing was tried on such a task.
        `among` limits the choice to these strategies. With `explore=True`, evidence from tasks further away is good
        enough, and one of `among` that was hardly tried gets its turn.
        """
        scope = self._readable(agent)
        return self.learning.recommender.recommend(checked_task(task), scope, among, explore=explore)

    def assess(self, task: str, agent: str, strategies: Sequence[str]) -> Sequence[Assessed]:
        """What to expect of each of these strategies at a task, in the order asked for, with the evidence."""
        return self.learning.recommender.assess(checked_task(task), self._readable(agent), strategies)[0]

    def evidence(self, heuristic_id: str, agent: str) -> HeuristicEvidence:
        """The ids of all outcomes for and against a heuristic; the heuristic itself names the newest of them."""
        return evidence_of(self.storage, heuristic_id, self._readable(agent))

    # ------------------------------------------------------------------ after a task

    def not_the_same(self, heuristic_id: str, strategy: str, agent: str, by: Attribution = ANONYMOUS) -> list[str]:
        """Say that a strategy is not that of a rule which counts it: its outcomes become a lesson of their own.

        Returns their ids. The rule counts what is left, and takes that strategy in no more.
        """
        return self.learning.separate(heuristic_id, strategy, self._agent(agent), self.project_id, by)

    def learn(
        self,
        agent: str,
        task: str,
        outcome: str | bool,
        strategy_used: str,
        task_type: str | None = None,
        duration_ms: int | None = None,
        error_message: str | None = None,
        feedback: str | None = None,
        *,
        embedding: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Learned:
        """Remember how a task went, and what that teaches once it happened often enough.

        `task_type` is the domain that the agent's scope allows or forbids. `embedding` is the vector of the task, for
        callers who have it already. The answer is true, and has the outcome's fields.
        """
        learned = self.learning.learn(
            Execution(
                agent=self._agent(agent),
                project_id=self.project_id,
                task=task,
                outcome=outcome,
                strategy_used=strategy_used,
                task_type=task_type,
                duration_ms=duration_ms,
                error_message=error_message,
                feedback=feedback,
                embedding=embedding,
                metadata=metadata,
            )
        )
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "an outcome was learned",
                extra={
                    "agent": learned.outcome.agent,
                    "outcome_id": learned.outcome.id,
                    "heuristic_id": learned.heuristic and learned.heuristic.id,
                    "anti_pattern_id": learned.anti_pattern and learned.anti_pattern.id,
                },
            )
        return learned

    def add_user_preference(
        self,
        user_id: str,
        category: str,
        preference: str,
        source: str = "explicit_instruction",
        *,
        supersedes: str | Iterable[str] = (),
    ) -> UserPreference:
        """Remember how a user wants things done.

        It is compared with what the user wished before: the same in other words counts, and of what contradicts it the
        newest holds. `supersedes` are the ids of wishes that it takes the place of in any case.
        """
        made = UserPreference(user_id=user_id, category=category, preference=preference, source=source)
        return self._let_in(made, Attribution(user_id=made.user_id), source, supersedes)

    def add_domain_knowledge(
        self,
        agent: str,
        domain: str,
        fact: str,
        source: str = "user_stated",
        *,
        supersedes: str | Iterable[str] = (),
    ) -> DomainKnowledge:
        """Remember a fact, if the agent may learn in this domain.

        It is compared with the nearest facts of the agent in this project: the same in other words counts, and of what
        it replaces or contradicts the newest holds. `supersedes` are the ids of facts that it replaces in any case.
        """
        # Without a domain nobody could say whether the agent may learn it.
        agent, domain = self._agent(agent), checked_name("alma", "domain", domain)
        self.learning.require(agent, domain, fact, "add_domain_knowledge", DomainKnowledge.spec.kind)
        made = DomainKnowledge(agent=agent, project_id=self.project_id, domain=domain, fact=fact, source=source)
        return self._let_in(made, Attribution(agent=agent), source, supersedes)

    def _let_in(self, made: T, by: Attribution, source: str, supersedes: str | Iterable[str] = ()) -> T:
        """What became of a record after ingest: itself, without secrets, or the one that says the same already.

        Its metadata tell, only here, what was masked, and of one that is quarantined why and where it waits.
        """
        replaced = checked_names(made.spec.kind, "supersedes", supersedes)
        written = self.ingest.save(made, by, _SOURCES.get(source, source), replaced)
        kept = self.storage.get(type(made), written.id, Scope.everywhere())
        told: dict[str, Any] = {"masked": [f"{each.field}: {each.kind}" for each in written.masked]}
        if kept is None:
            # What is quarantined is in the archive alone.
            told |= {"quarantined": written.reason, "archive_id": written.archive_id}
            kept = self.ingest.clean(made)[0]
        said = {name: value for name, value in told.items() if value}
        return kept.replace(metadata={**kept.values()["metadata"], **said}) if said else kept

    def distinguish(
        self,
        cls: type[Record],
        one_id: str,
        other_id: str,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        where: Predicate = EVERYTHING,
    ) -> Distinguished:
        """Say that two facts are not the same, and that neither replaces or denies the other; it is remembered.

        What was counted as saying the same is a memory of its own again.
        """

        def distinguish(tx: Transaction) -> Distinguished:
            merged = self.archive.find(scope, cls, ArchiveCause.MERGED, record_ids=[other_id])
            mistaken = [each for each in merged if one_id in (each.reason or "")][:1]
            for archived in mistaken:
                self.archive.restore([archived.id], scope, by, cls)
                for known in tx.lock(cls, [one_id], scope):
                    uncount(tx, known)
            removed = self.facts.mark_distinct(cls, one_id, other_id, scope, where=where, by=by)
            return Distinguished(tuple(removed), tuple(each.record_id for each in mistaken))

        return self.storage.write(distinguish, by)

    # ------------------------------------------------------------------ looking after it

    def forget(
        self,
        agent: str | None = None,
        older_than_days: float = 90,
        below_confidence: float = 0.3,
        *,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget outcomes older than that and heuristics trusted less than that; returns how many memories.

        They are in the archive, from where `restore` brings them back, until `purge` deletes them for good. The
        number's `items` say which they are and why; with `dry_run`, which they would be, and nothing is forgotten.
        """
        scope = self.scope(None if agent is None else self._agent(agent))
        by = Attribution(agent=agent)
        forgotten = self.forgetting.forget(scope, older_than_days, below_confidence, by, dry_run=dry_run)
        _log.debug("memories were forgotten", extra={"agent": agent, "forgotten": int(forgotten), "dry_run": dry_run})
        return forgotten

    def restore(self, ids: str | Iterable[str], user_id: str | None = None) -> list[Record]:
        """Bring forgotten, archived, merged or quarantined memories of this project back, by their ids.

        Preferences belong to no project: with `user_id`, those of this user.
        """
        return self.archive.restore(ids, *self._put_away(user_id))

    def purge(self, retention_days: float = 30, user_id: str | None = None) -> int:
        """Delete for good what was put away or softly deleted longer ago than that; returns how many memories.

        Their text is then left nowhere: not in versions, vectors or the files of the store.

        With `user_id`, of this user's preferences, which belong to no project.
        """
        scope, by, cls = self._put_away(user_id)
        return self.archive.purge(_days("retention_days", retention_days), scope, by, cls)

    def _put_away(self, user_id: str | None) -> tuple[Scope, Attribution, type[Record] | None]:
        if user_id is None:
            return self.scope(), Attribution(), None
        return Scope(user_id=user_id), Attribution(user_id=user_id), UserPreference

    def get_stats(self, agent: str | None = None) -> dict[str, Any]:
        """How many memories of each kind there are, of one agent or of all."""
        return self.storage.get_stats(self.project_id, None if agent is None else self._agent(agent))

    def scope(self, agent: str | None = None) -> Scope:
        """The part of the store that belongs to this project, or to one of its agents."""
        return Scope(project_id=self.project_id, agent=agent)

    def _readable(self, agent: str) -> Scope:
        """What an agent reads: its own, and what others share with it."""
        scope = self.learning.validator.readable_scope(self._agent(agent))
        return Scope(project_id=self.project_id, agent=tuple(scope.get_readable_agents()))

    def _agent(self, name: str) -> str:
        """The agent's name as the configuration spells it: Helena is helena."""
        checked = checked_name("alma", "agent", name)
        if checked in self.scopes:
            return checked
        return next((known for known in self.scopes if same_name(known) == same_name(checked)), checked)


def checked_memory(owner: str, alma: ALMA) -> ALMA:
    """The memory that was given."""
    return checked_part(owner, "alma", alma, ALMA, "a memory, as ALMA.quickstart() opens one")


def _kind_of(record: Record) -> str:
    return record.spec.kind


def _days(name: str, days: float) -> timedelta:
    try:
        return timedelta(days=days)
    except (TypeError, ValueError, OverflowError):
        raise ValidationError("alma", name, days, "must be a number of days") from None
