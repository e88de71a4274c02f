"""The factory: schemas by name, and memories set up for a domain."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from alma.bootstrap import create_embedder, open_storage, store_of_file
from alma.cache.base import CacheBackend
from alma.config import DEFAULT_CONFIG, DEFAULT_STORE
from alma.core import ALMA
from alma.domains.schema import DomainSchema, prebuilt_schemas
from alma.embeddings.base import EmbeddingProvider, as_provider
from alma.errors import ConfigurationError, ValidationError, shown
from alma.learning.protocols import LearningProtocol
from alma.learning.validation import ScopeValidator
from alma.model.governance import ANONYMOUS, Attribution, Setting, SettingType
from alma.model.query import Compare
from alma.model.scope import MemoryScope, Scope
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor, redact_json
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.scoring import ScoringWeights
from alma.storage.base import StorageBackend, checked_storage
from alma.vectors.base import VectorIndex

_log = logging.getLogger("alma.domains")

P = ParamSpec("P")
R = TypeVar("R")
_EVERYWHERE = Scope.everywhere()
_PREFIX = "domain_schema."


class _Either(Generic[P, R]):
    """A method that may be called on the class as well, for a factory that the process shares."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Callable[P, R]:
        bound: Callable[P, R] = MethodType(self._method, _shared_factory() if instance is None else instance)
        return bound


class DomainMemoryFactory:
    """Knows the domain schemas, six of them built in, and creates memories for them.

    Custom schemas are kept in memory or, with `storage`, in that store, as are the memories it creates. Schemas pass
    the redactor first. They can also be listed and registered on the class itself, for the whole process.
    """

    def __init__(self, storage: StorageBackend | None = None, redactor: Redactor | None = DEFAULT_REDACTOR) -> None:
        self._storage = None if storage is None else checked_storage("domain memory factory", storage)
        self._redactor = checked_redactor("domain schema", redactor)
        self._kept: _Schemas = _InMemory() if storage is None else _InStorage(storage)

    # ------------------------------------------------------------------ schemas

    @_Either
    def list_schemas(self) -> list[str]:
        """The names of all schemas: built-in ones, then custom ones."""
        return list(dict.fromkeys((*prebuilt_schemas(), *self._kept.names())))

    @_Either
    def get_schema(self, name: str) -> DomainSchema | None:
        """The schema with this name, or None; custom schemas win over built-in ones."""
        prebuilt = prebuilt_schemas().get(name) if isinstance(name, str) else None
        known = self._kept.get(name) if isinstance(name, str) else None
        return known or (None if prebuilt is None else replace(prebuilt))

    @_Either
    def create_schema(
        self, name: str, config: Mapping[str, Any], by: Attribution = ANONYMOUS, *, register: bool = True
    ) -> DomainSchema:
        """Create a schema from a dict, and register it unless `register` is False."""
        schema: DomainSchema = self._without_secrets(DomainSchema.from_dict(name, config))
        if register:
            self.register_schema(schema, by)
        return schema

    @_Either
    def register_schema(self, schema: DomainSchema, by: Attribution = ANONYMOUS) -> None:
        """Register a schema under its name, replacing a custom one of that name."""
        if not isinstance(schema, DomainSchema):
            raise ValidationError("domain schema", None, schema, "must be a DomainSchema; create_schema takes a dict")
        schema.check_ends()
        self._kept.put(self._without_secrets(schema), by)

    def _without_secrets(self, schema: DomainSchema) -> DomainSchema:
        if self._redactor is None:
            return schema
        given = schema.to_dict()
        clean = redact_json(given, self._redactor)
        return schema if clean == given else DomainSchema.from_dict(schema.name, {**clean, "name": schema.name})

    @_Either
    def unregister_schema(self, name: str, by: Attribution = ANONYMOUS) -> bool:
        """Remove a custom schema; returns whether there was one. Built-in schemas stay."""
        return isinstance(name, str) and self._kept.drop(name, by)

    # ------------------------------------------------------------------ memories

    def create_alma(
        self,
        schema: DomainSchema | str,
        project_id: str,
        storage: StorageBackend | str | None = None,
        embedding_provider: EmbeddingProvider | str | None = None,
        agents: Iterable[str] | None = None,
        *,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        cache_ttl_seconds: float | None = None,
        enable_cache: bool | None = None,
        max_cache_entries: int | None = None,
        scoring_weights: ScoringWeights | None = None,
        memory_weights: ScoringWeights | None = None,
        recency_half_life_days: float | None = None,
        min_score_threshold: float | None = None,
        vector_index: VectorIndex | None = None,
        cache: CacheBackend | None = None,
    ) -> ALMA:
        """Create a memory for a domain, in which agents learn what its schema allows.

        `storage` is a store, a path or a URL and defaults to the store of the factory, else to the one that
        `.alma/config.yaml` configures, else to the SQLite file `.alma/alma.db` with the local model. All agents have
        the scope of the schema; with `agents`, only those may learn. `redactor` is the memory's, and all after it are
        arguments of `RetrievalEngine`.
        """
        given: dict[str, Any] = {
            "cache_ttl_seconds": cache_ttl_seconds,
            "enable_cache": enable_cache,
            "max_cache_entries": max_cache_entries,
            "scoring_weights": scoring_weights,
            "memory_weights": memory_weights,
            "recency_half_life_days": recency_half_life_days,
            "min_score_threshold": min_score_threshold,
            "vector_index": vector_index,
            "cache": cache,
        }
        storage = self._storage if storage is None else storage
        chosen = self._schema(schema)
        names = (f"{chosen.name}_agent",) if agents is None else _agent_names(agents)
        scopes = {name: chosen.scope_of(name) for name in names}
        provider = create_embedder(embedding_provider) if isinstance(embedding_provider, str) else embedding_provider
        store, embedder = _opened(storage, provider)
        try:
            options = {name: value for name, value in given.items() if value is not None}
            engine = RetrievalEngine(store, embedder, **options)
            learning = LearningProtocol(store, embedder, engine.index, scopes)
            if agents is None:
                learning.validator = _DomainScopes(chosen, scopes)
            memory = ALMA(store, engine, learning, scopes, project_id, redactor=redactor)
            memory._domain_schema = chosen
            return memory
        except BaseException:
            if store is not storage:
                store.close()
            raise

    def create_alma_for_agent(
        self,
        schema_name: str,
        agent: str,
        project_id: str,
        storage: StorageBackend | str | None = None,
        scope_restrictions: Iterable[str] = (),
        **options: Any,
    ) -> ALMA:
        """Create a memory for one agent of a domain, which learns nothing in the categories of `scope_restrictions`.

        `options` are passed to `create_alma`.
        """
        schema = replace(self._schema(schema_name))
        for category in scope_restrictions or ():
            schema.add_excluded_category(category)
        return self.create_alma(schema, project_id, storage, agents=[agent], **options)

    def _schema(self, schema: DomainSchema | str) -> DomainSchema:
        if isinstance(schema, DomainSchema):
            schema.check_ends()
            return schema
        found = self.get_schema(schema) if isinstance(schema, str) else None
        if found is None:
            raise ConfigurationError(f"{shown(schema)} is not a schema; choose {', '.join(self.list_schemas())}")
        return found


def create_coding_alma(project_id: str, agent: str = "developer", storage: Any = None, **options: Any) -> ALMA:
    """Create a memory for one agent that writes software; see `create_alma_for_agent`."""
    return DomainMemoryFactory().create_alma_for_agent("coding", agent, project_id, storage, **options)


def create_research_alma(project_id: str, agent: str = "researcher", storage: Any = None, **options: Any) -> ALMA:
    """Create a memory for one agent that does research; see `create_alma_for_agent`."""
    return DomainMemoryFactory().create_alma_for_agent("research", agent, project_id, storage, **options)


def create_general_alma(project_id: str, agent: str = "assistant", storage: Any = None, **options: Any) -> ALMA:
    """Create a memory for one agent that does any work; see `create_alma_for_agent`."""
    return DomainMemoryFactory().create_alma_for_agent("general", agent, project_id, storage, **options)


@cache
def _shared_factory() -> DomainMemoryFactory:
    return DomainMemoryFactory()


class _DomainScopes(ScopeValidator):
    """Gives every agent without its own scope the scope of the domain."""

    def __init__(self, schema: DomainSchema, scopes: Mapping[str, MemoryScope]) -> None:
        super().__init__(scopes)
        self._schema = schema

    def scope_of(self, agent: str) -> MemoryScope:
        return self.scopes.get(agent) or self._schema.scope_of(agent)


class _Schemas(Protocol):
    """Where custom schemas are kept."""

    def names(self) -> list[str]: ...

    def get(self, name: str) -> DomainSchema | None: ...

    def put(self, schema: DomainSchema, by: Attribution) -> None: ...

    def drop(self, name: str, by: Attribution) -> bool: ...


class _InMemory:
    """Schemas kept as long as the factory."""

    def __init__(self) -> None:
        self._schemas: dict[str, DomainSchema] = {}

    def names(self) -> list[str]:
        return list(self._schemas)

    def get(self, name: str) -> DomainSchema | None:
        return self._schemas.get(name)

    def put(self, schema: DomainSchema, by: Attribution) -> None:
        self._schemas[schema.name] = schema

    def drop(self, name: str, by: Attribution) -> bool:
        return self._schemas.pop(name, None) is not None


class _InStorage:
    """Schemas kept as settings of a store, read each time because other processes can change them."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage

    def names(self) -> list[str]:
        keys = self._storage.values(Setting, ["key"], _EVERYWHERE, Compare("value_type", "eq", SettingType.JSON))
        return sorted(key.removeprefix(_PREFIX) for (key,) in keys if key.startswith(_PREFIX))

    def get(self, name: str) -> DomainSchema | None:
        found = self._storage.get(Setting, f"{_PREFIX}{name}", _EVERYWHERE)
        return None if found is None else DomainSchema.from_dict(name, found.typed_value)

    def put(self, schema: DomainSchema, by: Attribution) -> None:
        self._storage.save(
            Setting(
                key=f"{_PREFIX}{schema.name}",
                value=json.dumps(schema.to_dict(), ensure_ascii=False),
                value_type=SettingType.JSON,
                description="The schema of a domain",
                updated_by=by.author,
            ),
            by,
        )

    def drop(self, name: str, by: Attribution) -> bool:
        return self._storage.delete(Setting, [f"{_PREFIX}{name}"], _EVERYWHERE, by) > 0


def _agent_names(agents: Iterable[str]) -> tuple[str, ...]:
    names = tuple(agents) if isinstance(agents, Iterable) and not isinstance(agents, str) else ()
    if not names:
        raise ConfigurationError("agents must be a list with at least one name; leave it out to let every agent learn")
    return names


def _opened(
    storage: StorageBackend | str | None, given: EmbeddingProvider | None
) -> tuple[StorageBackend, EmbeddingProvider]:
    if storage is None and DEFAULT_CONFIG.is_file():
        return store_of_file(DEFAULT_CONFIG, given)
    embedder = create_embedder("local") if given is None else as_provider(given)
    if isinstance(storage, StorageBackend):
        return storage, embedder
    place = DEFAULT_STORE if storage is None else storage
    opened = open_storage(place, embedding_dim=embedder.dimension, embedding_model=embedder.model)
    if storage is None:
        _log.info("a memory was opened at the default path", extra={"place": str(Path(place).absolute())})
    return opened, embedder
