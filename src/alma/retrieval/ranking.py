"""Ranking: the best candidates are read, checked, scored and ordered; what is dropped is noted with the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from operator import attrgetter

from alma.model.memory import Memory
from alma.model.query import And, In
from alma.model.record import Record
from alma.model.slice import Explanation, MemorySlice, by_id
from alma.model.text import compounds_of, query_terms
from alma.model.vector import Vector
from alma.retrieval import order
from alma.retrieval.absent import Absent, Note
from alma.retrieval.asking import answering
from alma.retrieval.candidate import Candidate, Compared
from alma.retrieval.candidates import Pool, Standing, by_target, most_read
from alma.retrieval.copies import Crowd, copies_behind
from alma.retrieval.length import ONE_PASSAGE, given_back
from alma.retrieval.news import may_tell_news
from alma.retrieval.placing import brings_news, news_of_fitting, put_in_place, put_withdrawn_behind, statements_of
from alma.retrieval.ranked import Ranked
from alma.retrieval.recent import MOST_BY_RULE, newest
from alma.retrieval.relevance import Fitting, Question, anything_fits, fits
from alma.retrieval.router import Asked, Target
from alma.retrieval.scoring import ScoringWeights, factors, score_terms
from alma.retrieval.sequence import asked_end, at_the_end
from alma.retrieval.standing import begins_after, holds, is_instruction, out_of_force, superseded
from alma.retrieval.statements import Statement, cut
from alma.retrieval.strongest import Source, put_among_the_first, read_first
from alma.retrieval.successors import put_before
from alma.retrieval.together import add_together
from alma.retrieval.when import TimeWindow
from alma.storage.base import StorageBackend
from alma.storage.ranking import idf

# Beside others the few of a kind are judged as so many would be: what two of a kind have by chance is no warning.
_COUNTS_AS = 10
# So many times what is wanted is looked at besides copies of the same.
_ENOUGH = 2
_REPETITION = "repetition"
_UNFIT = "it has too little to do with the task, by meaning and by words (fit {:.2f})"


@dataclass(slots=True)
class Ranking:
    """What is handed over, by kind and best first, and why everything else is not."""

    storage: StorageBackend
    targets: Sequence[Target]
    chosen: dict[type[Record], list[Ranked]] = field(default_factory=lambda: defaultdict(list))
    standing: list[Ranked] = field(default_factory=list)
    dropped: dict[str, Note] = field(default_factory=dict)
    crowd: Crowd = field(default_factory=Crowd)
    # When the next instruction begins to hold, where one is waiting.
    changes_at: datetime | None = None

    @property
    def by_rule(self) -> list[Target]:
        """Where that is which comes with every task."""
        return [target for target in self.targets if target.by_rule]

    def drop(self, record_id: str, stage: str, sentence: str, *facts: object) -> None:
        self.dropped.setdefault(record_id, Note(stage, sentence, facts))

    def expect_change(self, moment: datetime | None) -> None:
        """Something else will be handed over from this moment on, if one is given."""
        if moment is not None:
            self.changes_at = min(moment, self.changes_at or moment)

    @property
    def found_something(self) -> bool:
        """Whether anything is handed over for this very task."""
        return any(not ranked.only_by_rule for items in (*self.chosen.values(), self.standing) for ranked in items)

    def join(self, other: Ranking | None, top_k: int) -> None:
        """The best of both, where the same was looked for in two ways."""
        if other is None:
            return
        self.dropped = {**self.dropped, **other.dropped}
        self.expect_change(other.changes_at)
        for cls, items in other.chosen.items():
            self.chosen[cls] = self._best_of_both(self.chosen[cls], items, top_k)
        self.standing = self._best_of_both(self.standing, other.standing, 0)

    def _best_of_both(self, ones: Sequence[Ranked], others: Sequence[Ranked], top_k: int) -> list[Ranked]:
        """What two looks found, each with the better of its scores, and no more than either may have."""
        best: dict[str, Ranked] = {}
        for ranked in sorted((*ones, *others), key=lambda ranked: (-ranked.score, ranked.key)):
            note = self.dropped.get(ranked.key)
            # Of two that say the same, each look may have kept another one.
            if note is None or note.stage != _REPETITION or note.facts[0] not in best:
                best.setdefault(ranked.key, ranked)
        found = list(best.values())
        most = max(top_k, len(ones), len(others))
        for ranked in found[most:]:
            self.drop(ranked.key, "rank", "{:,} of its kind have a higher score than {:.3f}", most, ranked.score)
        return found[:most]

    def to_slice(self, request: Asked, degraded: str) -> MemorySlice:
        everything = [ranked for items in (*self.chosen.values(), self.standing) for ranked in items]
        return MemorySlice.of(
            {cls: [ranked.record for ranked in items] for cls, items in self.chosen.items()},
            instructions=tuple(ranked.record for ranked in self.standing),
            query=request.query,
            agent=request.agent,
            degraded=degraded,
            explanations=by_id(map(_explanation, everything)),
            _why_not=Absent(self.storage, self.targets, request, dropped=self.dropped),
        )


def _explanation(ranked: Ranked) -> Explanation:
    return Explanation(
        ranked.record.spec.kind,
        ranked.key,
        ranked.score,
        ranked.terms,
        ranked.found_by,
        notes=ranked.notes,
        similarity=ranked.similarity,
    )


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores records for one request."""

    request: Asked
    weights: ScoringWeights
    memory_weights: ScoringWeights
    half_life_days: float
    evidence_half_life_days: float
    wants_time: bool = False
    by_passages: bool = True
    window: TimeWindow | None = None

    def fitting(self, found: Fitting) -> Ranked:
        relevance = found.candidate.relevance
        if isinstance(found.record, Memory):
            relevance = relevance | answering(found.record.content, found.said, relevance, wants_time=self.wants_time)
            if self.by_passages:
                relevance |= given_back(len(found.record.text()), found.gathered)
        ranked = self.scored(found.record, relevance, found.candidate.found_by)
        ranked.said, ranked.similarity = found.said, found.candidate.cosine
        ranked.lost = self.memory_weights.similarity * found.candidate.lost
        return ranked

    def scored(self, record: Record, relevance: Mapping[str, float], found_by: Iterable[str]) -> Ranked:
        weights = self.memory_weights if isinstance(record, Memory) else self.weights
        known = factors(
            record,
            self.request.now,
            self.half_life_days,
            self.window,
            evidence_half_life_days=self.evidence_half_life_days,
        )
        return Ranked(record, score_terms(relevance, known, weights), tuple(found_by))


def rank(
    storage: StorageBackend,
    pool: Pool,
    request: Asked,
    targets: Sequence[Target],
    vector: Vector | None,
    scorer: Scorer,
    min_score: float,
    *,
    reads: Callable[[str], bool] = lambda text: True,
    learned: bool = True,
) -> Ranking:
    """The best of each kind, in order.

    `reads` says whether the model knows the writing of a text, so that a vector tells what it means; `learned` whether
    it learned the language of the task.
    """
    understood = reads(request.query)
    known = reads if understood else None
    ranking = Ranking(storage, targets)
    for record_id in pool.of_other_times:
        ranking.drop(record_id, "time", "it is not of the time that is asked for")
    asked, compounds = frozenset(query_terms(request.query)), compounds_of(request.query)
    ranking.chosen.update((cls, []) for cls in request.kinds)
    # Most stores have nothing of most kinds.
    candidates = {cls: _similar(pool.of(cls), request, ranking) for cls in request.kinds if pool.has(cls)}
    questions = {
        cls: _question(storage, cls, best, vector, asked, learned, compounds, known, countable=pool.has_words)
        for cls, best in candidates.items()
    }
    most = most_read(request.top_k, pool)
    for cls in pool.judged_by_both.intersection(candidates):
        candidates[cls] = read_first(candidates[cls], most)
    candidates = {cls: copies_behind(best, most) for cls, best in candidates.items()}
    chosen = {cls: [*best[:most], *_further(storage, best, request, most)] for cls, best in candidates.items()}
    _note_behind(candidates, chosen, most, ranking)
    among = {cls: Compared.of(best) for cls, best in candidates.items()}
    # What is not similar enough is no longer among them.
    among_all = Compared.together(among.values()) if request.min_similarity is None else Compared.of(list(pool))
    # Python looks through all objects whenever there are some hundreds more: so many are not read, and let go before
    # the others are.
    candidates.clear()
    pool.let_go()
    found = {cls: _read(storage, best, questions[cls], pool, ranking) for cls, best in chosen.items()}

    def relevant(items: Iterable[Fitting], among: Compared, records: int, at_least: int = 0) -> bool:
        compared = max(among.number, records) if pool.is_full else among.number
        return anything_fits(
            items,
            among.nearest,
            max(compared, at_least),
            with_vectors=vector is not None,
            understood=understood,
            learned=learned,
        )

    records = max((question.records for question in questions.values()), default=0)
    anything = relevant(chain.from_iterable(found.values()), among_all, records)
    few = min(_COUNTS_AS, among_all.number)
    for cls, items in found.items():
        if not items:
            continue
        # Where nothing stands out among all, something may among the few of its kind: a warning is not to be lost
        # because there are thousands of notes beside it. Of what only words find, those of one kind say nothing of
        # another.
        worth_a_look = (anything and understood) or relevant(items, among[cls], questions[cls].records, few)
        fitting = [each for each in items if worth_a_look and fits(each, understood=understood)]
        kept = [scorer.fitting(each) for each in fitting]
        kept += _news_among(items, kept, asked, scorer)
        _note_unfit(items, kept, ranking)
        add_together(kept, questions[cls].weights, scorer.memory_weights.similarity)
        sources = (
            {each.candidate.id: each.meaning for each in fitting if understood},
            {each.candidate.id: each.candidate.words or 0.0 for each in fitting},
        )
        ranking.chosen[cls] = _ordered(
            kept, questions[cls], request, min_score, ranking, pool.standing, sources, scorer.window
        )
        if len(items) >= most and len(ranking.chosen[cls]) < request.top_k:
            ranking.crowd.add(_crowd(kept, most - _ENOUGH * request.top_k, ranking))
    if ranking.by_rule:
        _add_by_rule(storage, ranking, scorer)
    return ranking


def _similar(candidates: Sequence[Candidate], request: Asked, ranking: Ranking) -> Sequence[Candidate]:
    """Those whose cosine is high enough, where one is asked for.

    The vectors found all that have one or twice as many as are wanted, so nothing is lost with those they did not find.
    """
    least = request.min_similarity
    if least is None:
        return candidates
    similar = [each for each in candidates if each.cosine is not None and each.cosine >= least]
    kept = {each.id for each in similar}
    for each in candidates:
        if each.id not in kept:
            ranking.drop(each.id, "similarity", "its meaning is less similar than {:g}", least)
    return similar


def _question(
    storage: StorageBackend,
    cls: type[Record],
    candidates: Sequence[Candidate],
    vector: Vector | None,
    asked: frozenset[str],
    learned: bool,
    compounds: Mapping[str, frozenset[str]],
    reads: Callable[[str], bool] | None,
    *,
    countable: bool,
) -> Question:
    if not candidates:
        return Question(vector, asked, {})
    target = candidates[0].target
    if not countable:
        # What is read can still be looked through for the words, of which none is known to be rarer than another.
        records = storage.size(cls, target.scope, target.where)
        return Question(vector, asked, dict.fromkeys(asked, 1.0), records, asked, learned, compounds, reads)
    records, counts = storage.word_counts(cls, asked.union(compounds), target.scope, target.where)
    weights = {word: idf(max(records, count), count) for word, count in counts.items() if word in asked}
    found = frozenset(word for word, count in counts.items() if count)
    known = found.union(*(pieces for whole, pieces in compounds.items() if whole in found)) & asked
    return Question(vector, asked, weights, records, known, learned, compounds, reads)


def _further(storage: StorageBackend, best: Sequence[Candidate], request: Asked, most: int) -> list[Candidate]:
    """What is read besides the best, where the first or the last of something is asked for."""
    end = asked_end(request.query)
    return [] if end is None else at_the_end(storage, best, end, most)


def _note_behind(
    candidates: Mapping[type[Record], Sequence[Candidate]],
    chosen: Mapping[type[Record], Sequence[Candidate]],
    most: int,
    ranking: Ranking,
) -> None:
    """What is not read stays behind all that is."""
    behind = Note("rank", "{:,} others resemble the task more", (most,))
    unread = dict.fromkeys(map(attrgetter("id"), chain(*(found[most:] for found in candidates.values()))), behind)
    for each in chain.from_iterable(found[most:] for found in chosen.values()):
        unread.pop(each.id, None)
    ranking.dropped = {**unread, **ranking.dropped}


def _read(
    storage: StorageBackend, best: Sequence[Candidate], question: Question, pool: Pool, ranking: Ranking
) -> list[Fitting]:
    """The best candidates as storage has them now; what it no longer shows is gone."""
    records: dict[str, Record] = {}
    for target, ids in by_target(best).items():
        # Indexes propose, storage disposes: scope and expiry are checked again on the records themselves.
        found = storage.find(target.cls, target.scope, And(target.where, In(target.cls.spec.key, ids)))
        records.update((str(record.key), record) for record in found)
    for candidate in best:
        if candidate.id not in records:
            ranking.drop(candidate.id, "scope", "it is gone, expired or no longer visible here")
    supposed = {each.id for each in best if each.cosine is None and each.target.cls in pool.judged_by_both}
    fitting = question.fitting([(candidate, records[candidate.id]) for candidate in best if candidate.id in records])
    for each in fitting:
        if each.candidate.id in supposed and each.candidate.words is not None:
            _correct_meaning(each, pool)
    return fitting


def _correct_meaning(found: Fitting, pool: Pool) -> None:
    """Of what only words found it is known how near it is once it is read."""
    cosine = found.candidate.cosine
    # Of a longer text a passage may be nearer than all of it.
    if cosine is not None and len(found.record.text().encode("utf-8", "surrogatepass")) <= ONE_PASSAGE:
        found.candidate.correct_meaning(pool.meaning(cosine))


def _crowd(kept: Sequence[Ranked], most_copies: int, ranking: Ranking) -> Crowd:
    """What there are more copies of than leave room for others."""
    notes = {ranked.key: ranking.dropped.get(ranked.key) for ranked in kept}
    originals = {key: note.facts[0] for key, note in notes.items() if note is not None and note.stage == _REPETITION}
    if len(originals) <= most_copies:
        return Crowd()
    copied = set(originals.values())
    spellings = {ranked.record.text(): ranked.record for ranked in kept if ranked.key in originals.keys() | copied}
    return Crowd([ranked.record for ranked in kept if ranked.key in copied], list(spellings.values()))


def _news_among(
    items: Iterable[Fitting], fitting: Sequence[Ranked], asked: frozenset[str], scorer: Scorer
) -> list[Ranked]:
    """What tells that something which fits is over, among what does not fit by itself."""
    known = {ranked.key for ranked in fitting if brings_news(ranked.record)}
    if not known:
        return []
    others = (each for each in items if brings_news(each.record) and may_tell_news(each.said))
    unfit = [scorer.fitting(each) for each in others if each.candidate.id not in known]
    return news_of_fitting(unfit, fitting, asked, scorer.request)


def _note_unfit(items: Iterable[Fitting], fitting: Iterable[Ranked], ranking: Ranking) -> None:
    kept = {each.key for each in fitting}
    for each in items:
        if each.candidate.id not in kept:
            ranking.drop(each.candidate.id, "relevance", _UNFIT, each.fit)


def _ordered(
    kept: list[Ranked],
    question: Question,
    request: Asked,
    min_score: float,
    ranking: Ranking,
    standing: Standing,
    sources: Sequence[Source],
    window: TimeWindow | None,
) -> list[Ranked]:
    by_score = sorted(kept, key=lambda ranked: (-ranked.score, ranked.key))
    by_key = {ranked.key: ranked for ranked in by_score}
    said = statements_of(by_score, request)
    statements = cut(said, question.terms, request.query)

    put_in_place(by_key, statements, question.weights, request, window)
    put_before({ranked.key: ranked.terms for ranked in kept}, standing)
    for ranked in kept:
        ranked.notes = (*standing.notes(ranked.key, by_key), *out_of_force(ranked.record, request.now))
    best_first = sorted(kept, key=lambda r: (-r.score, r.key))
    chosen = best_first if request.with_repetitions else _without_repetitions(best_first, said, statements, ranking)
    return _best(chosen, request, min_score, ranking, sources)


def _without_repetitions(
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
            ranking.drop(ranked.key, _REPETITION, "it says the same as {}, which stands before it", same.id)
            continue
        if gist is not None:
            originals[gist] = own
        others.append(own)
        kept.append(ranked)
    return kept


def _best(
    by_score: Sequence[Ranked], request: Asked, min_score: float, ranking: Ranking, sources: Sequence[Source]
) -> list[Ranked]:
    _spare_long(by_score, min_score)
    good = [ranked for ranked in by_score if ranked.score >= min_score]
    for ranked in by_score[len(good) :]:
        ranking.drop(ranked.key, "score", "its score of {:.3f} is below {:g}", ranked.score, min_score)
    # What comes by rule in any case takes nobody's place.
    by_rule = {ranked.key for ranked in good if ranking.by_rule and is_instruction(ranked.record, request)}
    others, top_k = [ranked for ranked in good if ranked.key not in by_rule], request.top_k
    put_among_the_first(others, sources, top_k)
    for ranked in others[top_k:]:
        ranking.drop(ranked.key, "rank", "{:,} of its kind have a higher score than {:.3f}", top_k, ranked.score)
    best = [*others[:top_k], *(ranked for ranked in good if ranked.key in by_rule)]
    return sorted(best, key=lambda ranked: (-ranked.score, ranked.key))


def _spare_long(by_score: Iterable[Ranked], min_score: float) -> None:
    """Length puts a memory behind others; it is not what makes it too bad to be handed over."""
    for ranked in by_score:
        wanting = min_score - ranked.score
        if 0 < wanting <= ranked.lost:
            ranked.terms["length"] = wanting + 1e-9


# ---------------------------------------------------------------------- what is handed over by rule


def _add_by_rule(storage: StorageBackend, ranking: Ranking, scorer: Scorer) -> None:
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
        items[:] = put_withdrawn_behind(_without_repetitions(items, said, compared, ranking), compared)
        for ranked in items[most:]:
            ranking.drop(ranked.key, "rank", "{:,} others are handed over by rule", most)
        del items[most:]
        for ranked in items:
            ranking.dropped.pop(ranked.key, None)


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
