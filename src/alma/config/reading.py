"""Reading a configuration file: what its YAML says, or one sentence about why it cannot be read, and where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from alma.errors import ConfigurationError


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
