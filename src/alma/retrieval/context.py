"""Context: what speaks for a general memory besides itself: its conversation, title, time and links."""

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
from alma.retrieval.asking import asks_for_answer
from alma.retrieval.candidate import Candidate
from alma.retrieval.candidates import Pool, by_target, most_read
from alma.retrieval.length import LONG, STATEMENT, concision
from alma.retrieval.router import Asked, Target
from alma.retrieval.times import AskedTime, add_time, window_of
from alma.storage.base import TEXT_LENGTH, StorageBackend
from alma.storage.ranking import idf
from alma.text.timeexpr import TimeWindow
from alma.text.tokens import words_by_term

# How much each kind of evidence counts, where a memory's own meaning and words count up to one.
NEXT_TO, NEAR = 0.4, 0.2
BEST_OF_CONVERSATION, REST_OF_CONVERSATION = 0.2, 0.5
TITLE = 0.15
LINKED = 0.4
RELATED = 0.4

# In characters: what is a mere remark.
_REMARK = 600

# Among very many memories half as much is looked at, as half as many are proposed.
_MOST_CONVERSATIONS = 50
_MOST_TURNS = 5_000
_COUNTED_OF_CONVERSATION = 5
_STARTING_POINTS = 2
_LINKING_WORDS = 10
_WORDS_LOOKED_AT = 48
# A word that more memories have, or more than one in fifty, links nothing in particular.
_FEW, _FEW_OF_MANY = 3, 0.02
# And words that so many have together take longer to look up than they are worth; among very many memories sooner.
_MOST_ENTRIES, _MOST_ENTRIES_OF_MANY = 750, 250
_MOST_LINKED = 100
_READ_FOR_LINKS = 4_000
_RELATED_TO = 10

_READ = ("id", "session_id", "title", TEXT_LENGTH)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of memories without reading them, by their ids; the moments only where a time is asked for."""

    sessions: dict[str, str | None] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    moments: dict[str, datetime | None] = field(default_factory=dict)


Turn = tuple[str, str, int]
"""One memory of a conversation: which one that is, the id of the memory, and how long it is."""


def add_context(storage: StorageBackend, pool: Pool, request: Asked, asked: AskedTime) -> None:
    """Add to the general memories among the candidates what their surroundings say for them."""
    memories = pool.of(Memory)
    if not memories:
        return
    known = _surroundings(storage, memories, _names(window_of(request)))
    answered = asks_for_answer(request.query)
    if not answered:
        _prefer_concise(memories, known)
    _add_conversations(storage, pool, known, LONG if answered else _REMARK, most_read(request.top_k, pool))
    _add_titles(memories, known, request.query)
    add_time(memories, known.moments, asked, request.now)
    if pool.has_words:
        _add_links(storage, pool, request.query)
    # Many a store has no relationships, and this is quicker than asking for those of every candidate.
    if storage.values(MemoryRelationship, ("id",), Scope.everywhere(), limit=1):
        _add_relationships(storage, pool)


def _names(window: TimeWindow | None) -> tuple[str, ...]:
    # Moments are only read where the question speaks of a time: most do not.
    return _READ if window is None else (*_READ, "event_time", "created_at")


def _surroundings(storage: StorageBackend, memories: Iterable[Candidate], names: Sequence[str]) -> Surroundings:
    known = Surroundings()
    for target, ids in by_target(memories).items():
        rows = storage.values(Memory, names, target.scope, In("id", ids))
        found = list(map(itemgetter(0), rows))
        known.sessions.update(zip(found, map(itemgetter(1), rows), strict=True))
        known.titles.update(zip(found, map(itemgetter(2), rows), strict=True))
        known.lengths.update(zip(found, map(itemgetter(3), rows), strict=True))
        if len(names) > len(_READ):
            known.moments.update({row[0]: row[4] or row[5] for row in rows})
    return known


# ---------------------------------------------------------------------- length


def _prefer_concise(memories: Iterable[Candidate], known: Surroundings) -> None:
    """A long text also matches by accident, and the more so the longer it is."""
    # Most often none is long, which is seen at once.
    if max(known.lengths.values(), default=0) > STATEMENT:
        for candidate in memories:
            length = known.lengths.get(candidate.id, 0)
            if length > STATEMENT:
                candidate.scale(concision(length))


# ---------------------------------------------------------------------- conversations


def _add_conversations(storage: StorageBackend, pool: Pool, known: Surroundings, remark: int, wanted: int) -> None:
    """An answer stands next to its question: a turn gains from its neighbours and from its whole conversation.

    It gains fully up to the length of a `remark`. Only the best `wanted` candidates matter in the end.
    """
    memories = pool.of(Memory)
    base: dict[str, float] = dict(map(attrgetter("id", "total"), memories))
    faintest = memories[-1].total
    conversations = _conversations(memories, known, _most(_MOST_CONVERSATIONS, pool))
    # What the candidates of a conversation gain at least, whatever was said between them.
    certain = {
        candidate.id: whole if (length := known.lengths[candidate.id]) <= remark else whole * _share(length, remark)
        for said in conversations.values()
        for whole in (_whole([each.total for each in said[:_COUNTED_OF_CONVERSATION]]),)
        for candidate in said
    }
    reached = sorted([total + certain.get(key, 0.0) for key, total in base.items()], reverse=True)
    # Links may yet speak for a neighbour, but hardly ever lift one to the best.
    needed = reached[wanted - 1] if len(reached) >= wanted else 0.0
    read = {key: said[0].target for key, said in conversations.items() if _best_possible(said, faintest) >= needed}
    turns_of = {turns[0][0]: (target, turns) for target, turns in _turns(storage, read)}
    # What was said around the others need not be known: nothing of it would be among the best.
    for candidate in chain.from_iterable(said for key, said in conversations.items() if key not in turns_of):
        candidate.found_also("conversation")
        candidate.add("conversation", certain[candidate.id])
    for target, turns in turns_of.values():
        gains = list(_gains(turns, base))
        proposed = pool.propose_each(target, [key for (_, key, _), _ in gains], "conversation")
        for candidate, ((_, key, length), gain) in zip(proposed, gains, strict=True):
            if length > remark:
                gain *= _share(length, remark)
            candidate.add("conversation", gain if key in base else faintest + gain)


def _share(length: int, remark: int) -> float:
    """What is left of it for a memory that is longer than a remark: a long one is understood by itself."""
    return (remark / length) ** 2


def _most(usual: int, pool: Pool) -> int:
    return usual // 2 if pool.among_many else usual


def _conversations(memories: Sequence[Candidate], known: Surroundings, most: int) -> dict[str, list[Candidate]]:
    """The conversations of the best memories, each with those of the memories that belong to it, best first."""
    found: dict[str, list[Candidate]] = {}
    sessions = map(known.sessions.get, map(attrgetter("id"), memories))
    for candidate, session in zip(memories, sessions, strict=True):
        if session is None:
            continue
        if session in found:
            found[session].append(candidate)
        elif len(found) < most:
            found[session] = [candidate]
    return found


def _best_possible(said: Sequence[Candidate], faintest: float) -> float:
    """The most that a turn may reach once the conversation is read, but for an only candidate, which is certain."""
    first, *others = totals = [candidate.total for candidate in said]
    whole = _whole(totals[:_COUNTED_OF_CONVERSATION])
    if not others:
        return faintest + NEXT_TO * first + whole
    # Each of the best two may stand next to the other, and near one that is as good.
    beside = NEXT_TO + NEAR
    return whole + max(first + beside * others[0], others[0] + beside * first)


def _whole(best: Sequence[float]) -> float:
    """What every turn of a conversation gains from the best of its candidates."""
    if not best:
        return 0.0
    return BEST_OF_CONVERSATION * best[0] + REST_OF_CONVERSATION * sum(best) / _COUNTED_OF_CONVERSATION


def _turns(storage: StorageBackend, conversations: Mapping[str, Target]) -> Iterator[tuple[Target, list[Turn]]]:
    """The memories of each conversation, in the order they were said.

    Without those that are too long to be read: in part of one, what was read would gain and the rest would not.
    """
    wanted: dict[Target, list[str]] = defaultdict(list)
    for session, target in conversations.items():
        wanted[target].append(session)
    names = ("session_id", "id", TEXT_LENGTH)
    order = (Order("session_id"), Order("event_time"), Order("created_at"))
    for target, ids in wanted.items():
        where = And(target.where, In("session_id", ids))
        said = storage.values(Memory, names, target.scope, where, order, _MOST_TURNS)
        unfinished = said[-1][0] if len(said) == _MOST_TURNS else None
        for session, turns in groupby(said, key=itemgetter(0)):
            if session != unfinished:
                yield target, cast(list[Turn], list(turns))


def _gains(turns: Sequence[Turn], base: Mapping[str, float]) -> Iterator[tuple[Turn, float]]:
    """What each turn gains that is a candidate already or stands beside one."""
    scores = list(map(base.get, map(itemgetter(1), turns)))
    # Without those that are worth nothing, which add nothing.
    known = sorted(filter(None, scores), reverse=True)
    whole = _whole(known[:_COUNTED_OF_CONVERSATION])
    # With two places before the first and behind the last, so that every turn has neighbours.
    around = [0.0, 0.0, *[score or 0.0 for score in scores], 0.0, 0.0]
    next_to, near = map(max, around[1:], around[3:]), map(max, around, around[4:])
    for turn, score, beside, further in zip(turns, scores, next_to, near, strict=False):
        if beside or score is not None:
            yield turn, NEXT_TO * beside + NEAR * further + whole


# ---------------------------------------------------------------------- titles


def _add_titles(memories: Iterable[Candidate], known: Surroundings, query: str) -> None:
    """What carries a name that the question names, a speaker's for example, gains from it."""
    folded = query.casefold()
    # Most begin as nothing in the question does, and that is seen sooner than where the name in them ends.
    titled = {
        key: title.partition("(")[0].strip().casefold()
        for key, title in known.titles.items()
        if (beginning := title[:3].casefold()) in folded or not beginning.isalnum()
    }
    # Looking for the letters first spares a pattern for every title that is not named.
    named = {name for name in titled.values() if len(name) > 1 and name in folded and _is_named(name, folded)}
    if named:
        for candidate in memories:
            if titled.get(candidate.id) in named:
                candidate.add("title", TITLE)


def _is_named(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


# ---------------------------------------------------------------------- links


def _add_links(storage: StorageBackend, pool: Pool, query: str) -> None:
    """One hop: what shares rare words with the best memories may hold the other half of the answer."""
    memories = pool.of(Memory)
    best = [candidate for candidate in memories[: _most(_STARTING_POINTS, pool)] if candidate.total > 0]
    if not best:
        return
    target, faintest = best[0].target, memories[-1].total
    starts = {candidate.id for candidate in best if candidate.target is target}
    texts = storage.values(Memory, ("title", "content"), target.scope, In("id", starts))
    entries = _MOST_ENTRIES_OF_MANY if pool.among_many else _MOST_ENTRIES
    rare, full = _rare_words(storage, [f"{title}\n{content}" for title, content in texts], target, query, entries)
    if not rare:
        return
    most = _most(_MOST_LINKED, pool)
    found = storage.matching_ids(Memory, " ".join(rare), target.scope, target.where, most, exact=False)
    strengths = {key: LINKED * min(1.0, score / full) for key, score in found if key not in starts}
    new = {key for key in strengths if pool.get(Memory, key) is None}
    for linked in pool.propose_each(target, strengths, "linked words"):
        strength = strengths[linked.id]
        # What is found because of the best memory is at most as good.
        room = best[0].total - linked.total
        linked.add("linked", min(strength + faintest if linked.id in new else strength, room))


def _rare_words(
    storage: StorageBackend, texts: Iterable[str], target: Target, query: str, most_entries: int
) -> tuple[set[str], float]:
    """Words of these texts that few others have and the question has not, and what sharing one's words scores."""
    asked = words_by_term(query)
    rare: set[str] = set()
    full = 0.0
    every = [words_by_term(text[:_READ_FOR_LINKS]) for text in texts]
    others = [[term for term in own if term not in asked][:_WORDS_LOOKED_AT] for own in every]
    # Those of all texts at once, as counting may take a round trip.
    looked_at = dict.fromkeys(term for terms in others for term in terms)
    total, counts = storage.word_counts(Memory, looked_at, target.scope, target.where)
    few = max(_FEW, _FEW_OF_MANY * total)
    for own, terms in zip(every, others, strict=True):
        # What nobody else has links to nothing.
        linking = sorted((term for term in terms if 1 < counts[term] <= few), key=lambda term: counts[term])
        entries = accumulate(counts[term] for term in linking[:_LINKING_WORDS])
        chosen = [term for term, so_far in zip(linking, entries, strict=False) if so_far <= most_entries]
        rare.update(own[term] for term in chosen)
        full = max(full, 2 * sum(idf(total, counts[term]) for term in linking[:_LINKING_WORDS]))
    return rare, full


def _add_relationships(storage: StorageBackend, pool: Pool) -> None:
    """One hop along the relationships that were stored; what superseded what is another matter."""
    best = {candidate.id: candidate for candidate in pool.of(Memory)[:_RELATED_TO]}
    ends = Or(In("from_memory_id", list(best)), In("to_memory_id", list(best)))
    others = And(ends, Compare("relationship_type", "ne", Relation.SUPERSEDES))
    for edge in storage.find(MemoryRelationship, Scope.everywhere(), others, limit=10 * _RELATED_TO):
        for start, end in ((edge.from_memory_id, edge.to_memory_id), (edge.to_memory_id, edge.from_memory_id)):
            if start in best:
                origin = best[start]
                candidate = pool.propose(origin.target, end, f"relationship {edge.relationship_type}")
                candidate.add("related", RELATED * edge.strength * origin.total)
