"""The text of a query: its vector, the question in a long task, and what kind of answer it asks for."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice

from alma.embeddings.base import EmbeddingProvider
from alma.errors import EmbeddingError
from alma.lazy import lazy_regex
from alma.model.vector import Vector
from alma.retrieval.router import RETRIEVED
from alma.retrieval.tuning import TUNING
from alma.retry import deadline
from alma.storage.base import StorageBackend

_log = logging.getLogger("alma.retrieval")

# About one token each.
_PIECE = lazy_regex(r"[A-Za-z]{1,3}|\S")
_SENTENCES = lazy_regex(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？؟।])\s*|\n")
_PARAGRAPHS = lazy_regex(r"\n\s*\n")
_QUESTION_MARK = lazy_regex(r"[?？؟]\W*$")
_LETTERS = lazy_regex(r"[^\W\d_]")
# How long the check for missing vectors is cached: at least these seconds, and this multiple of its duration. While
# vectors are missing and the check is fast it is not cached, so that the end of a re-embedding is seen at once.
_CHECKED_FOR, _CHECKED_FOR_TIMES, _QUICK_CHECK = 60.0, 100, 0.005


class QueryEmbedder:
    """Embeds queries with a provider that may be down, and checks whether the store lacks vectors; thread-safe."""

    def __init__(self, embedder: EmbeddingProvider, storage: StorageBackend) -> None:
        self._embedder = embedder
        self._storage = storage
        self._failed_at = -float("inf")
        self._missing_vectors = ""
        self._check_again_at = -float("inf")

    def vector(self, query: str) -> tuple[Vector | None, list[str]]:
        """The vector, or the problem of embedding."""
        patient = time.monotonic() - self._failed_at >= TUNING.embedding_failure_period
        try:
            with deadline(TUNING.embedding_timeout if patient else TUNING.embedding_timeout_after_failure):
                vector = Vector(self._embedder.encode(embedded_beginning(query)))
            if len(vector) != self._storage.embedding_dim:
                raise EmbeddingError(f"it returned {len(vector)} numbers instead of {self._storage.embedding_dim}")
            if not any(vector):
                raise EmbeddingError("it returned a zero vector")
        except Exception as exc:  # noqa: BLE001 - the provider may be a user's own
            # A failure within the short timeout does not mean that the provider is down; it may be slow.
            self._failed_at = time.monotonic() if patient else self._failed_at
            _log.warning("the query was not embedded", extra={"error": repr(exc)})
            return None, [f"the embedding provider {self._embedder.model} is down ({str(exc) or type(exc).__name__})"]
        self._failed_at = -float("inf")
        return vector, []

    def missing_vectors(self) -> str:
        """A report while vectors of the current model are missing; empty otherwise."""
        started = time.monotonic()
        if started >= self._check_again_at:
            model = self._storage.embedding_model
            with self._storage.snapshot() as tx:
                missing = any(tx.is_half_moved(cls, model) for cls in RETRIEVED)
            took = time.monotonic() - started
            self._missing_vectors = (
                f"a part of the store has no vectors of {model} yet (alma reembed makes them, and goes on where it was "
                f"interrupted)"
                if missing
                else ""
            )
            held = _CHECKED_FOR_TIMES * took
            if not missing:
                held = max(_CHECKED_FOR, held)
            elif took <= _QUICK_CHECK:
                held = 0.0
            self._check_again_at = started + took + held
        return self._missing_vectors


def embedded_beginning(query: str) -> str:
    """The beginning of a query that is embedded: about five thousand characters of English, or two thousand of other
    scripts.
    """
    if len(query) <= TUNING.embedded_pieces:
        return query
    rest = next(islice(_PIECE.finditer(query), TUNING.embedded_pieces, None), None)
    return query if rest is None else query[: rest.start()]


def question_of(task: str) -> str | None:
    """The question at the beginning or end of a long task, such as one with a log or a document pasted into it.

    The end with a question mark is used, or both ends if neither has one; None for a short task.
    """
    text = task.strip()
    if len(text) <= TUNING.long_task:
        return None
    most = TUNING.question_length
    head, tail = text[: most + 1], text[-most - 1 :]
    first = _short(_PARAGRAPHS.split(head, maxsplit=1)[0]) or _short(_SENTENCES.split(head, maxsplit=1)[0])
    last = _short(_PARAGRAPHS.split(tail)[-1]) or _short(_SENTENCES.split(tail.rstrip())[-1])
    ends = [end for end in (first, last) if end and _LETTERS.search(end)]
    questions = [end for end in ends if _QUESTION_MARK.search(end)]
    return " ".join(dict.fromkeys(questions or ends)) or None


def _short(text: str) -> str:
    return text if len(text) <= TUNING.question_length else ""


# A request for advice uses other words than earlier statements, so the cosine counts more than words.
_ADVICE = lazy_regex(
    r"\b(?:any (?:\w+ )?(?:tip|advice|suggestion|recommendation|idea|thought)s?"
    r"|(?:can|could|would|will) you (?:please )?(?:recommend|suggest|advise)"
    r"|what (?:do|would) you (?:recommend|suggest|advise)"
    r"|should i|a good idea)\b",
    re.IGNORECASE,
)
# A query about an earlier answer of the assistant matches its answers, which are long.
_EARLIER_ANSWER = lazy_regex(
    r"\b(?:remind me|(?:did|had|have) you"
    r"|you(?:'ve| have| had| were)? (?:\w+ed|told|said|gave|given|wrote|written|made|found|taught|showed|shown|sent)"
    r"|your (?:\w+ )?(?:advice|answer|suggestion|recommendation|explanation|list|example|reply|response)s?"
    r"|(?:our(?: \w+)?|previous|earlier|last|past) (?:conversation|chat|discussion|talk)"
    r"|we (?:talked|discussed|spoke|chatted))\b",
    re.IGNORECASE,
)
# "When I deploy, what fails?" does not ask for a time.
_TIME = lazy_regex(
    r"(?:when\b(?!.*\b(?:what|who|whom|whose|which|where|why|how)\b)"
    r"|(?:(?:on|in|at|since) )?(?:what|which) (?:day|date|week|month|year|time)\b|how long\b)",
    re.IGNORECASE | re.DOTALL,
)
_TIME_WORDS = """
yesterday today tonight tomorrow ago last next sinc recent week weekend month year
monday tuesday wednesday thursday friday saturday sunday
"""
_TIME_TERMS = frozenset(_TIME_WORDS.split())
_SENTENCE = lazy_regex(r"[^.!?\n]+[.!?\n]*")
# A question about oneself may contain a statement: "I have a cough, what can I take?"
_FIRST_PERSON = lazy_regex(r"\b(?:i|me|my|mine|we|us|our)\b", re.IGNORECASE)
_CHARACTERS_READ = 2_000


@lru_cache(maxsize=16)
def asks_advice(query: str) -> bool:
    """Whether a query asks for a recommendation."""
    return _ADVICE.search(query[:_CHARACTERS_READ]) is not None


@lru_cache(maxsize=16)
def asks_for_earlier_answer(query: str) -> bool:
    """Whether a query asks about an earlier answer."""
    return _EARLIER_ANSWER.search(query[:_CHARACTERS_READ]) is not None


@lru_cache(maxsize=16)
def asks_when(query: str) -> bool:
    """Whether the answer to a query is a time."""
    return _TIME.match(query[:_CHARACTERS_READ].lstrip()) is not None


def answer_features(
    text: str, terms: frozenset[str], own: Mapping[str, float], *, wants_time: bool
) -> dict[str, float]:
    """The features of a text as an answer: the part of its `own` score in questions, and whether it has a time."""
    features: dict[str, float] = {}
    if "?" in text and len(text) <= _CHARACTERS_READ:
        sentences = _SENTENCE.findall(text)
        asking = [each for each in sentences if "?" in each and _FIRST_PERSON.search(each) is None]
        if asking:
            matched = sum(own.get(name, 0.0) for name in ("meaning", "words", "length"))
            features["question"] = matched * sum(map(len, asking)) / len(text)
    if wants_time and len(text) <= TUNING.statement_length and not _TIME_TERMS.isdisjoint(terms):
        features["when"] = 1.0
    return features
