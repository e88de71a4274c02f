"""The strongest: what one source puts first is read and handed over, whatever all the others say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from alma.retrieval.candidates import Candidate

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


class Found(Protocol):
    """A memory that was read: how near its meaning is, as far as that tells anything."""

    candidate: Candidate
    meaning: float


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


def strongest(found: Collection[Found]) -> set[str]:
    """The ids of the nearest memory, and of the one that has the most of the question's words."""
    nearest = max(found, key=lambda each: (each.meaning, each.candidate.id), default=None)
    worded = max(found, key=lambda each: (each.candidate.words or 0.0, each.candidate.id), default=None)
    return {
        *({nearest.candidate.id} if nearest is not None and nearest.meaning > 0 else ()),
        *({worded.candidate.id} if worded is not None and worded.candidate.words else ()),
    }


def put_among_the_first(by_score: list[Scored], chosen: Collection[str], top_k: int) -> None:
    """Let those that were chosen stand among the first `top_k`, in place of the last of the others; half at most.

    Many that are alike, of which each has a little more in its favour, would else leave out the one that is meant.
    """
    kept = [each for each in by_score if each.key in chosen and _OVERRULED.isdisjoint(each.terms)]
    behind = {each.key for each in by_score[top_k:]}
    late = [each for each in kept if each.key in behind][: top_k // 2]
    if not late:
        return
    others = [each for each in by_score[:top_k] if each not in kept]
    makes_room = others[-len(late)]
    for each in kept:
        if each.key not in behind or each in late:
            _put_before(each, makes_room.score)
    by_score.sort(key=lambda each: (-each.score, each.key))


def _put_before(each: Scored, score: float) -> None:
    if each.score <= score:
        each.terms["strongest"] = score - each.score + _AHEAD


def _best_of_each(candidates: Iterable[Candidate]) -> list[Candidate]:
    candidates = list(candidates)
    nearest = max(candidates, key=lambda each: -1.0 if each.cosine is None else each.cosine)
    return [nearest, max(candidates, key=lambda each: each.words or 0.0)]
