"""Ranking: the best candidates are read, checked, scored and ordered; what is dropped is noted with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.query import And, In
from alma.model.record import Record
from alma.model.vector import Vector
from alma.retrieval.absent import Note
from alma.retrieval.by_rule import add_by_rule
from alma.retrieval.candidate import Candidate
from alma.retrieval.candidates import Pool, by_target, most_read
from alma.retrieval.change import asks_for_former
from alma.retrieval.copies import Crowd, copies_behind
from alma.retrieval.found import REPETITION, Ranking
from alma.retrieval.length import ONE_PASSAGE
from alma.retrieval.placing import put_in_place, statements_of
from alma.retrieval.ranked import Ranked
from alma.retrieval.relevance import LESSONS, Fitting, Question, RelevanceModel, add_evidence
from alma.retrieval.repetitions import without_repetitions
from alma.retrieval.router import Asked, Request, Target
from alma.retrieval.scorer import Scorer
from alma.retrieval.sequence import asked_end, at_the_end
from alma.retrieval.standing import is_instruction, out_of_force
from alma.retrieval.statements import cut
from alma.retrieval.strongest import Source, put_among_the_first, read_first
from alma.retrieval.supersession import put_current_first
from alma.retrieval.together import add_together
from alma.storage.base import StorageBackend
from alma.storage.ranking import idf
from alma.text.tokens import compounds_of, query_terms

# So many times what is wanted is looked at besides copies of the same.
_ENOUGH = 2
_IRRELEVANT = "it has too little to do with the task: its relevance of {:.2f} is below {:g}"
_WEAK = f"{_IRRELEVANT}, and what is weak was not asked for"


def rank(
    storage: StorageBackend,
    pool: Pool,
    request: Asked,
    targets: Sequence[Target],
    vector: Vector | None,
    scorer: Scorer,
    min_score: float,
    relevance: RelevanceModel,
    *,
    reads: Callable[[str], bool] = lambda text: True,
    learned: bool = True,
) -> Ranking:
    """The best of each kind, in order.

    `reads` says whether the model knows the writing of a text, so that a vector tells what it means; `learned` whether
    it learned the language of the task.
    """
    understood = reads(request.query)
    ranking = Ranking(storage, targets)
    for record_id in pool.of_other_times:
        ranking.drop(record_id, "time", "it is not of the time that is asked for")
    asked = frozenset(query_terms(request.query))
    question = Question(
        vector,
        asked,
        learned=learned,
        compounds=compounds_of(request.query),
        reads=reads if understood else None,
        understood=understood,
    )
    ranking.chosen.update((cls, []) for cls in request.kinds)
    # Most stores have nothing of most kinds.
    candidates = {cls: _similar(pool.of(cls), request, ranking) for cls in request.kinds if pool.has(cls)}
    questions = {
        cls: _counted(question, storage, cls, best, countable=pool.has_words) for cls, best in candidates.items()
    }
    most = most_read(request.top_k, pool)
    for cls in pool.judged_by_both.intersection(candidates):
        candidates[cls] = read_first(candidates[cls], most)
    candidates = {cls: copies_behind(best, most) for cls, best in candidates.items()}
    chosen = {cls: [*best[:most], *_further(storage, best, request, most)] for cls, best in candidates.items()}
    _note_behind(candidates, chosen, most, ranking)
    # Python looks through all objects whenever there are some hundreds more: so many are not read, and let go before
    # the others are.
    candidates.clear()
    pool.let_go()
    found = {cls: _read(storage, best, questions[cls], pool, ranking) for cls, best in chosen.items()}

    for cls, items in found.items():
        relevance.assess(items, questions[cls])
    for cls in (Heuristic, AntiPattern):
        add_evidence(found.get(cls, ()), found.get(Outcome, ()))
    for cls, items in found.items():
        if not items:
            continue
        least = _least_relevance(request, cls, items, relevance)
        fitting = [each for each in items if each.relevance >= least]
        kept = [scorer.fitting(each, relevance.strength(each)) for each in fitting]
        _note_irrelevant(items, kept, least, relevance, ranking)
        add_together(kept, questions[cls].weights, scorer.memory_weights.similarity)
        sources = (
            {each.candidate.id: each.meaning for each in fitting if understood},
            {each.candidate.id: each.candidate.words or 0.0 for each in fitting},
        )
        ranking.chosen[cls] = _ordered(kept, questions[cls], request, min_score, ranking, sources, scorer)
        if len(items) >= most and len(ranking.chosen[cls]) < request.top_k:
            ranking.crowd.add(_crowd(kept, most - _ENOUGH * request.top_k, ranking))
    if ranking.by_rule:
        add_by_rule(storage, ranking, scorer)
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


def _counted(
    question: Question, storage: StorageBackend, cls: type[Record], candidates: Sequence[Candidate], *, countable: bool
) -> Question:
    """The question with the weights of its words among the records of a kind."""
    if not candidates:
        return question
    target, terms = candidates[0].target, question.terms
    if not countable:
        # What is read can still be looked through for the words, of which none is known to be rarer than another.
        records = storage.size(cls, target.scope, target.where)
        return replace(question, weights=dict.fromkeys(terms, 1.0), records=records, known=terms)
    records, counts = storage.word_counts(cls, terms.union(question.compounds), target.scope, target.where)
    weights = {word: idf(max(records, count), count) for word, count in counts.items() if word in terms}
    found = frozenset(word for word, count in counts.items() if count)
    pieces = (pieces for whole, pieces in question.compounds.items() if whole in found)
    return replace(question, weights=weights, records=records, known=found.union(*pieces) & terms)


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
    originals = {key: note.facts[0] for key, note in notes.items() if note is not None and note.stage == REPETITION}
    if len(originals) <= most_copies:
        return Crowd()
    copied = set(originals.values())
    spellings = {ranked.record.text(): ranked.record for ranked in kept if ranked.key in originals.keys() | copied}
    return Crowd([ranked.record for ranked in kept if ranked.key in copied], list(spellings.values()))


def _least_relevance(request: Asked, cls: type[Record], items: Sequence[Fitting], relevance: RelevanceModel) -> float:
    """How relevant a memory must be to be handed over.

    A search gives its best in any case. Lessons tell what to do, so that none is better than weak ones alone.
    """
    if not isinstance(request, Request):
        return 0.0
    only_weak = max(each.relevance for each in items) < relevance.strong
    return relevance.strong if only_weak and issubclass(cls, LESSONS) and not request.weak else relevance.weak


def _note_irrelevant(
    items: Iterable[Fitting], kept: Iterable[Ranked], least: float, relevance: RelevanceModel, ranking: Ranking
) -> None:
    known = {each.key for each in kept}
    for each in items:
        if each.candidate.id not in known:
            sentence = _IRRELEVANT if each.relevance < relevance.weak else _WEAK
            ranking.drop(each.candidate.id, "relevance", sentence, each.relevance, least)


def _ordered(
    kept: list[Ranked],
    question: Question,
    request: Asked,
    min_score: float,
    ranking: Ranking,
    sources: Sequence[Source],
    scorer: Scorer,
) -> list[Ranked]:
    by_score = sorted(kept, key=lambda ranked: (-ranked.score, ranked.key))
    by_key = {ranked.key: ranked for ranked in by_score}
    said = statements_of(by_score, request)
    statements = cut(said, question.terms, request.query)

    put_in_place(by_key, statements, question.weights, request, scorer.window)
    for ranked in kept:
        ranked.notes = out_of_force(ranked.record, request.now)
    if not request.with_repetitions:
        kept = without_repetitions(sorted(kept, key=_best_first), said, statements, ranking)
    current = put_current_first(
        ranking.storage,
        kept,
        ranking.targets,
        lambda record, found_by: scorer.scored(record, {}, tuple(found_by)),
        request.now,
        former=asks_for_former(request.query),
    )
    chosen = sorted(current, key=_best_first)
    return _best(chosen, request, min_score, ranking, sources)


def _best_first(ranked: Ranked) -> tuple[float, str]:
    return -ranked.score, ranked.key


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
    return sorted(best, key=_best_first)


def _spare_long(by_score: Iterable[Ranked], min_score: float) -> None:
    """Length puts a memory behind others; it is not what makes it too bad to be handed over."""
    for ranked in by_score:
        wanting = min_score - ranked.score
        if 0 < wanting <= ranked.lost:
            ranked.terms["length"] = wanting + 1e-9
