"""Serialize slices as JSON for external caches."""

from __future__ import annotations

import base64
import json
from typing import Any

from alma.cache.base import dropped_unknown
from alma.errors import ValidationError
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.slice import Explanation, MemorySlice
from alma.model.vector import Vector
from alma.storage.document import from_document, to_document

_FORMAT = 4
_KINDS: dict[str, type[Record]] = {
    "heuristics": Heuristic,
    "outcomes": Outcome,
    "preferences": UserPreference,
    "domain_knowledge": DomainKnowledge,
    "anti_patterns": AntiPattern,
    "memories": Memory,
    "instructions": Memory,
}
_FACTS = ("query", "agent", "retrieval_time_ms", "degraded", "weak")


def to_json(found: MemorySlice, generation: str) -> str:
    """The slice of a generation as JSON, without its dropped candidates."""
    return json.dumps(
        {
            "format": _FORMAT,
            "generation": generation,
            **{name: [_document(record) for record in getattr(found, name)] for name in _KINDS},
            **{name: getattr(found, name) for name in _FACTS},
            "explanations": [
                [
                    key,
                    each.kind,
                    each.id,
                    each.score,
                    dict(each.terms),
                    list(each.found_by),
                    list(each.notes),
                    each.similarity,
                    each.relevance,
                    each.strength,
                ]
                for key, each in found.explanations.items()
            ],
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def from_json(text: str | bytes, generation: str) -> MemorySlice | None:
    """The slice that `to_json` wrote, with every value checked, or None if it is of another generation.

    A ValidationError for anything else.
    """
    try:
        document = json.loads(text)
        if document["format"] != _FORMAT:
            raise ValidationError("slice", "format", document["format"], f"must be {_FORMAT}")
        if document["generation"] != generation:
            return None
        found: dict[str, Any] = {name: [_record(cls, each) for each in document[name]] for name, cls in _KINDS.items()}
        return MemorySlice(
            **found,
            **{name: document[name] for name in _FACTS},
            explanations={
                key: Explanation(kind, id_, score, terms, tuple(found_by), tuple(notes), *measured)
                for key, kind, id_, score, terms, found_by, notes, *measured in document["explanations"]
            },
            _why_not=dropped_unknown,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise ValidationError("slice", None, text[:80], f"cannot be read from its document ({exc})") from exc


def _document(record: Record) -> dict[str, Any]:
    document = to_document(record)
    name = record.spec.vector_field
    if name in document:
        # Vectors in base64: as a list of numbers, one is many times longer than all the rest.
        document[name] = base64.b64encode(getattr(record, name).to_bytes()).decode("ascii")
    return document


def _record(cls: type[Record], document: dict[str, Any]) -> Record:
    name = cls.spec.vector_field
    if name in document:
        # As a list, so that the numbers are checked as all other values are.
        document = {**document, name: list(Vector.from_bytes(base64.b64decode(document[name], validate=True)))}
    return from_document(cls, document)
