"""Measure whether outcomes that are reported in different words become one lesson, and only those.

    python bench/lessons.py                                  # training/lessons/*.jsonl
    python bench/lessons.py --data mine.jsonl --json found.json

Each line of a file is one situation: three similar `tasks`, the `same` strategy in three wordings, an `opposite`
strategy and two `other` ones for such tasks. One agent of a new store learns all outcomes of a file in random order.
The table counts the situations of which all three wordings are one lesson, or two of them; the lessons that also hold
the opposite or another strategy; the lessons that hold outcomes of several situations; and the rules. Thresholds were
selected on open.jsonl; heldout.jsonl was written separately and is only measured.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from alma import ALMA
from alma.model.learning import Heuristic, Outcome
from alma.model.scope import Scope

FOLDER = Path(__file__).resolve().parents[1] / "training" / "lessons"
_SCOPE = Scope(project_id="lessons", agent="agent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", default=sorted(FOLDER.glob("*.jsonl")))
    parser.add_argument("--seed", type=int, default=5, help="the order of the outcomes")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    if not options.data:
        sys.exit(f"no data: {FOLDER} has no .jsonl file; name one with --data")
    found = {path.stem: measured(path, options.seed) for path in options.data}
    table = Table("", *found)
    for name in next(iter(found.values())):
        table.add_row(name, *(f"{numbers[name]:g}" for numbers in found.values()))
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def measured(path: Path, seed: int) -> dict[str, float]:
    """The counts of one file."""
    situations = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    told = [
        (number, kind, task, strategy)
        for number, situation in enumerate(situations)
        for kind, task, strategy in _outcomes(situation)
    ]
    random.Random(seed).shuffle(told)
    with tempfile.TemporaryDirectory() as folder, ALMA.quickstart(Path(folder) / "alma.db", "lessons") as alma:
        started = time.process_time()
        for number, kind, task, strategy in told:
            alma.learn("agent", task, "success", strategy, task_type=None, feedback=f"{number} {kind}")
        seconds = time.process_time() - started
        rows = alma.storage.values(Outcome, ("lesson_id", "user_feedback"), _SCOPE)
        rules = alma.storage.count(Heuristic, _SCOPE)
    lessons = defaultdict[str, list[list[str]]](list)
    for lesson, label in rows:
        lessons[str(lesson)].append(str(label).split())
    together, across = dict[str, int](), 0
    mixed = dict.fromkeys(("opposite", "other"), 0)
    for members in lessons.values():
        across += len({number for number, _ in members}) > 1
        same = [number for number, kind in members if kind == "same"]
        for which in set(same):
            together[which] = max(together.get(which, 0), same.count(which))
            for role in mixed:
                mixed[role] += [which, role] in members
    return {
        "situations": len(situations),
        "three wordings are one lesson": sum(count == 3 for count in together.values()),
        "two or three": sum(count >= 2 for count in together.values()),
        "with the opposite strategy": mixed["opposite"],
        "with another strategy": mixed["other"],
        "lessons across situations": across,
        "rules": rules,
        "ms of CPU an outcome": round(1000 * seconds / len(told), 1),
    }


def _outcomes(situation: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    tasks = situation["tasks"]
    same = [("same", task, strategy) for task, strategy in zip(tasks, situation["same"], strict=True)]
    others = [("other", tasks[i % len(tasks)], strategy) for i, strategy in enumerate(situation["other"])]
    return [*same, ("opposite", tasks[1], str(situation["opposite"])), *others]


if __name__ == "__main__":
    main()
