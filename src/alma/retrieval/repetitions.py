"""Repetitions: what says nothing that a better memory does not say is left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from alma.retrieval import order
from alma.retrieval.found import REPETITION, Ranking
from alma.retrieval.ranked import Ranked
from alma.retrieval.statements import Statement


def without_repetitions(
    by_score: Sequence[Ranked], said: Iterable[Statement], compared: Iterable[Statement], ranking: Ranking
) -> list[Ranked]:
    """What says nothing that a better one does not; copies to the letter are found among all that was read."""
    statements = {statement.id: statement for statement in said}
    with_words = {statement.id for statement in compared}
    kept: list[Ranked] = []
    originals: dict[object, Statement] = {}
    # What somebody else says is no repetition.
    by_voice: dict[str, list[Statement]] = defaultdict(list)
    for ranked in by_score:
        own = statements[ranked.key]
        gist = own.gist
        others = by_voice[own.voice] if own.id in with_words else []
        same = originals.get(gist) or next((other for other in others if order.repeats(own, other)), None)
        if same is not None:
            ranking.drop(ranked.key, REPETITION, "it says the same as {}, which stands before it", same.id)
            continue
        if gist is not None:
            originals[gist] = own
        others.append(own)
        kept.append(ranked)
    return kept
