"""The numbers of a retrieval: trained weights from `weights.json`, and limits and thresholds in one `Tuning`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Tuning:
    """Limits and thresholds, with their origin; numbers of the decision pages are in docs/explanation/decisions."""

    # Candidates per source. More add noise: with 80 instead of 200 in a store of 20,851 records recall@10 rose by up to
    # 7 points (decision 0016). A selective filter is searched for fewer, because each takes longer to find.
    memory_candidates: int = 200
    lesson_candidates: int = 50
    many_memories: int = 10_000
    candidates_among_many: int = 80
    selective_candidates: int = 60
    candidates_per_result: int = 4
    # Records read: at least this many, and this many for each result (decision 0016).
    records_read: int = 30
    records_read_among_many: int = 20
    records_read_per_result: int = 3
    # Two unrelated sentences have a cosine of at most this with the local model (decision 0013).
    unrelated_cosine: float = 0.1
    # With more records, a search by words leaves out the common ones, so what vectors found is scored by its words.
    words_left_out: int = 3_000
    # BM25 counts fully from this share of the weight of a word that only one candidate has.
    telling_words: float = 0.3
    # Texts of up to this many characters are statements; from `long_text` on the penalty is constant. It was chosen on
    # the pooled sessions of LongMemEval (decision 0013).
    statement_length: int = 300
    long_text: int = 2_400
    length_exponent: float = 0.35
    passage_words: int = 50
    # Turns of a conversation: the share of a neighbour's score that a turn gains, and the reduction for a long turn
    # (decision 0013; counting five turns found two more of a thousand sessions than three).
    next_turn: float = 0.4
    second_next_turn: float = 0.2
    best_turn: float = 0.2
    other_turns: float = 0.5
    turns_counted: int = 5
    remark_length: int = 600
    conversations: int = 50
    turns_read: int = 5_000
    # Links through rare words: from the best two memories, over words that few others have (decision 0013).
    link_sources: int = 2
    link_words: int = 10
    link_words_counted: int = 48
    link_characters: int = 4_000
    rare_records: int = 3
    rare_share: float = 0.02
    link_entries: int = 750
    link_entries_among_many: int = 250
    linked_memories: int = 100
    related_sources: int = 10
    # Time ranges: the number of results for a range alone, and of matches that may date an event (decision 0015).
    memories_of_a_time: int = 30
    event_matches: int = 5
    # A fact whose cosine is lower by more than this has another subject and does not replace another one.
    fact_distance: float = 0.2
    statements_compared: int = 40
    longest_statement: int = 2_000
    # How often a search is repeated without duplicates, and how many further results it looks for.
    searches_beside_duplicates: int = 5
    results_beside_duplicates: int = 2
    duplicate_texts: int = 100
    # Preferences and standing instructions included in every slice; the budget of the prompt limits them further.
    always_included: int = 50
    # The minimum number of records assumed for chance matches, for small stores (decision 0014).
    fewest_records: int = 10
    # Cosines in languages that the model was not trained on: their usual level, and the factor for the excess.
    foreign_cosine: float = 0.4
    highest_foreign_cosine: float = 0.5
    foreign_cosine_count: int = 3
    foreign_cosine_scale: float = 1.7
    # Characters of a text that are read for its words, and for its language.
    characters_read: int = 20_000
    characters_of_language: int = 500
    # Timeout for the vector of a query in seconds, and a shorter one for a while after a failure.
    embedding_timeout: float = 10.0
    embedding_timeout_after_failure: float = 1.0
    embedding_failure_period: float = 30.0
    # A model reads a few hundred tokens at once; each further page of a query takes about 0.1 seconds.
    embedded_pieces: int = 2_000
    # A longer task may be a question with pasted text; the question itself is at most this long.
    long_task: int = 400
    question_length: int = 300
    # Additional results, after the last place, in which superseding memories are searched, in searches by one source.
    looked_behind: int = 20


TUNING: Final = Tuning()

_DOCUMENT: Mapping[str, Any] = json.loads(resources.files(__package__).joinpath("weights.json").read_text("utf-8"))

SCORE: Final[Mapping[str, float]] = _DOCUMENT["score"]
"""The weight of each feature in the score of a candidate; `bench/score_weights.py` trains them."""

RELEVANCE: Final[Mapping[str, Any]] = _DOCUMENT["relevance"]
"""The weights and thresholds of relevance; `bench/relevance.py` trains them."""
