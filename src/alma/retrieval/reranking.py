"""Reranking: of two facts that differ in one value, the newer one takes the place of the older one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, takewhile

from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.record import Record
from alma.retrieval.scoring import ScoredRecord
from alma.retrieval.supersession import known_since
from alma.retrieval.tuning import TUNING
from alma.text.tokens import terms

# Two facts are about the same thing if they match the query by the same words, share this much of their text, and begin
# with so many equal words.
_SAME_MATCH, _SAME_TEXT, _SAME_BEGINNING = 0.95, 0.4, 2
_AHEAD = 1e-6


@dataclass(slots=True)
class Statement:
    """A scored record with a short text, as it is compared with others.

    `matched` are its terms that the query has. `voice` is the title or speaker that the text is shown under, `result`
    whether an outcome succeeded.
    """

    scored: ScoredRecord
    text: str
    owner: str = ""
    voice: str = ""
    result: str = ""
    moment: datetime | None = None
    terms: frozenset[str] = frozenset()
    matched: frozenset[str] = frozenset()


def statements_of(items: Iterable[ScoredRecord], query_terms: frozenset[str], as_of: datetime) -> list[Statement]:
    """The best records that are short enough to be compared, best first; `as_of` is the time that is asked about."""
    best = [(scored, scored.record.text()) for scored in items]
    short = [each for each in best[: TUNING.statements_compared] if len(each[1]) <= TUNING.longest_statement]
    return [_statement(scored, text, query_terms, as_of) for scored, text in short]


def newest_first(statements: Iterable[Statement], weight_of: Mapping[str, float], query: str) -> None:
    """Let a newer version of a fact exchange its score with the older one, if that is ahead.

    Only words are compared: facts that were never judged against each other, such as thousands imported at once, mostly
    follow one template. `weight_of` are the weights of the query's words.
    """
    in_query = frozenset(word for word in query.strip(" ?!.").split() if not word.islower())
    by_owner: dict[str, list[tuple[datetime, str, Statement]]] = defaultdict(list)
    for each in statements:
        if each.moment is not None:
            by_owner[each.owner].append((each.moment, each.scored.key, each))
    for dated in by_owner.values():
        for (before, _, older), (after, _, newer) in combinations(sorted(dated, key=lambda each: each[:2]), 2):
            ahead = older.scored.score >= newer.scored.score and before != after
            if ahead and _is_new_version(older, newer, weight_of, in_query):
                _exchange(newer.scored, older.scored)


def _is_new_version(
    older: Statement, newer: Statement, weight_of: Mapping[str, float], in_query: frozenset[str]
) -> bool:
    """Whether both match the query by the same words and differ in one place, which is not what the query names."""
    either = sum(weight_of.get(word, 1.0) for word in older.matched | newer.matched)
    both = sum(weight_of.get(word, 1.0) for word in older.matched & newer.matched)
    if not either or both < _SAME_MATCH * either or _is_about_something_else(older, newer):
        return False
    ours, theirs = older.text.casefold().split(), newer.text.casefold().split()
    shorter, longer = sorted((len(ours), len(theirs)))
    before = _equal(zip(ours, theirs, strict=False))
    after = min(_equal(zip(reversed(ours), reversed(theirs), strict=False)), shorter - before)
    if ours == theirs or before < _SAME_BEGINNING or before + after < _SAME_TEXT * longer:
        return False
    # "Vitamin A is ..." stays before "vitamin C is ..." if A is asked about.
    replaced, by = older.text.split()[before : before + 1], newer.text.split()[before : before + 1]
    return not in_query.intersection(replaced).difference(by)


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_about_something_else(older: Statement, newer: Statement) -> bool:
    """Whether only the older one is of the time range of the query, or its cosine is much higher."""
    if older.scored.terms.get("time", 0.0) > newer.scored.terms.get("time", 0.0):
        return True
    near, far = older.scored.similarity, newer.scored.similarity
    return near is not None and far is not None and near - far > TUNING.fact_distance


def _exchange(newer: ScoredRecord, older: ScoredRecord) -> None:
    gap = older.score - newer.score
    newer.terms["newer"] = newer.terms.get("newer", 0.0) + gap + _AHEAD
    older.terms["overruled"] = older.terms.get("overruled", 0.0) - gap


def _statement(scored: ScoredRecord, text: str, query_terms: frozenset[str], as_of: datetime) -> Statement:
    record = scored.record
    voice = getattr(record, "title", "").partition("(")[0]
    words = scored.words or frozenset(terms(text))
    # A lesson is ranked by its evidence: a newer one for the same task does not replace it.
    known = None if isinstance(record, Heuristic | AntiPattern | Outcome) else known_since(record, as_of)
    return Statement(
        scored,
        text,
        owner=getattr(record, "agent", None) or voice,
        voice=voice,
        result=_result(record),
        moment=known if known is not None and known <= as_of else None,
        terms=words,
        matched=words & query_terms,
    )


def _result(record: Record) -> str:
    if not isinstance(record, Outcome):
        return ""
    return "succeeded" if record.success else "failed"
