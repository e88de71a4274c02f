"""Signals about the outcome of a task, from the tools of an agent and the next prompt of a user."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from alma.benefit.log import is_same_task
from alma.benefit.reactions import reaction_in
from alma.lazy import lazy_regex

EXIT_STATUS, TEST_RESULTS = "exit-status", "test-results"

_COMMAND_END = lazy_regex(r"[;\n]")
_PROGRAM_WORDS, _COMMAND_WORDS = 5, 4


class Signal(NamedTuple):
    """A signal by its name, and whether it indicates a success."""

    name: str
    success: bool


@cache
def _words() -> Mapping[str, Sequence[str]]:
    return tomllib.loads(files("alma.benefit").joinpath("signals.toml").read_text(encoding="utf-8"))


def signal_of(command: str) -> str:
    """The signal that the exit status of a command is: test results, or an exit status alone."""
    # The status is that of the last command, of a pipeline that of its last program, and of a && b that of both.
    last = _COMMAND_END.split(command.strip())[-1]
    parts = (each.rpartition("|")[2] for each in last.split("&&") if "||" not in each)
    return TEST_RESULTS if any(map(_runs_tests, parts)) else EXIT_STATUS


def _runs_tests(part: str) -> bool:
    known = _words()
    words = [word.rpartition("/")[2] for word in part.split() if "=" not in word][:_PROGRAM_WORDS]
    if not words or not set(words).isdisjoint(known["others"]):
        return False
    is_build = words[0] in known["builders"] and any(
        re.match(r"tests?\b", word) is not None for word in words[1:_COMMAND_WORDS]
    )
    return is_build or not set(words).isdisjoint(known["runners"])


def reaction_to(task: str, prompt: str) -> Signal | None:
    """The signal in the prompt after a task: a retry, a correction or thanks; None for anything else."""
    if is_same_task(task, prompt):
        return Signal("retry", success=False)
    reaction = reaction_in(prompt)
    return None if reaction is None else Signal(reaction, success=reaction == "thanks")
