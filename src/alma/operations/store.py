"""Operations on the whole store: backups beside it, imports of lines, and webhooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from alma.clock import now
from alma.errors import ConfigurationError, UniquenessError, ValidationError
from alma.events.delivery import WebhookConfig
from alma.events.emitter import MemoryEventType
from alma.model.governance import StoredWebhook
from alma.model.memory import Memory
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Input, Name, Operation, Output, Prose, Text, operation
from alma.operations.memories import Tags
from alma.paths import make_directory
from alma.transfer.importing import backup_store

_FOLDER = "backups"
_HERE = ".alma"


class BackUp(Input):
    pass


class BackupShown(Output):
    name: str
    path: str | None = Field(None, description="The file, for callers on the machine of the store.")
    form: str = Field(description="database or export")
    size_bytes: int
    written_at: datetime


class BackupList(Output):
    folder: str | None = None
    backups: Sequence[BackupShown]


def _folder(caller: Caller) -> Path:
    """The folder for backups: beside the file of the store, or in the working directory of this process."""
    path = getattr(caller.store.storage, "path", None)
    return (Path(_HERE) if path is None else Path(path).resolve().parent) / _FOLDER


@operation("backups", Right.ADMIN, takes_long=True, example={})
def create_backup(caller: Caller, request: BackUp) -> BackupShown:
    """Write a consistent backup beside the store, while it is in use."""
    caller.require_unlimited("a backup")
    folder = _folder(caller)
    try:
        make_directory(folder)
    except OSError as exc:
        raise ConfigurationError(f"the folder {folder} for backups cannot be made: {exc.strerror}") from exc
    stamp = f"{now():%Y%m%d-%H%M%S-%f}"
    is_file = getattr(caller.store.storage, "path", None) is not None
    target = folder / (f"alma-{stamp}.db" if is_file else f"alma-{stamp}.jsonl.gz")
    progress = caller.progress or (lambda done, total: None)
    made = backup_store(caller.store.storage, target, on_progress=progress)
    return _shown(caller, made.path)


@operation("backups", Right.ADMIN, idempotent=True, example={})
def list_backups(caller: Caller, request: BackUp) -> BackupList:
    """List the backups beside the store, newest first."""
    caller.require_unlimited("the list of backups")
    folder = _folder(caller)
    files = sorted(folder.glob("alma-*"), reverse=True) if folder.is_dir() else []
    shown = [_shown(caller, path) for path in files if path.is_file() and path.suffix in (".db", ".gz", ".jsonl")]
    return BackupList(folder=str(folder) if caller.is_local else None, backups=shown)


def _shown(caller: Caller, path: Path) -> BackupShown:
    facts = path.stat()
    return BackupShown(
        name=path.name,
        path=str(path) if caller.is_local else None,
        form="database" if path.suffix == ".db" else "export",
        size_bytes=facts.st_size,
        written_at=datetime.fromtimestamp(facts.st_mtime, UTC),
    )


# ---------------------------------------------------------------------- imports


class Line(Input):
    """A text to import."""

    content: Text
    title: Prose | None = None
    memory_type: Name | None = None
    tags: Tags | None = None
    agent: Name | None = None
    user_id: Name | None = None


class ImportLines(InProject):
    lines: Annotated[Sequence[Line], Field(min_length=1, max_length=500)]
    source: Name = Field("import", description="Where the texts come from; texts of unknown sources are screened.")


class LinesImported(Output):
    stored: int
    merged: int = Field(description="Lines that were known already.")
    quarantined: int
    refused: int
    reasons: Mapping[str, int] = Field(description="Why lines were quarantined or refused, with their number.")


@operation(
    "memories", Right.WRITE, takes_long=True, idempotent=True, example={"lines": [{"content": "We chose PostgreSQL."}]}
)
def import_lines(caller: Caller, request: ImportLines) -> LinesImported:
    """Import texts as memories: redacted, screened and deduplicated as every other text; safe to repeat."""
    project = caller.project(request.project_id)
    made = [
        Memory(
            project_id=project,
            user_id=caller.user(line.user_id),
            source_agent=caller.any_agent(line.agent),
            content=line.content,
            title=line.title or "",
            memory_type=line.memory_type or "note",
            tags=tuple(line.tags or ()),
            layer_project=True,
        )
        for line in request.lines
    ]
    written = caller.store.ingest.save_many(made, caller.by(), request.source)
    status = Counter(str(each.status) for each in written)
    put_aside = (each.reason for each in written if str(each.status) in ("quarantined", "refused"))
    return LinesImported(
        stored=status["stored"],
        merged=status["merged"],
        quarantined=status["quarantined"],
        refused=status["refused"],
        reasons=Counter(reason or "no reason given" for reason in put_aside),
    )


# ---------------------------------------------------------------------- webhooks


class ListWebhooks(Input):
    pass


class WebhookShown(Output):
    name: str = Field(description="The name of the webhook, or a digest of its address.")
    kinds: Sequence[str]
    host: str | None = Field(default=None, description="Where it is sent, of a webhook that add_webhook added.")
    events: Sequence[str] = Field(default=(), description="Only these events, of a webhook that add_webhook added.")
    project_id: str | None = Field(default=None, description="Only changes of this project.")
    is_configured: bool = Field(default=False, description="Whether it is in the configuration of this service.")
    waiting: int = Field(description="Changes that were not delivered yet.")
    parked: int = Field(description="Changes that the receiver refused too often.")
    oldest: datetime | None = Field(default=None, description="The time of the oldest change that waits.")


class WebhookList(Output):
    webhooks: Sequence[WebhookShown]


_WEBHOOK = "webhook."


@operation("webhooks", Right.ADMIN, idempotent=True, example={})
def list_webhooks(caller: Caller, request: ListWebhooks) -> WebhookList:
    """List the webhooks whose events wait in the store, and how many wait for each."""
    caller.require_unlimited("the list of webhooks")
    storage = caller.store.storage
    found = {name: kinds for name, kinds in storage.projections().items() if name.startswith(_WEBHOOK)}
    behind = {name: storage.backlog(name) for name in found}
    stored = {f"{_WEBHOOK}{each.name}": _filters(each) for each in caller.store.stored_webhooks.list_all()}
    configured = {each.projection for each in caller.store.configured_webhooks}
    return WebhookList(
        webhooks=[
            WebhookShown(
                name=name.removeprefix(_WEBHOOK),
                kinds=kinds,
                is_configured=name in configured,
                **stored.get(name, {}),
                waiting=behind[name].pending,
                parked=behind[name].parked,
                oldest=behind[name].oldest,
            )
            for name, kinds in sorted(found.items())
        ]
    )


def _filters(kept: StoredWebhook) -> dict[str, Any]:
    # The path of a webhook's address often contains a password.
    return {"host": urlsplit(kept.url).hostname, "events": kept.events, "project_id": kept.only_project}


class AddWebhook(Input):
    name: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(
        description="A name of your choice, under which its changes wait."
    )
    url: Annotated[str, StringConstraints(max_length=2_000)] = Field(
        description="Where to send the changes: https://… or http://…"
    )
    events: Annotated[Sequence[MemoryEventType], Field(max_length=10)] = Field(
        (), description="Only these; default: all."
    )
    memory_types: Annotated[Sequence[Name], Field(max_length=50)] = Field(
        (), description="Only changes of these kinds, such as memory or heuristic; default: all."
    )
    project_id: Name | None = Field(None, description="Only changes of this project.")
    secret: Annotated[str, StringConstraints(min_length=8, max_length=500)] | None = Field(
        None, description="What the requests are signed with; default: a new one, which the answer has."
    )


class WebhookAdded(Output):
    name: str
    secret: str | None = Field(default=None, description="The secret that was made; it cannot be read again.")


@operation(
    "webhooks", Right.ADMIN, example={"name": "deploys", "url": "https://example.com/alma", "events": ["created"]}
)
def add_webhook(caller: Caller, request: AddWebhook) -> WebhookAdded:
    """Send changes to an address from now on, signed with a secret; running services deliver them within seconds."""
    caller.require_unlimited("a webhook")
    secret = request.secret or token_hex(32)
    config = WebhookConfig(**{**request.model_dump(), "secret": secret})
    if config.projection in caller.store.storage.projections():
        raise UniquenessError("webhook", ("name",), (request.name,))
    caller.store.stored_webhooks.add(config, caller.by())
    return WebhookAdded(name=request.name, secret=None if request.secret else secret)


class RemoveWebhook(Input):
    name: Name = Field(description="The name of the webhook in the list.")


class WebhookRemoved(Output):
    removed: bool = Field(description="false if no webhook has this name.")


@operation("webhooks", Right.ADMIN, destructive=True, idempotent=True, example={"name": "deploys"})
def remove_webhook(caller: Caller, request: RemoveWebhook) -> WebhookRemoved:
    """Send no more changes to a webhook, and drop those that wait for it."""
    caller.require_unlimited("a webhook")
    projection = f"{_WEBHOOK}{request.name}"
    if projection in {each.projection for each in caller.store.configured_webhooks}:
        raise ValidationError(
            "remove_webhook", "name", request.name, "is in the configuration of this service: take it out there"
        )
    known = projection in caller.store.storage.projections()
    return WebhookRemoved(removed=caller.store.stored_webhooks.remove(request.name, caller.by()) or known)


class RetryWebhook(Input):
    name: Name = Field(description="The name of the webhook in the list.")


class WebhookRetried(Output):
    retried: int = Field(description="How many; 0 as well if no webhook has this name.")


@operation("webhooks", Right.ADMIN, idempotent=True, example={"name": "deploys"})
def retry_webhook(caller: Caller, request: RetryWebhook) -> WebhookRetried:
    """Deliver the changes again that the receiver of a webhook refused too often."""
    caller.require_unlimited("a webhook")
    return WebhookRetried(retried=caller.store.storage.unpark(f"{_WEBHOOK}{request.name}"))


STORE: tuple[Operation[Any, Any], ...] = (
    create_backup,
    list_backups,
    import_lines,
    list_webhooks,
    add_webhook,
    remove_webhook,
    retry_webhook,
)
