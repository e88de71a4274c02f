"""An agent with a real language model solves families of tasks without memory, with transcripts and with ALMA.

    python bench/agent.py --gguf model.gguf                      # a file of weights, on one core
    python bench/agent.py --endpoint http://127.0.0.1:11434/v1 --model qwen2.5-coder:1.5b

The agent answers with a command line, which runs in a restricted shell in a temporary folder, and may try again when
its check fails. The tools have conventions that only their error messages tell, so what one task finds out helps the
next of its family. All agents get the same tasks in the same order, and as many tokens of memory.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).parent.parent))

from agent_tasks import TOOLS_SAID, Task, shell, solved_alone, tasks
from alma import ALMA
from alma.llm.base import LanguageModel, Message
from alma.llm.openai import OpenAIModel
from alma.tokens import count_tokens

AGENT = "clerk"
_ANSWER_TOKENS = 60
_SYSTEM = (
    "You solve each task with one command line, which begins with one of these tools.\n"
    f"{TOOLS_SAID}\nAnswer with the command line only."
)
_Z = 1.96
_RESAMPLES = 2_000


class Memory(Protocol):
    """What the agent knows of earlier tasks."""

    def before(self, task: Task) -> str:
        """What to show the model before a task."""

    def after(self, task: Task, tried: Sequence[tuple[str, str]], *, solved: bool) -> None:
        """Keep the commands that were tried and what each returned."""


class Nothing:
    """No memory."""

    def before(self, _: Task) -> str:
        """Nothing."""
        return ""

    def after(self, _: Task, __: Sequence[tuple[str, str]], *, solved: bool) -> None:
        """Keep nothing."""


class Transcripts:
    """All transcripts, of which those that share the most words with the task (BM25) are shown."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._rows = sqlite3.connect(":memory:")
        self._rows.execute("CREATE VIRTUAL TABLE transcript USING fts5(text)")

    def before(self, task: Task) -> str:
        """The best transcripts, as many as there is room for."""
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", task.text))
        found = self._rows.execute(
            "SELECT text FROM transcript WHERE transcript MATCH ? ORDER BY rank, rowid DESC LIMIT 5", (words,)
        )
        shown: list[str] = []
        for line in "\n\n".join(text for (text,) in found).split("\n"):
            if count_tokens("\n".join([*shown, line])) > self._budget:
                break
            shown.append(line)
        return "\n".join(shown).strip()

    def after(self, task: Task, tried: Sequence[tuple[str, str]], *, solved: bool) -> None:
        """Keep the whole transcript."""
        lines = [f"Task: {task.text}", *(f"$ {command}\n{said}" for command, said in tried)]
        lines.append("Solved." if solved else "Not solved.")
        self._rows.execute("INSERT INTO transcript VALUES (?)", ("\n".join(lines),))


class Alma:
    """ALMA in its default configuration: each task is an outcome, verified by its check."""

    def __init__(self, budget: int, store: Path) -> None:
        self._budget = budget
        self._alma = ALMA.quickstart(store)

    def before(self, task: Task) -> str:
        """What ALMA retrieves for the task."""
        return self._alma.retrieve(task.text, AGENT).to_prompt(max_tokens=self._budget)

    def after(self, task: Task, tried: Sequence[tuple[str, str]], *, solved: bool) -> None:
        """Learn what the last command came to."""
        command, said = tried[-1]
        error = None if solved else said
        self._alma.learn(AGENT, task.text, solved, command, error_message=error, verified_by="tests")

    def close(self) -> None:
        """Close the store."""
        self._alma.close()


@dataclass(frozen=True, slots=True)
class Result:
    """How one agent did on one task."""

    memory: str
    family: str
    seen_before: int
    solved: bool
    commands: int
    input_tokens: int
    output_tokens: int
    seconds: float
    memory_seconds: float
    task: str
    tried: tuple[tuple[str, str], ...]


def solve(llm: LanguageModel, name: str, memory: Memory, task: Task, seen_before: int, most: int) -> Result:
    """Let the model try a task, and let its memory learn from what happened."""
    started = time.perf_counter()
    known = memory.before(task)
    spent = time.perf_counter() - started
    request = f"Task: {task.text}\nCommand:"
    shown = f"{known}\n\n" if known else ""
    messages = [Message("system", _SYSTEM), Message("user", f"{shown}{request}")]
    tried: list[tuple[str, str]] = []
    sent = answered = 0
    solved = False
    with shell(task) as folder:
        while not solved and len(tried) < most:
            answer = llm.complete(messages, max_tokens=_ANSWER_TOKENS)
            sent += answer.input_tokens or 0
            answered += answer.output_tokens or 0
            command = command_of(answer.text)
            seen = folder.run(command)
            solved = seen.solved
            tried.append((command, seen.said))
            failed = "\n".join(dict.fromkeys(said for _, said in tried))
            again = f"{shown}An attempt failed with this message:\n{failed}\n\n{request}"
            messages[1:] = [Message("user", again)]
    keeping = time.perf_counter()
    memory.after(task, tried, solved=solved)
    ended = time.perf_counter()
    return Result(
        name,
        task.family,
        seen_before,
        solved,
        len(tried),
        sent,
        answered,
        ended - started,
        spent + ended - keeping,
        task.text,
        tuple(tried),
    )


def command_of(answer: str) -> str:
    """The first command line in an answer, which may be in a code block or after a prompt sign."""
    lines = [line.strip().strip("`").removeprefix("$ ").strip() for line in answer.splitlines()]
    return next((line for line in lines if line and line not in {"bash", "sh", "shell", "sql"}), "")


# ---------------------------------------------------------------------- the report


def wilson(good: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a rate."""
    if not of:
        return 0.0, 1.0
    rate, spread = good / of, _Z * _Z / of
    middle = (rate + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(rate * (1 - rate) / of + spread / (4 * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def difference(one: Sequence[Result], other: Sequence[Result]) -> tuple[float, float, float]:
    """How much more often the first solved the same tasks, with the 95 % interval of a bootstrap over the tasks."""
    gains = [int(a.solved) - int(b.solved) for a, b in zip(one, other, strict=True)]
    chance = random.Random(0)
    means = sorted(statistics.fmean(chance.choices(gains, k=len(gains))) for _ in range(_RESAMPLES))
    return statistics.fmean(gains), means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


def table(results: Sequence[Result]) -> Iterator[str]:
    """The lines of the table, one for each memory."""
    by_name = {
        name: [each for each in results if each.memory == name] for name in dict.fromkeys(r.memory for r in results)
    }
    yield (
        "| memory | solved | of tasks whose family came before | at the first command | against none "
        "| commands | tokens in · out | s a task | s of it memory |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    first = next(iter(by_name.values()))
    for name, rows in by_name.items():
        later = [each for each in rows if each.seen_before]
        gain = difference(rows, first)
        against = "–" if rows is first else f"{gain[0]:+.0%} ({gain[1]:+.0%} to {gain[2]:+.0%})"
        mean = {
            field: statistics.fmean(getattr(each, field) for each in rows)
            for field in ("commands", "input_tokens", "output_tokens", "seconds", "memory_seconds")
        }
        yield (
            f"| {name} | {_share(rows)} | {_share(later)} | {_share(rows, first_try=True)} | {against} "
            f"| {mean['commands']:.1f} | {mean['input_tokens']:.0f} · {mean['output_tokens']:.0f} "
            f"| {mean['seconds']:.1f} | {mean['memory_seconds']:.2f} |"
        )


def _share(rows: Sequence[Result], *, first_try: bool = False) -> str:
    good = sum(each.solved and (each.commands == 1 or not first_try) for each in rows)
    low, high = wilson(good, len(rows))
    return f"{good} of {len(rows)} ({low:.0%}–{high:.0%})"


# ---------------------------------------------------------------------- the run


@contextmanager
def model(arguments: argparse.Namespace) -> Iterator[LanguageModel]:
    """The language model at an endpoint, or one that is started from a file."""
    if arguments.endpoint:
        with OpenAIModel(arguments.key, arguments.model, arguments.endpoint, timeout_seconds=600) as llm:
            yield llm
        return
    from tests.support.tiny_model import TinyModel

    with (
        TinyModel(arguments.gguf) as server,
        OpenAIModel("", "local", f"{server.url}/v1", timeout_seconds=600) as llm,
    ):
        yield llm


def run(llm: LanguageModel, arguments: argparse.Namespace, show: Callable[[str], None]) -> list[Result]:
    """Give all agents the same tasks, in turns, until the tasks or the minutes end."""
    ends = time.monotonic() + 60 * arguments.minutes
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="alma-agent-") as folder:
        alma = Alma(arguments.budget, Path(folder) / "alma.db")
        memories: dict[str, Memory] = {"none": Nothing(), "transcripts": Transcripts(arguments.budget), "ALMA": alma}
        met: dict[str, int] = {}
        for number, task in enumerate(tasks(arguments.seed, arguments.each), 1):
            if time.monotonic() > ends:
                show(f"the time is over after {number - 1} tasks")
                break
            before = met.get(task.family, 0)
            done = [solve(llm, name, each, task, before, arguments.commands) for name, each in memories.items()]
            met[task.family] = before + 1
            results += done
            said = ", ".join(f"{r.memory} {r.commands if r.solved else 'failed'}" for r in done)
            show(f"{number} {task.family}: {said}")
        alma.close()
    return results


def main() -> int:
    """Run the tasks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, help="a file of weights; without it and an endpoint, SmolLM2 135M")
    parser.add_argument("--endpoint", help="the base URL of an OpenAI-compatible service")
    parser.add_argument("--model", default="local", help="the name of the model at the endpoint")
    parser.add_argument("--key", default="", help="the key of the endpoint")
    parser.add_argument("--each", type=int, default=6, help="tasks of each family")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=2, help="the most commands for a task")
    parser.add_argument("--budget", type=int, default=220, help="the most tokens of memory in a prompt")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "agent.json")
    parser.add_argument("--check", action="store_true", help="only check that every task can be solved")
    arguments = parser.parse_args()
    if arguments.check:
        made = tasks(arguments.seed, arguments.each)
        print(f"{sum(solved_alone(made))} of {len(made)} tasks are solved by their solutions")
        return 0
    with model(arguments) as llm:
        results = run(llm, arguments, lambda line: print(line, flush=True))
    if not results:
        print("no task was finished in the time; give it more --minutes")
        return 1
    print(*table(results), sep="\n")
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text(json.dumps([asdict(each) for each in results], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
