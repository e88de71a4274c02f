"""Measure advice for everyday tasks in other words, and false answers to unknown tasks.

    python bench/howto.py                       # recommend and retrieve on both sets, about ten minutes the first time
    python bench/howto.py --sets python --faces recommend

The data and the harness (`harness/howto.py`) lie in a folder beside the checkout, ../shared/data, or where `--data`
says; their licences do not allow redistribution. Every learned task goes to `learn` as a success of its strategy. A
question goes to `recommend`, or to `retrieve`, whose strong outcomes are read in their order. `false far` is the share
of the questions of another language, about which nothing is stored, that got an answer; `cpu ms` is the CPU time
of one question. Vectors are computed by the local model and cached under bench/results/.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

from alma import ALMA
from alma_learner import opened

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS, FACES = ("bash", "python"), ("recommend", "retrieve")
SHOWN = ("acc@1", "acc@5", "answered", "false far", "answered near", "auroc", "score", "cpu ms")
_AGENT = "agent"

Advice = list[tuple[str, float]]


class Advisor:
    """A new store for every set, behind one face."""

    def __init__(self, face: str) -> None:
        self._face = face
        self._folder: Path | None = None
        self._alma: ALMA | None = None
        self._learned = self._asked = 0
        self._seconds = 0.0

    def reset(self) -> None:
        self.close()
        self._folder = Path(tempfile.mkdtemp(prefix="alma-howto-"))
        self._alma = opened(self._folder / "alma.db")

    def learn(self, task: str, strategy: str) -> None:
        assert self._alma is not None
        self._alma.learn(_AGENT, task, True, strategy)
        self._learned += 1
        if self._learned % 500 == 0:
            print(f"  {self._learned:,} tasks learned", file=sys.stderr, flush=True)

    def ask(self, task: str) -> Advice:
        started = time.process_time()
        advice = self._recommended(task) if self._face == "recommend" else self._retrieved(task)
        self._seconds += time.process_time() - started
        self._asked += 1
        return advice

    @property
    def cpu_ms(self) -> float:
        return round(1_000 * self._seconds / max(1, self._asked), 1)

    def _recommended(self, task: str) -> Advice:
        assert self._alma is not None
        found = self._alma.recommend(task, _AGENT)
        return [] if found.strategy is None else [(each.strategy, each.relevance or 0.0) for each in found.ranked[:5]]

    def _retrieved(self, task: str) -> Advice:
        assert self._alma is not None
        found = self._alma.retrieve(task, _AGENT)
        scores = {each.id: each.relevance or 0.0 for each in found.explain()}
        strong = [each for each in found.outcomes if found.strength_of(each) == "strong"]
        return [(each.strategy_used or "", scores.get(each.id, 0.0)) for each in strong[:5]]

    def close(self) -> None:
        if self._alma is not None:
            self._alma.close()
        if self._folder is not None:
            shutil.rmtree(self._folder)
        self._alma = self._folder = None


def _measured(harness: ModuleType, args: argparse.Namespace, face: str, name: str) -> dict[str, Any]:
    advisor = Advisor(face)
    try:
        found: dict[str, Any] = harness.evaluate(advisor, str(args.data / "howto"), name, asked=args.asked)
        return {**found, "face": face, "cpu ms": advisor.cpu_ms}
    finally:
        advisor.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--faces", default=",".join(FACES))
    parser.add_argument("--asked", type=int, default=400)
    parser.add_argument("--json", type=Path, help="write the numbers to this file as well")
    args = parser.parse_args()
    if not (args.data / "howto").is_dir():
        raise SystemExit(f"there is no data in {args.data / 'howto'}; name the folder that has it with --data")
    sys.path.insert(0, str(args.data / "harness"))
    harness = importlib.import_module("howto")
    rows = [_measured(harness, args, face, name) for name in args.sets.split(",") for face in args.faces.split(",")]
    table = Table("set", "asked of", *SHOWN)
    for row in rows:
        table.add_row(row["set"], row["face"], *(f"{row[each]:g}" for each in SHOWN))
    Console().print(table)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
