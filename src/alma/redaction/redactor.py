"""Redaction: secrets are taken out of texts and records before anything is stored or logged."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import Any, Protocol, TypeVar

from alma.errors import mask_messages
from alma.model.common import checked_part
from alma.model.field_spec import FieldSpec
from alma.model.fields import FieldType, MaxLength
from alma.model.record import Record, RecordSpec
from alma.redaction.calls import CALLS
from alma.redaction.columns import column_spans
from alma.redaction.keys import BEGINNING, KEYS, KEYS_BY_BEGINNING, SHORTEST_KEY
from alma.redaction.named import named_spans
from alma.redaction.nested import Masked, Redacted, redacted_value
from alma.redaction.placed import PLACES, placed_spans
from alma.redaction.secrets import A_LONG_WORD, MARK, MASKS, NOTHING, SHAPES, Rule, Span, looks_random
from alma.redaction.telling import Tells, telling
from alma.redaction.unnamed import names_another_thing, unnamed_spans
from alma.text.disguise import Undisguised, is_disguised
from alma.text.scanning import found_in, matches

T = TypeVar("T", bound=Record)

_IDENTITIES = frozenset({"user_id", "project_id", "session_id", "agent", "agent_id", "source_agent", "external_id"})
# Nothing shorter holds a secret that can be told from other words.
_SHORTEST = 6
_PASSES = 4
_LONGEST_KEPT, _MOST_KEPT = 200, 1024


class Redactor(Protocol):
    """What takes secrets out of a text; `name` is the field or JSON key that the text stands under."""

    def redact(self, text: str, name: str = "") -> Redacted:
        """The text without secrets. What was redacted once must not change when it is redacted again."""
        ...


class SecretRedactor:
    """Knows the keys of common providers by their shape, other secrets by the names they stand behind.

    Of those that have neither, it knows the ones that are too long and too mixed to be a word or an id.
    """

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        given = checked_part("redactor", "rules", rules, Iterable, "a list of rules")
        # What knows most about a secret says first which it is.
        self._own = _hinted(checked_part("redactor", "rules", rule, Rule, "a list of rules") for rule in given)
        # What is said again and again is looked through once; only texts without secrets are kept.
        self._clean: set[tuple[str, str]] = set()

    def redact(self, text: str, name: str = "") -> Redacted:
        if name and (tells := telling(name)) is not None:
            return self._under(tells, text, name)
        return self._redacted(text, name)

    def _under(self, tells: Tells, text: str, name: str) -> Redacted:
        """A text under a name that may be one of a secret: the name is read with it, as if it stood before it."""
        if tells.is_secret(text):
            return Redacted(_replacement("secret"), (Masked("secret", name),))
        before = f"{name}: "
        said = self._redacted(before + text, name)
        if not said.text.startswith(before):
            # The name is a secret itself, and tells nothing.
            return self._redacted(text, name)
        return Redacted(said.text.removeprefix(before), said.findings)

    def _redacted(self, text: str, name: str) -> Redacted:
        found = Redacted(text)
        if len(text) < _SHORTEST or (name, text) in self._clean:
            return found
        # A secret that stood right behind another one is known once that one is gone.
        for _ in range(_PASSES):
            spans = self._spans(found.text, name)
            if not spans:
                break
            more = _without(found.text, spans, name)
            found = Redacted(more.text, (*found.findings, *more.findings))
        if not found and len(text) <= _LONGEST_KEPT:
            self._keep(name, text)
        return found

    def _keep(self, name: str, text: str) -> None:
        if len(self._clean) >= _MOST_KEPT:
            self._clean.clear()
        self._clean.add((name, text))

    def _spans(self, text: str, name: str) -> list[Span]:
        spans = self._written(text, name)
        if is_disguised(text):
            read = Undisguised(text)
            spans.extend(Span(*read.original(span.start, span.end), span.kind) for span in self._written(read.text))
        return _outside_of_marks(spans, text) if spans and MARK in text else spans

    def _written(self, text: str, name: str = "") -> list[Span]:
        """Where secrets stand in a text that is taken as it is written."""
        folded = text.lower()
        spans = _hits(self._own, text, folded) if self._own else []
        # Most texts have no hint of any, and asking each rule would take longer than looking.
        long_words = [word for word in folded.split() if len(word) >= SHORTEST_KEY]
        if long_words:
            spans += _to_the_end(self._keys(text, " ".join(long_words)), text)
            spans += _hits(_WITH_LONG_WORDS, text, folded) + self._wrapped(text, long_words)
        signs = set(text)
        if not _TELLING.isdisjoint(signs):
            for need, rules in _WITH_SIGNS:
                if need.is_met(signs, text):
                    spans += _hits(rules, text, folded)
            spans.extend(named_spans(text, folded))
            spans.extend(placed_spans(text))
            spans.extend(column_spans(text))
        spans += _hits(_WITHOUT_SIGNS, text, folded)
        # What is known by its shape or name is told by that; the rest is looked at once it is gone.
        return spans or (_unnamed(text, name) if long_words else spans)

    @staticmethod
    def _keys(text: str, long_words: str) -> list[Span]:
        spans = _hits(_KEYS, text, long_words)
        return spans if not found_in(BEGINNING, long_words) else spans + _hits(_KEYS_BY_BEGINNING, text, long_words)

    def _wrapped(self, text: str, long_words: list[str]) -> list[Span]:
        """Words in base64 that say a secret; the whole word is one."""
        if not any(len(word) >= _SHORTEST_WRAPPED for word in long_words):
            return []
        return [
            Span(*blob.span(), "encoded_secret")
            for blob in islice(matches(_BLOB, text), _MOST_WRAPPED)
            if (said := _decoded(blob[0])) is not None and self._written(said)
        ]


Hinted = tuple[tuple[str, Rule], ...]


def _hinted(rules: Iterable[Rule]) -> Hinted:
    """Each rule under every form of its hint, one behind the other."""
    return tuple((hint, rule) for rule in rules for hint in rule.hints)


def _hits(hinted: Hinted, text: str, folded: str) -> list[Span]:
    spans: list[Span] = []
    tried: Rule | None = None
    for hint, rule in hinted:
        if hint in folded and rule is not tried:
            spans.extend(rule.spans(text))
            tried = rule
    return spans


def _to_the_end(keys: list[Span], text: str) -> list[Span]:
    """The keys with what of them stands on the next line, where a line was broken in their middle."""
    return [
        span
        if (rest := _NEXT_LINE.match(text, span.end)) is None or not looks_random(rest[1])
        else Span(span.start, rest.end(1), span.kind)
        for span in keys
    ]


def _unnamed(text: str, name: str) -> list[Span]:
    """Words that look like keys of nobody in particular, unless they stand for words, or under the name of an id."""
    if names_another_thing(name):
        return []
    return [span for span in unnamed_spans(text) if _decoded(text[span.start : span.end]) is None]


def _decoded(blob: str) -> str | None:
    """What a word in base64 says; None where it says nothing that could be read."""
    padded = blob.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        said = base64.b64decode(padded + "=" * (-len(padded) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    return said if said.replace("\n", "").replace("\t", "").replace("\r", "").isprintable() else None


def _outside_of_marks(spans: Iterable[Span], text: str) -> list[Span]:
    """The spans without those that take what stands for a secret for another one, as a rule of one's own may do."""
    marks = [mark.span() for mark in matches(MASKS, text)]
    return [span for span in spans if not any(start <= span.start and span.end <= end for start, end in marks)]


_NEXT_LINE = re.compile(r"\\?\r?\n[ \t>]*([A-Za-z0-9_+/=-]{8,})(?=\s|\\?\Z|[\"',;.)])")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_SHORTEST_WRAPPED, _MOST_WRAPPED = 24, 20
_KEYS = _hinted(KEYS)
_KEYS_BY_BEGINNING = _hinted(KEYS_BY_BEGINNING)
_SHAPES_AND_PLACES = (*SHAPES, *PLACES, *CALLS)
_WITHOUT_SIGNS = _hinted(rule for rule in _SHAPES_AND_PLACES if rule.needs == NOTHING)
_WITH_LONG_WORDS = _hinted(rule for rule in _SHAPES_AND_PLACES if rule.needs == A_LONG_WORD)
_WITH_SIGNS = tuple(
    (need, _hinted(rule for rule in _SHAPES_AND_PLACES if rule.needs == need))
    for need in dict.fromkeys(rule.needs for rule in _SHAPES_AND_PLACES if rule.needs.signs)
)
# A text that has none of these can only hold what needs no sign: values have digits, or stand behind a sign.
_TELLING = frozenset("0123456789:=|\"'`“@$%/\\<>#&*+~!?→–：-")


DEFAULT_REDACTOR: Redactor = SecretRedactor()
"""What is used where nothing else is said."""
mask_messages(lambda text: DEFAULT_REDACTOR.redact(text).text)


def masking(redactor: Redactor | None) -> Callable[[str], str]:
    """What takes secrets out of a text, for those who ask no more; None lets them pass."""
    return _as_it_is if redactor is None else lambda text: redactor.redact(text).text


def _as_it_is(text: str) -> str:
    return text


def redact_text(text: str, redactor: Redactor = DEFAULT_REDACTOR) -> Redacted:
    """The text without secrets, for logs and messages."""
    return redactor.redact(text)


def redact_json(value: Any, redactor: Redactor = DEFAULT_REDACTOR) -> Any:
    """A JSON value without secrets in any of its texts and keys."""
    return redacted_value(value, "", "", redactor.redact, [])


def redact_record(record: T, redactor: Redactor = DEFAULT_REDACTOR) -> tuple[T, tuple[Masked, ...]]:
    """The record without secrets in any of its texts, lists and JSON, and what was taken out.

    Ids and owners stay as they are. A vector that was made from a text with a secret goes with it.
    """
    checked_part("redaction", "record", record, Record, "a record, for example a Heuristic")
    found: list[Masked] = []
    changes: dict[str, Any] = {}
    for field in _text_fields(record.spec):
        value = getattr(record, field.name)
        if not value:
            continue
        redacted = redacted_value(value, field.name, field.name, redactor.redact, found)
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
