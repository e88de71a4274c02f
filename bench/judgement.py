"""Measure the judge on pairs of texts, memories for tasks, and injections, beside simpler methods.

    python bench/judgement.py                                    # the blind sets, under a minute
    python bench/judgement.py --pairs mine.jsonl --json found.json
    python bench/judgement.py --weights folder                   # another model than the shipped one

A pair has the fields a, b and label; a memory task, memory and useful; a text text and injection. Word overlap and
the cosine of the local embedder say *same* from a threshold that is chosen on the very pairs they are measured on, so
that their rows are better than they would be on others. Of each label the share that is taken for the same is shown,
where P(same) is at least the threshold; *opposites told* is how many of the opposites are called opposite or
supersedes, *as such* how many are called opposite. `ms` is CPU time on one thread, in calls of 16 pairs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from alma.bootstrap import create_embedder
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ALMAError
from alma.ingest.screening import THRESHOLD, DefaultScreen, InjectionScreen, PhraseScreen
from alma.judge import LABELS, Judge, LocalJudge, StrictJudge
from alma.text.tokens import terms

BLIND = Path(__file__).resolve().parents[1] / "training" / "judge" / "blind"
# Lines of the blind pairs whose examples the writers of the clusters had seen as well.
SEEN = frozenset({15, 43, 53, 59, 83})
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_PAIRS_A_CALL = 16
_BINS = 10
_JOINED = "taken for the same (overlap and cosine: from the threshold that is best for these pairs)"

T = TypeVar("T")
Texts = tuple[str, str]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Method:
    """A method to judge pairs: probabilities of the labels, or a score of agreement."""

    name: str
    rows: Floats
    ms: float
    thresholds: tuple[float, ...]
    calibrated: bool


@dataclass(frozen=True)
class Joined:
    """The share of each label called the same from a threshold on."""

    threshold: float
    same: float | None
    opposite: float | None
    supersedes: float | None
    other: float | None
    more_or_less: float | None


@dataclass(frozen=True)
class Found:
    """The results of a method on labelled pairs."""

    method: str
    pairs: int
    accuracy: float
    joined: tuple[Joined, ...]
    opposites_told: float | None
    opposites_as_such: float | None
    supersedes_told: float | None
    ece: float | None
    ms: float


@dataclass(frozen=True)
class Told:
    """The results of a method on binary labels."""

    method: str
    rows: int
    auroc: float
    accuracy: float
    threshold: float
    ms: float


def main() -> None:
    """Measure, print and write."""
    args = _options()
    console = Console(width=140)
    local = _local(args.weights, console)
    embedder = create_embedder("local", cache_size=0)
    found: dict[str, Any] = {}
    if args.pairs.is_file():
        found |= _pairs(args.pairs, _methods(args.pairs, local, embedder), console)
    if args.useful.is_file():
        found["useful"] = _yes_or_no("useful", _useful(args.useful, local, embedder), console)
    if args.injection.is_file():
        found["injection"] = _yes_or_no("injection", _injection(args.injection, local), console)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, default=BLIND / "pairs.jsonl", help="labelled pairs")
    parser.add_argument("--useful", type=Path, default=BLIND / "useful.jsonl", help="labelled memories for tasks")
    parser.add_argument("--injection", type=Path, default=BLIND / "injection.jsonl", help="labelled texts")
    parser.add_argument("--weights", type=Path, help="the folder of a judge; the shipped one without it")
    parser.add_argument("--json", type=Path, help="where to write the numbers, too")
    return parser.parse_args()


def _local(folder: Path | None, console: Console) -> Judge | None:
    try:
        judge = LocalJudge(folder)
        judge.load()
    except ALMAError as exc:
        console.print(f"There is no model to measure: {exc}")
        return None
    return judge


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


# ---------------------------------------------------------------------- pairs


def _pairs(path: Path, methods: Sequence[Method], console: Console) -> dict[str, Any]:
    labels = [line["label"] for line in _lines(path)]
    everything = np.arange(len(labels))
    parts = {"pairs": everything}
    if path.resolve() == BLIND / "pairs.jsonl":
        parts["pairs without those seen"] = np.array([i for i in everything if i + 1 not in SEEN])
    found: dict[str, Any] = {}
    for name, chosen in parts.items():
        measured = [_measured(method, np.array(labels)[chosen], method.rows[chosen]) for method in methods]
        console.print(_accuracy_table(f"{name}: {len(chosen)}", measured), _joined_table(measured))
        found[name] = [asdict(each) for each in measured]
    return found


def _methods(path: Path, local: Judge | None, embedder: EmbeddingProvider) -> list[Method]:
    lines = _lines(path)
    pairs, labels = [(line["a"], line["b"]) for line in lines], [line["label"] for line in lines]
    judges: dict[str, Judge] = {"strict": StrictJudge()}
    if local is not None:
        judges[local.name] = local
    return [
        _scored("word overlap", pairs, labels, lambda pair: _overlap(*pair)),
        _scored(f"cosine, {embedder.model}", pairs, labels, lambda pair: _cosine(embedder, *pair)),
        *(_judged(name, judge, pairs) for name, judge in judges.items()),
    ]


def _scored(name: str, pairs: Sequence[Texts], labels: Sequence[str], score: Callable[[Texts], float]) -> Method:
    """A score as probabilities of same and other, with its best threshold."""
    scores, ms = _timed(lambda: np.array([score(pair) for pair in pairs]), len(pairs))
    rows = np.zeros((len(pairs), len(LABELS)))
    rows[:, LABELS.index("same")] = scores
    rows[:, LABELS.index("other")] = 1 - scores
    return Method(name, rows, ms, (_best_threshold(scores, [label == "same" for label in labels]),), calibrated=False)


def _judged(name: str, judge: Judge, pairs: Sequence[Texts]) -> Method:
    def judge_all() -> Floats:
        calls = (pairs[i : i + _PAIRS_A_CALL] for i in range(0, len(pairs), _PAIRS_A_CALL))
        return np.array([[each[label] for label in LABELS] for call in calls for each in judge.compare(call)])

    rows, ms = _timed(judge_all, len(pairs))
    thresholds = THRESHOLDS[:1] if isinstance(judge, StrictJudge) else THRESHOLDS
    return Method(name, rows, ms, thresholds, calibrated=True)


def _overlap(a: str, b: str) -> float:
    first, second = set(terms(a)), set(terms(b))
    return len(first & second) / max(1, len(first | second))


def _cosine(embedder: EmbeddingProvider, a: str, b: str) -> float:
    first, second = (np.asarray(vector, dtype=np.float64) for vector in embedder.encode_batch([a, b]))
    return float(first @ second)


def _measured(method: Method, labels: np.ndarray[Any, Any], rows: Floats) -> Found:
    said = _said(method, rows)
    right = said == labels
    told = np.isin(said, ["opposite", "supersedes"])
    return Found(
        method.name,
        len(labels),
        float(right.mean()),
        tuple(_joined(labels, rows[:, LABELS.index("same")], threshold) for threshold in method.thresholds),
        _share(told, labels == "opposite"),
        _share(said == "opposite", labels == "opposite"),
        _share(told, labels == "supersedes"),
        _calibration_error(rows.max(axis=1), right) if method.calibrated else None,
        method.ms,
    )


def _said(method: Method, rows: Floats) -> np.ndarray[Any, Any]:
    """The most probable label; a score says same from its threshold on, and other below it."""
    said: np.ndarray[Any, Any] = np.array(LABELS)[rows.argmax(axis=1)]
    return (
        said if method.calibrated else np.where(rows[:, LABELS.index("same")] >= method.thresholds[0], "same", "other")
    )


def _joined(labels: np.ndarray[Any, Any], same: Floats, threshold: float) -> Joined:
    joined = same >= threshold
    shares = {label: _share(joined, labels == label) for label in ("same", "opposite", "supersedes", "other")}
    return Joined(threshold, **shares, more_or_less=_share(joined, np.isin(labels, ["more", "less"])))


def _share(chosen: np.ndarray[Any, Any], among: np.ndarray[Any, Any]) -> float | None:
    return float(chosen[among].mean()) if among.any() else None


def _calibration_error(sure: Floats, right: np.ndarray[Any, Any]) -> float:
    """The expected difference between how probable a label was said to be and how often it was right."""
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = ((bins == b, abs(sure[bins == b].mean() - right[bins == b].mean())) for b in np.unique(bins))
    return float(sum(among.mean() * gap for among, gap in gaps))


def _accuracy_table(title: str, found: Sequence[Found]) -> Table:
    table = Table(title=title, title_justify="left")
    columns = ("accuracy", "opposites told", "as such", "supersedes told", "ECE", "ms")
    for name in ("", *columns):
        table.add_column(name, justify="right" if name else "left")
    for each in found:
        told = (each.accuracy, each.opposites_told, each.opposites_as_such, each.supersedes_told, each.ece)
        table.add_row(each.method, *map(_number, told), f"{each.ms:.2f}")
    return table


def _joined_table(found: Sequence[Found]) -> Table:
    table = Table(title=_JOINED, title_justify="left")
    for name in ("", "P(same) ≥", "same", "opposite", "supersedes", "other", "more or less"):
        table.add_column(name, justify="right" if name else "left")
    for each in found:
        for row in each.joined:
            shares = (row.same, row.opposite, row.supersedes, row.other, row.more_or_less)
            table.add_row(each.method, f"{row.threshold:.2f}", *map(_number, shares))
    return table


# ---------------------------------------------------------------------- yes or no


def _useful(path: Path, local: Judge | None, embedder: EmbeddingProvider) -> Iterator[Told]:
    lines = _lines(path)
    pairs, gold = [(line["task"], line["memory"]) for line in lines], [bool(line["useful"]) for line in lines]
    cosines, ms = _timed(lambda: np.array([_cosine(embedder, *pair) for pair in pairs]), len(pairs))
    yield _told(f"cosine, {embedder.model}", gold, cosines, _best_threshold(cosines, gold), ms)
    if local is not None:
        answers, ms = _timed(lambda: local.useful(pairs), len(pairs))
        yield from _told_by(local.name, gold, answers, ms)


def _injection(path: Path, local: Judge | None) -> Iterator[Told]:
    lines = _lines(path)
    texts, gold = [line["text"] for line in lines], [bool(line["injection"]) for line in lines]
    screens: dict[str, InjectionScreen] = {"phrases": PhraseScreen(), "phrases and the judge": DefaultScreen(local)}
    for name, screen in screens.items():
        scores, ms = _timed(partial(_screened, screen, texts), len(texts))
        yield _told(name, gold, scores, THRESHOLD, ms)
    if local is not None:
        answers, ms = _timed(lambda: local.injection(texts), len(texts))
        yield from _told_by(local.name, gold, answers, ms)


def _screened(screen: InjectionScreen, texts: Sequence[str]) -> Floats:
    return np.array([screen.screen(text).score for text in texts])


def _told_by(name: str, gold: Sequence[bool], answers: Sequence[float | None], ms: float) -> Iterator[Told]:
    """The results of a head; None if the model has none."""
    scores = [answer for answer in answers if answer is not None]
    if len(scores) == len(gold):
        yield _told(name, gold, np.array(scores), 0.5, ms)


def _told(name: str, gold: Sequence[bool], scores: Floats, threshold: float, ms: float) -> Told:
    accuracy = float(((scores >= threshold) == np.array(gold)).mean())
    return Told(name, len(gold), _auroc(gold, scores), accuracy, threshold, ms)


def _yes_or_no(title: str, found: Iterator[Told], console: Console) -> list[Mapping[str, Any]]:
    told = list(found)
    table = Table(title=f"{title}: {told[0].rows}", title_justify="left")
    for name in ("", "AUROC", "accuracy", "threshold", "ms"):
        table.add_column(name, justify="right" if name else "left")
    for each in told:
        row = (_number(each.auroc), _number(each.accuracy), f"{each.threshold:.2f}", f"{each.ms:.2f}")
        table.add_row(each.method, *row)
    console.print(table)
    return [asdict(each) for each in told]


# ---------------------------------------------------------------------- figures


def _auroc(gold: Sequence[bool], scores: Floats) -> float:
    """How often a yes scores above a no; equal scores count half."""
    yes, no = scores[np.array(gold)], scores[~np.array(gold)]
    above = (yes[:, np.newaxis] > no).mean()
    return float(above + (yes[:, np.newaxis] == no).mean() / 2)


def _best_threshold(scores: Floats, gold: Sequence[bool]) -> float:
    """The threshold that separates these data best: the share of yes above it minus that of no."""
    yes = np.array(gold)
    return float(max(np.unique(scores), key=lambda t: (scores[yes] >= t).mean() - (scores[~yes] >= t).mean()))


def _timed(call: Callable[[], T], count: int) -> tuple[T, float]:
    """The result of a call, and its milliseconds of CPU time per item."""
    began = time.process_time()
    given = call()
    return given, (time.process_time() - began) * 1_000 / max(1, count)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
