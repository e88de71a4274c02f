"""The keys on a Redis server: every pattern with its value, its time to live, who fills it and who reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from alma.errors import ConfigurationError, ValidationError
from alma.lazy import lazy_regex
from alma.model.common import checked_name

CACHE_TTL_CONFIG: Mapping[str, int] = MappingProxyType(
    {
        "session_context": 1800,
        "working_memory": 900,
        "git_status": 300,
        "memory_data": 3600,
        "search_results": 3600,
        "project_context": 14400,
        "user_preferences": 86400,
        "project_patterns": 7200,
        "relationships": 1800,
        "router_decisions": 300,
        "layer_stats": 600,
    }
)
"""The documented times to live in seconds."""

TTL_SECONDS: Mapping[str, int] = MappingProxyType(
    {
        **CACHE_TTL_CONFIG,
        "search_history": 86400,
        "user_projects": 3600,
        "query_results": 300,
        "popular_queries": 3600,
        "embeddings": 86400,
        "layer_config": 86400,
        "router_performance": 600,
    }
)
"""Every time to live by its name in the configuration (`redis.ttl_seconds`)."""

_PLACEHOLDER = lazy_regex(r"\{\w+\}")


class Filled(StrEnum):
    """How the keys of a pattern are filled."""

    READ_THROUGH = "read-through"
    PROJECTION = "projection"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A documented key: its template, the name of its time to live, the Redis type of its value, and its readers.

    `read-through` keys answer reads of ALMA. The relay fills `projection` keys from the outbox, and the operation that
    knows a value fills `published` keys; both are for other programs.
    """

    template: str
    ttl: str
    form: str
    value: str
    filled: Filled
    filled_by: str

    def key(self, *parts: str) -> str:
        """The key without a prefix; a part can contain any character and stays one part."""
        remaining = iter(parts)
        return _PLACEHOLDER.sub(lambda _: escaped(next(remaining)), self.template)

    @property
    def matches(self) -> re.Pattern[str]:
        """Matches the keys of this pattern without their prefix."""
        literals = (re.escape(each) for each in _PLACEHOLDER.split(self.template))
        return re.compile("[^:]+".join(literals))


def escaped(part: str) -> str:
    """An id as a part of a key: without colons and characters with a meaning in patterns."""
    return quote(part, safe="@+,=", errors="surrogatepass")


def hashed(*parts: str) -> str:
    """The hash of a query or a content."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


_READ, _PROJECTED, _PUBLISHED = Filled.READ_THROUGH, Filled.PROJECTION, Filled.PUBLISHED

MEMORY = Pattern("memory:{memory_id}", "memory_data", "string", "the memory as JSON", _PROJECTED, "memories")
USER_RECENT = Pattern(
    "memory:user:{user_id}:recent", "memory_data", "list", "ids of the newest memories", _PROJECTED, "memories"
)
PROJECT_ACTIVE = Pattern(
    "memory:project:{project_id}:active",
    "memory_data",
    "set",
    "ids of the active memories that are not private",
    _PROJECTED,
    "memories",
)
SEARCH = Pattern("search:semantic:{query_hash}", "search_results", "string", "results as JSON", _READ, "memory search")
SEARCH_HISTORY = Pattern(
    "search:user:{user_id}:history",
    "search_history",
    "list",
    "the latest searches as JSON, newest first",
    _PUBLISHED,
    "memory search and retrieve",
)
OUTGOING = Pattern(
    "relationships:{memory_id}:outgoing",
    "relationships",
    "list",
    "ids of the memories it leads to, strongest first",
    _PROJECTED,
    "relationships",
)
INCOMING = Pattern(
    "relationships:{memory_id}:incoming",
    "relationships",
    "list",
    "ids of the memories that lead to it, strongest first",
    _PROJECTED,
    "relationships",
)
SESSION_CONTEXT = Pattern(
    "session:{session_id}:context", "session_context", "string", "the session as JSON", _PROJECTED, "sessions"
)
WORKING_MEMORY = Pattern(
    "session:{session_id}:working_memory",
    "working_memory",
    "set",
    "ids of the working set",
    _PROJECTED,
    "places in sessions",
)
ACTIVE_SESSION = Pattern(
    "session:user:{user_id}:active",
    "session_context",
    "string",
    "id of the open session that was active last",
    _PROJECTED,
    "sessions",
)
PROJECT_CONTEXT = Pattern(
    "project:{project_id}:context", "project_context", "string", "the project as JSON", _PROJECTED, "projects"
)
PROJECT_PATTERNS = Pattern(
    "project:{project_id}:patterns",
    "project_patterns",
    "string",
    "the patterns as a JSON array, most successful first",
    _PROJECTED,
    "patterns",
)
GIT_STATUS = Pattern(
    "project:{project_id}:git_status",
    "git_status",
    "string",
    "branch, commit, remote and dirty as JSON",
    _PUBLISHED,
    "get_context with a directory",
)
USER_PREFERENCES = Pattern(
    "user:{user_id}:preferences",
    "user_preferences",
    "string",
    "the profile's preferences and the learned ones as a JSON array",
    _PROJECTED,
    "users and preferences",
)
USER_PROJECTS = Pattern(
    "user:{user_id}:projects",
    "user_projects",
    "list",
    "ids of the active projects, last used first",
    _PROJECTED,
    "projects",
)
LAYER_CONFIG = Pattern(
    "layer:config:{layer}", "layer_config", "string", "the settings as a JSON array", _PROJECTED, "settings"
)
LAYER_STATS = Pattern(
    "layer:stats:{layer}", "layer_stats", "hash", "searches, hits, milliseconds", _PUBLISHED, "routed memory search"
)
QUERY = Pattern("query:{query_hash}", "query_results", "string", "the slice as JSON", _READ, "retrieve")
POPULAR = Pattern(
    "query:popular",
    "popular_queries",
    "sorted set",
    "query hashes by how often they came",
    _PUBLISHED,
    "retrieve",
)
EMBEDDING = Pattern(
    "embedding:{content_hash}", "embeddings", "string", "the vectors as JSON", _READ, "embedding of a text"
)
EMBEDDING_BATCH = Pattern(
    "embedding:batch:{batch_id}",
    "embeddings",
    "list",
    "content hashes of the texts that were encoded together",
    _PUBLISHED,
    "embedding of several texts",
)
ROUTER_DECISION = Pattern(
    "router:decision:{context_hash}",
    "router_decisions",
    "string",
    "the layers with their reasons as JSON",
    _PUBLISHED,
    "routed memory search",
)
ROUTER_PERFORMANCE = Pattern(
    "router:performance",
    "router_performance",
    "hash",
    "decisions, hits, milliseconds",
    _PUBLISHED,
    "routed memory search",
)

PATTERNS: tuple[Pattern, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Pattern))


@dataclass(frozen=True)
class Keyspace:
    """The keys of one store on a server: a prefix, and the times to live that differ from the documented ones."""

    prefix: str = "alma"
    ttl_seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            checked_name("cache", "prefix", self.prefix)
        except ValidationError as exc:
            raise ConfigurationError(f"prefix {exc.reason}, not {self.prefix!r}") from None
        for name, value in self.ttl_seconds.items():
            if name not in TTL_SECONDS:
                raise ConfigurationError(f"ttl_seconds has no {name!r}; it has {', '.join(TTL_SECONDS)}")
            checked_seconds(f"ttl_seconds.{name}", value)

    def key(self, pattern: Pattern, *parts: str) -> str:
        return f"{self.prefix}:{pattern.key(*parts)}"

    def ttl(self, pattern: Pattern) -> float:
        """The time to live of a pattern in seconds."""
        return self.ttl_seconds.get(pattern.ttl, TTL_SECONDS[pattern.ttl])

    def all_of(self, *patterns: Pattern) -> re.Pattern[str]:
        """Matches the complete keys of these patterns."""
        some = "|".join(each.matches.pattern for each in patterns)
        return re.compile(f"{re.escape(self.prefix)}:(?:{some})")

    @property
    def glob(self) -> str:
        """The pattern for SCAN that matches every key with the prefix."""
        return _literal(f"{self.prefix}:") + "*"

    def glob_of(self, pattern: Pattern, before: str = "") -> str:
        """The pattern for SCAN that matches the keys of a pattern, and longer ones."""
        return _literal(f"{self.prefix}:{before}") + _PLACEHOLDER.sub("*", pattern.template)


def _literal(text: str) -> str:
    return re.sub(r"([\\*?\[\]])", r"\\\1", text)


def checked_seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ConfigurationError(f"{name} must be a number above 0, not {value!r}")
    return float(value)
