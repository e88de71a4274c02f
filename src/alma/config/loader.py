"""The loader: from a YAML file to checked settings, or one sentence that says what is wrong in it."""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Iterable, Mapping
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError as InvalidSettings

from alma.config.secrets import Resolved, Vault, azure_vault, resolved
from alma.config.settings import NOT_SHOWN, Settings, known_keys, section_at
from alma.errors import ConfigurationError, shown
from alma.model.common import same_name
from alma.paths import expand_home

_LOG = logging.getLogger("alma.config")

ROOT_KEY = "alma"


def load_settings(path: str | Path, vault: Vault | None = None) -> Settings:
    """The settings of a file, whose relative paths are made absolute."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise ConfigurationError(f"the configuration must be named by its path, not be {shown(path)}")
    file = expand_home(path)
    given = _section(parsed(file), file)
    settings = settings_from(given, str(file), vault)
    project = _project_folder(file)
    absolute: dict[str, Any] = {"storage_dir": str(project / expand_home(settings.storage_dir))}
    if settings.local.folder is not None:
        weights = str(project / expand_home(settings.local.folder))
        absolute["local"] = settings.local.model_copy(update={"folder": weights})
    return settings.model_copy(update=absolute)


def settings_from(given: Mapping[str, Any], where: str = "the configuration", vault: Vault | None = None) -> Settings:
    """The settings that these keys give, with the defaults for all others."""
    try:
        complete = _merged(_defaults(), resolved(dict(given), vault or azure_vault(_vault_address(given))))
        return _with_known_agents(Settings.model_validate(complete))
    except InvalidSettings as exc:
        raise ConfigurationError(f"{where}: {_sentence(exc)}") from None
    except ConfigurationError as exc:
        raise type(exc)(f"{where}: {exc}") if type(exc) is ConfigurationError else exc from None
    except RecursionError:
        raise ConfigurationError(f"{where}: a section holds itself by an alias (*name); write it out") from None


def _vault_address(given: Mapping[str, Any]) -> str | None:
    """Where the vault is, which may itself stand in the environment."""
    azure = given.get("azure")
    address = azure.get("key_vault_url") if isinstance(azure, Mapping) else None
    return str(resolved(address, azure_vault(None), "azure.key_vault_url")) if isinstance(address, str) else None


def _project_folder(file: Path) -> Path:
    """Where relative paths start: `.alma/config.yaml` belongs to the folder that holds `.alma`."""
    folder = file.absolute().parent
    return folder.parent if folder.name == ".alma" else folder


def _section(content: Any, file: Path) -> Mapping[str, Any]:
    """What stands under `alma:`, or the whole file where it has no such key."""
    inner = content.get(ROOT_KEY, content) if isinstance(content, dict) else content
    if not isinstance(inner, dict):
        raise ConfigurationError(
            f"{file} must hold keys under  alma:  (project_id, storage, agents …), not {_shown(inner)}"
        )
    if inner is not content and len(content) > 1:
        other = next(key for key in content if key != ROOT_KEY)
        raise ConfigurationError(
            f"{file}: the key {other!r} stands beside {ROOT_KEY!r}; move it under  alma:  or remove it"
        )
    return inner


def _defaults() -> dict[str, Any]:
    text = resources.files("alma.config").joinpath("defaults.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def _merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given keys over the defaults, section by section; an empty section stands for its defaults."""
    merged = dict(defaults)
    for key, value in given.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            merged[key] = _merged(below, value)
        elif not (value is None and isinstance(below, dict)):
            merged[key] = value
    return merged


def _sentence(problem: InvalidSettings) -> str:
    """The first thing that is wrong, with its key and the fix."""
    # A key that is missing may be the one that is written otherwise.
    first = min(problem.errors(include_url=False), key=lambda each: each["type"] == "missing")
    path = tuple(step for step in first["loc"] if step != "[key]")
    # A key itself may be wrong, which cannot be named by what it is.
    is_key = len(path) < len(first["loc"]) and len(path) > 1
    key = f"a name under {'.'.join(map(str, path[:-1]))}" if is_key else ".".join(map(str, path))
    match first["type"]:
        case "extra_forbidden":
            known = known_keys(section_at(path))
            return f"{key} is not known; {_suggestion(str(path[-1]), known if path[1:] else [*known, ROOT_KEY])}"
        case "missing":
            return f"{key} is missing; add it"
        case "enum":
            return f"{key} is {_shown(first['input'])}, which is not known; {_choice(first)}"
        case kind if kind == NOT_SHOWN:
            return f"{key} {first['msg']}"
        case "value_error":
            return f"{key} {first['ctx']['error']} (got {_shown(first['input'])})"
        case "string_pattern_mismatch":
            return f"{key} must be small letters, digits, - and _, not {_shown(first['input'])}"
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
    "dict_type": "a section with keys of its own",
    "model_type": "a section with keys of its own",
}
_OUT_OF_RANGE = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "{le:g} at most",
}


def _choice(problem: Any) -> str:
    """What may be chosen, and what was probably meant."""
    expected: str = problem["ctx"]["expected"]
    names = expected.replace(" or ", ", ").replace("'", "").split(", ")
    close = difflib.get_close_matches(str(problem["input"]).lower(), names, n=1)
    return f"did you mean {close[0]}? There are {expected}" if close else f"choose {expected}"


def _with_known_agents(settings: Settings) -> Settings:
    """The settings, if each agent stands there once and whoever shares or inherits does so with one of them."""
    known: dict[str, str] = {}
    for name in settings.agents:
        other = known.setdefault(same_name(name), name)
        if other != name:
            raise ConfigurationError(f"agents: {other!r} and {name!r} are one agent, whatever the case; remove one")
    for name, agent in settings.agents.items():
        for key in ("share_with", "inherit_from"):
            for other in getattr(agent, key):
                if same_name(other) not in known:
                    _require_no_slip(f"agents.{name}.{key}", other, known)
    return settings


def _require_no_slip(key: str, named: str, known: Mapping[str, str]) -> None:
    """A name that is nearly another's is a slip; what only ends otherwise, as agent_b does, may be one to come."""
    close = difflib.get_close_matches(same_name(named), list(known), n=1, cutoff=0.75)
    if close and close[0][:-1] != same_name(named)[:-1]:
        raise ConfigurationError(f"{key} names {named!r}, which is no agent here; did you mean {known[close[0]]}?")
    _LOG.warning("an agent is named that the configuration does not have", extra={"key": key, "named": named})


def _shown(value: Any) -> str:
    """The value as YAML writes it; what a reference stands for may be a secret."""
    match value:
        case Resolved():
            return "what a reference stands for"
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


def parsed(file: Path) -> Any:
    """What stands in the file."""
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
        raise ConfigurationError(f"{file} is not written in UTF-8, as line {line} shows; save it as such") from exc
    except OSError as exc:
        raise ConfigurationError(f"{file} cannot be read: {exc.strerror}") from exc
    except RecursionError:
        raise ConfigurationError(f"{file} is nested too deeply to be read") from None
    except yaml.YAMLError as exc:
        raise ConfigurationError(f"{file} is not valid YAML: {_problem(exc)}{_hint(exc)}") from exc
    except ValueError as exc:
        # A path with NUL in it, or a day that no calendar has.
        raise ConfigurationError(f"{str(file)!r} cannot be read: {exc}") from exc


def _problem(exc: yaml.YAMLError) -> str:
    """What is wrong and where; the line itself is not quoted, for a password may stand in it."""
    if isinstance(exc, yaml.reader.ReaderError):
        return f"it has a character that text does not have (number {exc.position + 1} of the file)"
    if not isinstance(exc, yaml.MarkedYAMLError):
        return " ".join(str(exc).split())
    steps = ((exc.context, exc.context_mark), (exc.problem, exc.problem_mark))
    said = ", ".join(f"{what}{_place(mark)}" for what, mark in steps if what)
    return said.replace("'<stream end>'", "the end of the file").replace("end of stream", "end of the file")


def _place(mark: Any) -> str:
    return "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"


def _hint(exc: yaml.YAMLError) -> str:
    """What to write for a reference that YAML takes for a mapping, as it does between brackets."""
    place = getattr(exc, "problem_mark", None)
    if place is None or place.buffer is None:
        return ""
    if place.buffer[place.pointer] == "\t":
        return "; write spaces where the tab stands"
    bare = _BARE.match(place.buffer, max(0, place.pointer - 1))
    return "" if bare is None else f"; put {bare[0]} in quotes"


_BARE = re.compile(r"\$\{[^}\n]*\}")


class _OnceEach(yaml.SafeLoader):
    """Reads YAML whose keys stand once; of two that are the same, one would be lost in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        known: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in known and name != "<<":
                raise ConfigurationError(
                    f"{name!r} stands twice in the same place, again in line {key.start_mark.line + 1}; remove one"
                )
            known.add(name)
        return super().construct_mapping(node, deep)
