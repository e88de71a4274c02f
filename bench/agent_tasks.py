"""Tasks for an agent in a shell, in families that repeat with other values, checked by what their commands did."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_tools import DATABASE, DONE, PRIORITIES, SITES, TABLE, TOOLS

TOOLS_SAID = "\n".join(f"{name} … - {(tool.__doc__ or '').rstrip('.').lower()}" for name, tool in TOOLS.items())
_COMMANDS = ("cat", "grep", "head", "ls", "sort", "wc")
_SECONDS, _MOST_OUTPUT = 10.0, 300
_CUSTOMERS = ("Lind", "Okafor", "Moreau")
_MONTHS = ("January", "February", "March", "April", "May", "June")


@dataclass(frozen=True, slots=True)
class Task:
    """A task, what its commands must do or print, and a command line that solves it."""

    family: str
    text: str
    solution: str
    did: tuple[str, ...] = ()
    prints: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a command did: whether the task is solved, and what the agent is told."""

    solved: bool
    said: str


def tasks(seed: int, each: int) -> list[Task]:
    """This number of tasks of each family, in random order."""
    chance = random.Random(seed)
    made = [family(chance) for family in _FAMILIES for _ in range(each)]
    chance.shuffle(made)
    return made


def _stock(chance: random.Random) -> Task:
    item, hall = chance.choice(("bolt", "valve", "gasket", "spring")), chance.choice("ABCDE")
    count, number = chance.randint(2, 30), chance.randint(1, 9)
    place = f"{hall}-{number:02}"
    pallet = " --pallet" if count > 9 else ""
    text = f"Move {count} pieces of the item {item} to bin {number} in hall {hall} of the warehouse."
    return Task("stock", text, f"stock move {item} {count} {place}{pallet}", ("stock", item, str(count), place))


def _ship(chance: random.Random) -> Task:
    service, city = chance.choice(("billing", "search", "mailer", "login")), chance.choice(list(SITES))
    version = f"{chance.randint(1, 4)}.{chance.randint(0, 9)}.{chance.randint(0, 9)}"
    target = (f"{service}@{version}", SITES[city])
    return Task(
        "ship", f"Ship version {version} of {service} to {city}.", " ".join(("ship", *target)), ("ship", *target)
    )


def _book(chance: random.Random) -> Task:
    room, day, month = chance.choice(("elm", "oak", "fir")), chance.randint(1, 28), chance.randint(1, 6)
    hour, minute, long = chance.randint(8, 16), chance.choice((0, 15, 30)), chance.choice((30, 45, 60))
    said = f"Book the room {room} on {day} {_MONTHS[month - 1]} at {hour}:{minute:02} for {long} minutes."
    did = (room, f"{day:02}.{month:02}", f"{hour:02}h{minute:02}", str(long))
    return Task("book", said, " ".join(("book", *did)), ("book", *did))


def _cfg(chance: random.Random) -> Task:
    service, value = chance.choice(("billing", "search", "mailer", "login")), chance.randint(5, 90)
    key, unit, letter = chance.choice((("timeout", "seconds", "s"), ("cache", "megabytes", "M")))
    did = f"{service}/{key}={value}{letter}"
    return Task("cfg", f"Set the {key} of the service {service} to {value} {unit}.", f"cfg {did}", ("cfg", did))


def _note(chance: random.Random) -> Task:
    machine, number = chance.choice(("pump", "press", "lift")), chance.randint(1, 9)
    fault, word = chance.choice(("leaking", "stuck", "noisy")), chance.choice(list(PRIORITIES))
    did = (PRIORITIES[word], f"{machine}-{number}", fault)
    text = f"Report that {machine} number {number} is {fault}; it is to be mended {word}."
    return Task("note", text.replace("mended urgent", "mended, urgent"), " ".join(("note", *did)), ("note", *did))


def _sql(chance: random.Random) -> Task:
    customer = chance.choice(_CUSTOMERS)
    amounts = [each for name, each, void in _orders() if name == customer and not void]
    what, value, chosen = chance.choice(
        (
            ("total amount in euros", sum(amounts) // 100, "SUM(amt_ct)/100"),
            ("largest amount in euros", max(amounts) // 100, "MAX(amt_ct)/100"),
            ("number", len(amounts), "COUNT(*)"),
        )
    )
    query = f"SELECT {chosen} FROM {TABLE.partition('(')[0]} WHERE cust='{customer}' AND void=0"
    text = f"Print the {what} of the orders of the customer {customer} from the database."
    hint = "amt_ct is in cents, and orders with void=1 do not count"
    return Task("sql", text, f'sql "{query}"', prints=str(value), hint=hint)


_FAMILIES: tuple[Callable[[random.Random], Task], ...] = (_stock, _ship, _book, _cfg, _note, _sql)


def _orders() -> Iterator[tuple[str, int, int]]:
    chance = random.Random(1)
    for number in range(30):
        yield _CUSTOMERS[number % 3], chance.randint(2, 90) * 100, int(chance.random() < 0.3)


# ---------------------------------------------------------------------- the shell


class Shell:
    """A restricted shell in a folder of its own, in which only the tools and a few readers can be run."""

    def __init__(self, folder: Path, task: Task) -> None:
        self._folder, self._task = folder, task
        self._bin = folder / "bin"
        self._bin.mkdir()
        source = Path(__file__).with_name("agent_tools.py").read_text()
        for name in TOOLS:
            tool = self._bin / name
            tool.write_text(f"#!{sys.executable} -IS\n{source}")
            tool.chmod(0o755)
        for name in _COMMANDS:
            (self._bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
            connection.execute(f"CREATE TABLE {TABLE}")
            connection.executemany("INSERT INTO ord_v2 VALUES (?, ?, ?)", _orders())

    def run(self, command: str) -> Seen:
        """Run a command line, and check what it did."""
        environment = {"PATH": str(self._bin), "HOME": str(self._folder)}
        try:
            ran = subprocess.run(
                ["bash", "-r", "-c", command],
                executable=shutil.which("bash"),
                cwd=self._folder,
                env=environment,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except (subprocess.TimeoutExpired, ValueError) as error:
            return Seen(False, f"the command failed: {type(error).__name__}")
        said = ran.stdout.decode(errors="replace").strip().replace(f"{self._folder}/", "")[:_MOST_OUTPUT]
        said = said.removeprefix("bash: line 1: ")
        return Seen(*self._checked(said, ran.returncode))

    def _checked(self, said: str, code: int) -> tuple[bool, str]:
        if self._task.prints:
            if said.removesuffix(".0") == self._task.prints:
                return True, said
            return False, said if code else f"{said}\nThat is not the right answer: {self._task.hint}."
        did = self._folder / DONE
        if not did.exists():
            return False, said if code else f"{said}\nThe task is not done yet."
        if tuple(json.loads(did.read_text())) == self._task.did:
            return True, said
        did.unlink()
        return False, "That did something else than the task says."


@contextmanager
def shell(task: Task) -> Iterator[Shell]:
    """A shell for a task in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="alma-agent-") as folder:
        yield Shell(Path(folder), task)


def solved_alone(made: Sequence[Task]) -> list[bool]:
    """Whether the known solution of each task passes its check."""
    results = []
    for task in made:
        with shell(task) as each:
            results.append(each.run(task.solution).solved)
    return results
