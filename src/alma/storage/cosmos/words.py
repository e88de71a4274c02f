"""Searching by words: documents hold the terms of their text, which the service indexes, and BM25 is computed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from alma.model.query import And, Compare, In, Predicate
from alma.model.record import RecordSpec
from alma.storage.cosmos.documents import LONG, OURS, Document, searchable
from alma.storage.cosmos.queries import condition
from alma.storage.cosmos.view import Seen
from alma.storage.ranking import BUDGET, rarity, saturation, select

if TYPE_CHECKING:
    from alma.storage.cosmos.backend import CosmosBackend

_TERMS = f"c.{OURS}.terms"
# A question of more words is answered by reading the terms of all records.
_MOST_LISTED = 200


def listed(where: Predicate, name: str) -> tuple[Any, ...] | None:
    """The values that a predicate lists for a field; None if it lists none."""
    match where:
        case Compare(field, "eq", value) if field == name:
            return (value,)
        case In(field, values) if field == name:
            return values
        case And(parts):
            return next((found for part in parts if (found := listed(part, name)) is not None), None)
    return None


def counts(
    backend: CosmosBackend, spec: RecordSpec, words: Sequence[str], where: Predicate
) -> tuple[int, dict[str, int]]:
    """The number of records, and of those with each word."""
    records = backend.count(spec, where)
    if not records:
        return 0, dict.fromkeys(words, 0)
    if records > BUDGET:
        return records, {word: _having(backend, spec, word, where) for word in words}
    return records, _counted(words, _with_any(backend, spec, words, where))


def _counted(words: Sequence[str], found: Sequence[Document]) -> dict[str, int]:
    wanted = set(words)
    number = Counter(word for ours in found for word in wanted.intersection(ours["terms"]))
    return {word: number[word] for word in words}


def _having(backend: CosmosBackend, spec: RecordSpec, word: str, where: Predicate) -> int:
    asked = condition(spec, where).also(f"ARRAY_CONTAINS({_TERMS}, @word)", word=word)
    if not asked.exact:
        return len(_with_any(backend, spec, [word], where))
    fits = backend.fits(spec, where)
    return backend.view.count(
        spec.table,
        asked,
        lambda seen: word in _ours(seen).get("terms", ()) and fits(seen),
        backend.partition(spec, where),
    )


def best(
    backend: CosmosBackend, spec: RecordSpec, words: Sequence[str], where: Predicate, keys: Sequence[str] | None = None
) -> list[tuple[str, float]]:
    """The keys and scores of the records with any of the words, or of those of these keys; best first, then by key."""
    records = backend.count(spec, where) if words else 0
    if not records:
        return []
    if records > BUDGET:
        # The most common words only weigh what the others found.
        having = counts(backend, spec, words, where)[1]
        looked_up = words if keys is not None else select(having, records).chosen or words[:1]
        inside = where if keys is None else And(where, In(spec.key, list(keys)))
        found = _with_any(backend, spec, looked_up, inside)
    else:
        found = _with_any(backend, spec, words, where)
        having = _counted(words, found)
    mean = _length(backend, spec, where) / records
    weights = {word: rarity(records, having[word]) for word in words}
    scored = ((str(ours["key"]), _score(ours, weights, mean)) for ours in found)
    return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))


def _with_any(backend: CosmosBackend, spec: RecordSpec, words: Sequence[str], where: Predicate) -> list[Document]:
    """The terms of the records with any of the words."""
    asked = condition(spec, where)
    wanted = set(words)
    if len(wanted) <= _MOST_LISTED:
        named = {f"w{number}": word for number, word in enumerate(wanted)}
        any_of = " OR ".join(
            [f"IS_DEFINED(c.{OURS}.{LONG})", *(f"ARRAY_CONTAINS({_TERMS}, @{name})" for name in named)]
        )
        asked = asked.also(f"({any_of})", **named)
    found = backend.seen(spec, where, asked, select=f"c.{OURS}" if asked.exact else "*")
    terms = [_with_terms(backend, spec, _ours(seen)) for seen in found]
    return [ours for ours in terms if wanted.intersection(ours["terms"])]


def _with_terms(backend: CosmosBackend, spec: RecordSpec, ours: Document) -> Document:
    """The terms of a record, which very long texts do not hold."""
    if LONG not in ours:
        return ours
    (seen,) = backend.seen(spec, In(spec.key, [ours["key"]]))
    return {**ours, **searchable(seen.record(spec.cls).text())}


def _length(backend: CosmosBackend, spec: RecordSpec, where: Predicate) -> float:
    """The number of words in all records."""
    asked = condition(spec, where)
    if not asked.exact:
        return float(sum(_ours(seen)["length"] for seen in backend.seen(spec, where, asked)))
    return backend.view.total(
        f"SUM(c.{OURS}.length)",
        lambda seen: float(_ours(seen)["length"]),
        spec.table,
        asked,
        backend.fits(spec, where),
        backend.partition(spec, where),
    )


def _score(ours: Document, weights: dict[str, float], mean: float) -> float:
    frequencies = dict(zip(ours["terms"], ours["counts"], strict=True))
    return sum(
        weight * saturation(frequencies[word], ours["length"], mean)
        for word, weight in weights.items()
        if word in frequencies
    )


def _ours(seen: Seen) -> Document:
    ours: Document = (seen.document or {})[OURS]
    return ours
