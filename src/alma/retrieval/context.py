"""Context features of general memories: their conversation, title, time, links and relationships."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate, chain, groupby
from operator import attrgetter, itemgetter
from typing import cast

from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, Compare, In, Or, Order
from alma.model.relations import Relation
from alma.model.scope import Scope
from alma.retrieval.candidates import Candidate, CandidatePool, by_target, records_read
from alma.retrieval.query_text import asks_for_earlier_answer
from alma.retrieval.relevance import concision
from alma.retrieval.router import SearchRequest, Target
from alma.retrieval.time_filters import TimeFilter, add_time, window_of
from alma.retrieval.tuning import SCORE, TUNING
from alma.storage.base import TEXT_LENGTH, Transaction
from alma.storage.ranking import idf
from alma.text.tokens import words_by_term

_READ = ("id", "session_id", "title", TEXT_LENGTH)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Fields of memories that were not read, by id; the moments only for a query with a time range."""

    sessions: dict[str, str | None] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    moments: dict[str, datetime | None] = field(default_factory=dict)


Turn = tuple[str, str, int]
"""A memory of a conversation: the conversation, the id of the memory, and its length."""


def add_context(tx: Transaction, pool: CandidatePool, request: SearchRequest, times: TimeFilter) -> None:
    """Add the context features to the general memories among the candidates."""
    memories = pool.of(Memory)
    if not memories:
        return
    known = _surroundings(tx, memories, with_moments=window_of(request) is not None)
    remark = TUNING.remark_length
    if asks_for_earlier_answer(request.query):
        remark = TUNING.long_text
    else:
        _add_length(memories, known)
    _add_conversations(tx, pool, known, remark, records_read(request.top_k, pool))
    _add_titles(memories, known, request.query)
    add_time(memories, known.moments, times)
    if pool.has_words:
        _add_links(tx, pool, request.query)
    # Many stores have no relationships; this check is faster than reading those of every candidate.
    if tx.values(MemoryRelationship, ("id",), Scope.everywhere(), limit=1):
        _add_relationships(tx, pool)


def _surroundings(tx: Transaction, memories: Iterable[Candidate], *, with_moments: bool) -> Surroundings:
    names = (*_READ, "event_time", "created_at") if with_moments else _READ
    known = Surroundings()
    for target, ids in by_target(memories).items():
        for key, session, title, length, *moments in tx.values(Memory, names, target.scope, In("id", ids)):
            known.sessions[key], known.titles[key], known.lengths[key] = session, title, length
            if moments:
                known.moments[key] = moments[0] or moments[1]
    return known


def _add_length(memories: Iterable[Candidate], known: Surroundings) -> None:
    """Length penalty: longer texts match more often by accident."""
    if max(known.lengths.values(), default=0) <= TUNING.statement_length:
        return
    for candidate in memories:
        lost = candidate.total * (1.0 - concision(known.lengths.get(candidate.id, 0)))
        candidate.add("length", SCORE["length"] * lost)


def _add_conversations(tx: Transaction, pool: CandidatePool, known: Surroundings, remark: int, wanted: int) -> None:
    """Add the scores of neighbouring turns and of the whole conversation to a turn, less to turns longer than `remark`.
    A conversation is read only if one of its turns may become one of the best `wanted` candidates.
    """
    memories = pool.of(Memory)
    base: dict[str, float] = dict(map(attrgetter("id", "total"), memories))
    faintest = memories[-1].total
    conversations = _conversations(memories, known, _most(TUNING.conversations, pool))
    # The gain of the candidates without their neighbours.
    least = {
        candidate.id: whole * _share(known.lengths[candidate.id], remark)
        for turns in conversations.values()
        for whole in (_whole([each.total for each in turns]),)
        for candidate in turns
    }
    reached = sorted([total + least.get(key, 0.0) for key, total in base.items()], reverse=True)
    needed = reached[wanted - 1] if len(reached) >= wanted else 0.0
    read = {key: turns[0].target for key, turns in conversations.items() if _highest(turns, faintest) >= needed}
    complete = set()
    for target, turns in _turns(tx, read):
        complete.add(turns[0][0])
        gains = list(_gains(turns, base))
        proposed = pool.propose(target, [key for (_, key, _), _ in gains], "conversation")
        for candidate, ((_, key, length), gain) in zip(proposed, gains, strict=True):
            gain *= _share(length, remark)
            candidate.add("conversation", SCORE["conversation"] * gain if key in base else faintest + gain)
    for candidate in chain.from_iterable(turns for key, turns in conversations.items() if key not in complete):
        candidate.found_also("conversation")
        candidate.add("conversation", SCORE["conversation"] * least[candidate.id])


def _share(length: int, remark: int) -> float:
    """The share of the gain for a turn: long turns need less context."""
    return 1.0 if length <= remark else (remark / length) ** 2


def _most(usual: int, pool: CandidatePool) -> int:
    """Half as many in a large store, where half as many candidates are proposed."""
    return usual // 2 if pool.among_many else usual


def _conversations(memories: Sequence[Candidate], known: Surroundings, most: int) -> dict[str, list[Candidate]]:
    """The conversations of the best memories, each with its candidates, best first."""
    found: dict[str, list[Candidate]] = {}
    for candidate in memories:
        session = known.sessions.get(candidate.id)
        if session is not None and (session in found or len(found) < most):
            found.setdefault(session, []).append(candidate)
    return found


def _highest(turns: Sequence[Candidate], faintest: float) -> float:
    """An upper bound of the score that a turn can reach once the conversation is read."""
    first, *others = totals = [candidate.total for candidate in turns]
    whole = _whole(totals)
    if not others:
        return faintest + TUNING.next_turn * first + whole
    beside = TUNING.next_turn + TUNING.second_next_turn
    return whole + max(first + beside * others[0], others[0] + beside * first)


def _whole(totals: Sequence[float]) -> float:
    """The gain of every turn from the best candidates of its conversation."""
    best = totals[: TUNING.turns_counted]
    return TUNING.best_turn * best[0] + TUNING.other_turns * sum(best) / TUNING.turns_counted if best else 0.0


def _turns(tx: Transaction, conversations: Mapping[str, Target]) -> Iterator[tuple[Target, list[Turn]]]:
    """The turns of each conversation in their order, without conversations that are too long to be read whole."""
    wanted: dict[Target, list[str]] = defaultdict(list)
    for session, target in conversations.items():
        wanted[target].append(session)
    names = ("session_id", "id", TEXT_LENGTH)
    order = (Order("session_id"), Order("event_time"), Order("created_at"))
    for target, ids in wanted.items():
        where = And(target.where, In("session_id", ids))
        rows = tx.values(Memory, names, target.scope, where, order, TUNING.turns_read)
        incomplete = rows[-1][0] if len(rows) == TUNING.turns_read else None
        for session, turns in groupby(rows, key=itemgetter(0)):
            if session != incomplete:
                yield target, cast(list[Turn], list(turns))


def _gains(turns: Sequence[Turn], base: Mapping[str, float]) -> Iterator[tuple[Turn, float]]:
    """The gain of each turn that is a candidate or next to one."""
    scores = [base.get(key) for _, key, _ in turns]
    whole = _whole(sorted(filter(None, scores), reverse=True))
    # Two places at each end, so that every turn has neighbours.
    around = [0.0, 0.0, *[score or 0.0 for score in scores], 0.0, 0.0]
    next_to, second_next = map(max, around[1:], around[3:]), map(max, around, around[4:])
    for turn, score, beside, further in zip(turns, scores, next_to, second_next, strict=False):
        if beside or score is not None:
            yield turn, TUNING.next_turn * beside + TUNING.second_next_turn * further + whole


def _add_titles(memories: Iterable[Candidate], known: Surroundings, query: str) -> None:
    """Add the title feature to memories whose title, often a speaker, is in the query."""
    folded = query.casefold()
    # Comparing the beginnings first is faster, because few titles are in the query.
    titles = {
        key: title.partition("(")[0].strip().casefold()
        for key, title in known.titles.items()
        if (beginning := title[:3].casefold()) in folded or not beginning.isalnum()
    }
    candidates = {title for title in titles.values() if len(title) > 1 and title in folded}
    named = {title for title in candidates if re.search(rf"(?<!\w){re.escape(title)}(?!\w)", folded)}
    for candidate in memories if named else ():
        if titles.get(candidate.id) in named:
            candidate.add("title", SCORE["title"])


def _add_links(tx: Transaction, pool: CandidatePool, query: str) -> None:
    """Add the link feature, one hop: memories that share rare words with the best ones may have the other half of the
    answer.
    """
    memories = pool.of(Memory)
    best = [candidate for candidate in memories[: _most(TUNING.link_sources, pool)] if candidate.total > 0]
    if not best:
        return
    target, faintest = best[0].target, memories[-1].total
    sources = {candidate.id for candidate in best if candidate.target is target}
    texts = tx.values(Memory, ("title", "content"), target.scope, In("id", sources))
    entries = TUNING.link_entries_among_many if pool.among_many else TUNING.link_entries
    rare, full = _rare_words(tx, [f"{title}\n{content}" for title, content in texts], target, query, entries)
    if not rare:
        return
    most = _most(TUNING.linked_memories, pool)
    found = tx.matching_ids(Memory, " ".join(rare), target.scope, target.where, most, exact=False)
    strengths = {key: SCORE["linked"] * min(1.0, score / full) for key, score in found if key not in sources}
    new = {key for key in strengths if pool.get(Memory, key) is None}
    for linked in pool.propose(target, strengths, "linked words"):
        strength = strengths[linked.id] + (faintest if linked.id in new else 0.0)
        # A linked memory does not score above the one that led to it.
        linked.add("linked", max(0.0, min(strength, best[0].total - linked.total)))


def _rare_words(
    tx: Transaction, texts: Iterable[str], target: Target, query: str, most_entries: int
) -> tuple[set[str], float]:
    """Rare words of these texts that are not in the query, and the score of sharing all of those of one text."""
    in_query = words_by_term(query)
    rare: set[str] = set()
    full = 0.0
    words = [words_by_term(text[: TUNING.link_characters]) for text in texts]
    others = [[term for term in own if term not in in_query][: TUNING.link_words_counted] for own in words]
    # One count for all texts: it may take a round trip.
    total, counts = tx.word_counts(Memory, dict.fromkeys(chain.from_iterable(others)), target.scope, target.where)
    few = max(TUNING.rare_records, TUNING.rare_share * total)
    for own, terms in zip(words, others, strict=True):
        linking = sorted((term for term in terms if 1 < counts[term] <= few), key=lambda term: counts[term])
        linking = linking[: TUNING.link_words]
        entries = accumulate(counts[term] for term in linking)
        rare.update(own[term] for term, so_far in zip(linking, entries, strict=True) if so_far <= most_entries)
        full = max(full, 2 * sum(idf(total, counts[term]) for term in linking))
    return rare, full


def _add_relationships(tx: Transaction, pool: CandidatePool) -> None:
    """Add the relationship feature, one hop along stored relationships; supersession is separate."""
    best = {candidate.id: candidate for candidate in pool.of(Memory)[: TUNING.related_sources]}
    ends = Or(In("from_memory_id", list(best)), In("to_memory_id", list(best)))
    where = And(ends, Compare("relationship_type", "ne", Relation.SUPERSEDES))
    for edge in tx.find(MemoryRelationship, Scope.everywhere(), where, limit=10 * TUNING.related_sources):
        for start, end in ((edge.from_memory_id, edge.to_memory_id), (edge.to_memory_id, edge.from_memory_id)):
            if start in best:
                [related] = pool.propose(best[start].target, [end], f"relationship {edge.relationship_type}")
                related.add("related", SCORE["related"] * edge.strength * best[start].total)
