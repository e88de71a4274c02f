"""Separation: taking a strategy out of a lesson that it was counted for, because somebody said it is not the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.learning.heuristics import HeuristicExtractor
from alma.learning.stored import NOT_THE_SAME, SAME_STRATEGY
from alma.learning.strategies import strategy_key
from alma.model.governance import Attribution
from alma.model.learning import Heuristic, Outcome
from alma.model.query import Compare, Cursor
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction

_AT_ONCE = 200


def separate(
    storage: StorageBackend,
    extractor: HeuristicExtractor,
    heuristic_id: str,
    strategy: str,
    scope: Scope,
    by: Attribution,
) -> list[str]:
    """Make the outcomes of a rule that tried this strategy a lesson of their own, and remember that they are not it.

    The rule counts what is left. Returns the ids of the outcomes that were taken out.
    """
    key = strategy_key(strategy)

    def take_out(tx: Transaction) -> list[str]:
        held = tx.lock(Heuristic, [heuristic_id], scope)
        if not held:
            raise NotFoundError(Heuristic.spec.kind, heuristic_id)
        every = _outcomes_of(tx, heuristic_id, scope)
        theirs = [each for each in every if strategy_key(each.strategy_used or "") == key]
        if not theirs:
            raise ValidationError("not_the_same", "strategy", strategy, "is not among the strategies of this rule")
        left = [each for each in every if each not in theirs]
        if not left:
            raise ValidationError("not_the_same", "strategy", strategy, "is the only strategy of this rule")
        lesson = hashlib.sha256(f"{heuristic_id}\x1f{key}".encode(errors="surrogatepass")).hexdigest()[:32]
        tx.save(*(_moved(each, lesson) for each in theirs))
        tx.save(_without(held[0], theirs, left, key, extractor))
        return [each.id for each in theirs]

    return storage.write(take_out, by)


def _outcomes_of(tx: Transaction, lesson: str, scope: Scope) -> list[Outcome]:
    found: list[Outcome] = []
    after: Cursor | None = None
    while page := tx.find(Outcome, scope, Compare("lesson_id", "eq", lesson), limit=_AT_ONCE, after=after):
        found += page
        after = Cursor.after(page[-1], ())
    return found


def _moved(outcome: Outcome, lesson: str) -> Outcome:
    metadata = {name: value for name, value in outcome.metadata.items() if name != SAME_STRATEGY}
    return outcome.replace(lesson_id=lesson, metadata=metadata)


def _without(
    rule: Heuristic, gone: Sequence[Outcome], left: Sequence[Outcome], key: str, extractor: HeuristicExtractor
) -> Heuristic:
    """The rule without these outcomes; what it counted beyond those that are stored stays."""
    ids, now = {each.id for each in gone}, clock.now()
    before, after = extractor.belief([*left, *gone], now), extractor.belief(left, now)
    belief = extractor.current_belief(rule, now).changed(before, after)
    worked = sum(each.success for each in gone)
    known = [*rule.metadata.get(NOT_THE_SAME, ()), key]
    own = {strategy_key(each.strategy_used or ""): each.strategy_used or "" for each in left}
    return rule.replace(
        strategy=rule.strategy if strategy_key(rule.strategy) != key else next(reversed(own.values())),
        occurrence_count=max(0, rule.occurrence_count - len(gone)),
        success_count=max(0, rule.success_count - worked),
        outcomes_for=tuple(each for each in rule.outcomes_for if each not in ids),
        outcomes_against=tuple(each for each in rule.outcomes_against if each not in ids),
        confidence=belief.mean,
        weight_for=belief.weight_for,
        weight_against=belief.weight_against,
        last_validated=now,
        metadata={**rule.metadata, NOT_THE_SAME: list(dict.fromkeys(known))},
    )
