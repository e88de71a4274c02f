"""`alma restore`: forgotten memories by their ids, or a store from its backup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alma.cli.lazy import single
from alma.cli.places import Config, Project, Store, open_memory, place_of
from alma.cli.shown import AsJson, Schema, say, show_json
from alma.errors import ConfigurationError, NotFoundError

if TYPE_CHECKING:
    from alma.operations.access import Caller


def restore(
    what: Annotated[
        list[str],
        typer.Argument(metavar="ID... | FILE [STORE]", help="Ids of memories, or a backup and the store to fill."),
    ],
    config: Config = None,
    store: Store = None,
    project: Project = None,
    file: Annotated[bool, typer.Option("--file", help="It is a file, whatever it looks like.")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="They are ids, whatever they look like.")] = False,
    force: Annotated[bool, typer.Option("--force", help="A backup replaces what the store holds.")] = False,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Bring back forgotten memories by id, or a store from a backup file.

    What has a dot or a slash in it, or is a file that is there, is a backup or an export, and the store becomes what
    it holds; everything else is the id of a memory that was forgotten, archived, merged, quarantined or deleted softly.
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
    from alma.cli.transfer import restore_backup

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
    """Out of the archive, or a general memory that was softly deleted and never went there."""
    from alma.operations import operation_named

    try:
        operation_named("restore").perform(caller, {"ids": [record_id]})
    except NotFoundError as archived:
        try:
            operation_named("restore_memory").perform(caller, {"memory_id": record_id})
        except NotFoundError:
            raise archived from None
    return record_id


app = single(
    restore,
    "alma restore 01a1e0a2b81e7fc49d0ec9b96de703e8",
    "alma restore alma-backup.db --force",
    "alma restore alma-backup.db .alma/alma.db --force",
)
