"""Doing several things at the same time, in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable


def together(*work: Callable[[], object]) -> list[BaseException]:
    """Run all of it at once, wait for the end, and return what was raised."""
    raised: list[BaseException] = []

    def guarded(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as exc:  # noqa: BLE001 - the caller asserts on it
            raised.append(exc)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in work]
    _run(threads)
    return raised


def _run(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
