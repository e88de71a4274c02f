"""Redaction: secrets are taken out of texts and records before anything is stored or logged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

from alma.model.fields import FieldType, MaxLength
from alma.model.record import FieldSpec, Record, RecordSpec
from alma.redaction.named import is_secret_name, may_be_secret, named_spans
from alma.redaction.placed import PLACES, placed_spans
from alma.redaction.secrets import KEYS, MARK, SHAPES, SHORTEST_KEY, Rule, Span

T = TypeVar("T", bound=Record)

_IDENTITIES = frozenset({"user_id", "project_id", "session_id", "agent", "agent_id", "source_agent", "external_id"})
# Nothing shorter holds a secret that can be told from other words.
_SHORTEST = 6
_PASSES = 4
_LONGEST_KEPT, _MOST_KEPT = 200, 1024


@dataclass(frozen=True, slots=True)
class Masked:
    """A secret that was taken out: of which kind it was and where it stood; never what it was."""

    kind: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and what was taken out."""

    text: str
    findings: tuple[Masked, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything was taken out."""
        return bool(self.findings)


class Redactor(Protocol):
    """What takes secrets out of a text; `name` is the field or JSON key that the text stands under."""

    def redact(self, text: str, name: str = "") -> Redacted:
        """The text without secrets. What was redacted once must not change when it is redacted again."""
        ...


class SecretRedactor:
    """Knows the keys of common providers by their shape, and other secrets by the names they stand behind."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        # What knows most about a secret says first which it is.
        self._with_keys = _hinted((*rules, *KEYS, *SHAPES, *PLACES))
        self._always = _hinted((*rules, *SHAPES, *PLACES))
        # What is said again and again is looked through once; only texts without secrets are kept.
        self._clean: set[str] = set()

    def redact(self, text: str, name: str = "") -> Redacted:
        if name and is_secret_name(name) and may_be_secret(text):
            return Redacted(_replacement("secret"), (Masked("secret", name),))
        found = Redacted(text)
        if len(text) < _SHORTEST or text in self._clean:
            return found
        # A secret that stood right behind another one is known once that one is gone.
        for _ in range(_PASSES):
            spans = self._spans(found.text)
            if not spans:
                break
            more = _without(found.text, spans, name)
            found = Redacted(more.text, (*found.findings, *more.findings))
        if not found and len(text) <= _LONGEST_KEPT:
            self._keep(text)
        return found

    def _keep(self, text: str) -> None:
        if len(self._clean) >= _MOST_KEPT:
            self._clean.clear()
        self._clean.add(text)

    def _spans(self, text: str) -> list[Span]:
        folded = text.lower()
        spans: list[Span] = []
        tried: Rule | None = None
        # Most texts have no hint of any, and asking each rule would take longer than looking.
        for hint, rule in self._with_keys if max(map(len, text.split()), default=0) >= SHORTEST_KEY else self._always:
            if hint in folded and rule is not tried:
                spans.extend(rule.spans(text))
                tried = rule
        spans.extend(named_spans(text, folded))
        spans.extend(placed_spans(text))
        return spans


def _hinted(rules: Iterable[Rule]) -> tuple[tuple[str, Rule], ...]:
    """Each rule under every form of its hint, one behind the other."""
    return tuple((hint, rule) for rule in rules for hint in rule.hints)


DEFAULT_REDACTOR: Redactor = SecretRedactor()
"""What is used where nothing else is said."""


def redact_text(text: str, redactor: Redactor = DEFAULT_REDACTOR) -> Redacted:
    """The text without secrets, for logs and messages."""
    return redactor.redact(text)


def redact_record(record: T, redactor: Redactor = DEFAULT_REDACTOR) -> tuple[T, tuple[Masked, ...]]:
    """The record without secrets in any of its texts, lists and JSON, and what was taken out.

    Ids and owners stay as they are. A vector that was made from a text with a secret goes with it.
    """
    found: list[Masked] = []
    changes: dict[str, Any] = {}
    for field in _text_fields(record.spec):
        value = getattr(record, field.name)
        if not value:
            continue
        redacted = _redacted(value, field.name, field.name, redactor, found)
        if redacted != value:
            changes[field.name] = _fitting(field, redacted)
    if not changes:
        return record, ()
    vector = record.spec.vector_field
    if vector is not None and any(name in record.spec.text for name in changes):
        changes[vector] = None
    return record.replace(**changes), tuple(found)


@cache
def _text_fields(spec: RecordSpec) -> tuple[FieldSpec, ...]:
    """The fields of a kind that may hold secrets."""
    return tuple(field for field in spec.primary if _is_text(spec, field))


def _is_text(spec: RecordSpec, field: FieldSpec) -> bool:
    if field.name in _IDENTITIES or field.name == spec.key or field.choices is not None:
        return False
    if any(reference.field == field.name for reference in spec.references):
        return False
    return field.type in (FieldType.TEXT, FieldType.JSON, FieldType.STRINGS, FieldType.TAGS)


def _redacted(value: Any, path: str, name: str, redactor: Redactor, found: list[Masked]) -> Any:
    """The value with every text in it redacted; `path` says in the report where a text stood."""
    if isinstance(value, str):
        redacted = redactor.redact(value, name)
        found.extend(Masked(each.kind, path) for each in redacted.findings)
        return redacted.text
    if isinstance(value, dict):
        return _redacted_object(value, path, redactor, found)
    if isinstance(value, list | tuple):
        return type(value)(_redacted(item, path, name, redactor, found) for item in value)
    if isinstance(value, int) and not isinstance(value, bool) and is_secret_name(name) and abs(value) > 999:
        redacted = redactor.redact(str(value), name)
        found.extend(Masked(each.kind, path) for each in redacted.findings)
        return redacted.text if redacted else value
    return value


def _redacted_object(given: dict[str, Any], path: str, redactor: Redactor, found: list[Masked]) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    for key, item in given.items():
        name = _redacted(key, path, "", redactor, found)
        # Two secrets that were keys must not become one.
        while name in clean:
            name += "'"
        clean[name] = _redacted(item, f"{path}.{_key(key)}", key, redactor, found)
    return clean


def _key(key: str) -> str:
    """A JSON key as part of a path, unless it could be a secret itself."""
    return key if len(key) <= 40 else "…"


def _fitting(field: FieldSpec, value: Any) -> Any:
    """What replaces a secret may be longer than it was; a field with a limit keeps it."""
    longest = next((rule.characters for rule in field.rules if isinstance(rule, MaxLength)), None)
    return value[:longest] if longest is not None and isinstance(value, str) else value


def _without(text: str, spans: Iterable[Span], name: str) -> Redacted:
    """The text with each span replaced; of spans that overlap the one that begins first, then the longest."""
    parts: list[str] = []
    findings: list[Masked] = []
    end = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start < end:
            # What sticks out of a secret belongs to it.
            end = max(end, span.end)
            continue
        parts.extend((text[end : span.start], _replacement(span.kind)))
        findings.append(Masked(span.kind, name))
        end = span.end
    return Redacted("".join((*parts, text[end:])), tuple(findings))


def _replacement(kind: str) -> str:
    return f"{MARK}{kind}]"
