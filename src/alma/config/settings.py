"""The settings: every configuration key, its type and limits."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from alma.cache.keys import TTL_SECONDS
from alma.config.secrets import Resolved
from alma.domains.schema import prebuilt_schemas
from alma.errors import ALMAError, ValidationError
from alma.maintenance.policy import MaintenancePolicy
from alma.model.common import checked_name
from alma.model.scope import MemoryScope
from alma.model.secret import Secret
from alma.model.vector import LONGEST_VECTOR

if TYPE_CHECKING:
    from alma.events.delivery import WebhookConfig


def _number(value: Any) -> Any:
    """A number from a reference, which is text; text in the file stays text."""
    if not isinstance(value, Resolved):
        return value
    for made in (int, float):
        with suppress(ValueError):
            return made(value)
    return value


def _flag(value: Any) -> Any:
    """A boolean from a reference."""
    known = {"true": True, "false": False}
    return known.get(value.strip().lower(), value) if isinstance(value, Resolved) else value


def _name(value: str) -> str:
    try:
        return checked_name("settings", "name", value)
    except ValidationError as exc:
        raise ValueError(exc.reason) from None


def _host(value: str) -> str:
    """Valid host names, one or several with commas, or the directory of a socket."""
    for name in value.split(","):
        try:
            name.encode("idna" if not name.startswith("/") else "utf-8")
        except UnicodeError:
            raise ValueError("must be the name or address of a host") from None
    return value


def _secret(value: Any) -> Secret:
    if not isinstance(value, str | Secret):
        raise PydanticCustomError(NOT_SHOWN, "must be text; put it in quotes")
    secret = Secret(value)
    if "\x00" in secret.reveal():
        raise PydanticCustomError(NOT_SHOWN, "must not contain the NUL character")
    return secret


def _redis_address(value: Secret) -> Secret:
    if not value.reveal().startswith(("redis://", "rediss://", "unix://")):
        raise PydanticCustomError(NOT_SHOWN, "must be like redis://user:password@host:6379/0, rediss://… or unix://…")
    return value


def _ttls(value: dict[str, float]) -> dict[str, float]:
    """Times to live by their documented names."""
    for name in value:
        if name not in TTL_SECONDS:
            raise ValueError(f"has no {name!r}; it has {', '.join(TTL_SECONDS)}")
    return value


def _http_addresses(value: str | list[str]) -> list[str]:
    """One address, several with commas between them, or a list."""
    given = value.split(",") if isinstance(value, str) else value
    found = [each.strip() for each in given]
    if not found or not all(each.startswith(("http://", "https://")) for each in found):
        raise ValueError("must be like http://host:6333, or a list of these for a cluster")
    return found


def _bolt_address(value: str) -> str:
    if not value.startswith(("bolt://", "bolt+s://", "bolt+ssc://", "neo4j://", "neo4j+s://", "neo4j+ssc://")):
        raise ValueError("must be like bolt://host:7687 or neo4j+s://host")
    return value


def _openable(value: Any) -> Any:
    """Other names of Azure Cosmos DB get an error that says its own."""
    if isinstance(value, str) and value != "azure" and value.lower() in ("azure", "cosmos", "cosmosdb", "azure_cosmos"):
        raise PydanticCustomError(NOT_SHOWN, "is Azure Cosmos DB by another name; write  storage: azure")
    return value


def _section(value: Any) -> Any:
    """A section whose keys are all commented out is empty."""
    return {} if value is None else value


def _listed(value: Any) -> Any:
    """A list whose items are all commented out is empty."""
    return [] if value is None else value


NOT_SHOWN = "not_shown"
"""The type of errors whose value may be a secret."""

SecretText = Annotated[Secret, BeforeValidator(_secret)]
Name = Annotated[str, AfterValidator(_name)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Whole = Annotated[int, BeforeValidator(_number)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
Weight = Annotated[Number, Field(ge=0)]


class _Section(BaseModel):
    """Unknown keys are errors, and values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True, defer_build=True)


StorageChoice = Literal["sqlite", "local", "postgres", "azure", "file"]
"""The store."""

DurabilityChoice = Literal["process", "power"]
"""The durability of committed writes to an SQLite file."""

EmbeddingChoice = Literal["local", "openai", "azure", "mock"]
"""The embedding provider."""

LanguageModelChoice = Literal["openai", "azure", "anthropic", "groq", "ollama"]
"""The language model provider."""

JudgeChoice = Literal["local", "llm", "strict"]
"""The judge of whether two texts say the same."""

CacheChoice = Literal["memory", "redis", "null"]
"""The cache of retrieval results."""

VectorsChoice = Literal["auto", "native", "mapped", "qdrant"]
"""The vector index; auto chooses the one that suits the store."""

GraphChoice = Literal["relational", "neo4j"]
"""Where relationships are traversed: in the store, or in Neo4j."""

SslChoice = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
"""The TLS mode of PostgreSQL connections, in libpq's words."""


class BenefitSettings(_Section):
    """The measurement of benefit: the share of eligible lessons that a retrieval withholds at random."""

    withhold: Annotated[Number, Field(ge=0, le=0.5)] = 0.0


def _domain(value: str) -> str:
    if value not in prebuilt_schemas():
        raise ValueError(f"must be {', '.join(prebuilt_schemas())}; for another one leave it out and give can_learn")
    return value


class AgentSettings(_Section):
    """What an agent may learn, and whose lessons it shares; `domain` gives defaults for the other keys."""

    domain: Annotated[str, AfterValidator(_domain)] | None = None
    can_learn: list[Name] = Field(default_factory=list)
    cannot_learn: list[Name] = Field(default_factory=list)
    share_with: list[Name] = Field(default_factory=list)
    inherit_from: list[Name] = Field(default_factory=list)
    min_occurrences_for_heuristic: Annotated[Whole, Field(ge=1)] = 3
    benefit: BenefitSettings | None = None

    def scope_of(self, agent: str) -> MemoryScope:
        """The scope of this agent."""
        base = MemoryScope(agent) if self.domain is None else prebuilt_schemas()[self.domain].scope_of(agent)
        return replace(base, **self.model_dump(exclude={"domain", "benefit"}, exclude_unset=True))


class PostgresSettings(_Section):
    """The PostgreSQL store."""

    host: Annotated[Name, AfterValidator(_host)]
    port: Annotated[Whole, Field(ge=1, le=65535)]
    database: Name
    user: Name
    password: SecretText
    pool_size: Annotated[Whole, Field(ge=1)]
    schema_name: Annotated[Name, Field(alias="schema")]
    ssl_mode: SslChoice
    vector_index_above: Annotated[Whole, Field(ge=0)]
    read_url: SecretText | None = None

    def options(self) -> dict[str, Any]:
        """The arguments of the store."""
        read_url = None if self.read_url is None else self.read_url.reveal()
        return {**self.model_dump(by_alias=True), "password": self.password.reveal(), "read_url": read_url}


class AzureSettings(_Section):
    """Cosmos DB, Azure OpenAI, and the key vault of ${KEYVAULT:…} references."""

    endpoint: str | None = None
    key: SecretText | None = None
    database: str = "alma-memory"
    key_vault_url: str | None = None
    openai_endpoint: str | None = None
    openai_key: SecretText | None = None
    openai_deployment: str | None = None
    openai_model: str | None = None
    openai_api_version: str | None = None


class LocalSettings(_Section):
    """The local embedder; `folder` replaces the packaged weights."""

    folder: Name | None = None
    model_name: Name | None = None
    window: Annotated[Whole, Field(ge=8, le=1_000_000)] | None = None
    threads: Annotated[Whole, Field(ge=1, le=1024)] | None = None


class OpenAISettings(_Section):
    """The OpenAI embedder."""

    api_key: SecretText | None = None
    model: str | None = None
    base_url: str | None = None


class LanguageModelSettings(_Section):
    """A language model: its provider and constructor options."""

    provider: LanguageModelChoice
    model: Name | None = None
    api_key: SecretText | None = None
    base_url: Name | None = None
    endpoint: Name | None = None
    deployment: Name | None = None
    api_version: Name | None = None
    host: Name | None = None
    timeout_seconds: Positive | None = None


class RedisSettings(_Section):
    """Redis: the cache of retrieval results, and with `projection` the documented keys of memories and projects.

    `prefix` stands before every key; `ttl_seconds` are times to live that differ from the documented ones.
    """

    url: Annotated[SecretText, AfterValidator(_redis_address)]
    prefix: Name = "alma"
    ttl_seconds: Annotated[dict[str, Positive], AfterValidator(_ttls)] = Field(default_factory=dict)
    projection: Flag = False


class WebhookSettings(_Section):
    """A webhook: where a running service sends which changes."""

    url: SecretText
    name: Name | None = None
    secret: SecretText | None = None
    events: list[Name] = Field(default_factory=list)
    memory_types: list[Name] = Field(default_factory=list)
    project_id: Name | None = None
    headers: dict[str, SecretText] = Field(default_factory=dict)
    timeout_seconds: Positive = 10.0
    retry_count: Annotated[Whole, Field(ge=0)] = 3
    backoff_seconds: Weight = 1.0
    allow_link_local: Flag = False

    @model_validator(mode="after")
    def _checked(self) -> Self:
        try:
            self.config()
        except ALMAError as exc:
            raise PydanticCustomError(NOT_SHOWN, "is not valid: {said}", {"said": str(exc)}) from None
        return self

    def config(self) -> WebhookConfig:
        """The webhook of these settings."""
        from alma.events.delivery import WebhookConfig

        headers = {name: value.reveal() for name, value in self.headers.items()}
        return WebhookConfig(**{**self.model_dump(), "url": self.url.reveal(), "headers": headers})


def _distinct(webhooks: list[WebhookSettings]) -> list[WebhookSettings]:
    if len({(each.url.reveal(), each.name) for each in webhooks}) < len(webhooks):
        raise PydanticCustomError(NOT_SHOWN, "has an address twice; give each of the two a name")
    return webhooks


class QdrantSettings(_Section):
    """The Qdrant server; its collections are kept equal to the store.

    `url` is one address, or those of several nodes of a cluster; `replication_factor` is 2 for several, else 1.
    """

    url: Annotated[str | list[str], AfterValidator(_http_addresses)]
    api_key: SecretText | None = None
    prefix: Annotated[str, Field(pattern=r"^[a-z0-9_-]{0,40}$")] = ""
    timeout_seconds: Positive = 10.0
    replication_factor: Annotated[Whole, Field(ge=1)] | None = None


class Neo4jSettings(_Section):
    """The Neo4j server; its nodes and relationships are kept equal to the store."""

    uri: Annotated[Name, AfterValidator(_bolt_address)]
    username: Name = "neo4j"
    password: SecretText = Field(default_factory=lambda: Secret(""))
    database: Name | None = None
    timeout_seconds: Positive = 30.0


class SyncSettings(_Section):
    """The relay that keeps the engines beside the store equal to it."""

    batch_size: Annotated[Whole, Field(ge=1, le=10_000)]
    lease_seconds: Positive
    park_after: Annotated[Whole, Field(ge=1)]
    poll_seconds: Positive


class WeightsSettings(_Section):
    """The weights of the score's terms."""

    similarity: Weight
    recency: Weight
    success: Weight
    confidence: Weight
    importance: Weight


class RetrievalSettings(_Section):
    """Retrieval: cache and scoring."""

    # YAML parses a bare  null  as None.
    cache: Annotated[CacheChoice, BeforeValidator(lambda name: "null" if name is None else name)]
    cache_ttl_seconds: Positive
    max_cache_entries: Annotated[Whole, Field(ge=1)]
    recency_half_life_days: Positive
    min_score_threshold: Number
    scoring_weights: WeightsSettings


class LearningSettings(_Section):
    """Learning: the weight of evidence."""

    evidence_half_life_days: Positive
    max_outcomes_per_agent: Annotated[Whole, Field(ge=1)]


def _regular(pattern: str) -> str:
    try:
        found = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as exc:
        raise ValueError(f"is not a valid regular expression: {exc}") from None
    if found.match(""):
        raise ValueError("is a regular expression that matches an empty text")
    return pattern


class PatternSettings(_Section):
    """A custom secret: the name of its replacement, and the regular expression that finds it."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
    pattern: Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_regular)]


class RedactionSettings(_Section):
    """Redaction of secrets, with custom patterns."""

    enabled: Flag
    patterns: list[PatternSettings]


Days = Annotated[Number, Field(gt=0, lt=1_000_000)]


class MaintenanceSettings(_Section):
    """Maintenance in a running service and by `alma maintain`; days that are null switch a task off."""

    enabled: Flag
    interval_hours: Positive
    decay: Flag
    min_strength: Annotated[Number, Field(ge=0, le=1)]
    cleanup: Flag
    benefit: Flag
    deleted_days: Days | None
    purge_days: Days | None
    session_days: Days | None
    cold_storage_dir: Name | None
    outbox_days: Days | None
    audit_days: Days | None

    def policy(self, folder: Path) -> MaintenancePolicy:
        """The policy of these settings; cold storage is in this folder unless they name one."""
        values = self.model_dump(exclude={"interval_hours", "cold_storage_dir"})
        cold = folder if self.cold_storage_dir is None else Path(self.cold_storage_dir)
        return MaintenancePolicy(interval=timedelta(hours=self.interval_hours), cold_storage_dir=cold, **values)


class AuditSettings(_Section):
    """The audit log."""

    log_reads: Flag


class Settings(_Section):
    """The complete configuration with defaults."""

    project_id: Name
    storage: Annotated[StorageChoice, BeforeValidator(_openable)]
    storage_dir: Name
    db_name: Name
    durability: DurabilityChoice
    expiry_interval_seconds: Weight
    embedding_provider: EmbeddingChoice
    # The longest vectors that stores can search.
    embedding_dim: Annotated[Whole, Field(ge=1, le=LONGEST_VECTOR)] | None
    judge: JudgeChoice
    vectors: VectorsChoice
    graph: GraphChoice
    agents: dict[Name, Annotated[AgentSettings, BeforeValidator(_section)]]
    postgres: PostgresSettings
    local: Annotated[LocalSettings, BeforeValidator(_section)] = Field(default_factory=LocalSettings)
    azure: Annotated[AzureSettings, BeforeValidator(_section)] = Field(default_factory=AzureSettings)
    openai: Annotated[OpenAISettings, BeforeValidator(_section)] = Field(default_factory=OpenAISettings)
    llm: LanguageModelSettings | None = None
    redis: RedisSettings | None = None
    qdrant: QdrantSettings | None = None
    neo4j: Neo4jSettings | None = None
    sync: SyncSettings
    retrieval: RetrievalSettings
    learning: LearningSettings
    benefit: Annotated[BenefitSettings, BeforeValidator(_section)] = Field(default_factory=BenefitSettings)
    redaction: RedactionSettings
    audit: AuditSettings
    maintenance: MaintenanceSettings
    webhooks: Annotated[list[WebhookSettings], BeforeValidator(_listed), AfterValidator(_distinct)]

    def withheld(self) -> dict[str, float]:
        """The shares that agents with a setting of their own withhold."""
        return {name: each.benefit.withhold for name, each in self.agents.items() if each.benefit is not None}

    def scopes(self) -> dict[str, MemoryScope]:
        """The scopes of all configured agents."""
        return {name: agent.scope_of(name) for name, agent in self.agents.items()}


def known_keys(section: type[BaseModel]) -> list[str]:
    """The keys of a section, as written in the file."""
    return [field.alias or name for name, field in section.model_fields.items()]


def secret_keys(section: type[BaseModel] = Settings) -> list[str]:
    """The keys of a section whose values are secrets."""
    return [name for name, field in section.model_fields.items() if _is_secret(field.annotation)]


def _is_secret(annotation: Any) -> bool:
    return annotation is Secret or any(map(_is_secret, get_args(annotation)))


def section_at(path: tuple[Any, ...]) -> type[BaseModel]:
    """The section of a key path."""
    section: type[BaseModel] = Settings
    for step in path[:-1]:
        inner = _SECTIONS.get(str(step))
        section = inner if inner is not None else section
    return section


_SECTIONS: dict[str, type[BaseModel]] = {
    "agents": AgentSettings,
    "postgres": PostgresSettings,
    "local": LocalSettings,
    "azure": AzureSettings,
    "openai": OpenAISettings,
    "llm": LanguageModelSettings,
    "redis": RedisSettings,
    "qdrant": QdrantSettings,
    "neo4j": Neo4jSettings,
    "sync": SyncSettings,
    "retrieval": RetrievalSettings,
    "scoring_weights": WeightsSettings,
    "learning": LearningSettings,
    "benefit": BenefitSettings,
    "redaction": RedactionSettings,
    "patterns": PatternSettings,
    "audit": AuditSettings,
    "maintenance": MaintenanceSettings,
    "webhooks": WebhookSettings,
}
