"""Fitting: an object made from options that a person wrote, or one sentence that names the option and the fix."""

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

Made = TypeVar("Made")

_WORDS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
    Secret: ((str, Secret), "text"),
    os.PathLike: ((str, os.PathLike), "a path"),
    types.NoneType: ((types.NoneType,), "None"),
}
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")


def made(cls: Callable[..., Made], what: str, options: Mapping[str, Any]) -> Made:
    """What the class makes of the options; `what` is how a person calls it."""
    parameters = inspect.signature(cls).parameters
    known = [name for name, each in parameters.items() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    takes_others = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None and not takes_others:
        raise _no_option(unknown, what, known)
    missing = [name for name in known if parameters[name].default is inspect.Parameter.empty and name not in options]
    if missing:
        raise ConfigurationError(f"{what} cannot be made without {missing[0]}: give {missing[0]}=…")
    _check_types(cls, what, options)
    try:
        return cls(**options)
    except TypeError as exc:
        # A store that is opened on the way may know less options than it was asked for.
        if (found := _UNKNOWN.search(str(exc))) is not None:
            raise _no_option(found[1], what, known) from exc
        raise ConfigurationError(f"the options of {what} do not fit: {exc}") from exc


def _no_option(name: str, what: str, known: list[str]) -> ConfigurationError:
    others = f", or choose {', '.join(known)}" if known else ""
    return ConfigurationError(f"{name!r} is no option of {what}: leave it out{others}")


def _check_types(cls: Callable[..., Any], what: str, options: Mapping[str, Any]) -> None:
    try:
        typed = inspect.signature(cls, eval_str=True).parameters
    except NameError:
        return
    for name, value in options.items():
        wanted = _words_of(typed[name].annotation) if name in typed else None
        if wanted is not None and not _fits(value, wanted):
            said = " or ".join(dict.fromkeys(words for _, words in wanted))
            raise ConfigurationError(f"{name} of {what} must be {said}, not {type(value).__name__}")


def _fits(value: object, wanted: list[tuple[tuple[type, ...], str]]) -> bool:
    kinds = {kind for some, _ in wanted for kind in some}
    # True and False are numbers to Python alone.
    return isinstance(value, tuple(kinds)) and (not isinstance(value, bool) or bool in kinds)


def _words_of(hint: Any) -> list[tuple[tuple[type, ...], str]] | None:
    """How the types of an option are called; None where there are others than those that people write."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    found = [_WORDS.get(typing.get_origin(part) or part) for part in parts]
    return None if None in found else [each for each in found if each is not None]
