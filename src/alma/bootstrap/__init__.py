"""Wiring: the only package that knows the concrete classes of stores, embedders, caches, models and indexes."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from alma.bootstrap.engines import memory_graph_of, required_by, vector_index_of
from alma.bootstrap.engines import open_projections as open_projections
from alma.bootstrap.providers import (
    construct,
    embedding_options,
    judge_of,
    language_model_of,
    with_config_keys,
)
from alma.bootstrap.providers import create_cache as create_cache
from alma.bootstrap.providers import create_embedder as create_embedder
from alma.bootstrap.providers import create_language_model as create_language_model
from alma.bootstrap.providers import local_model as local_model
from alma.bootstrap.stores import COSMOS_SCHEMES, FILE_SCHEME, is_sqlite
from alma.bootstrap.stores import IN_MEMORY as IN_MEMORY
from alma.bootstrap.stores import is_cosmos as is_cosmos
from alma.bootstrap.stores import is_same_store as is_same_store
from alma.bootstrap.stores import migrate_storage as migrate_storage
from alma.bootstrap.stores import open_existing as open_existing
from alma.bootstrap.stores import open_for_own_model as open_for_own_model
from alma.bootstrap.stores import open_migrator as open_migrator
from alma.bootstrap.stores import open_postgres as open_postgres
from alma.bootstrap.stores import open_storage as open_storage
from alma.bootstrap.stores import open_target as open_target
from alma.bootstrap.stores import open_vector_index as open_vector_index
from alma.bootstrap.stores import partition_tables as partition_tables
from alma.bootstrap.stores import reembed_storage as reembed_storage
from alma.bootstrap.stores import require_containers as require_containers
from alma.bootstrap.stores import require_sound_store as require_sound_store
from alma.bootstrap.stores import restore_storage as restore_storage
from alma.bootstrap.stores import store_exists as store_exists
from alma.errors import ConfigurationError, MissingDependencyError
from alma.paths import expand_home

if TYPE_CHECKING:
    from alma.cache.base import CacheBackend
    from alma.config.settings import Settings
    from alma.embeddings.base import EmbeddingProvider
    from alma.events.delivery import WebhookConfig
    from alma.graph.walks import MemoryGraph
    from alma.judge.base import Judge
    from alma.learning.protocols import LearningProtocol
    from alma.llm.base import LanguageModel
    from alma.maintenance.policy import MaintenancePolicy
    from alma.model.scope import MemoryScope
    from alma.redaction.redactor import Redactor
    from alma.retrieval.engine import RetrievalEngine
    from alma.storage.base import StorageBackend
    from alma.sync.options import RelayOptions
    from alma.sync.projection import Projection

# The configuration keys of the store.
_PLACES = ("storage", "storage_dir", "db_name", "postgres")

_log = logging.getLogger("alma.bootstrap")


@dataclass(frozen=True, slots=True)
class Parts:
    """The constructor arguments of the facade."""

    storage: StorageBackend
    retrieval: RetrievalEngine
    learning: LearningProtocol
    scopes: Mapping[str, MemoryScope]
    project_id: str
    log_reads: bool = False
    redactor: Redactor | None = None
    expiry_interval_seconds: float = 0
    llm: LanguageModel | None = None
    judge: Judge | None = None
    projections: Sequence[Projection] = ()
    relay: RelayOptions | None = None
    graph: MemoryGraph | None = None
    withhold: float = 0.0
    withhold_of: Mapping[str, float] = field(default_factory=dict)
    maintenance: MaintenancePolicy | None = None
    webhooks: Sequence[WebhookConfig] = ()


def parts_of_file(path: str | Path) -> Parts:
    """Open the memory that a configuration file describes."""
    from alma.config.loader import load_settings

    return _opened(load_settings(path))


def store_of_file(
    path: str | Path, embedder: EmbeddingProvider | None = None
) -> tuple[StorageBackend, EmbeddingProvider]:
    """Open the store of a configuration file, with its embedder unless one is given."""
    from alma.config.loader import load_settings

    settings = load_settings(path)
    chosen = _embedder_of(settings) if embedder is None else embedder
    return _storage_of(settings, chosen, None), chosen


def open_default() -> tuple[StorageBackend, Redactor | None]:
    """The store that the command line chooses without options, with the redactor for its writes.

    ALMA_STORE and ALMA_CONFIG name one; else `.alma/config.yaml` does, if it exists; else it is `.alma/alma.db`, if
    that exists. In a folder with none of these, the store is in memory, as in alma-memory.
    """
    from alma.config import DEFAULT_STORE, config_file
    from alma.config.loader import load_settings
    from alma.redaction.redactor import DEFAULT_REDACTOR

    named, given = os.environ.get("ALMA_STORE") or None, os.environ.get("ALMA_CONFIG") or None
    file = config_file(given, named)
    if named is None and file is None and not Path(DEFAULT_STORE).is_file():
        _log.warning("kept in memory only: this folder has no default store; make one with  alma init")
        return open_storage(IN_MEMORY), DEFAULT_REDACTOR
    if named is not None or file is None:
        redactor = DEFAULT_REDACTOR if file is None else redactor_of_file(file)
        return open_for_own_model(named or DEFAULT_STORE, new_model=local_model()), redactor
    settings = load_settings(file)
    return _storage_of(settings, _embedder_of(settings), None), _redactor_of(settings)


def parts_at(place: str | Path | None, project_id: str, given: Mapping[str, Any]) -> Parts:
    """Open a store at a path or URL with further configuration keys; without a path, the keys name the store."""
    from alma.config.loader import settings_from

    twice = [key for key in _PLACES if key in given]
    if place is not None and twice:
        raise ConfigurationError(f"path and {twice[0]} both say where the store is; give one of them")
    settings = settings_from({"project_id": project_id, **given})
    return _opened(settings, None if place is None else _file_in(place))


def _file_in(place: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path itself; for a directory, its default store file."""
    named = os.fspath(place) if isinstance(place, os.PathLike) else place
    if not isinstance(named, str) or "://" in named or not named.strip():
        return place
    path = expand_home(named)
    return path / "alma.db" if named.endswith(os.sep) or path.is_dir() else path


def parts_chosen(config: str | Path | None, place: str | None, project_id: str | None) -> Parts:
    """Open a configured memory, optionally at another place or for another project."""
    from alma.config.loader import load_settings, settings_from

    if config is None:
        return parts_at(place, project_id or "default", {})
    settings = load_settings(config)
    if project_id is not None:
        settings = settings.model_copy(update={"project_id": settings_from({"project_id": project_id}).project_id})
    return _opened(settings, place)


def redactor_of_file(path: str | Path) -> Redactor | None:
    """The redactor of a configuration file; None if redaction is disabled."""
    from alma.config.loader import load_settings

    return _redactor_of(load_settings(path))


def judge_of_file(path: str | Path | None) -> Judge:
    """The judge of a configuration file, or the default one."""
    from alma.config.loader import load_settings, settings_from

    settings = settings_from({"project_id": "default"}) if path is None else load_settings(path)
    return judge_of(settings, language_model_of(settings), _redactor_of(settings))


def embedding_of_file(path: str | Path, provider: str | None = None) -> tuple[str, dict[str, Any]]:
    """The embedding provider of a configuration file, or the given one, and its options."""
    from alma.config.loader import load_settings

    settings = load_settings(path)
    chosen = provider or settings.embedding_provider
    return chosen, embedding_options(settings, chosen)


def place_of_file(path: str | Path) -> tuple[str, str]:
    """The store of a configuration file as a path or URL, and its PostgreSQL schema."""
    from alma.config.loader import load_settings

    settings = load_settings(path)
    folder = expand_home(settings.storage_dir)
    match settings.storage:
        case "postgres":
            from alma.storage.postgres.hosts import hosts_of

            at = settings.postgres
            who = f"{quote(at.user, safe='')}:{quote(at.password.reveal(), safe='')}"
            hosts = ",".join(_in_url(*each) for each in hosts_of(at.host, at.port))
            where = f"{hosts}/{quote(at.database, safe='')}?sslmode={quote(at.ssl_mode)}"
            return f"postgresql://{who}@{where}", at.schema_name
        case "azure":
            return _cosmos_url(settings), "public"
        case "file":
            return f"{FILE_SCHEME}{folder}", "public"
        case _:
            return str(folder / settings.db_name), "public"


def _in_url(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{quote(host, safe='')}:{port}"


def _cosmos_url(settings: Settings) -> str:
    """The address of a Cosmos DB store with its key."""
    at = settings.azure
    endpoint = urlsplit(at.endpoint or "")
    if endpoint.scheme not in COSMOS_SCHEMES.values() or not endpoint.netloc:
        raise ConfigurationError(
            f"storage is azure, and azure.endpoint must be the address of the account, like "
            f"https://my-account.documents.azure.com:443/, not {at.endpoint!r}"
        )
    if at.key is None:
        raise ConfigurationError(
            "storage is azure, and azure.key is missing: write  key: ${AZURE_COSMOS_KEY}  or  key: ${KEYVAULT:name}"
        )
    scheme = next(name for name, meant in COSMOS_SCHEMES.items() if meant == endpoint.scheme)
    return f"{scheme}://:{quote(at.key.reveal(), safe='')}@{endpoint.netloc}/{quote(at.database, safe='')}"


def _opened(settings: Settings, place: str | os.PathLike[str] | None = None) -> Parts:
    from alma.learning.heuristics import HeuristicExtractor
    from alma.learning.protocols import LearningProtocol
    from alma.sync.options import RelayOptions

    llm, redactor = language_model_of(settings), _redactor_of(settings)
    judge = judge_of(settings, llm, redactor)
    cache = _cache_of(settings, redactor)
    embedder = _embedder_of(settings, cache)
    storage = _storage_of(settings, embedder, place)
    try:
        graph = memory_graph_of(settings)
        engine = _engine_of(settings, storage, embedder, cache)
        projections = open_projections(settings, storage, embedder)
        protocol = LearningProtocol(
            storage,
            embedder,
            engine.index,
            settings.scopes(),
            HeuristicExtractor(settings.learning.evidence_half_life_days),
            settings.learning.max_outcomes_per_agent,
            judge,
        )
    except BaseException:
        storage.close()
        raise
    return Parts(
        storage,
        engine,
        protocol,
        settings.scopes(),
        settings.project_id,
        log_reads=settings.audit.log_reads,
        redactor=redactor,
        expiry_interval_seconds=settings.expiry_interval_seconds,
        llm=llm,
        judge=judge,
        projections=projections,
        relay=RelayOptions(**settings.sync.model_dump()),
        graph=graph,
        withhold=settings.benefit.withhold,
        withhold_of=settings.withheld(),
        maintenance=settings.maintenance.policy(_folder_of(settings, place) / "cold"),
        webhooks=[each.config() for each in settings.webhooks],
    )


def _folder_of(settings: Settings, place: str | os.PathLike[str] | None) -> Path:
    """The folder of a store that is a file, else the configured one."""
    if place is None or "://" in os.fspath(place):
        return expand_home(settings.storage_dir)
    return Path(place).parent


def _redactor_of(settings: Settings) -> Redactor | None:
    from alma.redaction.redactor import DEFAULT_REDACTOR, SecretRedactor
    from alma.redaction.rules import Rule

    chosen = settings.redaction
    if not chosen.enabled:
        return None
    # Custom patterns have no required substring, so they are tried on every text.
    rules = [Rule(each.name, "", re.compile(each.pattern)) for each in chosen.patterns]
    return SecretRedactor(rules) if rules else DEFAULT_REDACTOR


def _embedder_of(settings: Settings, cache: CacheBackend | None = None) -> EmbeddingProvider:
    provider = settings.embedding_provider
    shared = getattr(cache, "shared", None)
    try:
        embedder = create_embedder(provider, shared=shared, **embedding_options(settings, provider))
    except MissingDependencyError:
        raise
    except ConfigurationError as exc:
        raise with_config_keys(exc, provider) from exc
    if settings.embedding_dim not in (None, embedder.dimension):
        raise ConfigurationError(
            f"embedding_dim is {settings.embedding_dim}, but {embedder.model} makes vectors of {embedder.dimension}: "
            f"set it to {embedder.dimension} or leave it out"
        )
    return embedder


def _storage_of(
    settings: Settings, embedder: EmbeddingProvider, place: str | os.PathLike[str] | None
) -> StorageBackend:
    space: dict[str, Any] = {"embedding_dim": embedder.dimension, "embedding_model": embedder.model}
    if place is not None:
        return open_storage(place, **space, **_durability(settings, place))
    folder = expand_home(settings.storage_dir)
    match settings.storage:
        case "postgres":
            from alma.storage.postgresql import PostgreSQLStorage

            return PostgreSQLStorage(**settings.postgres.options(), **space)
        case "azure":
            return open_storage(_cosmos_url(settings), **space)
        case "file":
            return open_storage(f"{FILE_SCHEME}{folder}", **space)
        case _:
            return open_storage(folder / settings.db_name, **space, **_durability(settings, folder))


def _durability(settings: Settings, place: str | os.PathLike[str]) -> dict[str, Any]:
    """The durability option of an SQLite file; other stores always flush."""
    return {"durability": settings.durability} if is_sqlite(place) else {}


def _cache_of(settings: Settings, redactor: Redactor | None) -> CacheBackend:
    from alma.redaction.redactor import masking

    chosen = settings.retrieval
    options: dict[str, Any] = {}
    if chosen.cache == "redis":
        if settings.redis is None:
            raise ConfigurationError("retrieval.cache is redis, but redis.url is missing; add it")
        ttls = {"query_results": chosen.cache_ttl_seconds, **settings.redis.ttl_seconds}
        options = {"url": settings.redis.url.reveal(), "prefix": settings.redis.prefix, "ttl_seconds": ttls}
        options["mask"] = masking(redactor)
        with required_by("redis"):
            return create_cache(chosen.cache, **options)
    elif chosen.cache == "memory":
        options = {"max_entries": chosen.max_cache_entries}
    return create_cache(chosen.cache, **options)


def _engine_of(
    settings: Settings, storage: StorageBackend, embedder: EmbeddingProvider, cache: CacheBackend
) -> RetrievalEngine:
    from alma.retrieval.engine import RetrievalEngine
    from alma.retrieval.scoring import ScoringWeights

    chosen = settings.retrieval
    return RetrievalEngine(
        storage,
        embedder,
        cache_ttl_seconds=chosen.cache_ttl_seconds,
        scoring_weights=construct(ScoringWeights, "retrieval.scoring_weights", chosen.scoring_weights.model_dump()),
        recency_half_life_days=chosen.recency_half_life_days,
        min_score_threshold=chosen.min_score_threshold,
        cache=cache,
        searches=getattr(cache, "searches", None),
        activity=getattr(cache, "activity", None),
        vector_index=vector_index_of(settings, storage, embedder),
    )
