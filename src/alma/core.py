"""ALMA, the facade: each method delegates to a service."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from alma.benefit.log import BenefitLog
from alma.closeable import Closeable
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ValidationError
from alma.events.emitter import get_emitter
from alma.ingest.deduplication import uncount
from alma.ingest.pipeline import Ingest
from alma.judge.base import Judge
from alma.learning.contradictions import with_contradictions, with_sources
from alma.learning.lessons import HeuristicEvidence, evidence_of
from alma.learning.lifecycle import DEFAULT_INTERVAL_SECONDS, Expiry
from alma.learning.maturity import MaturityNotes, standing_lessons
from alma.learning.protocols import Execution, Learned, LearningProtocol
from alma.learning.pruning import ForgettingEngine, Forgotten
from alma.learning.recommendation import Assessed, Recommendation
from alma.maintenance.tasks import Maintenance
from alma.memory.agents import AgentNames
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail
from alma.memory.deletion import Deletions
from alma.memory.erasure import Traces
from alma.memory.fact_relations import Distinguished, FactRelations
from alma.memory.gaps import ContextGaps
from alma.memory.general import GeneralMemories
from alma.memory.history import History
from alma.memory.journal import Journal
from alma.memory.patterns import Patterns
from alma.memory.projects import Projects
from alma.memory.relationships import Relationships
from alma.memory.sessions import Sessions
from alma.memory.settings import SystemSettings, Users
from alma.memory.shown import known_in, session_key, shown_in
from alma.memory.states import AgentStates
from alma.memory.updates import screen_with
from alma.memory.working import WorkingMemory
from alma.model.common import checked_name, checked_names, checked_part, same_name
from alma.model.governance import ANONYMOUS, ArchiveCause, Attribution
from alma.model.injection import Shown, without_shown
from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.provenance import STATED_SOURCES
from alma.model.query import EVERYTHING, Predicate
from alma.model.record import Record
from alma.model.scope import MemoryScope, Scope
from alma.model.slice import DEFAULT_PROMPT_TOKENS, MemorySlice
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor, masking
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.router import checked_query as checked_task
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend, Transaction, checked_storage
from alma.sync.manager import DataSyncManager
from alma.telemetry import traced

if TYPE_CHECKING:
    from alma.bootstrap import Parts
    from alma.domains.schema import DomainSchema
    from alma.events.delivery import WebhookConfig
    from alma.events.stored import StoredWebhooks, WebhookService
    from alma.graph.walks import MemoryGraph
    from alma.llm.base import LanguageModel
    from alma.maintenance.policy import MaintenancePolicy
    from alma.sync.coordinator import TransactionCoordinator
    from alma.sync.options import RelayOptions
    from alma.sync.projection import Projection

_log = logging.getLogger("alma.core")

DEFAULT_PROJECT = "default"
# A query for what every slice includes, whatever the task.
_ABOUT_NOTHING = "the start of a session"
# How long a service that ends waits for the receivers of its webhooks.
_LAST_EVENTS_SECONDS = 2.0
_ALWAYS = ("user_preference", "memory")

# The parameters of `quickstart` that are not keys of a configuration.
_NOT_KEYS = ("cls", "path", "project_id", "redactor")

T = TypeVar("T", bound=Record)

_ENGINE = "a RetrievalEngine, as RetrievalEngine(storage) makes one"
_PROTOCOL = "a LearningProtocol, as LearningProtocol(storage, engine.embedder, engine.index) makes one"


def _ids_of_learned(learned: Learned) -> list[str]:
    return [each.id for each in (learned.outcome, learned.heuristic, learned.anti_pattern) if each is not None]


def _id_of_record(record: Record) -> list[str]:
    return [str(record.key)]


class ALMA(GeneralMemories, Closeable):
    """A project's memory: retrieves what is worth knowing before a task, and learns from its outcome.

    Open one with `from_config` or `quickstart`, as a context manager or with `close()` at the end. Threads may share
    it, and any number of processes may work on one store.
    """

    # What DomainMemoryFactory made it for, under the name that programs for alma-memory read.
    _domain_schema: DomainSchema | None = None

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
        projections: Iterable[Projection] = (),
        relay: RelayOptions | None = None,
        graph: MemoryGraph | None = None,
        withhold: float = 0.0,
        withhold_of: Mapping[str, float] | None = None,
        maintenance: MaintenancePolicy | None = None,
        webhooks: Iterable[WebhookConfig] = (),
    ) -> None:
        self.storage = checked_storage("alma", storage)
        self.retrieval = checked_part("alma", "retrieval_engine", retrieval_engine, RetrievalEngine, _ENGINE)
        self.learning = checked_part("alma", "learning_protocol", learning_protocol, LearningProtocol, _PROTOCOL)
        self.learning.join(retrieval_engine.embedder, retrieval_engine.index)
        if scopes:
            self.scopes = {**self.scopes, **scopes}
        self.project_id = checked_name("alma", "project_id", project_id)
        self.redactor = checked_redactor("alma", redactor)
        self.screen = screen_with(self.redactor)
        if self.redactor is not None and self.redactor is not DEFAULT_REDACTOR:
            # Reasons do not pass ingest; the default redactor is always applied to them.
            storage.mask = masking(self.redactor)
        self.writer = MemoryWriter(storage, retrieval_engine.embedder, self.redactor)
        self.llm = llm
        self._agents = AgentNames(storage)
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
        self._maturity = MaturityNotes(self.storage)
        self._expiry_interval_seconds = expiry_interval_seconds
        self._expiry: Expiry | None = None
        self._is_borrowed = False
        self.sync = DataSyncManager(storage, projections, relay)
        self.graph = graph
        self.benefit = BenefitLog(storage, withhold, withhold_of)
        self._maintenance_policy = maintenance
        self.configured_webhooks = tuple(webhooks)
        self._webhooks: WebhookService | None = None

    @cached_property
    def maintenance(self) -> Maintenance:
        """Maintenance of the store: expiry, decay, cleanup, retention and cold storage."""
        policy = self._maintenance_policy
        return Maintenance(self.storage, self.archive, policy, self._outbox_readers, self.benefit.maintain)

    def _outbox_readers(self) -> list[str]:
        """The names under which this process reads the outbox."""
        webhooks = (*self.configured_webhooks, *self.stored_webhooks.configs())
        return [*(each.name for each in self.sync.projections), *(each.projection for each in webhooks)]

    @cached_property
    def stored_webhooks(self) -> StoredWebhooks:
        """The webhooks in the store, to which every running service delivers."""
        from alma.events.stored import StoredWebhooks

        return StoredWebhooks(self.storage)

    @cached_property
    def journal(self) -> Journal:
        """The general memories: notes, decisions, conversations and so on."""
        return Journal(self.storage, self.ingest, self.retrieval, redactor=self.redactor, audit=self.audit)

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions: started, switched, ended and archived."""
        return Sessions(self.storage, screen=self.screen)

    @cached_property
    def working(self) -> WorkingMemory:
        """The contents of each session's context window."""
        return WorkingMemory(self.storage)

    @cached_property
    def states(self) -> AgentStates:
        """The saved states of agents, with an optional expiry."""
        return AgentStates(self.storage, self.screen)

    @cached_property
    def users(self) -> Users:
        """The user profiles."""
        return Users(self.storage, self.screen)

    @cached_property
    def projects(self) -> Projects:
        """The projects."""
        return Projects(self.storage, self.screen)

    @cached_property
    def deletions(self) -> Deletions:
        """The deletion of users and projects with all their records."""
        traces = Traces(self.storage, self.retrieval.index, self.retrieval.cache)
        return Deletions(self.storage, self.archive, traces, self.ingest.flush)

    @cached_property
    def settings(self) -> SystemSettings:
        """The documented settings, for all users and for each."""
        return SystemSettings(self.storage)

    @cached_property
    def relationships(self) -> Relationships:
        """The relationships of general memories, and paths between them."""
        return Relationships(self.storage, self.screen, self.ingest.facts.detected, self.graph)

    @cached_property
    def facts(self) -> FactRelations:
        """The relations of facts and preferences: supersedes, contradicts, same."""
        return FactRelations(self.storage)

    @property
    def judge(self) -> Judge:
        """The judge that compares two texts."""
        return self.ingest.judging()

    @cached_property
    def patterns(self) -> Patterns:
        """Recurring patterns of this project and similar ones."""
        return Patterns(self.storage, self.embedder, self.writer, self.graph)

    @cached_property
    def gaps(self) -> ContextGaps:
        """Gaps in the knowledge of a project."""
        return ContextGaps(self.storage)

    @cached_property
    def history(self) -> History:
        """The versions of every memory, and the state at any time."""
        return History(self.storage, self.embedder)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        """Transactions by id: begun here, committed or rolled back there."""
        from alma.sync.coordinator import TransactionCoordinator

        return TransactionCoordinator(self.storage)

    @cached_property
    def audit(self) -> AuditTrail:
        """The audit log, in hash chains that reveal changes."""
        return AuditTrail(self.storage, log_reads=self._log_reads, mask=masking(self.redactor))

    @property
    def scopes(self) -> dict[str, MemoryScope]:
        """What each agent may learn and with whom it shares, by its name; changes take effect at once."""
        return self.learning.validator.scopes

    @scopes.setter
    def scopes(self, scopes: Mapping[str, MemoryScope]) -> None:
        self.learning.validator.scopes = dict(scopes)

    @property
    def embedder(self) -> EmbeddingProvider:
        """The embedding provider."""
        return self.retrieval.embedder

    # ------------------------------------------------------------------ opening and closing

    @classmethod
    def from_config(
        cls,
        path: str | Path = ".alma/config.yaml",
        *,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        config_path: str | Path | None = None,
    ) -> Self:
        """Open the memory that a configuration file describes; a given redactor replaces the configured one.

        `config_path` is the earlier name of the path.
        """
        from alma.bootstrap import parts_of_file

        path = path if config_path is None else config_path
        return cls._of(parts_of_file(path), redactor)

    @classmethod
    def quickstart(
        cls,
        path: str | Path | None = None,
        project_id: str = DEFAULT_PROJECT,
        *,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        storage: str | None = None,
        storage_dir: str | Path | None = None,
        db_name: str | None = None,
        durability: str | None = None,
        expiry_interval_seconds: float | None = None,
        embedding_provider: str | None = None,
        embedding_dim: int | None = None,
        judge: str | None = None,
        vectors: str | None = None,
        graph: str | None = None,
        agents: Mapping[str, Any] | None = None,
        postgres: Mapping[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        azure: Mapping[str, Any] | None = None,
        openai: Mapping[str, Any] | None = None,
        llm: Mapping[str, Any] | None = None,
        redis: Mapping[str, Any] | None = None,
        qdrant: Mapping[str, Any] | None = None,
        neo4j: Mapping[str, Any] | None = None,
        sync: Mapping[str, Any] | None = None,
        retrieval: Mapping[str, Any] | None = None,
        learning: Mapping[str, Any] | None = None,
        redaction: Mapping[str, Any] | None = None,
        audit: Mapping[str, Any] | None = None,
        benefit: Mapping[str, Any] | None = None,
        maintenance: Mapping[str, Any] | None = None,
        webhooks: Sequence[Mapping[str, Any]] | None = None,
    ) -> Self:
        """Open a memory without a configuration file: an SQLite file, by default `.alma/alma.db`, and the local model.

        `path` is a file, a folder for it, or the URL of a store. `redactor` removes secrets from everything that
        is written; None disables it. The other arguments are the keys of a configuration, None means not given; without
        a path they may also name the store.
        """
        given = {key: value for key, value in locals().items() if key not in _NOT_KEYS and value is not None}
        from alma.bootstrap import parts_at

        checked_redactor("alma", redactor)
        return cls._of(parts_at(path, project_id, given), redactor)

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
            projections=parts.projections,
            relay=parts.relay,
            graph=parts.graph,
            withhold=parts.withhold,
            withhold_of=parts.withhold_of,
            maintenance=parts.maintenance,
            webhooks=parts.webhooks,
        )

    def for_project(self, project_id: str) -> ALMA:
        """The memory of another project in the same store; it is open for as long as this one is."""
        if project_id == self.project_id:
            return self
        # Created before it is shared, so that this memory closes it.
        _ = self.journal
        other = copy.copy(self)
        other.project_id = checked_name("alma", "project_id", project_id)
        other._is_borrowed = True
        return other

    def start_background(self) -> None:
        """Start what services run in the background, until `stop_background` or `close`.

        Engines are kept up to date, expired rows removed, maintenance runs at its interval, and webhooks receive
        changes.
        """
        self.sync.start()
        self.maintenance.start()
        if self._webhooks is None:
            from alma.events.stored import WebhookService

            self._webhooks = WebhookService(self.storage, self.configured_webhooks)
        if self._expiry is None and self._expiry_interval_seconds:
            self._expiry = Expiry(self.storage, self.archive, self._expiry_interval_seconds)
            self._expiry.start()

    def stop_background(self) -> None:
        """Stop what `start_background` started; what was not sent waits for the next start."""
        self.sync.stop()
        webhooks, self._webhooks = self._webhooks, None
        if webhooks is not None:
            webhooks.close(_LAST_EVENTS_SECONDS)
        if "maintenance" in self.__dict__:
            self.maintenance.stop()
        expiry, self._expiry = self._expiry, None
        if expiry is not None:
            expiry.stop()

    def close(self) -> None:
        """Close the store and its index; closing twice has no effect."""
        if self._is_borrowed:
            return
        self.stop_background()
        self.sync.close()
        if self.graph is not None:
            self.graph.close()
        if "journal" in self.__dict__:
            self.journal.close()
        self.ingest.close()
        self.retrieval.close()
        self.storage.close()

    # ------------------------------------------------------------------ before a task

    @traced("search_memory", lambda found: [str(record.key) for record in found], query="task")
    def retrieve(
        self,
        task: str,
        agent: str,
        user_id: str | None = None,
        top_k: int = 5,
        *,
        session_id: str | None = None,
        kinds: Iterable[type[Record] | str] | None = None,
        now: datetime | None = None,
        bypass_cache: bool = False,
        include_shared: bool = True,
        memories_within: Scope | None = None,
        weak: bool = False,
        already_shown: str | Shown | None = None,
        max_tokens: int = DEFAULT_PROMPT_TOKENS,
    ) -> MemorySlice:
        """The few memories worth knowing for this task, which `to_prompt()` turns into text.

        `kinds` limits the kinds, and `now` is the time of the task. `memories_within` is where general memories are
        searched. `weak` includes weakly relevant memories.

        `already_shown` is the id of a session of yours: the slice then lacks what was shown in it and says the same
        since, and its `blocks` are a stable text for the whole session and one for this task, of together at most
        `max_tokens`. A host that keeps what it showed by itself gives that (`Block.shown`).
        """
        agent = self.agent_named(agent)
        scope = self.learning.validator.readable_scope(agent)
        retrieved = self.retrieval.retrieve(
            task,
            agent,
            self.project_id,
            user_id,
            top_k,
            scope,
            bypass_cache,
            include_shared,
            session_id=session_id,
            kinds=kinds,
            now=now,
            memories_within=memories_within,
            weak=weak,
        )
        found = self._maturity.added_to(with_sources(with_contradictions(retrieved)))
        key, standing, known = None, None, frozenset[str]()
        if isinstance(already_shown, Mapping):
            found, known = without_shown(found, already_shown), frozenset(already_shown)
        elif already_shown is not None:
            key = session_key(self.project_id, agent, user_id, already_shown)
            before = known_in(self.storage, key)
            if before is None:
                standing = self.standing(agent, user_id, include_shared=include_shared, memories_within=memories_within)
            known = before or frozenset(str(each.key) for each in standing or ())
        # A session keeps what it was shown, so nothing can be withheld from it later.
        found = self.benefit.drawn(found, task, agent, self.project_id, known=known)
        if not retrieved and agent not in self.scopes:
            found = replace(found, hint=self.agent_hint(agent))
        self.ingest.served(found, agent, self.scope(agent))
        if key is not None:
            found = shown_in(self.storage, key, found, standing, max_tokens)
        if self._log_reads:
            self._log_read(found, Attribution(user_id=user_id, agent=agent))
        _log.debug(
            "memories were retrieved",
            extra={"agent": agent, "found": found.total_items, "milliseconds": found.retrieval_time_ms},
        )
        return found

    def standing(
        self,
        agent: str,
        user_id: str | None = None,
        *,
        include_shared: bool = True,
        memories_within: Scope | None = None,
    ) -> MemorySlice:
        """What does not change from task to task: preferences, standing instructions, established lessons, warnings."""
        agent = self.agent_named(agent)
        always = self.retrieve(
            _ABOUT_NOTHING,
            agent,
            user_id,
            kinds=_ALWAYS,
            include_shared=include_shared,
            memories_within=memories_within,
        )
        scope = self._readable(agent) if include_shared else self.scope(agent)
        lessons, warnings = standing_lessons(self.storage, scope)
        block = replace(always, heuristics=lessons, anti_patterns=warnings, memories=(), agent=agent, query=None)
        self.ingest.served(block, agent, self.scope(agent))
        return block

    def _log_read(self, found: MemorySlice, by: Attribution) -> None:
        for kind, records in groupby(sorted(found, key=_kind_of), _kind_of):
            ids = [str(record.key) for record in records]
            self.audit.record_read(kind, ids, by, action="search", request={"task": found.query})

    def recommend(
        self, task: str, agent: str, among: Sequence[str] | None = None, *, explore: bool = False
    ) -> Recommendation:
        """Which strategy to use for a task: the one that did best on similar tasks, with the evidence.

        Its `strategy` is None, with a reason and the nearest evidence, if nothing was tried on such a task. `among`
        limits the choice to these strategies. With `explore=True`, less similar tasks count as well, and a hardly tried
        one of `among` gets its turn.
        """
        scope = self._readable(agent)
        found = self.learning.recommender.recommend(checked_task(task), scope, among, explore=explore)
        hint = "" if found.strategy is not None or found.ranked else self.agent_hint(agent)
        return replace(found, reason=hint) if hint else found

    def assess(self, task: str, agent: str, strategies: Sequence[str]) -> Sequence[Assessed]:
        """The expected success of each of these strategies at a task, in the given order, with the evidence."""
        return self.learning.recommender.assess(checked_task(task), self._readable(agent), strategies)[0]

    def evidence(self, heuristic_id: str, agent: str) -> HeuristicEvidence:
        """The ids of all outcomes for and against a heuristic; the heuristic itself has only the newest."""
        return evidence_of(self.storage, heuristic_id, self._readable(agent))

    # ------------------------------------------------------------------ after a task

    def not_the_same(self, heuristic_id: str, strategy: str, agent: str, by: Attribution = ANONYMOUS) -> list[str]:
        """Separate a strategy from the rule that counts it: its outcomes become another lesson. Returns their ids. The
        rule keeps its other outcomes and does not count that strategy again.
        """
        return self.learning.separate(heuristic_id, strategy, self.agent_named(agent), self.project_id, by)

    @traced("upsert_memory", _ids_of_learned)
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
        verified_by: str | None = None,
        retrieval_id: str | None = None,
    ) -> Learned:
        """Store the outcome of a task, and a lesson once the same happened often enough.

        `task_type` is the domain that the agent's scope allows or forbids. `embedding` is the vector of the task, if
        the caller has it. `verified_by` says what verified the outcome: tests, tool, human or self-report; lessons
        weigh it accordingly. `retrieval_id` is that of the slice that the agent used; where benefit is measured, it is
        found by agent, task and time without it. The result is true, and has the outcome's fields.
        """
        learned = self.learning.learn(
            Execution(
                agent=self.agent_named(agent),
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
                verified_by=verified_by,
            )
        )
        learned = self._credited(learned, retrieval_id)
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

    def _credited(self, learned: Learned, retrieval_id: str | None) -> Learned:
        """The result of `learn`, after crediting its outcome to the memories that its retrieval showed and withheld."""
        if retrieval_id is not None:
            checked_name("learn", "retrieval_id", retrieval_id)
        note = self.benefit.credit(learned.outcome, retrieval_id)
        return learned if note is None else replace(learned, notes=(*learned.notes, note))

    @traced("upsert_memory", _id_of_record)
    def add_user_preference(
        self,
        user_id: str,
        category: str,
        preference: str,
        source: str = "explicit_instruction",
        *,
        supersedes: str | Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> UserPreference:
        """Store how a user wants things done.

        It is compared with the user's other preferences: the same in other words is counted, and of contradicting ones
        the newest holds. `supersedes` are the ids of preferences that it replaces in any case.
        """
        made = UserPreference(
            user_id=user_id, category=category, preference=preference, source=source, metadata=dict(metadata or {})
        )
        return self._ingested(made, Attribution(user_id=made.user_id), source, supersedes)

    @traced("upsert_memory", _id_of_record)
    def add_domain_knowledge(
        self,
        agent: str,
        domain: str,
        fact: str,
        source: str = "user_stated",
        *,
        supersedes: str | Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> DomainKnowledge:
        """Store a fact, if the agent may learn in this domain.

        It is compared with the nearest facts of the agent in this project: the same in other words is counted, and of
        contradicting ones the newest holds. `supersedes` are the ids of facts that it replaces in any case.
        """
        # Without a domain, no scope could be checked.
        agent, domain = self.agent_named(agent), checked_name("alma", "domain", domain)
        self.learning.require(agent, domain, fact, "add_domain_knowledge", DomainKnowledge.spec.kind)
        made = DomainKnowledge(
            agent=agent,
            project_id=self.project_id,
            domain=domain,
            fact=fact,
            source=source,
            metadata=dict(metadata or {}),
        )
        return self._ingested(made, Attribution(agent=agent), source, supersedes)

    def _ingested(self, made: T, by: Attribution, source: str, supersedes: str | Iterable[str] = ()) -> T:
        """The record after ingest: without secrets, or the stored one that says the same.

        The metadata of the result name what was masked, and why and where it is quarantined.
        """
        replaced = checked_names(made.spec.kind, "supersedes", supersedes)
        written = self.ingest.save(made, by, STATED_SOURCES.get(source, source), replaced)
        kept = self.storage.get(type(made), written.id, Scope.everywhere())
        notes: dict[str, Any] = {"masked": [f"{each.field}: {each.kind}" for each in written.masked]}
        if kept is None:
            # A quarantined record is only in the archive.
            notes |= {"quarantined": written.reason, "archive_id": written.archive_id}
            kept = self.ingest.clean(made)[0]
        said = {name: value for name, value in notes.items() if value}
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
        """Say that two facts are different, and that neither replaces or contradicts the other; this is remembered.

        A fact that was counted as the same is restored.
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

    # ------------------------------------------------------------------ maintenance

    @traced("delete_memory", int)
    def forget(
        self,
        agent: str | None = None,
        older_than_days: float = 90,
        below_confidence: float = 0.3,
        *,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget outcomes older than that and heuristics with less confidence; returns how many memories.

        They are archived, from where `restore` brings them back until `purge` deletes them for good. The `items` of the
        result say which and why; with `dry_run` nothing is forgotten.
        """
        scope = self.scope(None if agent is None else self.agent_named(agent))
        by = Attribution(agent=agent)
        forgotten = self.forgetting.forget(scope, older_than_days, below_confidence, by, dry_run=dry_run)
        _log.debug("memories were forgotten", extra={"agent": agent, "forgotten": int(forgotten), "dry_run": dry_run})
        return forgotten

    def restore(self, ids: str | Iterable[str], user_id: str | None = None) -> list[Record]:
        """Restore forgotten, archived, merged or quarantined memories of this project, by their ids.

        Preferences belong to no project: with `user_id`, those of this user.
        """
        return self.archive.restore(ids, *self._archived_scope(user_id))

    @traced("delete_memory", int)
    def purge(self, retention_days: float = 30, user_id: str | None = None) -> int:
        """Delete for good what was archived or softly deleted longer ago than that; returns how many memories.

        Their text is then left nowhere: not in versions, vectors or the files of the store. With `user_id`, of this
        user's preferences, which belong to no project.
        """
        scope, by, cls = self._archived_scope(user_id)
        return self.archive.purge(_days("retention_days", retention_days), scope, by, cls)

    def _archived_scope(self, user_id: str | None) -> tuple[Scope, Attribution, type[Record] | None]:
        if user_id is None:
            return self.scope(), Attribution(), None
        return Scope(user_id=user_id), Attribution(user_id=user_id), UserPreference

    def get_stats(self, agent: str | None = None) -> dict[str, Any]:
        """The number of memories of each kind, of one agent or of all."""
        return self.storage.get_stats(self.project_id, None if agent is None else self.agent_named(agent))

    def agent_named(self, name: str) -> str:
        """The agent's name in the spelling of the configuration, else that of its stored memories."""
        checked = checked_name("alma", "agent", name)
        if checked in self.scopes:
            return checked
        listed = next((known for known in self.scopes if same_name(known) == same_name(checked)), None)
        return listed or self._agents.stored(checked, self.project_id) or checked

    def agent_hint(self, name: str) -> str:
        """For an agent without scope and memories: a sentence with the known agent probably meant; otherwise empty."""
        return "" if self.agent_named(name) in self.scopes else self._agents.hint(name, self.project_id)

    def scope(self, agent: str | None = None) -> Scope:
        """The part of the store that belongs to this project, or to one of its agents."""
        return Scope(project_id=self.project_id, agent=agent)

    def _readable(self, agent: str) -> Scope:
        """What an agent reads: its own memories, and those that others share with it."""
        scope = self.learning.validator.readable_scope(self.agent_named(agent))
        return Scope(project_id=self.project_id, agent=tuple(scope.get_readable_agents()))


def checked_memory(owner: str, alma: ALMA) -> ALMA:
    """The memory, if it is one; otherwise a ValidationError."""
    return checked_part(owner, "alma", alma, ALMA, "a memory, as ALMA.quickstart() opens one")


def _kind_of(record: Record) -> str:
    return record.spec.kind


def _days(name: str, days: float) -> timedelta:
    try:
        return timedelta(days=days)
    except (TypeError, ValueError, OverflowError):
        raise ValidationError("alma", name, days, "must be a number of days") from None
