"""Load a YAML configuration: parse, resolve references, merge defaults, validate; errors name the key and the fix."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from pydantic import ValidationError as InvalidSettings

from alma.config.secrets import Resolved, Vault, azure_vault, resolve_references
from alma.config.settings import NOT_SHOWN, Settings, known_keys, secret_keys, section_at
from alma.errors import ConfigurationError, shown
from alma.lazy import lazy_regex, loader
from alma.model.common import same_name
from alma.paths import expand_home

_LOG = logging.getLogger("alma.config")

ROOT_KEY = "alma"


def load_settings(path: str | Path, vault: Vault | None = None) -> Settings:
    """The settings in a file, with absolute paths."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise ConfigurationError(f"the configuration must be given as a path, not as {shown(path)}")
    file = expand_home(path)
    given = _section(parse_yaml(file), file)
    settings = settings_from(given, str(file), vault)
    project = _project_folder(file)
    absolute: dict[str, Any] = {"storage_dir": str(project / expand_home(settings.storage_dir))}
    if settings.local.folder is not None:
        weights = str(project / expand_home(settings.local.folder))
        absolute["local"] = settings.local.model_copy(update={"folder": weights})
    return settings.model_copy(update=absolute)


def plain_secrets(path: str | Path) -> list[str]:
    """The keys of a file whose secrets are written in it, not referred to."""
    file = expand_home(path)
    given = _section(parse_yaml(file), file)
    return [
        f"{key}.{name}"
        for key, values in _sections(given)
        for name in secret_keys(section_at((*key.split("."), "")))
        if _is_plain_secret(values.get(name))
    ]


def _sections(given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The sections of a file by their keys, those in lists by their numbers too."""
    for key, value in given.items():
        inner = {key: value} if not isinstance(value, list) else {f"{key}.{i}": each for i, each in enumerate(value)}
        yield from ((name, each) for name, each in inner.items() if isinstance(each, Mapping))


def _is_plain_secret(value: Any) -> bool:
    """Whether a value is a secret itself; a URL is one if it holds a password."""
    if not isinstance(value, str) or not value or "${" in value:
        return False
    return bool(urlsplit(value).password) if "://" in value else True


def settings_from(given: Mapping[str, Any], where: str = "the configuration", vault: Vault | None = None) -> Settings:
    """The settings with these keys, and defaults for all others."""
    try:
        complete = _merged(_defaults(), resolve_references(dict(given), vault or azure_vault(_vault_address(given))))
        return _with_known_agents(Settings.model_validate(complete))
    except InvalidSettings as exc:
        raise ConfigurationError(f"{where}: {_sentence(exc)}") from None
    except ConfigurationError as exc:
        raise type(exc)(f"{where}: {exc}") if type(exc) is ConfigurationError else exc from None
    except RecursionError:
        raise ConfigurationError(f"{where}: a section contains itself by an alias (*name); write it out") from None


def _vault_address(given: Mapping[str, Any]) -> str | None:
    """The address of the key vault, which may be an environment reference."""
    azure = given.get("azure")
    address = azure.get("key_vault_url") if isinstance(azure, Mapping) else None
    return (
        str(resolve_references(address, azure_vault(None), "azure.key_vault_url")) if isinstance(address, str) else None
    )


def _project_folder(file: Path) -> Path:
    """The base of relative paths: `.alma/config.yaml` belongs to the directory that holds `.alma`."""
    folder = file.absolute().parent
    return folder.parent if folder.name == ".alma" else folder


def _section(content: Any, file: Path) -> Mapping[str, Any]:
    """The section `alma:`, or the whole file without that key."""
    inner = content.get(ROOT_KEY, content) if isinstance(content, dict) else content
    if not isinstance(inner, dict):
        raise ConfigurationError(
            f"{file} must hold keys under  alma:  (project_id, storage, agents …), not {_shown(inner)}"
        )
    if inner is not content and len(content) > 1:
        other = next(key for key in content if key != ROOT_KEY)
        raise ConfigurationError(
            f"{file}: the key {other!r} is next to {ROOT_KEY!r}; move it under  alma:  or remove it"
        )
    return inner


@cache
def _defaults() -> Mapping[str, Any]:
    text = resources.files("alma.config").joinpath("defaults.yaml").read_text(encoding="utf-8")
    # libyaml takes a tenth of the time; its errors are less clear, so files of users are read by Python.
    content: Mapping[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return content


def _merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given keys over the defaults, section by section; an empty section means its defaults."""
    merged = dict(defaults)
    for key, value in given.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            merged[key] = _merged(below, value)
        elif not (value is None and isinstance(below, dict)):
            merged[key] = value
    return merged


def _sentence(problem: InvalidSettings) -> str:
    """The first mistake, with its key and the fix."""
    # A missing key may be a misspelled one, so other mistakes come first.
    first = min(problem.errors(include_url=False), key=lambda each: each["type"] == "missing")
    path = tuple(step for step in first["loc"] if step != "[key]")
    # The mistake may be in the key itself.
    is_key = len(path) < len(first["loc"]) and len(path) > 1
    key = f"a name under {'.'.join(map(str, path[:-1]))}" if is_key else ".".join(map(str, path))
    match first["type"]:
        case "extra_forbidden":
            known = known_keys(section_at(path))
            return f"{key} is not known; {_suggestion(str(path[-1]), known if path[1:] else [*known, ROOT_KEY])}"
        case "missing":
            return f"{key} is missing; add it"
        case "literal_error":
            return f"{key} is {_shown(first['input'])}, which is not known; {_choice(first)}"
        case kind if kind == NOT_SHOWN:
            return f"{key} {first['msg']}"
        case "value_error":
            return f"{key} {first['ctx']['error']} (got {_shown(first['input'])})"
        case "string_pattern_mismatch":
            return f"{key} must be lowercase letters, digits, - and _, not {_shown(first['input'])}"
        case kind if kind in _WRONG_TYPES:
            return f"{key} must be {_WRONG_TYPES[kind]}, not {_shown(first['input'])}"
        case kind if kind in _OUT_OF_RANGE:
            limit = _OUT_OF_RANGE[kind].format(**first["ctx"])
            return f"{key} must be {limit}, not {_shown(first['input'])}"
        case _:
            return f"{key}: {first['msg'][:1].lower()}{first['msg'][1:]} (got {_shown(first['input'])})"


_WRONG_TYPES = {
    "string_type": "text, in quotes if it looks like something else",
    "invalid_key": "text, in quotes if it looks like something else",
    "int_type": "a whole number without quotes",
    "float_type": "a number without quotes",
    "bool_type": "true or false",
    "list_type": "a list, one  - item  per line",
    "dict_type": "a section with keys",
    "model_type": "a section with keys",
}
_OUT_OF_RANGE = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "{le:g} at most",
}


def _choice(problem: Any) -> str:
    """The allowed values, and the closest one."""
    expected: str = problem["ctx"]["expected"]
    names = expected.replace(" or ", ", ").replace("'", "").split(", ")
    close = difflib.get_close_matches(str(problem["input"]).lower(), names, n=1)
    return f"did you mean {close[0]}? There are {expected}" if close else f"choose {expected}"


def _with_known_agents(settings: Settings) -> Settings:
    """The settings, after checking that agents are unique and that shared and inherited agents exist."""
    known: dict[str, str] = {}
    for name in settings.agents:
        other = known.setdefault(same_name(name), name)
        if other != name:
            raise ConfigurationError(f"agents: {other!r} and {name!r} are the same agent in another case; remove one")
    for name, agent in settings.agents.items():
        for key in ("share_with", "inherit_from"):
            for other in getattr(agent, key):
                if same_name(other) not in known:
                    _require_no_slip(f"agents.{name}.{key}", other, known)
    return settings


def _require_no_slip(key: str, named: str, known: Mapping[str, str]) -> None:
    """A name that is close to a known one is a typing error; others may be agents to come, and are logged."""
    close = difflib.get_close_matches(same_name(named), list(known), n=1, cutoff=0.75)
    if close and close[0][:-1] != same_name(named)[:-1]:
        raise ConfigurationError(f"{key} names the unknown agent {named!r}; did you mean {known[close[0]]}?")
    _LOG.warning("the configuration names an unknown agent", extra={"key": key, "named": named})


def _shown(value: Any) -> str:
    """A value as in YAML; resolved references may be secrets and are not shown."""
    match value:
        case Resolved():
            return "the value of a reference"
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case date():
            return str(value)
        case _:
            return shown(value)


def _suggestion(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}"


def parse_yaml(file: Path) -> Any:
    """The content of the file."""
    try:
        return yaml.load(file.read_text(encoding="utf-8"), _OnceEach)
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no configuration at {file}; create it, or open a memory without one by ALMA.quickstart()"
        ) from None
    except ConfigurationError as exc:
        raise ConfigurationError(f"{file}: {exc}") from None
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise ConfigurationError(f"{file} is not UTF-8 (line {line}); save it as UTF-8") from exc
    except OSError as exc:
        raise ConfigurationError(f"{file} cannot be read: {exc.strerror}") from exc
    except RecursionError:
        raise ConfigurationError(f"{file} is nested too deeply to be read") from None
    except yaml.YAMLError as exc:
        raise ConfigurationError(f"{file} is not valid YAML: {_problem(exc)}{_hint(exc)}") from exc
    except ValueError as exc:
        # A path with NUL, or an invalid date.
        raise ConfigurationError(f"{str(file)!r} cannot be read: {exc}") from exc


def _problem(exc: yaml.YAMLError) -> str:
    """The problem and its position; the line is not quoted, because it may contain a password."""
    if isinstance(exc, yaml.reader.ReaderError):
        return f"it contains an invalid character (number {exc.position + 1} of the file)"
    if not isinstance(exc, yaml.MarkedYAMLError):
        return " ".join(str(exc).split())
    steps = ((exc.context, exc.context_mark), (exc.problem, exc.problem_mark))
    said = ", ".join(f"{what}{_place(mark)}" for what, mark in steps if what)
    return said.replace("'<stream end>'", "the end of the file").replace("end of stream", "end of the file")


def _place(mark: Any) -> str:
    return "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"


def _hint(exc: yaml.YAMLError) -> str:
    """The fix for tabs, and for a reference that YAML parses as a mapping."""
    place = getattr(exc, "problem_mark", None)
    if place is None or place.buffer is None:
        return ""
    if place.buffer[place.pointer] == "\t":
        return "; replace the tab by spaces"
    bare = _BARE.match(place.buffer, max(0, place.pointer - 1))
    return "" if bare is None else f"; put {bare[0]} in quotes"


_BARE = lazy_regex(r"\$\{[^}\n]*\}")


class _OnceEach(yaml.SafeLoader):
    """A YAML loader that rejects duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        known: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in known and name != "<<":
                raise ConfigurationError(
                    f"{name!r} is a duplicate key, again in line {key.start_mark.line + 1}; remove one"
                )
            known.add(name)
        return super().construct_mapping(node, deep)


__getattr__ = loader(__name__, {"ConfigLoader": "alma.compat.config"})
