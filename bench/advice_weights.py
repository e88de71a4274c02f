"""Fit the weights of `recommend` on one language and validate them on the other, both ways.

    python bench/advice_weights.py              # collect the features of both sets, once, and fit
    python bench/advice_weights.py --judge      # also try the judge as a reranker; slow

The data and the harness are those of `bench/howto.py`. Features are what `alma.learning.advice` sees, collected from a
real store and kept in bench/results/advice-features.pickle (delete it to collect them anew); with `--judge` it is asked
about the best six candidates of each question. Scores are fitted so that the right candidates come first (softmax), and
relevance so that it tells questions with an answer from those of another language (logistic). Printed are the weights
of each language with the numbers on both, and those of both languages together, which `AdviceTuning` holds.
"""

from __future__ import annotations

import argparse
import importlib
import math
import pickle
import random
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from alma import ALMA, Outcome
from alma.judge import Judge, StrictJudge, default_judge
from alma.learning.advice import strategy_of, task_of
from alma.learning.tuning import AdviceFeatures
from alma_learner import embedder, opened

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
KEPT = Path(__file__).parent / "results" / "advice-features.pickle"
SETS = ("bash", "python")
FALSE_FAR = {"bash": 0.04, "python": 0.08}
_JUDGED = 6
# Sizes of samples of what was learned, and how many of each; distant tasks are nearer by chance in larger ones.
_SIZES, _PARTS, _FAR_OF_A_PART = (10, 30, 100, 400), 3, 20
_AGENT = "agent"
_LEARNED_AT_ONCE = 500


@dataclass
class Question:
    """A question, whether the store has an answer, and its candidates: features, and which are right."""

    kind: str
    size: str
    rows: Any
    right: Any


def _filled(folder: Path, pairs: list[tuple[str, str]]) -> ALMA:
    alma = opened(folder / "alma.db")
    vectors = embedder().encode_batch([task for task, _ in pairs])
    outcomes = [
        Outcome(
            agent=_AGENT,
            project_id=alma.project_id,
            task_description=task,
            strategy_used=strategy,
            success=True,
            lesson_id=f"lesson {number}",
            embedding=vector,
        )
        for number, ((task, strategy), vector) in enumerate(zip(pairs, vectors, strict=True))
    ]
    for start in range(0, len(outcomes), _LEARNED_AT_ONCE):
        alma.storage.save_many(outcomes[start : start + _LEARNED_AT_ONCE])
    return alma


def _collected(data: Path, harness: Any, name: str, judge: Judge) -> list[Question]:
    """The questions of a set, asked of all learned tasks and of small samples."""
    pairs, topics, asks, _, far = harness.load(str(data / "howto"), name)
    found = _asked(pairs, topics, asks, far, judge, "all")
    chance = random.Random(0)
    for size in _SIZES:
        for part in range(_PARTS):
            some = chance.sample(pairs, size)
            known = {topics[strategy] for _, strategy in some}
            near = [(task, topic) for task, topic in asks if topic in known]
            few = chance.sample(far, _FAR_OF_A_PART)
            found += _asked(some, topics, chance.sample(near, min(len(near), _FAR_OF_A_PART)), few, judge, f"{size}")
            print(f"  {name}: part {part + 1} of {size}", file=sys.stderr, flush=True)
    return found


def _asked(
    pairs: list[tuple[str, str]],
    topics: dict[str, Any],
    asks: list[tuple[str, Any]],
    far: list[str],
    judge: Judge,
    size: str,
) -> list[Question]:
    asked = [(task, topic, "ask") for task, topic in asks] + [(task, None, "far") for task in far]
    with tempfile.TemporaryDirectory() as folder, _filled(Path(folder), pairs) as alma:
        advisor = alma.learning.recommender.advisor
        found = []
        for task, topic, kind in asked:
            near = advisor.features(task, embedder().encode(task), alma.scope(_AGENT))
            near.sort(key=lambda each: -advisor.tuning.score.score(each[1]))
            past = [(task_of(record), strategy_of(record)) for record, _ in near]
            verdicts = _judged(judge, task, past[:_JUDGED])
            verdicts += [(None, None)] * (len(near) - len(verdicts))
            rows = [_row(features, *verdict) for (_, features), verdict in zip(near, verdicts, strict=True)]
            right = [topics.get(strategy) == topic and topic is not None for _, strategy in past]
            if rows:
                found.append(Question(kind, size, np.array(rows), np.array(right)))
        return found


def _judged(judge: Judge, task: str, past: list[tuple[str, str]]) -> list[tuple[float | None, float | None]]:
    """The judge's probabilities that a past task with its strategy is useful, and that the tasks are the same."""
    useful = judge.useful([(task, f"{known}: {strategy}") for known, strategy in past])
    similarity = [
        each["same"] + each["more"] + each["less"] for each in judge.compare([(task, known) for known, _ in past])
    ]
    return list(zip(useful, similarity, strict=True))


def _log_odds(probability: float | None) -> float:
    known = 0.5 if probability is None else min(0.999, max(0.001, probability))
    return math.log(known / (1 - known))


def _row(features: AdviceFeatures, useful: float | None, similarity: float | None) -> list[float]:
    texts_of = [_log_odds(each) for each in (useful, similarity)]
    return [features.meaning, features.task_words, features.strategy_words, features.words, features.tried, *texts_of]


# ---------------------------------------------------------------------- fitting

NAMES = ("meaning", "task_words", "strategy_words", "words", "tried", "useful", "alike")


def fitted_score(questions: list[Question], columns: list[int], most: int, penalty: float = 1.0) -> Any:
    """Weights that rank right candidates first: softmax over the candidates of each question."""
    asked = [(q.rows[:most, columns], q.right[:most]) for q in questions if q.kind == "ask" and q.right[:most].any()]
    weights, first, second = (np.zeros(len(columns)) for _ in range(3))
    for step in range(1, 401):
        slope = penalty * weights / len(asked) * 0.1
        for rows, right in asked:
            odds = rows @ weights
            share = np.exp(odds - odds.max())
            share /= share.sum()
            wanted = share * right / (share @ right)
            slope -= (wanted - share) @ rows / len(asked)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        rate = 0.3 if step < 250 else 0.05
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return weights


def fitted_relevance(questions: list[Question], score: Any, columns: list[int], most: int, scored: list[int]) -> Any:
    """Logistic weights, bias last, that separate the best candidate of an answerable question from others."""
    best = [q.rows[:most][int(np.argmax(q.rows[:most, scored] @ score))][columns] for q in questions]
    rows = np.column_stack([np.array(best), np.ones(len(best))])
    wanted = np.array([q.kind == "ask" for q in questions], float)
    # Both kinds count the same, so that the probability does not depend on how many of each were asked.
    counts = np.where(wanted == 1, 0.5 / wanted.mean(), 0.5 / (1 - wanted.mean()))
    weights = np.zeros(rows.shape[1])
    penalty = np.diag([1e-3 * len(rows)] * len(columns) + [1e-9])
    for _ in range(50):
        known = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (counts * (known - wanted)) + penalty @ weights
        weights = weights - np.linalg.solve((rows.T * (counts * known * (1 - known))) @ rows + penalty, slope)
    return weights


def by_size(questions: list[Question], relevance: Any, columns: list[int], most: int) -> Any:
    """Add a weight for the store's size before the bias, so that false answers are equally frequent at every size.

    The nearest unrelated task gets nearer by chance the more there are, with the logarithm of their number.
    """
    sizes: dict[str, list[tuple[float, float]]] = {}
    for q in questions:
        if q.kind == "far":
            best = float(_odds(q.rows[:most, columns], relevance).max())
            sizes.setdefault(q.size, []).append((float(q.rows[0, TRIED]), best))
    logarithms = [np.mean([size for size, _ in found]) for found in sizes.values()]
    highest = [np.quantile([best for _, best in found], _HIGHEST) for found in sizes.values()]
    slope, _ = np.polyfit(logarithms, highest, 1)
    return np.array([*relevance[:-1], -slope, relevance[-1] + slope * max(logarithms)])


def texts_of(questions: list[Question], score: Any, relevance: Any, threshold: float, use: _Use) -> tuple[float, float]:
    """acc@1 and false far."""
    right, asked, far, foreign = 0, 0, 0, 0
    for q in questions:
        rows = q.rows[: use.most]
        likely = _odds(rows[:, use.relevance], relevance) >= threshold
        if q.kind == "far":
            foreign, far = foreign + 1, far + bool(likely.any())
            continue
        asked += 1
        if likely.any():
            right += bool(q.right[: use.most][int(np.argmax(np.where(likely, rows[:, use.score] @ score, -np.inf)))])
    return right / asked, far / foreign


def _odds(rows: Any, weights: Any) -> Any:
    return rows @ weights[:-1] + weights[-1]


def threshold_of(questions: list[Question], relevance: Any, share: float, use: _Use) -> float:
    """The log-odds that at most this share of the far questions reach."""
    far = [_odds(q.rows[: use.most, use.relevance], relevance).max() for q in questions if q.kind == "far"]
    return float(np.sort(far)[::-1][int(share * len(far))]) + 1e-6


@dataclass
class _Use:
    """The features in use, and the number of candidates."""

    name: str
    score: list[int]
    relevance: list[int]
    most: int


TRIED = NAMES.index("tried")
# The share of far questions below which they have to stay, whatever the size of the store.
_HIGHEST = 0.93

USES = (
    _Use("without the judge", [0, 1, 2, 3], [0, 3], 80),
    _Use("judged", [0, 1, 2, 3, 5, 6], [0, 3, 5, 6], 6),
)


def _report(found: dict[str, list[Question]], used: _Use) -> None:
    for trained in (*SETS, None):
        names = SETS if trained is None else (trained,)
        questions = [q for name in names for q in found[name]]
        score = fitted_score([q for q in questions if q.size == "all"], used.score, used.most)
        whole = {name: [q for q in found[name] if q.size == "all"] for name in SETS}
        relevance = fitted_relevance(
            [q for name in names for q in whole[name]], score, used.relevance, used.most, used.score
        )
        relevance = by_size(questions, relevance, used.relevance, used.most)
        use = replace(used, relevance=[*used.relevance, TRIED])
        threshold = max(threshold_of(whole[name], relevance, FALSE_FAR[name], use) for name in names)
        numbers = {name: texts_of(whole[name], score, relevance, threshold, use) for name in SETS}
        print(f"{use.name}, fitted on {' and '.join(names)}")
        print("  score    ", {NAMES[i]: round(float(w), 2) for i, w in zip(use.score, score, strict=True)})
        print("  relevance", {NAMES[i]: round(float(w), 2) for i, w in zip(use.relevance, relevance, strict=False)})
        print(f"  bias {relevance[-1]:.2f}, threshold {1 / (1 + np.exp(-threshold)):.3f}")
        for size in map(str, _SIZES):
            part = [q for name in SETS for q in found[name] if q.size == size]
            acc, far = texts_of(part, score, relevance, threshold, use)
            print(f"  of {size} learned: acc@1 {acc:.3f}, false far {far:.3f}")
        print("  " + "; ".join(f"{name}: acc@1 {acc:.3f}, false far {far:.3f}" for name, (acc, far) in numbers.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--judge", action="store_true", help="measure the judge as a reranker, too")
    args = parser.parse_args()
    if not args.kept.exists():
        sys.path.insert(0, str(args.data / "harness"))
        harness = importlib.import_module("howto")
        made = {
            name: _collected(args.data, harness, name, default_judge() if args.judge else StrictJudge())
            for name in SETS
        }
        args.kept.parent.mkdir(parents=True, exist_ok=True)
        args.kept.write_bytes(pickle.dumps(made))
    found = pickle.loads(args.kept.read_bytes())
    for use in USES if args.judge else USES[:1]:
        _report(found, use)


if __name__ == "__main__":
    main()
