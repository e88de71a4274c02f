"""Ranking: the best candidates are read, assessed, scored, reranked, deduplicated and packed, kind by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.query import And, In
from alma.model.record import Record
from alma.retrieval.candidates import Candidate, CandidatePool, by_target, records_read
from alma.retrieval.deduplication import deduplicated, duplicates_of
from alma.retrieval.explain import DropReason
from alma.retrieval.features import Match, Query
from alma.retrieval.instructions import add_always_included
from alma.retrieval.packing import Results, best_first
from alma.retrieval.relevance import LESSONS, RelevanceModel, add_evidence
from alma.retrieval.reranking import newest_first, statements_of
from alma.retrieval.router import RetrievalRequest, SearchRequest, Target
from alma.retrieval.scoring import ScoredRecord, Scorer
from alma.retrieval.supersession import current_first, validity_notes
from alma.retrieval.tuning import TUNING
from alma.storage.base import StorageBackend
from alma.storage.ranking import idf

_IRRELEVANT = "it has too little to do with the task: its relevance of {:.2f} is below {:g}"
_WEAK = f"{_IRRELEVANT}, and what is weak was not asked for"


@dataclass(frozen=True, slots=True)
class Ranker:
    """Ranks the candidates of one request."""

    storage: StorageBackend
    request: SearchRequest
    scorer: Scorer
    relevance: RelevanceModel
    min_score: float

    def rank(self, pool: CandidatePool, targets: Sequence[Target], query: Query) -> Results:
        """The best of each kind, with what every slice includes."""
        results = Results(self.storage, targets)
        for record_id in pool.outside_time:
            results.drop(record_id, "time", "it is not of the time that is asked for")
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
            add_always_included(self.storage, results, self.scorer)
        return results

    def _best_candidates(
        self, pool: CandidatePool, most: int, results: Results
    ) -> Mapping[type[Record], Sequence[Candidate]]:
        """The candidates that are read, by kind."""
        best: dict[type[Record], Sequence[Candidate]] = {}
        least = self.request.min_similarity
        behind = DropReason("rank", "{:,} others resemble the task more", (most,))
        for cls in self.request.kinds:
            candidates = pool.of(cls)
            if least is not None:
                for each in candidates:
                    if each.cosine is None or each.cosine < least:
                        results.drop(each.id, "similarity", "its meaning is less similar than {:g}", least)
                candidates = [each for each in candidates if each.cosine is not None and each.cosine >= least]
            for each in candidates[most:]:
                results.dropped.setdefault(each.id, behind)
            if candidates:
                best[cls] = candidates[:most]
        return best

    def _weighted(self, query: Query, cls: type[Record], target: Target, pool: CandidatePool) -> Query:
        """The query with the weights of its words among the records of a kind."""
        if not pool.has_words:
            # Without full-text search no word is known to be rarer than another.
            records = self.storage.size(cls, target.scope, target.where)
            return replace(query, weights=dict.fromkeys(query.terms, 1.0), records=records, known=query.terms)
        terms = query.terms.union(query.compounds)
        records, counts = self.storage.word_counts(cls, terms, target.scope, target.where)
        weights = {word: idf(max(records, count), count) for word, count in counts.items() if word in query.terms}
        found = frozenset(word for word, count in counts.items() if count)
        parts = (parts for whole, parts in query.compounds.items() if whole in found)
        return replace(query, weights=weights, records=records, known=found.union(*parts) & query.terms)

    def _read(self, candidates: Sequence[Candidate], query: Query, results: Results) -> list[Match]:
        """The candidates with their records; scope and expiry are checked again, as an index only proposes."""
        records: dict[str, Record] = {}
        for target, ids in by_target(candidates).items():
            found = self.storage.find(target.cls, target.scope, And(target.where, In(target.cls.spec.key, ids)))
            records.update((str(record.key), record) for record in found)
        for candidate in candidates:
            if candidate.id not in records:
                results.drop(candidate.id, "scope", "it is gone, expired or no longer visible here")
        return query.matches([(each, records[each.id]) for each in candidates if each.id in records])

    def _relevant(self, cls: type[Record], matches: Sequence[Match], results: Results) -> list[ScoredRecord]:
        """The scores of the matches that are relevant enough.

        A search returns its best in any case. Lessons tell what to do: none is better than weak ones alone.
        """
        strong, weak = self.relevance.strong, self.relevance.weak
        least = 0.0
        if isinstance(self.request, RetrievalRequest):
            only_weak = max((each.relevance for each in matches), default=0.0) < strong
            least = strong if only_weak and issubclass(cls, LESSONS) and not self.request.weak else weak
        kept: list[ScoredRecord] = []
        for each in matches:
            if each.relevance >= least:
                kept.append(self.scorer.match(each, self.relevance.strength(each)))
            else:
                sentence = _IRRELEVANT if each.relevance < weak else _WEAK
                results.drop(each.candidate.id, "relevance", sentence, each.relevance, least)
        return kept

    def _ordered(self, scored: Sequence[ScoredRecord], query: Query, results: Results) -> list[ScoredRecord]:
        """Newer facts first, each text once, what is no longer true behind what is, and of these the best."""
        now = self.request.now
        # Of a past time range, what became known later does not count as a newer version.
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
            self.storage,
            kept,
            results.targets,
            lambda record, found_by: self.scorer.record(record, {}, tuple(found_by)),
            now,
        )
        return results.pack(sorted(current, key=best_first), self.request, self.min_score)
