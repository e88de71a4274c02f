"""Administrative records: audit events, settings, API keys, idempotency keys, the archive and served texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from alma.clock import new_id, now
from alma.errors import ValidationError
from alma.model.common import LONGEST_TEXT, Label, Name, Prose, Strings, Text, checked_name
from alma.model.fields import LONGEST_NAME, JsonObject
from alma.model.record import Index, Record, Unique, record


@dataclass(frozen=True, slots=True)
class Attribution:
    """The author, origin and reason of a change, recorded in history and audit log."""

    user_id: str | None = None
    agent: str | None = None
    session_id: str | None = None
    reason: str | None = None
    ip_address: str | None = None
    user_agent: str | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None:
                longest = LONGEST_TEXT if name in ("reason", "user_agent") else LONGEST_NAME
                checked_name("attribution", name, value, longest)

    @property
    def author(self) -> str | None:
        """The author of a version in one name."""
        return self.user_id or self.agent


ANONYMOUS = Attribution()


def checked_by(call: str, by: object) -> Attribution:
    """The argument, if it is an Attribution."""
    if not isinstance(by, Attribution):
        raise ValidationError(call, "by", by, "must be an Attribution, for example Attribution(user_id=…)")
    return by


@record(
    "audit_event",
    table="audit_log",
    audited=False,
    append_only=True,
    indexes=(
        Index("idx_audit_log_user", ("user_id", "created_at"), where="user_id IS NOT NULL"),
        Index("idx_audit_log_action", ("action", "created_at")),
        Index("idx_audit_log_resource", ("resource_type", "resource_id")),
        Index("idx_audit_log_created", ("created_at",)),
        Index("idx_memory_access_logs_agent_id", ("agent_id",), where="agent_id IS NOT NULL"),
        Index("idx_memory_access_logs_session_id", ("session_id",), where="session_id IS NOT NULL"),
        Index("idx_memory_access_logs_success", ("success",), where="success IS FALSE"),
    ),
)
class AuditEvent(Record):
    """An audit event: who did what to which record, and with which result.

    An operation on several records is one event with `resource_id` "*" and their ids in `resource_ids`. The store
    assigns the id and the position in a hash chain: `chain_hash` covers the event and the previous hash, so that
    changed, removed or inserted events are detected.
    """

    id: int | None = None
    user_id: Name | None = None
    session_id: Name | None = None
    agent_id: Name | None = None
    action: Name
    resource_type: Name
    resource_id: Name
    resource_ids: Strings | None = None
    details_json: JsonObject | None = None
    success: bool = True
    error_message: Prose | None = None
    ip_address: Label | None = None
    user_agent: Prose | None = None
    created_at: datetime = field(default_factory=now)
    chain: int | None = None
    chain_position: int | None = None
    chain_hash: Label | None = None


def audit_event(
    by: Attribution, action: str, resource_type: str, ids: Sequence[str] | None = None, **fields: Any
) -> AuditEvent:
    """The event of an operation on these records; without exactly one id, `resource_id` is "*"."""
    is_one = ids is not None and len(ids) == 1
    values = {
        "user_id": by.user_id,
        "session_id": by.session_id,
        "agent_id": by.agent,
        "resource_id": ids[0] if ids is not None and is_one else "*",
        "resource_ids": None if ids is None or is_one else tuple(ids),
        "ip_address": by.ip_address,
        "user_agent": by.user_agent,
        **fields,
    }
    return AuditEvent(action=action, resource_type=resource_type, **values)


@record(
    "merge_mark",
    table="merge_marks",
    postgres_table="alma_merge_marks",
    audited=False,
    indexes=(Index("idx_merge_marks_record", ("record_id", "kind")),),
)
class MergeMark(Record):
    """The state of a record at its last merge with another store: that store's share of the counters, and a digest of
    the content. So merging again counts nothing twice, and detects which record has changed since.
    """

    id: Name
    kind: Name
    record_id: Name
    origin: Name
    counters: JsonObject = field(default_factory=dict)
    source_digest: Label | None = None
    result_digest: Label | None = None
    updated_at: datetime = field(default_factory=now)


@record(
    "api_key",
    table="api_keys",
    postgres_table="alma_api_keys",
    audited=False,
    unique=(Unique("uq_api_keys_prefix", ("prefix",)),),
)
class ApiKey(Record):
    """An API key for access over the network: its rights and its limits.

    The token is not stored: `prefix` is its beginning, which identifies the key to people, and `hash` verifies the
    rest.
    """

    id: Name = field(default_factory=new_id)
    name: Name
    prefix: Name
    hash: Name
    rights: Strings
    user_id: Name | None = None
    project_id: Name | None = None
    agent: Name | None = None
    created_at: datetime = field(default_factory=now)
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


@record("webhook", table="webhooks", postgres_table="alma_webhooks", key="name")
class StoredWebhook(Record):
    """A webhook that was added while a service ran: where to send which changes. The secret signs the requests.

    `only_project` limits the changes, not the webhook, which belongs to the store.
    """

    name: Name
    url: Text
    secret: Prose | None = None
    events: Strings = ()
    memory_types: Strings = ()
    only_project: Name | None = None
    created_at: datetime = field(default_factory=now)
    created_by: Name | None = None


@record(
    "kept_answer",
    table="kept_answers",
    postgres_table="alma_kept_answers",
    audited=False,
    indexes=(Index("idx_kept_answers_expires", ("expires_at",)),),
)
class KeptAnswer(Record):
    """The stored response to a request with an idempotency key, so that the request is executed once.

    The id is computed from the caller and the idempotency key; `request` is a digest of the request, and `claim`
    identifies the execution. `touched` lists the changed records once they are changed, `answer` is set with the
    response. The request is in progress until `claimed_until`.
    """

    id: Name
    request: Label
    claim: Label
    touched: Strings | None = None
    status: int | None = None
    answer: str | None = None
    created_at: datetime = field(default_factory=now)
    claimed_until: datetime
    expires_at: datetime


class SettingType(StrEnum):
    """The type of a setting, with which its text is parsed."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    JSON = "json"


@record("setting", table="system_config", key="key")
class Setting(Record):
    """A named value of the configuration in the store; `typed_value` parses it."""

    key: Name
    value: Prose
    value_type: SettingType = SettingType.STRING
    description: Prose | None = None
    is_user_configurable: bool = False
    updated_at: datetime = field(default_factory=now)
    updated_by: Name | None = None

    @property
    def typed_value(self) -> Any:
        """The parsed value, or an error that names the setting."""
        try:
            return _READERS[self.value_type](self.value)
        except (ValueError, KeyError):
            raise ValidationError("setting", self.key, self.value, f"must be of type {self.value_type}") from None


_READERS: dict[SettingType, Any] = {
    SettingType.STRING: str,
    SettingType.INTEGER: int,
    SettingType.FLOAT: float,
    SettingType.BOOLEAN: lambda text: {"true": True, "false": False}[text.lower()],
    SettingType.JSON: json.loads,
}


def default_settings() -> tuple[Setting, ...]:
    """The documented settings with their default values."""
    rows = (
        ("memory_decay_enabled", "true", SettingType.BOOLEAN, "Enable automatic memory decay"),
        ("default_decay_rate", "0.1", SettingType.FLOAT, "Default decay rate for new memories"),
        ("max_memories_per_session", "1000", SettingType.INTEGER, "Maximum memories in a single session"),
        ("semantic_search_threshold", "0.7", SettingType.FLOAT, "Minimum similarity threshold for semantic search"),
        ("auto_categorization_enabled", "true", SettingType.BOOLEAN, "Enable automatic memory categorization"),
    )
    return tuple(
        Setting(key=key, value=value, value_type=type_, description=text, is_user_configurable=True)
        for key, value, type_, text in rows
    )


class ArchiveCause(StrEnum):
    """Why a memory is in the archive."""

    FORGOTTEN = "forgotten"
    ARCHIVED = "archived"
    QUARANTINED = "quarantined"
    MERGED = "merged"
    REJECTED = "rejected"


@record(
    "archived_record",
    table="archived_records",
    postgres_table="alma_archived_records",
    # Changes are audited under the kind of the archived memory.
    audited=False,
    indexes=(
        Index("idx_archived_records_record", ("record_id", "kind")),
        Index("idx_archived_records_scope", ("project_id", "agent", "archived_at")),
        Index("idx_archived_records_cause", ("project_id", "cause", "archived_at", "kind")),
        Index("idx_archived_records_user", ("user_id",), where="user_id IS NOT NULL"),
        Index("idx_archived_records_archived", ("archived_at",)),
    ),
)
class ArchivedRecord(Record):
    """A memory of any kind that was moved out of its table, so that no search or index finds it.

    `document` is the record, `vectors` are its vectors of all models, and `dependents` the records that were archived
    with it, all as JSON. They are text columns, which keep every byte, unlike JSON columns.
    """

    id: Name = field(default_factory=new_id)
    kind: Name
    record_id: Name
    cause: ArchiveCause
    reason: Prose | None = None
    user_id: Name | None = None
    project_id: Name | None = None
    session_id: Name | None = None
    agent: Name | None = None
    document: str
    vectors: str = "[]"
    dependents: str = "[]"
    archived_at: datetime = field(default_factory=now)
    archived_by: Name | None = None


@record(
    "served_text",
    table="served_texts",
    postgres_table="alma_served_texts",
    audited=False,
    indexes=(
        Index("idx_served_texts_agent", ("agent", "served_at DESC")),
        Index("idx_served_texts_expires", ("expires_at",)),
    ),
)
class ServedText(Record):
    """The fingerprints of the texts that were served to an agent in one answer; the texts are not stored."""

    id: Name = field(default_factory=new_id)
    agent: Name
    project_id: Name | None = None
    user_id: Name | None = None
    fingerprints: str
    served_at: datetime = field(default_factory=now)
    expires_at: datetime


@record(
    "benefit_trial",
    table="benefit_trials",
    postgres_table="alma_benefit_trials",
    audited=False,
    indexes=(Index("idx_benefit_trials_agent", ("project_id", "agent", "created_at DESC")),),
)
class BenefitTrial(Record):
    """What a retrieval showed and withheld to measure benefit, and what became of the task.

    The id is that of the retrieval. `arms` has for each eligible memory its kind, whether it was shown, and the
    probability with which it was. `task_terms` are fingerprints of the task's words; the task itself is not stored.
    `signals` are what was observed of the outcome and not reported.
    """

    id: Name = field(default_factory=new_id)
    agent: Name
    project_id: Name
    task_terms: Strings = ()
    arms: JsonObject = field(default_factory=dict)
    outcome_id: Name | None = None
    success: bool | None = None
    verified_by: Label | None = None
    signals: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    credited_at: datetime | None = None
