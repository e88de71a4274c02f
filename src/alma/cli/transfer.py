"""Commands that move data: import, export, backup, restore and merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from alma.bootstrap import create_embedder, is_same_store, local_model, open_existing, open_target, restore_storage
from alma.cli.app import single
from alma.cli.output import AsJson, Schema, progress_bar, progress_of, say, show_json, show_table
from alma.cli.store_options import (
    STORES,
    Config,
    Place,
    Project,
    Store,
    embedding_of,
    open_memory,
    place_of,
    redactor_of,
    without_password,
)
from alma.config import config_file
from alma.errors import ConfigurationError, NotFoundError
from alma.importers import IMPORTERS, ImportOptions, ImportProgress, ImportReport, import_into, importer_named
from alma.importers.sources import Source
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.transfer import TransferReport, backup_store, export_store, import_store, merge_stores, verify_export
from alma.transfer.lines import MEGABYTE, Limits

if TYPE_CHECKING:
    from alma.operations.access import Caller


StoreAndFile = Annotated[
    list[str],
    typer.Argument(metavar="[STORE] FILE", help=f"The file, optionally after a store. {STORES}"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen without changing anything.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing data.")]
_GRAPH = "server-memory"
_SYSTEMS = ", ".join((*IMPORTERS, "jsonl", _GRAPH))
_SHOWN = 20


def import_command(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="JSON, JSON lines, SQLite, an SQL dump or a zip.")],
    system: Annotated[str, typer.Option("--from", help=f"The source system: {_SYSTEMS}.")],
    into: Annotated[
        str | None,
        typer.Option(
            "--into", "--store", envvar="ALMA_STORE", metavar="STORE", help=f"{STORES} Default: the configured store."
        ),
    ] = None,
    config: Config = None,
    dry_run: DryRun = False,
    user: Annotated[str | None, typer.Option(help="The user of records that name none.")] = None,
    project: Annotated[str | None, typer.Option(help="The project of all records.")] = None,
    agent: Annotated[str | None, typer.Option(help="The agent of records that name none.")] = None,
    zone: Annotated[str, typer.Option(help="The time zone of naive times, for example Europe/Prague.")] = "UTC",
    embedding_model: Annotated[str | None, typer.Option(help="The model of the source's embeddings.")] = None,
    embed: Annotated[str | None, typer.Option(help="Also create vectors: local, openai, azure or mock.")] = None,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Also restore what was deleted or rejected here; only of an export.")
    ] = False,
    trusted: Annotated[bool, typer.Option("--trusted", help="Trust the source: no text is quarantined.")] = False,
    batch_size: Annotated[int, typer.Option(help="The number of records per batch.")] = 1000,
    max_row_mb: Annotated[int, typer.Option(min=1, help="The maximum size of a line, row or item.")] = 256,
    max_unpacked_mb: Annotated[int, typer.Option(min=1, help="The maximum size of an unpacked file.")] = 16_384,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Import from another system, or from another store's export; can be repeated safely."""
    place = place_of(config, into, schema)
    limits = Limits(max_row_mb * MEGABYTE, max_unpacked_mb * MEGABYTE)
    if system == "jsonl":
        _import_export(source, place, limits, dry_run, deleted, as_json)
        return
    if system == _GRAPH:
        _import_graph(source, config, into, project, dry_run, as_json)
        return
    options = ImportOptions(_zone(zone), embedding_model, None, user, project, agent)
    # Check the file before creating a store.
    Source(source, importer_named(system), limits)
    embedder = None
    if embed is not None:
        provider, chosen = embedding_of(config, into, embed)
        embedder = create_embedder(provider, **chosen)
    model = local_model() if embedder is None else (embedder.model, embedder.dimension)
    with open_target(*place, model, dry_run=dry_run) as storage, _rows_bar(system) as tell:
        report = import_into(
            storage,
            source,
            system,
            options=options,
            dry_run=dry_run,
            embedder=embedder,
            redactor=redactor_of(config, into),
            trusted=trusted,
            batch_size=batch_size,
            limits=limits,
            on_progress=tell,
        )
        lacking = storage.count_without_vector(Memory, storage.embedding_model, Scope.everywhere())
    _show_import(report, as_json)
    if lacking and not (as_json or dry_run):
        say(f"{lacking} memory(s) have no vector yet: alma reembed {_naming(config, into, place)}")


def _naming(config: Path | None, store: str | None, place: Place) -> str:
    """The options that name the same store for the next command."""
    file = config_file(config, store)
    named = [] if file is None else [f"--config {file}"]
    return " ".join(named if named and store is None else [*named, f"--store {without_password(place.store)}"])


def export_command(
    target: StoreAndFile,
    config: Config = None,
    store: Store = None,
    user: Annotated[str | None, typer.Option(help="Only records of this user.")] = None,
    project: Annotated[str | None, typer.Option(help="Only records of this project.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only records of this agent.")] = None,
    history: Annotated[bool, typer.Option(help="Include the versions of records.")] = True,
    audit: Annotated[bool, typer.Option(help="Include the audit log.")] = True,
    vectors: Annotated[bool, typer.Option(help="Include vectors.")] = True,
    graph: Annotated[
        bool, typer.Option("--server-memory", help="The knowledge graph, as the MCP reference server keeps it.")
    ] = False,
    force: Force = False,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Export a store, or the records of a user, project or agent, as JSON lines; .gz files are compressed."""
    if graph:
        _export_graph(target, config, store, project, force, as_json)
        return
    named = any(name is not None for name in (user, project, agent))
    scope = Scope(user_id=user, project_id=project, agent=agent) if named else Scope.everywhere()
    place, file = _store_and_file(target, config, store, schema)
    with open_existing(*place) as storage, progress_of("export") as tell:
        written = export_store(
            storage, file, scope, history=history, audit=audit, vectors=vectors, force=force, on_progress=tell
        )
    if as_json:
        show_json({"file": str(written.path), "lines": written.lines, "counts": dict(written.counts)})
        return
    show_table(("kind", "records"), [{"kind": k, "records": n} for k, n in written.counts.items()], as_json=False)
    say(f"{written.lines} line(s) written to {written.path}")


def backup_command(
    target: StoreAndFile,
    config: Config = None,
    store: Store = None,
    force: Force = False,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Write a consistent backup of a store to a file, while it is in use."""
    place, file = _store_and_file(target, config, store, schema)
    with open_existing(*place) as storage, progress_of("backup") as tell:
        made = backup_store(storage, file, force=force, on_progress=tell)
    if as_json:
        show_json({"file": str(made.path), "form": made.form, "bytes": made.size_bytes})
        return
    say(f"{made.path}: {made.size_bytes:,} bytes, a complete {made.form}")


def restore_backup(file: str, place: Place, force: bool, as_json: bool) -> None:
    """Replace the contents of a store with a backup or an export, after checking it."""
    with progress_of("restore") as tell:
        restore_storage(file, place.store, force, tell, place.schema)
    shown = without_password(place.store)
    if as_json:
        show_json({"file": file, "store": shown, "restored": True})
        return
    say(f"{shown} is what {file} holds")


def merge_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help=STORES)],
    into: Annotated[
        str | None, typer.Argument(metavar="[INTO]", help=f"{STORES} Default: the configured store.")
    ] = None,
    config: Config = None,
    store: Store = None,
    dry_run: DryRun = False,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Merge one store into another: newer records win, counters add up, and conflicts are listed."""
    place = place_of(config, into or store, schema)
    if is_same_store(source, place.store):
        raise ConfigurationError("a store cannot be merged into itself")
    with open_existing(source, place.schema) as old:
        model = (old.embedding_model, old.embedding_dim)
        with open_target(*place, model, dry_run=dry_run) as target, progress_of("merge") as tell:
            report = merge_stores(old, target, dry_run=dry_run, on_progress=tell)
    _show_transfer(report, as_json)


# ---------------------------------------------------------------------- output


def _store_and_file(
    target: Sequence[str], config: Path | None, store: str | None, schema: str | None
) -> tuple[Place, str]:
    if len(target) > 2 or (len(target) == 2 and store is not None):
        raise ConfigurationError(f"give one file, optionally after a store, not {' '.join(target)}")
    return place_of(config, store if len(target) == 1 else target[0], schema), target[-1]


def _import_export(source: str, place: Place, limits: Limits, dry_run: bool, deleted: bool, as_json: bool) -> None:
    header = verify_export(source, limits)
    model = (header.embedding_model, header.embedding_dim)
    with open_target(*place, model, dry_run=dry_run) as storage, progress_of("import") as tell:
        report = import_store(storage, source, dry_run=dry_run, limits=limits, on_progress=tell, deleted=deleted)
    _show_transfer(report, as_json)


def _import_graph(
    source: str, config: Path | None, store: str | None, project: str | None, dry_run: bool, as_json: bool
) -> None:
    from alma.integration.server_memory import KnowledgeGraph, checked_file

    if dry_run:
        raise ConfigurationError("a knowledge graph is imported without --dry-run: it is refused or added as a whole")
    # Check the file before creating a store.
    checked_file(source)
    with open_memory(config, store, project) as memory:
        entities, relations = KnowledgeGraph(memory).load(source)
    if as_json:
        show_json({"entities": entities, "relations": relations})
        return
    say(f"{entities} entities and {relations} relations added")


def _export_graph(
    target: Sequence[str], config: Path | None, store: str | None, project: str | None, force: bool, as_json: bool
) -> None:
    from alma.integration.server_memory import KnowledgeGraph

    if len(target) > 2:
        raise ConfigurationError(f"give one file, optionally after a store, not {' '.join(target)}")
    file = Path(target[-1])
    if file.exists() and not force:
        raise ConfigurationError(f"{file} exists: give --force to overwrite it")
    with open_memory(config, store if len(target) == 1 else target[0], project, must_exist=True) as memory:
        text = KnowledgeGraph(memory).dump()
    file.write_text(text, encoding="utf-8")
    lines = text.count("\n") + 1 if text else 0
    if as_json:
        show_json({"file": str(file), "lines": lines})
        return
    say(f"{lines} line(s) written to {file}")


def _show_import(report: ImportReport, as_json: bool) -> None:
    if as_json:
        show_json(report.to_dict())
        return
    _show_counts({"new": report.new, "changed": report.changed, "unchanged": report.unchanged})
    for kind, number in report.quarantined.items():
        say(f"quarantined: {number} {kind}")
    for reason, number in report.left_out.items():
        say(f"left out: {number} {reason}")
    for kind, number in report.masked.items():
        say(f"masked: {number} {kind}")
    _list("could not come", [f"{each.where}: {each.reason}" for each in report.rejected])
    say(f"{report.rows} row(s) read{', nothing was changed' if report.dry_run else ''}")


def _show_transfer(report: TransferReport, as_json: bool) -> None:
    if as_json:
        show_json(report.to_dict())
        return
    _show_counts({"new": report.new, "changed": report.changed, "unchanged": report.unchanged, "kept": report.kept})
    _list(
        "conflict",
        [f"{c.kind} {c.id}: {c.stored} here, {c.arriving} there; {c.taken} taken" for c in report.conflicts],
    )
    _list("taken for", [f"{each.kind} {each.id} is {each.stored_id} here, by {each.by}" for each in report.renamed])
    _list("could not come", [f"{each.kind} {each.id}: {each.reason}" for each in report.refused])
    if report.dry_run:
        say("nothing was changed")


def _show_counts(counts: Mapping[str, Mapping[str, int]]) -> None:
    kinds = dict.fromkeys(kind for found in counts.values() for kind in found)
    rows = [{"kind": kind, **{name: found.get(kind, 0) for name, found in counts.items()}} for kind in kinds]
    show_table(("kind", *counts), rows, as_json=False)


def _list(label: str, lines: list[str]) -> None:
    for line in lines[:_SHOWN]:
        say(f"{label}: {line}")
    if len(lines) > _SHOWN:
        say(f"{label}: {len(lines) - _SHOWN} more, all of them with --json")


@contextmanager
def _rows_bar(name: str) -> Iterator[Callable[[ImportProgress], None]]:
    """The total is estimated from the part of the source that was read."""
    with progress_bar() as bar:
        task = bar.add_task(name, total=None)

        def tell(progress: ImportProgress) -> None:
            total = round(progress.rows / progress.fraction) if progress.fraction else None
            bar.update(task, completed=progress.rows, total=total)

        yield tell


def _zone(name: str) -> Any:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(f"unknown time zone {name!r}; give one like UTC or Europe/Prague") from None


importing = single(
    import_command,
    "alma import contexts.jsonl --from contextual-memory --project shop --dry-run",
    "alma import everything.jsonl.gz --from jsonl --into other.db",
    "alma import memory.json --from server-memory",
)
exporting = single(
    export_command, "alma export everything.jsonl.gz", "alma export .alma/alma.db shop.jsonl --project shop --force"
)
backing_up = single(backup_command, "alma backup alma-backup.db", "alma backup .alma/alma.db alma-backup.db --force")
merging = single(merge_command, "alma merge laptop.db --dry-run", "alma merge laptop.db .alma/alma.db")


def restore_command(
    what: Annotated[
        list[str],
        typer.Argument(metavar="ID... | FILE [STORE]", help="Ids of memories, or a backup and the store to fill."),
    ],
    config: Config = None,
    store: Store = None,
    project: Project = None,
    file: Annotated[bool, typer.Option("--file", help="Read the argument as a file.")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="Read the arguments as ids.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the contents of the store with the backup.")] = False,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Restore forgotten memories by id, or a store from a backup file.

    An argument with a dot or a slash, or the name of an existing file, is a backup or an export, which replaces the
    contents of the store. Anything else is the id of a memory that was forgotten, archived, merged, quarantined or
    softly deleted.
    """
    if file and ids:
        raise ConfigurationError("give --file or --ids, not both")
    if file or (not ids and _is_file(what[0])):
        _backup(what, config, store, schema, force, as_json)
        return
    if force:
        raise ConfigurationError(f"--force is for backups, and {what[0]!r} is read as an id; name a file with --file")
    _memories(what, config, store, project, as_json)


def _is_file(word: str) -> bool:
    return "." in word or "/" in word or Path(word).is_file()


def _backup(
    what: Sequence[str], config: Path | None, store: str | None, schema: str | None, force: bool, as_json: bool
) -> None:
    if len(what) > 2 or (len(what) == 2 and store is not None):
        raise ConfigurationError(f"a store is restored from one file: give FILE and the store, not {' '.join(what)}")
    place = place_of(config, what[1] if len(what) == 2 else store, schema)
    restore_backup(what[0], place, force, as_json)


def _memories(ids: Sequence[str], config: Path | None, store: str | None, project: str | None, as_json: bool) -> None:
    from alma.operations.access import Caller

    with open_memory(config, store, project, must_exist=True) as memory:
        back = [_brought_back(Caller(memory), each) for each in dict.fromkeys(ids)]
    if as_json:
        show_json({"restored": back})
        return
    for each in back:
        say(f"{each} is back")


def _brought_back(caller: Caller, record_id: str) -> str:
    """Restore from the archive, or undelete a softly deleted memory."""
    from alma.operations import operation_named

    try:
        operation_named("restore").perform(caller, {"ids": [record_id]})
    except NotFoundError as archived:
        try:
            operation_named("restore_memory").perform(caller, {"memory_id": record_id})
        except NotFoundError:
            raise archived from None
    return record_id


restore = single(
    restore_command,
    "alma restore 01a1e0a2b81e7fc49d0ec9b96de703e8",
    "alma restore alma-backup.db --force",
    "alma restore alma-backup.db .alma/alma.db --force",
)
