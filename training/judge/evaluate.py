"""The numbers a judge is chosen by: paraphrases joined, opposites and others merged, calibration error, AUROC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from data import LABELS

SAME = LABELS.index("same")
THRESHOLDS = (0.3, 0.5, 0.7)
SWAP = [LABELS.index(name) for name in ("same", "less", "more", "opposite", "supersedes", "other")]


@dataclass(frozen=True)
class Judged:
    """A judged pair: the true label and the probabilities that were given."""

    label: str
    probabilities: np.ndarray

    @property
    def said(self) -> str:
        return LABELS[int(self.probabilities.argmax())]


def report(rows: Sequence[Judged], title: str) -> None:
    """Print one table."""
    accuracy = sum(row.said == row.label for row in rows) / len(rows)
    opposites = [row for row in rows if row.label == "opposite"]
    recalled = sum(row.said in ("opposite", "supersedes") for row in opposites) / max(1, len(opposites))
    print(
        f"{title}: {len(rows)} pairs, accuracy {accuracy:.3f}, ECE {calibration_error(rows):.3f}, "
        f"opposites recognised {recalled:.3f}"
    )
    for threshold in THRESHOLDS:
        shares = ", ".join(f"{label} {joined(rows, label, threshold):.3f}" for label in LABELS)
        print(f"  same above {threshold}: {shares}", flush=True)


def joined(rows: Sequence[Judged], label: str, threshold: float) -> float:
    """The share of pairs with this label that are called the same."""
    chosen = [row for row in rows if row.label == label]
    return sum(row.probabilities[SAME] > threshold for row in chosen) / max(1, len(chosen))


def calibration_error(rows: Sequence[Judged], bins: int = 10) -> float:
    """Expected calibration error of the most probable label."""
    sure = np.array([row.probabilities.max() for row in rows])
    right = np.array([row.said == row.label for row in rows])
    which = np.minimum((sure * bins).astype(int), bins - 1)
    return float(
        sum(abs(sure[which == b].mean() - right[which == b].mean()) * (which == b).mean() for b in set(which.tolist()))
    )


def auroc(scores: np.ndarray, truth: np.ndarray) -> float:
    """The probability that a yes scores above a no."""
    order = np.argsort(np.argsort(scores)) + 1
    yes, no = truth.sum(), (~truth).sum()
    return float((order[truth].sum() - yes * (yes + 1) / 2) / max(1, yes * no))


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))
