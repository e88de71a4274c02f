"""The command line tools of the tasks in `agent_tasks.py`: each has conventions that only its error messages tell.

The file is copied into the folder of a task under the name of each tool, and imports nothing but the standard library.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

DONE = "done.json"
DATABASE = "orders.db"
TABLE = "ord_v2(cust, amt_ct, void)"

SITES = {"Oslo": "osl3", "Lyon": "lys1", "Turin": "trn2"}
PRIORITIES = {"urgent": "P1", "soon": "P2", "some day": "P3"}


class Refused(Exception):
    """The arguments do not follow the convention; the message says which."""


def stock(*given: str) -> list[str]:
    """Move pieces to a bin."""
    plain = [each for each in given if each != "--pallet"]
    if len(plain) != 4 or plain[0] != "move":
        raise Refused("to move 4 nails to bin 3 in hall A, write: stock move nail 4 A-03")
    _, item, count, place = plain
    if not re.fullmatch(r"[A-Z]-\d\d", place):
        raise Refused("to move 4 nails to bin 3 in hall A, write: stock move nail 4 A-03")
    if not count.isdigit():
        raise Refused(f"no count {count!r}")
    if int(count) > 9 and "--pallet" not in given:
        raise Refused(
            "to move more than 9, such as 12 nails to bin 3 in hall A, write: stock move nail 12 A-03 --pallet"
        )
    return [item, count, place]


def ship(*given: str) -> list[str]:
    """Put a version of a service on a site."""
    listed = ", ".join(f"{city} is {code}" for city, code in SITES.items())
    if len(given) != 2 or not re.fullmatch(r"[a-z]+@[\d.]+", given[0]) or given[1] not in SITES.values():
        raise Refused(f"to ship version 1.0.2 of web to Oslo, write: ship web@1.0.2 osl3 ({listed})")
    return [*given]


def book(*given: str) -> list[str]:
    """Book a room."""
    written = len(given) == 4 and re.fullmatch(r"\d\d\.\d\d \d\dh\d\d \d+", " ".join(given[1:]))
    if not written:
        raise Refused("to book the room ash on 9 May at 7:30 for 20 minutes, write: book ash 09.05 07h30 20")
    return [*given]


def cfg(*given: str) -> list[str]:
    """Set a value of a service."""
    if len(given) != 1 or not re.fullmatch(r"[a-z]+/[a-z]+=\d+[sM]", given[0]):
        raise Refused("to set the retry of web to 4 seconds, write: cfg web/retry=4s (4 megabytes is 4M)")
    return [*given]


def note(*given: str) -> list[str]:
    """Report what is wrong with a machine."""
    if len(given) != 3 or not re.fullmatch(r"P[1-3] [a-z]+-\d+", " ".join(given[:2])):
        listed = ", ".join(f"{word} is {code}" for word, code in PRIORITIES.items())
        raise Refused(f"to report that fan number 3 is broken, soon, write: note P2 fan-3 broken ({listed})")
    return [*given]


def sql(*given: str) -> None:
    """Print the rows of a query in double quotes."""
    try:
        with closing(sqlite3.connect(DATABASE)) as connection:
            for row in connection.execute(" ".join(given)).fetchmany(20):
                print("|".join(str(each) for each in row))
    except sqlite3.Error as error:
        raise Refused(f"{error}; the only table is {TABLE}") from None


TOOLS: dict[str, Callable[..., Sequence[str] | None]] = {
    "stock": stock,
    "ship": ship,
    "book": book,
    "cfg": cfg,
    "note": note,
    "sql": sql,
}


def main(arguments: Sequence[str]) -> int:
    """Run the tool that the file is named after, and keep what it did."""
    name = Path(arguments[0]).name
    try:
        did = TOOLS[name](*arguments[1:])
    except Refused as refused:
        print(f"{name}: {refused}", file=sys.stderr)
        return 2
    if did is not None:
        Path(DONE).write_text(json.dumps([name, *did]))
        print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
