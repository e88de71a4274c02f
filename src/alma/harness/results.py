"""What an executor returned, as a result: what it says of how it went is heard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from alma.errors import ValidationError, shown
from alma.harness.base import RunResult
from alma.learning.validation import parsed_outcome
from alma.model.common import checked_prose

_LONGEST_ERROR = 1_000
# Keys without case and underscores. How it went as such; a count of what passed does not say that.
_VERDICTS = ("success", "succeeded", "successful", "issuccess", "issuccessful", "ok", "isok")
_IN_WORDS = ("status", "outcome")
_ALL_PASSED = ("passed", "ispassed", "haspassed", "worked")
_FAILED = ("failed", "failure", "failures", "isfailure", "hasfailed", "iserror")
_ERRORS = ("error", "errors", "errormessage", "exception")
_EXIT_CODES = ("returncode", "exitcode", "exitstatus")
# What a program writes there is its error only if it failed.
_ERRORS_OF_FAILURES = ("stderr",)
_HEARD = frozenset((*_VERDICTS, *_ALL_PASSED, *_FAILED, *_ERRORS, *_EXIT_CODES, *_ERRORS_OF_FAILURES))
# "No" or "error" may be the answer to what was asked; these say how the run went.
_WORDS_OF_FAILURE = ("failure", "failed")
_NO_ERROR = ("", "none", "null", "no", "no error", "no errors", "n/a", "false", "0")


def result_of(returned: Any) -> RunResult:
    """The result of a run: a `RunResult`, a bool, a bool and what came out, a dictionary or an object that says how it
    went, an error, or what came out."""
    if isinstance(returned, RunResult):
        return replace(returned, success=returned.error is None) if returned.success is None else returned
    if _is_bool(returned):
        return RunResult(success=bool(returned), output=returned)
    if isinstance(returned, Mapping):
        return _told(returned, returned)
    if isinstance(returned, tuple) and _begins_with_verdict(returned):
        success, output = bool(returned[0]), returned[1] if len(returned) == 2 else returned[1:]
        return RunResult(success=success, output=output, error=None if success else _error(output))
    if isinstance(returned, Exception):
        return RunResult(success=False, output=returned, error=_error(returned), exception=returned)
    if _says_it_failed(returned):
        return RunResult(success=False, output=returned)
    return _told(_heard(returned), returned)


def told_error(exc: Exception) -> str:
    """What an error says, behind its type."""
    said = _error(_in_text(exc))
    return f"{type(exc).__name__}: {said}" if said else type(exc).__name__


def _is_bool(value: Any) -> bool:
    # A bool of NumPy is none of Python's.
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _begins_with_verdict(returned: tuple[Any, ...]) -> bool:
    """Whether a bool stands in front of what came out; several bools are what came out themselves."""
    first, *others = returned or (None,)
    return _is_bool(first) and (len(others) == 1 or (len(others) > 1 and not any(map(_is_bool, others))))


def _says_it_failed(returned: Any) -> bool:
    """Whether the word that is returned, or the member of an enumeration, says how the run went."""
    if isinstance(returned, Enum):
        return _verdict(returned) is False
    return isinstance(returned, str) and returned.strip(" .!\n").casefold() in _WORDS_OF_FAILURE


def _heard(returned: Any) -> Mapping[str, Any]:
    """What an object that is no dictionary says of how it went, as the result of a subprocess or of a request does."""
    names = (name for name in dir(returned) if _spelled(name) in _HEARD)
    values = {name: _attribute(returned, name) for name in names}
    return {name: value for name, value in values.items() if _is_bool(value) or isinstance(value, _SAYING)}


# Neither methods, nor the columns of tables, which may have any name.
_SAYING = (int, str, bytes, list, tuple, Exception)


def _attribute(returned: Any, name: str) -> Any:
    try:
        return getattr(returned, name)
    except Exception:  # noqa: BLE001 - what cannot be read says nothing
        return None


def _spelled(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _told(said: Mapping[Any, Any], output: Any) -> RunResult:
    told = {_spelled(key): value for key, value in said.items() if isinstance(key, str)}
    error = _first_error(told, _ERRORS) or _unclear(told)
    success = _success(told, error)
    return RunResult(
        success=success,
        output=output,
        strategy_used=told_text(told.get("strategyused")) or told_text(told.get("strategy")),
        error=None if success else error or _first_error(told, _ERRORS_OF_FAILURES),
        feedback=told_text(told.get("feedback")),
        tools_used=_texts(told.get("toolsused")),
    )


def _first_error(told: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((text for name in names if (text := _error(told.get(name))) is not None), None)


def _success(told: Mapping[str, Any], error: str | None) -> bool:
    """What it says itself comes first, and one "no" is enough; then whether there is an error."""
    said = [verdict for name in _VERDICTS if (verdict := _verdict(told.get(name))) is not None]
    said += [verdict for name in _IN_WORDS if (verdict := _in_words(told.get(name))) is not None]
    said += [bool(told[name]) for name in _ALL_PASSED if _is_bool(told.get(name))]
    said += [not told[name] for name in _FAILED if _is_bool(told.get(name))]
    said += [not told[name] for name in _EXIT_CODES if isinstance(told.get(name), int)]
    # So many failed; that none did says nothing of what else may have happened.
    said += [False for name in _FAILED if not _is_bool(told.get(name)) and _error(told.get(name)) is not None]
    return all(said) if said else error is None


def _unclear(told: Mapping[str, Any]) -> str | None:
    """What is said of how it went, where that is neither success nor failure: nobody may take it for a success."""
    said = {name: told[name] for name in _VERDICTS if told.get(name) is not None}
    unclear = next((name for name, value in said.items() if _verdict(value) is None), None)
    return None if unclear is None else f"{unclear} is {shown(said[unclear])}, which is neither success nor failure"


def _verdict(value: Any) -> bool | None:
    try:
        return parsed_outcome(value)
    except ValidationError:
        return None


def _in_words(value: Any) -> bool | None:
    """A verdict in words; a number may be any code."""
    return _verdict(value) if isinstance(value, str | bool) else None


def _error(value: Any) -> str | None:
    """The error that a value tells of, if it does."""
    if isinstance(value, Mapping):
        value = value.get("message") or (dict(value) or None)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        value = "; ".join(filter(None, map(_error, value)))
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if value is None or value is False:
        return None
    told = _in_text(value).strip() or (type(value).__name__ if isinstance(value, Exception) else "")
    if told.casefold() in _NO_ERROR:
        return None
    # An error says what it says, with or without signs that no text may have.
    readable = "".join(sign if sign.isprintable() else " " for sign in told)
    return told_text(" ".join(readable.split())[:_LONGEST_ERROR]) or "an error"


def _in_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - what is of anybody's making may be unable to say what it is
        return ""


def told_text(value: Any) -> str | None:
    """A text that can be remembered."""
    try:
        return checked_prose("run result", "text", value).strip() or None
    except ValidationError:
        return None


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return tuple(text for each in listed if (text := told_text(each)) is not None)
