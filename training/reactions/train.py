"""Fit the model of reactions on `open.jsonl`, and measure it on it (left out in ten parts) and on `heldout.jsonl`.

python training/reactions/train.py             # fit and report
python training/reactions/train.py --write     # the same, and write src/alma/benefit/reactions.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alma.benefit.log import is_same_task
from alma.benefit.reactions import REACTIONS, THRESHOLD, WEIGHTS, features, probabilities

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "src" / "alma" / "benefit" / WEIGHTS
_SHRINKAGE = 0.3
_STEPS, _PARTS = 600, 10
# A repeated request says that it went badly, too; in the same words it is found before the model is asked.
_SAME = {"retry": "correction"}

Floats = Any


def fitted(rows: Floats, labels: Floats) -> Floats:
    """The weights of a logistic regression, by accelerated gradient descent."""
    shrunk = np.full((rows.shape[1], 1), _SHRINKAGE)
    shrunk[-1] = 0.0
    step = 1.0 / (np.linalg.norm(rows, 2) ** 2 / 2 + _SHRINKAGE)
    wanted = np.eye(len(REACTIONS))[labels]
    weights = moved = np.zeros((rows.shape[1], len(REACTIONS)))
    for number in range(_STEPS):
        ahead = weights + number / (number + 3) * moved
        new = ahead - step * (rows.T @ (probabilities(rows, ahead) - wanted) + shrunk * ahead)
        weights, moved = new, new - weights
    return weights


def predicted(found: Floats) -> Floats:
    best = found.argmax(axis=1)
    return np.where(found.max(axis=1) >= THRESHOLD, best, 0)


def report(name: str, labels: Floats, guesses: Floats) -> None:
    for number, reaction in list(enumerate(REACTIONS))[1:]:
        right = int(((guesses == number) & (labels == number)).sum())
        said, were = int((guesses == number).sum()), int((labels == number).sum())
        if were:
            print(f"{name:18} {reaction:11} precision {right} of {said} = {right / max(1, said):.2f}, ", end="")
            print(f"recall {right} of {were} = {right / were:.2f}")


def read(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def numbered(rows: Sequence[dict[str, str]]) -> Floats:
    return np.array([REACTIONS.index(_SAME.get(row["label"], row["label"])) for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    known, held = read("open.jsonl"), read("heldout.jsonl")
    rows, labels = features([row["prompt"] for row in known]), numbered(known)
    guesses = np.zeros(len(labels), dtype=int)
    for part in np.array_split(np.random.default_rng(0).permutation(len(labels)), _PARTS):
        others = np.ones(len(labels), dtype=bool)
        others[part] = False
        guesses[part] = predicted(probabilities(rows[part], fitted(rows[others], labels[others])))
    report("open, left out", labels, guesses)
    weights = fitted(rows, labels)
    for language in ("en", "other"):
        chosen = [row for row in held if row["language"] == language]
        guesses = predicted(probabilities(features([row["prompt"] for row in chosen]), weights))
        guesses[[is_same_task(row["task"], row["prompt"]) for row in chosen]] = REACTIONS.index("correction")
        report(f"held out, {language}", numbered(chosen), guesses)
    if options.write:
        stored = {name: [round(float(each), 4) for each in weights[:, i]] for i, name in enumerate(REACTIONS)}
        TARGET.write_text(json.dumps(stored, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
