"""The strongest: what one source puts first is read and handed over, whatever all the others say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from alma.retrieval.candidate import Candidate

# Just enough to stand before what makes room.
_AHEAD = 1e-6
# What was put behind another one stays there.
_OVERRULED = frozenset(("overruled", "superseded"))


class Scored(Protocol):
    """A memory with all that speaks for it."""

    key: str
    terms: dict[str, float]

    @property
    def score(self) -> float: ...


T = TypeVar("T", bound=Scored)

Source = Mapping[str, float]
"""How well each memory matches by one measure, by its id; nothing where it does not."""


def read_first(by_total: Sequence[Candidate], most: int) -> list[Candidate]:
    """The candidates in the order in which they are read: so many of the best, and then the others.

    Half of those at least were compared by their meaning: how near something is that only words found is not known
    before it is read, so that it may stand before everything that is near.
    """
    if len(by_total) <= most:
        return list(by_total)
    compared = [each for each in by_total if each.cosine is not None]
    wanted = {each.id for each in (*_best_of_each(by_total), *compared[: most // 2])}
    for each in by_total:
        if len(wanted) >= most:
            break
        wanted.add(each.id)
    return sorted(by_total, key=lambda each: each.id not in wanted)


def put_among_the_first(by_score: list[T], sources: Sequence[Source], top_k: int) -> None:
    """Let the best of each source stand among the first `top_k`, in place of the last of the others; half at most.

    Many that are alike, of which each has a little more in its favour, would else leave out the one that is meant.
    """
    strongest = [each for each in _best_by(by_score, sources) if _OVERRULED.isdisjoint(each.terms)]
    behind = {each.key for each in by_score[top_k:]}
    late = [each for each in strongest if each.key in behind][: top_k // 2]
    if not late:
        return
    kept = {each.key: each for each in strongest if each.key not in behind} | {each.key: each for each in late}
    others = [each for each in by_score[:top_k] if each.key not in kept]
    makes_room = others[-len(late)].score
    for each in kept.values():
        _put_before(each, makes_room)
    by_score.sort(key=lambda each: (-each.score, each.key))


def _best_by(by_score: Sequence[T], sources: Sequence[Source]) -> list[T]:
    """What matches best by each source; of several that do, the one with the best score."""
    best = (max(by_score, key=lambda each: source.get(each.key, 0.0), default=None) for source in sources)
    found = (each for each, source in zip(best, sources, strict=True) if each and source.get(each.key, 0.0) > 0)
    return list({each.key: each for each in found}.values())


def _put_before(each: Scored, score: float) -> None:
    if each.score <= score:
        each.terms["strongest"] = score - each.score + _AHEAD


def _best_of_each(candidates: Sequence[Candidate]) -> list[Candidate]:
    nearest = max(candidates, key=lambda each: -1.0 if each.cosine is None else each.cosine)
    return [nearest, max(candidates, key=lambda each: each.words or 0.0)]
