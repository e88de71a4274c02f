"""Which functions of ALMA a call passes through: counted by Python's own profiler hook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import alma

PACKAGE = str(Path(alma.__file__).parent)
# Comprehensions and generator expressions belong to the function they stand in.
INLINE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")


@dataclass(frozen=True)
class Walk:
    """The files and functions of `alma` that were entered, and how deep they were nested."""

    files: tuple[str, ...]
    functions: tuple[str, ...]
    depth: int

    def __str__(self) -> str:
        return f"{len(self.files)} files, {len(self.functions)} functions, {self.depth} deep"


def walk(call: Callable[[], object]) -> Walk:
    """Run the call and report what it passed through, in all threads that it starts."""
    seen: set[CodeType] = set()
    depths: list[int] = [0]

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name in INLINE:
            return
        seen.add(code)
        depths.append(_depth(frame))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {_inside(code.co_filename) for code in seen}
    functions = {f"{_inside(code.co_filename)}:{code.co_qualname}" for code in seen}
    return Walk(tuple(sorted(files)), tuple(sorted(functions)), max(depths))


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        depth += frame.f_code.co_filename.startswith(PACKAGE)
        frame = frame.f_back
    return depth


def _inside(filename: str) -> str:
    return str(Path(filename).relative_to(PACKAGE))
