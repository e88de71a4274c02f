"""Ranking: read the best candidates, and assess, score, rerank, deduplicate and pack them, kind by kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import And, In, Order
from alma.model.record import Record
from alma.retrieval.candidates import Candidate, CandidatePool, by_target, records_read
from alma.retrieval.packing import DropReason, Results, best_first, deduplicated, duplicates_of
from alma.retrieval.relevance import LESSONS, Match, Query, RelevanceModel, add_evidence
from alma.retrieval.router import RetrievalRequest, SearchRequest, Target, is_instruction
from alma.retrieval.scoring import ScoredRecord, Scorer
from alma.retrieval.supersession import (
    current_first,
    holds,
    holds_from,
    newest_first,
    statements_of,
    successors_of,
    validity_notes,
)
from alma.retrieval.tuning import TUNING
from alma.storage.base import Transaction
from alma.storage.ranking import idf

_IRRELEVANT = "its relevance to the task of {:.2f} is below {:g}"
_WEAK = f"{_IRRELEVANT}, and weak memories were not requested"


@dataclass(frozen=True, slots=True)
class Ranker:
    """Ranks the candidates of one request."""

    tx: Transaction
    request: SearchRequest
    scorer: Scorer
    relevance: RelevanceModel
    min_score: float

    def rank(self, pool: CandidatePool, targets: Sequence[Target], query: Query) -> Results:
        """The best of each kind, with preferences and instructions, which are always included."""
        results = Results(targets)
        for record_id in pool.outside_time:
            results.drop(record_id, "time", "it is outside of the time range of the query")
        most = records_read(self.request.top_k, pool)
        best = self._best_candidates(pool, most, results)
        queries = {cls: self._weighted(query, cls, found[0].target, pool) for cls, found in best.items()}
        # Many objects trigger garbage collection: release the candidates before the records are read.
        pool.clear()
        matches = {cls: self._read(found, queries[cls], results) for cls, found in best.items()}
        for cls, found in matches.items():
            self.relevance.assess(found, queries[cls])
        for cls in (Heuristic, AntiPattern):
            add_evidence(matches.get(cls, ()), matches.get(Outcome, ()))
        for cls, found in matches.items():
            scored = self._relevant(cls, found, results)
            results.chosen[cls] = self._ordered(scored, queries[cls], results)
            if len(found) >= most and len(results.chosen[cls]) < self.request.top_k:
                room = TUNING.results_beside_duplicates * self.request.top_k
                results.duplicates.add(duplicates_of(scored, results.dropped, most - room))
        if any(target.always for target in targets):
            add_always_included(self.tx, results, self.scorer)
        return results

    def _best_candidates(
        self, pool: CandidatePool, most: int, results: Results
    ) -> Mapping[type[Record], Sequence[Candidate]]:
        """The candidates that are read, by kind."""
        best: dict[type[Record], Sequence[Candidate]] = {}
        least = self.request.min_similarity
        behind = DropReason("rank", "{:,} others are more similar to the task", (most,))
        for cls in self.request.kinds:
            candidates = pool.of(cls)
            if least is not None:
                for each in candidates:
                    if each.cosine is None or each.cosine < least:
                        results.drop(each.id, "similarity", "its cosine is below {:g}", least)
                candidates = [each for each in candidates if each.cosine is not None and each.cosine >= least]
            read = _with_top_matches(candidates, most)
            if len(read) < len(candidates):
                kept = {each.id for each in read}
                for each in candidates:
                    if each.id not in kept:
                        results.dropped.setdefault(each.id, behind)
            if read:
                best[cls] = read
        return best

    def _weighted(self, query: Query, cls: type[Record], target: Target, pool: CandidatePool) -> Query:
        """The query with the weights of its words among the records of a kind."""
        if not pool.has_words:
            # Without full-text search, the frequencies of words are unknown.
            records = self.tx.size(cls, target.scope, target.where)
            return replace(query, weights=dict.fromkeys(query.terms, 1.0), records=records, known=query.terms)
        terms = query.terms.union(query.compounds)
        records, counts = self.tx.word_counts(cls, terms, target.scope, target.where)
        weights = {word: idf(max(records, count), count) for word, count in counts.items() if word in query.terms}
        found = frozenset(word for word, count in counts.items() if count)
        parts = (parts for whole, parts in query.compounds.items() if whole in found)
        return replace(query, weights=weights, records=records, known=found.union(*parts) & query.terms)

    def _read(self, candidates: Sequence[Candidate], query: Query, results: Results) -> list[Match]:
        """The candidates with their records; scope and expiry are checked again, as an index only proposes."""
        records: dict[str, Record] = {}
        for target, ids in by_target(candidates).items():
            found = self.tx.find(target.cls, target.scope, And(target.where, In(target.cls.spec.key, ids)))
            records.update((str(record.key), record) for record in found)
        for candidate in candidates:
            if candidate.id not in records:
                results.drop(candidate.id, "scope", "it is deleted, expired or no longer visible here")
        return query.matches([(each, records[each.id]) for each in candidates if each.id in records])

    def _relevant(self, cls: type[Record], matches: Sequence[Match], results: Results) -> list[ScoredRecord]:
        """The scores of the matches that are relevant enough. A search always returns its best. Weak lessons are
        dropped if there is no strong one, because following them is worse than having none; with a threshold of 0,
        no lesson is.
        """
        strong, weak = self.relevance.strong, self.relevance.weak
        least = 0.0
        if isinstance(self.request, RetrievalRequest):
            only_weak = max((each.relevance for each in matches), default=0.0) < strong
            least = strong if only_weak and issubclass(cls, LESSONS) and not self.request.weak else weak
            least = 0.0 if issubclass(cls, LESSONS) and self.min_score <= 0 else least
        kept: list[ScoredRecord] = []
        for each in matches:
            if each.relevance >= least:
                kept.append(self.scorer.match(each, self.relevance.strength(each)))
            else:
                sentence = _IRRELEVANT if each.relevance < weak else _WEAK
                results.drop(each.candidate.id, "relevance", sentence, each.relevance, least)
        return kept

    def _ordered(self, scored: Sequence[ScoredRecord], query: Query, results: Results) -> list[ScoredRecord]:
        """Put newer facts first, deduplicate, put superseded facts last, and keep the best."""
        now = self.request.now
        # For a past time range, facts that became known later are not newer versions.
        spans = () if self.scorer.window is None else self.scorer.window.spans
        as_of = min(now, max((end for _, end in spans), default=now))
        statements = statements_of(sorted(scored, key=best_first), query.terms, as_of)
        newest_first(statements, query.weights, self.request.query)
        for each in scored:
            each.notes = validity_notes(each.record, now)
        kept = sorted(scored, key=best_first)
        if not self.request.keep_duplicates:
            kept = deduplicated(kept, statements, results.dropped)
        current = current_first(
            self.tx,
            kept,
            results.targets,
            lambda record, found_by: self.scorer.record(record, {}, tuple(found_by)),
            now,
        )
        return results.pack(sorted(current, key=best_first), self.request, self.min_score)


def _with_top_matches(by_total: Sequence[Candidate], most: int) -> Sequence[Candidate]:
    """The first `most` candidates, of which at least half were compared by their vectors, with the nearest one and the
    best match by words. The cosine of the others is unknown until they are read.
    """
    if len(by_total) <= most:
        return by_total
    compared = [each for each in by_total if each.cosine is not None]
    nearest = max(compared, key=lambda each: each.cosine or 0.0, default=by_total[0])
    best_words = max(by_total, key=lambda each: each.words or 0.0)
    wanted = {each.id: each for each in (nearest, best_words, *compared[: most // 2])}
    for each in by_total:
        if len(wanted) >= most:
            break
        wanted.setdefault(each.id, each)
    return [each for each in by_total if each.id in wanted]


NEWEST: dict[type[Record], str] = {
    Heuristic: "last_validated",
    AntiPattern: "last_seen",
    UserPreference: "timestamp",
    DomainKnowledge: "last_verified",
    Outcome: "timestamp",
    Memory: "created_at",
}
"""The time field by which records of each kind are sorted, newest first."""


def add_always_included(tx: Transaction, results: Results, scorer: Scorer) -> None:
    """Add preferences and standing instructions: those that match the query first, then the newest."""
    request = scorer.request
    always = [target for target in results.targets if target.always]
    most = max(request.top_k, TUNING.always_included)
    _separate_instructions(tx, results, request)
    for cls in dict.fromkeys(target.cls for target in always):
        items = results.instructions if cls is Memory else results.chosen[cls]
        known = {scored.key for scored in (*items, *results.chosen[cls])}
        records = newest(tx, [target for target in always if target.cls is cls], most)
        added = [scorer.record(record, {}, ("rule",)) for record in records if str(record.key) not in known]
        items.extend(_in_force(tx, added, results, request))
        kept = deduplicated(items, statements_of(items, frozenset(), request.now), results.dropped)
        items[:] = _current_first(tx, kept, results, scorer)
        for scored in items[most:]:
            results.drop(scored.key, "rank", "{:,} others are included by rule", most)
        del items[most:]
        for scored in items:
            scored.strength = "strong"
            results.dropped.pop(scored.key, None)


def instructions_in_force(
    tx: Transaction, records: Sequence[Record], targets: Sequence[Target], now: datetime
) -> list[Record]:
    """The instructions that are valid now and not superseded."""
    over = _superseded(tx, records, targets)
    return [record for record in records if str(record.key) not in over and holds(record, now)]


def newest(tx: Transaction, targets: Sequence[Target], limit: int) -> list[Record]:
    """The newest records of targets of one kind, each once."""
    found: dict[str, Record] = {}
    for target in targets:
        by_age = (Order(NEWEST[target.cls], "desc"),)
        for record in tx.find(target.cls, target.scope, target.where, by_age, limit=limit):
            found.setdefault(str(record.key), record)
    return sorted(found.values(), key=_age)[:limit] if len(targets) > 1 else list(found.values())


def _age(record: Record) -> float:
    moment = getattr(record, NEWEST[type(record)])
    return math.inf if moment is None else -moment.timestamp()


def _current_first(
    tx: Transaction, items: Sequence[ScoredRecord], results: Results, scorer: Scorer
) -> list[ScoredRecord]:
    """The same, with superseded memories after those that replaced them."""
    for scored in items:
        scored.notes = ()
    current = current_first(
        tx, items, results.targets, lambda record, _: scorer.record(record, {}, ("rule",)), scorer.request.now
    )
    noted = any(scored.notes for scored in current)
    return sorted(current, key=lambda scored: -scored.score) if noted else current


def _separate_instructions(tx: Transaction, results: Results, request: SearchRequest) -> None:
    """Move the standing instructions among the memories that were found into their own list."""
    found = results.chosen[Memory]
    instructions = [scored for scored in found if is_instruction(scored.record, request)]
    results.instructions.extend(_in_force(tx, instructions, results, request))
    separate = {scored.key for scored in results.instructions}
    results.chosen[Memory] = [scored for scored in found if scored.key not in separate][: request.top_k]


def _in_force(
    tx: Transaction, items: Sequence[ScoredRecord], results: Results, request: SearchRequest
) -> list[ScoredRecord]:
    """The items that are valid now and not superseded; the others are dropped."""
    over = _superseded(tx, [scored.record for scored in items], results.targets)
    kept: list[ScoredRecord] = []
    for scored in items:
        if scored.key in over:
            results.dropped[scored.key] = DropReason("rule", "it was superseded by {}", (over[scored.key],))
        elif holds(scored.record, request.now):
            kept.append(scored)
        else:
            results.dropped[scored.key] = DropReason("rule", "it is not valid at this time")
            begins = holds_from(scored.record, request.now)
            results.changes_at = min(filter(None, (results.changes_at, begins)), default=None)
    return kept


def _superseded(tx: Transaction, records: Sequence[Record], targets: Sequence[Target]) -> dict[str, str]:
    """The general memories among these records that a visible one supersedes, each with one of those."""
    ids = [str(record.key) for record in records if isinstance(record, Memory)]
    later = successors_of(tx, ids) if ids else {}
    named = In("id", sorted({new for ends in later.values() for new in ends}))
    visible = {
        str(key)
        for target in targets
        if later and target.cls is Memory and target.searched
        for (key,) in tx.values(Memory, ("id",), target.scope, And(target.where, named))
    }
    return {old: min(new & visible) for old, new in later.items() if old in ids and new & visible}
