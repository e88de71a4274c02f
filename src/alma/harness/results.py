"""What an executor returned, as a result: what it says of how it went is heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
_FAILED = ("failed", "failure", "isfailure", "hasfailed", "iserror")
_ERRORS = ("error", "errors", "errormessage", "exception")
_EXIT_CODES = ("returncode", "exitcode", "exitstatus")
_NO_ERROR = ("", "none", "null", "no", "no error", "no errors", "n/a", "false", "0")


def result_of(returned: Any) -> RunResult:
    """The result of a run: a `RunResult`, a bool, a bool and what came out, a dictionary that says how it went, an
    error, or what came out."""
    if isinstance(returned, RunResult):
        return replace(returned, success=returned.error is None) if returned.success is None else returned
    if isinstance(returned, bool):
        return RunResult(success=returned, output=returned)
    if isinstance(returned, Mapping):
        return _told(returned)
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[0], bool):
        success, output = returned
        return RunResult(success=success, output=output, error=None if success else _error(output))
    if isinstance(returned, Exception):
        return RunResult(success=False, output=returned, error=_error(returned), exception=returned)
    return RunResult(success=True, output=returned)


def _told(returned: Mapping[Any, Any]) -> RunResult:
    told = {
        key.casefold().replace("_", "").replace("-", ""): value
        for key, value in returned.items()
        if isinstance(key, str)
    }
    error = next((text for name in _ERRORS if (text := _error(told.get(name))) is not None), _unclear(told))
    success = _success(told, error)
    return RunResult(
        success=success,
        output=returned,
        strategy_used=told_text(told.get("strategyused")) or told_text(told.get("strategy")),
        error=None if success else error,
        feedback=told_text(told.get("feedback")),
        tools_used=_texts(told.get("toolsused")),
    )


def _success(told: Mapping[str, Any], error: str | None) -> bool:
    """What it says itself comes first, and one "no" is enough; then whether there is an error."""
    said = [verdict for name in _VERDICTS if (verdict := _verdict(told.get(name))) is not None]
    said += [verdict for name in _IN_WORDS if (verdict := _in_words(told.get(name))) is not None]
    said += [told[name] for name in _ALL_PASSED if isinstance(told.get(name), bool)]
    said += [not told[name] for name in _FAILED if isinstance(told.get(name), bool)]
    said += [not told[name] for name in _EXIT_CODES if isinstance(told.get(name), int)]
    # So many failed; that none did says nothing of what else may have happened.
    said += [False for name in _FAILED if not isinstance(told.get(name), bool) and _error(told.get(name)) is not None]
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
    if value is None or value is False:
        return None
    told = str(value).strip() or (type(value).__name__ if isinstance(value, Exception) else "")
    return None if told.casefold() in _NO_ERROR else told_text(" ".join(told.split())[:_LONGEST_ERROR]) or "an error"


def told_text(value: Any) -> str | None:
    """A text that can be remembered."""
    try:
        return checked_prose("run result", "text", value).strip() or None
    except ValidationError:
        return None


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return tuple(text for each in listed if (text := told_text(each)) is not None)
