"""The tuned numbers of learning and recommending, with where each came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class LessonTuning:
    """The thresholds by which outcomes become lessons, rules and warnings.

    Judgements (probabilities; measured on held-out clusters of strategies, see the decision on lessons): from `same`
    on, two strategies on similar tasks are one lesson; from `opposite` on, a success of one weakens the rule of the
    other; from `linked` on, a rule names another one that says more, less or the opposite. At most `pairs` are judged
    for one outcome.

    Tasks (cosines of their vectors; measured by `bench/lessons.py`): from `similar` on, outcomes on two tasks may be
    one lesson, and from `same_task` on they are one task. Where there are no vectors, `shared_words` is the Jaccard
    similarity of the words of similar tasks.

    Confidence (conventions, not fitted): an existing rule whose lower bound is at least `well_known` holds back a new
    rule that says the opposite; failures outweigh successes when they lead by `clearly` outcomes.
    """

    same: float = 0.6
    opposite: float = 0.85
    linked: float = 0.7
    pairs: int = 16

    similar: float = 0.35
    same_task: float = 0.95
    shared_words: float = 0.5

    well_known: float = 0.5
    clearly: float = 0.25


LESSONS = LessonTuning()


class AdviceFeatures(NamedTuple):
    """The features of a candidate: an earlier outcome or a rule, for the task at hand.

    `meaning` is the cosine of the two tasks. The words that the task shares with the earlier task, with its strategy
    and with either are weighted by how rare they are among the candidates. `tried` is the logarithm of the number of
    outcomes: with more outcomes an unrelated one is near by chance.
    """

    meaning: float
    task_words: float
    strategy_words: float
    words: float
    tried: float


@dataclass(frozen=True, slots=True)
class AdviceWeights:
    """The weights of one additive score, which is a log-odds."""

    meaning: float
    task_words: float = 0.0
    strategy_words: float = 0.0
    words: float = 0.0
    tried: float = 0.0
    bias: float = 0.0

    def score(self, features: AdviceFeatures) -> float:
        """The log-odds of a candidate."""
        return (
            self.bias
            + self.meaning * features.meaning
            + self.task_words * features.task_words
            + self.strategy_words * features.strategy_words
            + self.words * features.words
            + self.tried * features.tried
        )


@dataclass(frozen=True, slots=True)
class AdviceTuning:
    """The numbers of `recommend` without a list of strategies.

    `bench/advice_weights.py` fits the weights on one language and validates them on the other. `score` ranks the
    candidates, and `relevance` is the probability that a candidate is about such a task; a candidate whose score is
    lower by `nearness` counts a third. Evidence below `threshold` is not used. From `near` on, and with as much
    evidence and success as `supported_by` and `supported_from` say, an answer is supported; otherwise it is weak.
    """

    candidates: int = 40
    score: AdviceWeights = AdviceWeights(meaning=13.64, task_words=-3.84, strategy_words=5.77, words=7.0)
    relevance: AdviceWeights = AdviceWeights(meaning=7.17, words=4.31, tried=-0.67, bias=-1.46)
    nearness: float = 1.36
    threshold: float = 0.58
    near: float = 0.75
    supported_by: float = 2.0
    supported_from: float = 0.6


@dataclass(frozen=True, slots=True)
class EstimatorTuning:
    """The numbers of the Gaussian process that `recommend(among=…)` and `assess` use.

    Fitted with `bench/learning.py` on the five ASlib scenarios and routerdc7-open. Shares of the variance of outcomes:
    `all_tasks` by how hard tasks are in general, `such_tasks` by how hard similar tasks are, `this_task` by the task
    itself, `strategy` by how good a strategy is in general, `strategy_on_such_tasks` by how good it is on similar ones.
    `noises` are the candidates for unexplained variance, from which the evidence selects one; `noises_of_table` where
    every strategy was tried on every task.
    """

    all_tasks: float = 0.2
    such_tasks: float = 0.6
    this_task: float = 0.1
    strategy: float = 0.02
    strategy_on_such_tasks: float = 1.0
    noises: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    noises_of_table: tuple[float, ...] = (1.0, 3.0, 10.0)

    # Pseudo-counts: for the average of all strategies, and for how much one strategy differs from it.
    prior_average: float = 4.0
    prior_strategy: float = 5.0
    least_variance: float = 0.02

    # How many of the outcomes and tasks nearest to the task are used, and how many are sampled to select the noise.
    nearest_outcomes: int = 1000
    nearest_tasks: int = 350
    sampled_outcomes: int = 1000
    sampled_tasks: int = 700
    # With fewer outcomes than this, the noise is not selected but `noise_of_few`.
    least_outcomes: int = 200
    noise_of_few: float = 0.1
    # The share of the numbers in a task's text in its similarity, where every strategy was tried on every task.
    by_numbers: float = 0.25
    # The weight of the uncertainty in `promises`: exploration where no strategy succeeds yet.
    exploration: float = 1.5

    @property
    def explained(self) -> float:
        """The variance of an outcome on a new task before any evidence."""
        return self.all_tasks + self.such_tasks + self.strategy + self.strategy_on_such_tasks


ESTIMATOR = EstimatorTuning()
