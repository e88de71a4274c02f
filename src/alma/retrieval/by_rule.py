"""What is handed over by rule: a user's preferences and standing instructions, whatever the task."""

from __future__ import annotations

from collections.abc import Sequence

from alma.model.memory import Memory
from alma.retrieval.absent import Note
from alma.retrieval.found import Ranking
from alma.retrieval.placing import statements_of
from alma.retrieval.ranked import Ranked
from alma.retrieval.recent import MOST_BY_RULE, newest
from alma.retrieval.repetitions import without_repetitions
from alma.retrieval.router import Asked
from alma.retrieval.scorer import Scorer
from alma.retrieval.standing import begins_after, holds, is_instruction, superseded
from alma.retrieval.statements import cut
from alma.retrieval.supersession import put_current_first
from alma.storage.base import StorageBackend


def add_by_rule(storage: StorageBackend, ranking: Ranking, scorer: Scorer) -> None:
    """A user's preferences and standing instructions hold for every task, whether or not they resemble it.

    Those that do resemble it come first, then the newest.
    """
    most = max(scorer.request.top_k, MOST_BY_RULE)
    _set_instructions_apart(storage, ranking, scorer.request)
    for cls in dict.fromkeys(target.cls for target in ranking.by_rule):
        items = ranking.standing if cls is Memory else ranking.chosen[cls]
        known = {ranked.key for ranked in (*items, *ranking.chosen[cls])}
        records = newest(storage, [target for target in ranking.by_rule if target.cls is cls], most)
        added = [scorer.scored(record, {}, ("rule",)) for record in records if str(record.key) not in known]
        items.extend(_in_force(storage, added, ranking, scorer.request))
        said = statements_of(items, scorer.request)
        compared = cut(said, frozenset())
        items[:] = _current_first(storage, without_repetitions(items, said, compared, ranking), ranking, scorer)
        for ranked in items[most:]:
            ranking.drop(ranked.key, "rank", "{:,} others are handed over by rule", most)
        del items[most:]
        for ranked in items:
            ranked.strength = "strong"
            ranking.dropped.pop(ranked.key, None)


def _current_first(storage: StorageBackend, items: Sequence[Ranked], ranking: Ranking, scorer: Scorer) -> list[Ranked]:
    """The same in their order, but what is no longer so behind what is."""
    for ranked in items:
        ranked.notes = ()
    current = put_current_first(
        storage, items, ranking.targets, lambda record, _: scorer.scored(record, {}, ("rule",)), scorer.request.now
    )
    if not any(ranked.notes for ranked in current):
        return current
    return sorted(current, key=lambda ranked: -ranked.score)


def _set_instructions_apart(storage: StorageBackend, ranking: Ranking, request: Asked) -> None:
    """Standing instructions among the memories that were found are handed over as such, if they are in force."""
    found = ranking.chosen[Memory]
    instructions = [ranked for ranked in found if is_instruction(ranked.record, request)]
    ranking.standing.extend(_in_force(storage, instructions, ranking, request))
    apart = {ranked.key for ranked in ranking.standing}
    ranking.chosen[Memory] = [ranked for ranked in found if ranked.key not in apart][: request.top_k]


def _in_force(storage: StorageBackend, items: Sequence[Ranked], ranking: Ranking, request: Asked) -> list[Ranked]:
    """What holds now and has not been superseded: no other instruction is to be heeded."""
    over = superseded(storage, [ranked.record for ranked in items], ranking.targets)
    for ranked in items:
        if ranked.key in over:
            ranking.dropped[ranked.key] = Note("rule", "it was superseded by {}", (over[ranked.key],))
        elif not holds(ranked.record, request.now):
            ranking.dropped[ranked.key] = Note("rule", "it does not hold at this time")
            ranking.expect_change(begins_after(ranked.record, request.now))
    return [each for each in items if each.key not in over and holds(each.record, request.now)]
