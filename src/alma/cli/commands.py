"""Commands generated from the operations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature
from types import ModuleType
from typing import Annotated, Any

import typer

from alma.cli.app import LazyGroup, Listing, application, examples, unknown
from alma.cli.options import Field, arguments, arguments_of, fields_of, parameters_of, quoted
from alma.cli.output import AsJson, progress_of, show_json
from alma.cli.results import is_failed, show_result
from alma.cli.store_options import Config, Store, open_memory
from alma.errors import ConfigurationError, PermissionDeniedError, ValidationError
from alma.operations.access import Caller, Right
from alma.operations.base import Face, Operation, to_json

# Top-level commands, with the modules and names of their operations.
_EVERYDAY = {
    "retrieve": "retrieving.retrieve",
    "recommend": "learning.recommend",
    "learn": "learning.learn",
    "remember": "memories.create_memory",
    "search": "memories.search_memories",
    "context": "memories.get_context",
    "stats": "maintenance.stats",
    "forget": "history.forget",
    "restore": "history.restore",
    "purge": "history.purge",
    "maintain": "upkeep.maintain",
    "health": "maintenance.health",
    "whoami": "browsing.whoami",
}
EVERYDAY = {command: place.partition(".")[2] for command, place in _EVERYDAY.items()}
# The modules of each group: a command imports no others.
_MODULES = {
    "learning": ("retrieving", "learning", "history", "maintenance", "lessons"),
    "service": ("maintenance", "browsing"),
    "memories": ("memories", "facts", "corrections", "maintenance", "browsing", "care", "store"),
    "sessions": ("sessions",),
    "projects": ("workspace",),
    "users": ("workspace",),
    "settings": ("workspace",),
    "work": ("workspace",),
    "relations": ("relations",),
    "graph": ("relations", "surroundings"),
    "patterns": ("relations",),
    "history": ("history", "timeline"),
    "audit": ("history",),
    "sync": ("engines",),
    "maintenance": ("upkeep",),
    "benefit": ("benefit",),
    "skills": ("skills",),
    "review": ("review",),
    "keys": ("keys",),
    "backups": ("store",),
    "webhooks": ("store",),
}
# Commands that do more than their operation and replace it.

COVERED = {
    "list_audit": "audit list",
    "verify_audit": "audit verify",
    "sync_run": "sync run",
    "list_keys": "keys list",
    "create_key": "keys create",
    "revoke_key": "keys revoke",
    "export_skills": "skills export",
    "import_skills": "skills import",
    "diff_skills": "skills diff",
}
# Positional arguments where they differ from the required ones.
_FIRST = {
    "delete_user": ("user_id",),
    "delete_project": ("project_id",),
    "learn": ("task",),
    "get_context": ("activity",),
}
_NOUNS = {
    "memories": ("memory", "memories"),
    "sessions": ("session", "sessions"),
    "projects": ("project", "projects"),
    "users": ("user",),
    "settings": ("setting", "settings"),
    "work": ("work", "item", "items"),
    "relations": ("memories", "relations"),
    "graph": ("to", "graph"),
    "patterns": ("patterns",),
    "history": ("version", "versions"),
    "backups": ("backup", "backups"),
    "webhooks": ("webhook", "webhooks"),
    "sync": ("sync",),
    "maintenance": ("maintenance",),
    "benefit": ("benefit", "outcome", "memories"),
}

_NAMED_USER = "this is about one user: name it with --user, or set ALMA_USER"

AnyOperation = Operation[Any, Any]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before deleting permanently.")]


def offered() -> list[AnyOperation]:
    """The operations that the command line offers."""
    return [each for name in _MODULES for each in offered_in(name)]


@cache
def offered_in(name: str) -> tuple[AnyOperation, ...]:
    """The operations of a group that the command line offers."""
    defined = (each for module in _MODULES[name] for each in vars(_module(module)).values())
    found = (each for each in defined if isinstance(each, Operation) and each.group == name)
    return tuple(each for each in dict.fromkeys(found) if Face.CLI in each.faces)


def _module(name: str) -> ModuleType:
    return import_module(f"alma.operations.{name}")


def everyday(name: str, _: str = "") -> typer.Typer:
    """A top-level command."""
    module, _, operation = _EVERYDAY[name].partition(".")
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    _add(made, name, getattr(_module(module), operation), f"alma {name}")
    return made


def group(name: str, word: str = "") -> typer.Typer:
    """The commands of a group, or only the one called by this word."""
    made = application(LazyGroup.entries[name].summary, _Forgiving)
    described = {command_name(each): each for each in offered_in(name) if each.name not in COVERED}
    called = word if word in described else _by_operation(word, name)
    for command, operation in described.items():
        if command == called or called not in described:
            _add(made, command, operation, f"alma {name} {command}", hidden=operation.name in EVERYDAY.values())
    # A callback keeps a group with one command a group.
    made.callback()(lambda: None)
    return made


def command_name(operation: AnyOperation) -> str:
    """An operation's name in its group, without the group's noun."""
    nouns = _NOUNS.get(operation.group, ())
    words = [word for word in operation.name.split("_") if word not in nouns]
    short = "-".join(words or operation.name.split("_"))
    clash = [o for o in offered_in(operation.group) if o is not operation]
    if any("-".join(w for w in o.name.split("_") if w not in nouns) == short for o in clash):
        return operation.name.replace("_", "-")
    return short


def command_path(operation: AnyOperation) -> str:
    """The words of an operation's command after `alma`."""
    short = next((name for name, known in EVERYDAY.items() if known == operation.name), None)
    return COVERED.get(operation.name) or short or f"{operation.group} {command_name(operation)}"


_MORE_EXAMPLES: dict[str, tuple[str, ...]] = {
    "retrieve": ('alma retrieve "Test the sign-up form" --agent helena --explain',),
    "learn": (
        'alma learn "Test the login form" --agent helena --outcome failure --strategy "sleep for a second" '
        '--error-message "timed out"',
    ),
    "create_memory": ("git log -1 --format=%B | alma remember - --type progress",),
}


class _Forgiving(Listing):
    """A group whose commands can also be called by the names of their operations."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command named by the first argument."""
        name = _by_operation(args[0], str(self.name)) if args[0] not in self.commands else args[0]
        if name in self.commands or ctx.resilient_parsing:
            return super().resolve_command(ctx, [name, *args[1:]])
        raise unknown(args[0], self.commands)


def _by_operation(name: str, group_name: str) -> str:
    wanted = name.replace("-", "_")
    return next((command_name(each) for each in offered_in(group_name) if each.name == wanted), name)


# ---------------------------------------------------------------------- one command


def _add(app: typer.Typer, name: str, operation: AnyOperation, path: str, hidden: bool = False) -> None:
    fields = fields_of(operation.input_schema)
    first = _FIRST.get(operation.name)
    positional = arguments_of(fields) if first is None else [f for f in fields if f.path[-1] in first]
    function = _function(operation, fields, positional)
    usual = example(path, operation.example, fields, positional) + (" --yes" if _is_final(operation) else "")
    shown = examples(*_MORE_EXAMPLES.get(operation.name, ()), usual)
    about: dict[str, Any] = {"help": operation.description, "short_help": operation.summary, "epilog": shown}
    app.command(name, hidden=hidden, **about)(function)


def example(path: str, given: Mapping[str, Any], fields: list[Field], positional: list[Field]) -> str:
    """The operation's example as a command line."""
    words = [path]
    options: list[str] = []
    for field in (*positional, *(each for each in fields if each not in positional)):
        value: Any = given
        for step in field.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is None:
            continue
        if field in positional:
            words += [quoted(each) for each in (value if field.several else [value])]
        else:
            options += field.written(value)
    return " ".join([*words, *options])


def _function(operation: AnyOperation, fields: list[Field], positional: list[Field]) -> Callable[..., None]:
    def command(**given: Any) -> None:
        config, store, as_json = given.pop("_config"), given.pop("_store"), given.pop("_as_json")
        confirmed = given.pop("_confirmed", True)
        request = arguments(fields, given)
        _confirm(operation, request, confirmed)
        must_exist = operation.right in (Right.READ, Right.DELETE, Right.ADMIN)
        try:
            # Before a store is opened or created.
            parsed = operation.parsed(request)
            with (
                open_memory(config, store, request.get("project_id"), must_exist=must_exist) as memory,
                progress_of(operation.name.replace("_", " ")) as progress,
            ):
                result = operation.perform(Caller(memory, progress=progress), parsed)
        except ValidationError as exc:
            raise _as_written(exc, operation, fields) from exc
        except PermissionDeniedError as exc:
            # The owner of a store has every right, so only a user name can be missing.
            raise PermissionDeniedError(_NAMED_USER if "user_id" in str(exc) else str(exc)) from exc
        if as_json:
            show_json(to_json(result))
        else:
            show_result(operation, to_json(result), request)
        if is_failed(operation, to_json(result)):
            raise typer.Exit(1)

    parameters = [*parameters_of(fields, positional), *_common(operation, fields)]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__name__ = operation.name
    return command


def _common(operation: AnyOperation, fields: list[Field]) -> list[Parameter]:
    keyword = Parameter.KEYWORD_ONLY
    common = [
        Parameter("_config", keyword, default=None, annotation=Config),
        Parameter("_store", keyword, default=None, annotation=Store),
        Parameter("_as_json", keyword, default=False, annotation=AsJson),
    ]
    confirmed = Parameter("_confirmed", keyword, default=False, annotation=Yes)
    return [*common, confirmed] if _is_final(operation) or any(f.path == ("hard",) for f in fields) else common


def _is_final(operation: AnyOperation) -> bool:
    """Whether --yes must confirm the command; some operations are confirmed by a token of their own."""
    return operation.destructive and operation.right is Right.ADMIN and "confirm" not in operation.input.model_fields


def _confirm(operation: AnyOperation, request: Mapping[str, Any], confirmed: bool) -> None:
    """Ask before a permanent deletion; programs use --yes."""
    final = _is_final(operation) or bool(request.get("hard"))
    if confirmed or not final or request.get("dry_run"):
        return
    if not sys.stdin.isatty():
        raise ConfigurationError("this deletes permanently: add --yes to confirm")
    typer.confirm("This deletes permanently. Continue?", abort=True)


def _as_written(exc: ValidationError, operation: AnyOperation, fields: list[Field]) -> ValidationError:
    """The error with the name of the option: --top-k instead of retrieve.top_k."""
    if exc.subject != operation.name or exc.field is None:
        return exc
    path = tuple(exc.field.split("."))
    field = next((each for each in fields if path[: len(each.path)] == each.path), None)
    if field is None:
        return exc
    return type(exc)(f"--{field.word}" if not field.required else field.word, None, exc.value, exc.reason)
