"""Measure a judge on labelled pairs: accuracy, paraphrases joined, opposites and others merged, calibration error.

python evaluate.py --weights judge.pt --backbone bge-small-en-v1.5.onnx --tokenizer tokenizer.json --pairs blind.jsonl
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from backbone import Judge, encode, encoder_from_onnx
from data import LABELS, Pair
from tokenizers import Tokenizer

SWAP = [LABELS.index(name) for name in ("same", "less", "more", "opposite", "supersedes", "other")]


@dataclass(frozen=True)
class Row:
    """One judged pair: the true label and the probabilities of both orders, averaged."""

    label: str
    probabilities: np.ndarray

    @property
    def said(self) -> str:
        return LABELS[int(self.probabilities.argmax())]


def score(judge: Judge, tokenizer: Tokenizer, pairs: list[Pair], device: str, temperature: float = 1.0) -> list[Row]:
    """Judge every pair in both orders."""
    judge.eval()
    rows: list[Row] = []
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].a) + len(pairs[i].b))
    judged: dict[int, np.ndarray] = {}
    with torch.no_grad():
        for start in range(0, len(order), 64):
            chosen = order[start : start + 64]
            texts = [(pairs[i].a, pairs[i].b) for i in chosen]
            both = texts + [(b, a) for a, b in texts]
            logits = judge(**encode(tokenizer, both, device)).float() / temperature
            probabilities = torch.softmax(logits, -1).cpu().numpy()
            mean = (probabilities[: len(chosen)] + probabilities[len(chosen) :][:, SWAP]) / 2
            judged.update(zip(chosen, mean, strict=True))
    for position, pair in enumerate(pairs):
        (label,) = pair.allowed
        rows.append(Row(label, judged[position]))
    return rows


def report(rows: list[Row], title: str, threshold: float = 0.5) -> float:
    """Print one table and return the accuracy."""
    same = LABELS.index("same")

    def joined(label: str) -> float:
        chosen = [row for row in rows if row.label == label]
        return sum(row.probabilities[same] > threshold for row in chosen) / max(1, len(chosen))

    accuracy = sum(row.said == row.label for row in rows) / len(rows)
    opposites = [row for row in rows if row.label == "opposite"]
    recalled = sum(row.said in ("opposite", "supersedes") for row in opposites) / max(1, len(opposites))
    print(f"{title}: {len(rows)} pairs, accuracy {accuracy:.3f}, ECE {calibration_error(rows):.3f}")
    print("  joined as same: " + ", ".join(f"{label} {joined(label):.3f}" for label in LABELS))
    print(f"  opposites recognised {recalled:.3f}", flush=True)
    return accuracy


def calibration_error(rows: list[Row], bins: int = 10) -> float:
    """Expected calibration error of the most probable label."""
    sure = np.array([row.probabilities.max() for row in rows])
    right = np.array([row.said == row.label for row in rows])
    which = np.minimum((sure * bins).astype(int), bins - 1)
    return float(
        sum(abs(sure[which == b].mean() - right[which == b].mean()) * (which == b).mean() for b in set(which.tolist()))
    )


def read_pairs(path: Path) -> list[Pair]:
    """Labelled pairs of a JSONL file with the fields a, b and label."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Pair(line["a"], line["b"], frozenset({line["label"]}), line.get("lang", "en")) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--backbone", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--temperature", type=float, default=1.0)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    tokenizer.enable_truncation(128)
    judge = Judge(encoder_from_onnx(args.backbone))
    judge.load_state_dict(torch.load(args.weights))
    rows = score(judge, tokenizer, read_pairs(args.pairs), "cpu", args.temperature)
    for threshold in (0.5, 0.6, 0.7, 0.8, 0.9):
        report(rows, f"same above {threshold}", threshold)


if __name__ == "__main__":
    main()
