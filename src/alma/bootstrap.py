"""Wiring: the one place that knows which class keeps which store, makes the vectors or remembers answers."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from alma.errors import ConfigurationError, MissingDependencyError, shown
from alma.fitting import made
from alma.paths import at_home

if TYPE_CHECKING:
    from alma.cache.base import CacheBackend
    from alma.config.settings import Settings
    from alma.embeddings.base import EmbeddingProvider
    from alma.learning.protocols import LearningProtocol
    from alma.model.scope import MemoryScope
    from alma.redaction.redactor import Redactor
    from alma.retrieval.engine import RetrievalEngine
    from alma.storage.base import StorageBackend
    from alma.storage.sql.migrate import Migrator
    from alma.storage.sql.partitions import Partition
    from alma.sync.reembed import Progress
    from alma.vectors.base import VectorIndex

Made = TypeVar("Made")

_POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_SQLITE_SCHEME = "sqlite:///"
_FILE_SCHEME = "file://"
IN_MEMORY = "memory://"
# The keys of a configuration that say where its store is.
_PLACES = ("storage", "storage_dir", "db_name", "postgres")
_FORMS = "a file (alma.db), sqlite:///path, file:///folder, postgresql://user:password@host/database or memory://"


def open_storage(store: str | os.PathLike[str], embedding_dim: int = 384, **options: Any) -> StorageBackend:
    """The store behind a path or URL: an SQLite file, `file://` a folder of JSON, `postgresql://` a database.

    `memory://` is a new store that lasts as long as the object.
    """
    if not isinstance(store, str):
        if not isinstance(store, os.PathLike):
            raise ConfigurationError(f"the store must be named, not be {shown(store)}: {_FORMS}")
        store = os.fspath(store)
    if store == IN_MEMORY:
        from alma.storage.in_memory import InMemoryStorage

        return InMemoryStorage(embedding_dim=embedding_dim, **options)
    if _is_postgres(store):
        from alma.storage.postgresql import PostgreSQLStorage

        return PostgreSQLStorage.from_dsn(store, embedding_dim=embedding_dim, **options)
    if store.startswith(_FILE_SCHEME):
        from alma.storage.file_based import FileBasedStorage

        return FileBasedStorage(at_home(store.removeprefix(_FILE_SCHEME)), embedding_dim=embedding_dim, **options)
    from alma.storage.sqlite_local import SQLiteStorage

    return SQLiteStorage(_sqlite_path(store), embedding_dim=embedding_dim, **options)


def open_existing_storage(store: str, schema: str = "public") -> StorageBackend:
    """The store behind a path or URL, for looking into it; a file that is not there is an error, not a new store."""
    if _is_postgres(store):
        return open_storage(store, schema=schema)
    if not store.startswith(_FILE_SCHEME):
        _existing(_sqlite_path(store))
    elif not at_home(store.removeprefix(_FILE_SCHEME)).is_dir():
        raise ConfigurationError(f"there is no store at {store.removeprefix(_FILE_SCHEME)}")
    return open_storage(store)


def open_vector_index(
    storage: StorageBackend, model: str | None = None, progress: Callable[[int, int], None] | None = None
) -> VectorIndex:
    """The index that suits a store: mapped files beside an SQLite file, the server's own, or an exact scan."""
    from alma.storage.base import Capability

    path = getattr(storage, "path", None)
    if Capability.VECTOR_FEED in storage.capabilities and isinstance(path, Path):
        from alma.vectors.mapped import MappedIndex

        return MappedIndex(storage, path.with_name(f"{path.name}.vectors"), model, progress=progress)
    from alma.vectors.native import NativeIndex

    return NativeIndex(storage, model, exact=Capability.VECTOR_INDEX not in storage.capabilities)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a memory is put together from, in the order of the facade's constructor."""

    storage: StorageBackend
    retrieval: RetrievalEngine
    learning: LearningProtocol
    scopes: Mapping[str, MemoryScope]
    project_id: str
    log_reads: bool = False
    redactor: Redactor | None = None


def parts_of_file(path: str | Path) -> Parts:
    """What a configuration file describes, opened."""
    from alma.config.loader import load_settings

    return _opened(load_settings(path))


def store_of_file(
    path: str | Path, embedder: EmbeddingProvider | None = None
) -> tuple[StorageBackend, EmbeddingProvider]:
    """The store that a configuration file describes, opened, and its provider of vectors unless one is given."""
    from alma.config.loader import load_settings

    settings = load_settings(path)
    chosen = _embedder_of(settings) if embedder is None else embedder
    return _storage_of(settings, chosen, None), chosen


def parts_at(place: str | Path | None, project_id: str, given: Mapping[str, Any]) -> Parts:
    """A store at a path or URL, opened, with further keys of a configuration; without a place, where these say."""
    from alma.config.loader import settings_from

    twice = [key for key in _PLACES if key in given]
    if place is not None and twice:
        raise ConfigurationError(f"path and {twice[0]} both say where the store is; give one of them")
    settings = settings_from({"project_id": project_id, **given})
    return _opened(settings, None if place is None else _file_in(place))


def _file_in(place: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The place itself; for a folder, the file in it that a store has by default."""
    named = os.fspath(place) if isinstance(place, os.PathLike) else place
    if not isinstance(named, str) or "://" in named or not named.strip():
        return place
    path = at_home(named)
    return path / "alma.db" if named.endswith(os.sep) or path.is_dir() else path


def parts_chosen(config: str | Path | None, place: str | None, project_id: str | None) -> Parts:
    """What a configuration file describes, opened at another place or for another project where these are given."""
    from alma.config.loader import load_settings, settings_from

    if config is None:
        return parts_at(place, project_id or "default", {})
    settings = load_settings(config)
    if project_id is not None:
        settings = settings.model_copy(update={"project_id": settings_from({"project_id": project_id}).project_id})
    return _opened(settings, place)


def redactor_of_file(path: str | Path) -> Redactor | None:
    """What takes secrets out where a configuration file describes the memory; None where it switches that off."""
    from alma.config.loader import load_settings

    return _redactor_of(load_settings(path))


def embedding_of_file(path: str | Path, provider: str | None = None) -> tuple[str, dict[str, Any]]:
    """The provider of vectors that a configuration file describes, or the one asked for, and what it says about it."""
    from alma.config.loader import load_settings
    from alma.config.options import embedding_options

    settings = load_settings(path)
    chosen = provider or settings.embedding_provider.value
    return chosen, embedding_options(settings, chosen)


def place_of_file(path: str | Path) -> tuple[str, str]:
    """The store that a configuration file describes, as a path or URL, and the PostgreSQL schema it is in."""
    from alma.config.loader import load_settings

    settings = load_settings(path)
    folder = at_home(settings.storage_dir)
    match settings.storage:
        case "postgres":
            at = settings.postgres
            who = f"{quote(at.user, safe='')}:{quote(at.password.reveal(), safe='')}"
            host = f"[{at.host}]" if ":" in at.host else quote(at.host, safe="")
            where = f"{host}:{at.port}/{quote(at.database, safe='')}?sslmode={quote(at.ssl_mode)}"
            return f"postgresql://{who}@{where}", at.schema_name
        case "file":
            return f"{_FILE_SCHEME}{folder}", "public"
        case _:
            return str(folder / settings.db_name), "public"


def _opened(settings: Settings, place: str | os.PathLike[str] | None = None) -> Parts:
    from alma.learning.heuristics import HeuristicExtractor
    from alma.learning.protocols import LearningProtocol

    embedder = _embedder_of(settings)
    storage = _storage_of(settings, embedder, place)
    try:
        engine = _engine_of(settings, storage, embedder)
        protocol = LearningProtocol(
            storage,
            embedder,
            engine.index,
            settings.scopes(),
            HeuristicExtractor(settings.learning.evidence_half_life_days),
            settings.learning.max_outcomes_per_agent,
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
        redactor=_redactor_of(settings),
    )


def _redactor_of(settings: Settings) -> Redactor | None:
    from alma.redaction.redactor import DEFAULT_REDACTOR, SecretRedactor
    from alma.redaction.secrets import Rule

    chosen = settings.redaction
    if not chosen.enabled:
        return None
    # Nothing is known about what such a secret looks like, so its pattern is tried on every text.
    rules = [Rule(each.name, "", re.compile(each.pattern)) for each in chosen.patterns]
    return SecretRedactor(rules) if rules else DEFAULT_REDACTOR


def _embedder_of(settings: Settings) -> EmbeddingProvider:
    from alma.config.options import embedding_options, in_its_words

    provider = settings.embedding_provider
    try:
        embedder = create_embedder(provider, **embedding_options(settings, provider))
    except MissingDependencyError:
        raise
    except ConfigurationError as exc:
        raise in_its_words(exc, provider) from exc
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
        return open_storage(place, **space)
    folder = at_home(settings.storage_dir)
    match settings.storage:
        case "postgres":
            from alma.storage.postgresql import PostgreSQLStorage

            chosen = settings.postgres.model_dump(by_alias=True)
            return PostgreSQLStorage(**{**chosen, "password": settings.postgres.password.reveal()}, **space)
        case "file":
            return open_storage(f"{_FILE_SCHEME}{folder}", **space)
        case "azure":
            raise ConfigurationError(
                "storage: azure (Cosmos DB) cannot be opened by this version; choose sqlite, postgres or file"
            )
        case _:
            return open_storage(folder / settings.db_name, **space)


def _engine_of(settings: Settings, storage: StorageBackend, embedder: EmbeddingProvider) -> RetrievalEngine:
    from alma.retrieval.engine import RetrievalEngine
    from alma.retrieval.scoring import ScoringWeights

    chosen = settings.retrieval
    options: dict[str, Any] = {}
    if chosen.cache == "redis":
        if settings.redis is None:
            raise ConfigurationError("retrieval.cache is redis, but redis.url is missing; add it")
        options = {"url": settings.redis.url.reveal()}
    elif chosen.cache == "memory":
        options = {"max_entries": chosen.max_cache_entries}
    return RetrievalEngine(
        storage,
        embedder,
        cache_ttl_seconds=chosen.cache_ttl_seconds,
        scoring_weights=made(ScoringWeights, "retrieval.scoring_weights", chosen.scoring_weights.model_dump()),
        recency_half_life_days=chosen.recency_half_life_days,
        min_score_threshold=chosen.min_score_threshold,
        cache=create_cache(chosen.cache, **options),
    )


def create_embedder(provider: str, cache_size: int | None = None, **options: Any) -> EmbeddingProvider:
    """The provider of embeddings with this name: local, openai, azure or mock; `options` are its constructor's.

    Keys and the Azure endpoint that are not given come from the environment. What was encoded last is remembered, for
    10,000 texts unless `cache_size` says otherwise; 0 remembers nothing.
    """
    make = _EMBEDDERS.get(provider) if isinstance(provider, str) else None
    if make is None:
        raise ConfigurationError(f"{provider!r} is no provider of embeddings; choose {', '.join(_EMBEDDERS)}")
    embedder = make(f"{provider} embeddings", options)
    if cache_size == 0:
        return embedder
    from alma.embeddings.cached import DEFAULT_CACHE_SIZE, CachedEmbedder

    return CachedEmbedder(embedder, DEFAULT_CACHE_SIZE if cache_size is None else cache_size)


def create_cache(backend: str = "memory", **options: Any) -> CacheBackend:
    """The cache of retrieval results with this name: memory, redis or null; `options` are its constructor's."""
    make = _CACHES.get(backend)
    if make is None:
        raise ConfigurationError(f"{backend!r} is no cache; choose {', '.join(_CACHES)}")
    return make(f"the {backend} cache", options)


def reembed_storage(
    store: str,
    embedder: EmbeddingProvider,
    on_progress: Callable[[Progress], object] = lambda _: None,
    batch_size: int = 64,
    schema: str = "public",
) -> int:
    """Move an existing store to the embedder's model, or go on with that; returns how many vectors were made."""
    from alma.sync.reembed import reembed

    if not _is_postgres(store) and not store.startswith(_FILE_SCHEME):
        _existing(_sqlite_path(store))
    # First as it is: an older file that is taken over now holds vectors of the model it had, not of the new one.
    migrate_storage(store, schema)
    options: dict[str, Any] = {"schema": schema} if _is_postgres(store) else {}
    with open_storage(store, embedder.dimension, embedding_model=embedder.model, **options) as storage:
        return reembed(storage, embedder, on_progress, batch_size)


def open_as_it_is(store: str, schema: str = "public", new_model: tuple[str, int] | None = None) -> StorageBackend:
    """A store opened for the model that most of its vectors are of; one without vectors for `new_model`."""
    options: dict[str, Any] = {"schema": schema} if _is_postgres(store) else {}
    storage = open_storage(store, **options)
    model = _main_model(storage) or new_model
    if model is None or model == (storage.embedding_model, storage.embedding_dim):
        return storage
    storage.close()
    return open_storage(store, model[1], embedding_model=model[0], **options)


def open_existing(store: str, schema: str = "public") -> StorageBackend:
    """A store that must be there already, opened for its own model."""
    if not _is_postgres(store) and not _exists(store):
        raise ConfigurationError(f"there is no store at {store.removeprefix(_FILE_SCHEME)}")
    return open_as_it_is(store, schema)


@contextmanager
def open_target(
    store: str, schema: str = "public", new_model: tuple[str, int] | None = None, *, dry_run: bool = False
) -> Iterator[StorageBackend]:
    """A store to bring something into, made where there is none; a dry run makes a passing one instead."""
    if not dry_run or _is_postgres(store) or _exists(store):
        with open_as_it_is(store, schema, new_model) as storage:
            yield storage
        return
    with (
        tempfile.TemporaryDirectory(prefix="alma-dry-run-") as folder,
        open_as_it_is(str(Path(folder) / "alma.db"), schema, new_model) as storage,
    ):
        yield storage


def local_model() -> tuple[str, int]:
    """The name and length of the vectors that are made when nothing else is asked for."""
    embedder = create_embedder("local", cache_size=0)
    return embedder.model, embedder.dimension


def restore_storage(
    file: str,
    store: str,
    force: bool = False,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
    schema: str = "public",
) -> None:
    """Make a store of any kind, which need not exist yet, what a backup of any kind holds."""
    from alma.storage.base import Capability
    from alma.storage.sql.sqlite_copies import require_sound
    from alma.transfer import restore_store, verify_export
    from alma.transfer.backup import is_database

    path = Path(file)
    if not is_database(path):
        header = verify_export(path)
        with open_as_it_is(store, schema, (header.embedding_model, header.embedding_dim)) as storage:
            return restore_store(path, storage, force=force, on_progress=on_progress)
    require_sound(path)
    with open_as_it_is(store, schema) as storage:
        if Capability.COPY in storage.capabilities:
            return restore_store(path, storage, force=force, on_progress=on_progress)
    with _as_export(path) as exported:
        return restore_storage(str(exported), store, force, on_progress, schema)


@contextmanager
def _as_export(database: Path) -> Iterator[Path]:
    """A copy of an SQLite store as an export, which any store takes."""
    from alma.transfer import export_store

    with tempfile.TemporaryDirectory(prefix="alma-restore-") as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(database, copy)
        with open_as_it_is(str(copy)) as storage:
            export_store(storage, Path(folder) / "copy.jsonl")
        yield Path(folder) / "copy.jsonl"


def _main_model(storage: StorageBackend) -> tuple[str, int] | None:
    models = storage.models()
    if len(models) < 2:
        return next(iter(models.items()), None)
    from alma.model.kinds import KINDS
    from alma.model.scope import Scope

    embedded = [cls for cls in KINDS if cls.spec.embeds]

    def lacking(model: str) -> int:
        return sum(storage.count_without_vector(cls, model, Scope.everywhere()) for cls in embedded)

    name = min(models, key=lambda model: (lacking(model), model))
    return name, models[name]


def migrate_storage(store: str, schema: str = "public") -> None:
    """Bring a store to the newest schema, which opening it does."""
    options: dict[str, Any] = {"schema": schema} if _is_postgres(store) else {}
    open_storage(store, **options).close()


def require_sound_store(store: str) -> None:
    """Refuse an SQLite file that is damaged, after reading all of it; a server looks after its own."""
    if _is_postgres(store):
        return
    from alma.storage.sql.sqlite_copies import require_sound

    require_sound(_sqlite_path(store))


@contextmanager
def open_migrator(store: str, schema: str = "public") -> Iterator[Migrator]:
    """What can tell and change the schema of an existing store, without changing anything by being opened."""
    if _is_postgres(store):
        with _postgres_migrator(store, schema) as migrator:
            yield migrator
        return
    if store.startswith(_FILE_SCHEME):
        raise ConfigurationError("a folder of JSON files has no schema to migrate")
    path = _existing(_sqlite_path(store))
    from alma.storage.sql.sqlite_connections import our_error
    from alma.storage.sql.sqlite_migrations import SQLiteMigrator

    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={_looking_mode(path)}", uri=True)) as connection:
        try:
            connection.execute("PRAGMA query_only = ON")
            yield SQLiteMigrator(path, connection)
        except sqlite3.Error as exc:
            raise our_error(path, exc) from exc


def _looking_mode(path: Path) -> str:
    """How a file is opened that is to be as it was afterwards.

    To read, SQLite makes files beside it, and only whoever may write clears them away again; what a writer that died
    has left there stays for the next one.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    return "ro" if has_log or not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)) else "rw"


def partition_tables(
    store: str, tables: Iterable[str] | None = None, interval: str = "month", ahead: int = 3, schema: str = "public"
) -> list[Partition]:
    """Split tables of a PostgreSQL store by time, or prepare further partitions."""
    if not _is_postgres(store):
        raise ConfigurationError(f"this needs a PostgreSQL store, a URL like postgresql://…, not {store!r}")
    from alma.storage.postgresql import PostgreSQLStorage
    from alma.storage.sql.partitions import PARTITIONED, partition

    with PostgreSQLStorage.from_dsn(store, schema=schema, pool_size=1) as storage, storage.connection() as connection:
        chosen = tuple(tables or PARTITIONED)
        return [part for name in chosen for part in partition(connection, name, interval, ahead)]


def _local_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.local import LocalEmbedder

    return made(LocalEmbedder, what, options)


def _openai_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.openai import OpenAIEmbedder

    return made(OpenAIEmbedder, what, {"api_key": os.environ.get("OPENAI_API_KEY", ""), **options})


def _azure_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.azure import AzureEmbedder

    known = {
        "endpoint": os.environ.get("AZURE_OPENAI_ENDPOINT", ""),
        "api_key": os.environ.get("AZURE_OPENAI_API_KEY", ""),
    }
    return made(AzureEmbedder, what, {**known, **options})


def _mock_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.mock import MockEmbedder

    return made(MockEmbedder, what, options)


_EMBEDDERS = {
    "local": _local_embedder,
    "openai": _openai_embedder,
    "azure": _azure_embedder,
    "mock": _mock_embedder,
}


def _memory_cache(what: str, options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.local import RetrievalCache

    return made(RetrievalCache, what, options)


def _redis_cache(what: str, options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.redis import RedisCache

    return made(RedisCache, what, options)


def _null_cache(what: str, options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.base import NullCache

    return made(NullCache, what, options)


_CACHES = {"memory": _memory_cache, "redis": _redis_cache, "null": _null_cache}


@contextmanager
def _postgres_migrator(store: str, schema: str) -> Iterator[Migrator]:
    from alma.storage.postgresql import administration
    from alma.storage.sql.postgres_migrations import PostgresMigrator

    with administration(store, schema) as connection:
        yield PostgresMigrator(connection, schema)


def _is_postgres(store: str) -> bool:
    return store.startswith(_POSTGRES_SCHEMES)


def _sqlite_path(store: str) -> Path:
    if "://" in store and not store.startswith(_SQLITE_SCHEME):
        raise ConfigurationError(f"{store.partition('://')[0]!r} is no store that ALMA knows; give {_FORMS}")
    if not store.strip():
        raise ConfigurationError(f"the store must be named: {_FORMS}")
    return at_home(store.removeprefix(_SQLITE_SCHEME))


def store_exists(store: str) -> bool:
    """Whether there is something where a store in files would be; whether a server has one shows when it is opened."""
    return _is_postgres(store) or _exists(store)


def _exists(store: str) -> bool:
    if store.startswith(_FILE_SCHEME):
        return at_home(store.removeprefix(_FILE_SCHEME)).is_dir()
    return _sqlite_path(store).is_file()


def is_same_store(one: str, other: str) -> bool:
    """Whether two names stand for the same place."""
    if _is_postgres(one) or _is_postgres(other):
        return one == other
    places = (Path(each.removeprefix(_FILE_SCHEME).removeprefix(_SQLITE_SCHEME)).resolve() for each in (one, other))
    return len(set(places)) == 1


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(f"there is no store at {path}")
    return path
