"""Call a constructor with options from a user; mistakes become one sentence that names the option and the fix."""

from __future__ import annotations

import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from alma.errors import ConfigurationError
from alma.model.secret import Secret

T = TypeVar("T")

_TYPE_NAMES: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
    Secret: ((str, Secret), "text"),
    os.PathLike: ((str, os.PathLike), "a path"),
    types.NoneType: ((types.NoneType,), "None"),
}
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")


def construct(cls: Callable[..., T], what: str, options: Mapping[str, Any]) -> T:
    """Call the class with the options; error messages call it `what`."""
    parameters = inspect.signature(cls).parameters
    known = [name for name, each in parameters.items() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    takes_others = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None and not takes_others:
        raise _unknown_option(unknown, what, known)
    missing = [name for name in known if parameters[name].default is inspect.Parameter.empty and name not in options]
    if missing:
        raise ConfigurationError(f"{what} cannot be made without {missing[0]}: give {missing[0]}=…")
    _check_types(cls, what, options)
    try:
        return cls(**options)
    except TypeError as exc:
        # A store opened inside the constructor may take fewer options than the constructor itself.
        if (found := _UNEXPECTED.search(str(exc))) is not None:
            raise _unknown_option(found[1], what, known) from exc
        raise ConfigurationError(f"the options of {what} are invalid: {exc}") from exc


def _unknown_option(name: str, what: str, known: list[str]) -> ConfigurationError:
    others = f", or choose {', '.join(known)}" if known else ""
    return ConfigurationError(f"unknown option {name!r} of {what}: leave it out{others}")


def _check_types(cls: Callable[..., Any], what: str, options: Mapping[str, Any]) -> None:
    try:
        typed = inspect.signature(cls, eval_str=True).parameters
    except NameError:
        return
    for name, value in options.items():
        expected = _expected_types(typed[name].annotation) if name in typed else None
        if expected is not None and not _matches(value, expected):
            names = " or ".join(dict.fromkeys(name for _, name in expected))
            raise ConfigurationError(f"{name} of {what} must be {names}, not {type(value).__name__}")


def _matches(value: object, expected: list[tuple[tuple[type, ...], str]]) -> bool:
    kinds = {kind for some, _ in expected for kind in some}
    # bool is a subclass of int, but True is not a number to a user.
    return isinstance(value, tuple(kinds)) and (not isinstance(value, bool) or bool in kinds)


def _expected_types(hint: Any) -> list[tuple[tuple[type, ...], str]] | None:
    """The types that an annotation accepts, with their names; None if one of them is not checked."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    found = [_TYPE_NAMES.get(typing.get_origin(part) or part) for part in parts]
    return None if None in found else [each for each in found if each is not None]
