"""Mask secrets in texts and records before anything is stored or logged."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import Any, Protocol, TypeVar

from alma.errors import RefusedError, ValidationError, mask_messages
from alma.lazy import lazy_regex
from alma.model.common import checked_part
from alma.model.fields import FieldSpec, FieldType, MaxLength
from alma.model.record import Record, RecordSpec
from alma.redaction.assignments import assigned_spans
from alma.redaction.names import KeyName, key_name
from alma.redaction.nested import Masked, Redacted, column_spans, redacted_value, structured_spans
from alma.redaction.rules import MIN_KEY_LENGTH, Rule, RuleSet, Span, high_entropy_spans, names_an_id, shipped_rules
from alma.redaction.values import MARK, MASKS, looks_random
from alma.text.disguise import Undisguised, is_disguised
from alma.text.scanning import matches

T = TypeVar("T", bound=Record)

_IDENTITIES = frozenset({"user_id", "project_id", "session_id", "agent", "agent_id", "source_agent", "external_id"})
# Secrets in shorter texts cannot be distinguished from other words.
_MIN_LENGTH = 6
_MAX_PASSES = 4
_MAX_CACHED_LENGTH, _MAX_CACHED = 200, 1024


class Redactor(Protocol):
    """Masks secrets in a text; `name` is the field or JSON key of the text."""

    def redact(self, text: str, name: str = "") -> Redacted:
        """The text without secrets. Redacting it again must not change it."""
        ...


class SecretRedactor:
    """Finds the keys of known vendors by rules, other secrets by key names, and the rest by their high entropy."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        given = checked_part("redactor", "rules", rules, Iterable, "a list of rules")
        self._own = RuleSet(checked_part("redactor", "rules", rule, Rule, "a list of rules") for rule in given)
        # A cache of texts without secrets.
        self._clean: set[tuple[str, str]] = set()

    def redact(self, text: str, name: str = "") -> Redacted:
        if name and (meaning := key_name(name)) is not None:
            return self._under(meaning, text, name)
        return self._redacted(text, name)

    def _under(self, meaning: KeyName, text: str, name: str) -> Redacted:
        """A text under a key name that may be a secret's: both are scanned together."""
        if meaning.is_secret(text):
            return Redacted(_replacement("secret"), (Masked("secret", name),))
        before = f"{name}: "
        said = self._redacted(before + text, name)
        if not said.text.startswith(before):
            # The name is a secret itself.
            return self._redacted(text, name)
        return Redacted(said.text.removeprefix(before), said.findings)

    def _redacted(self, text: str, name: str) -> Redacted:
        found = Redacted(text)
        if len(text) < _MIN_LENGTH or (name, text) in self._clean:
            return found
        # Masking a secret can reveal the next one.
        for _ in range(_MAX_PASSES):
            spans = self._spans(found.text, name)
            if not spans:
                break
            more = _without(found.text, spans, name)
            found = Redacted(more.text, (*found.findings, *more.findings))
        if not found and len(text) <= _MAX_CACHED_LENGTH:
            self._cache(name, text)
        return found

    def _cache(self, name: str, text: str) -> None:
        if len(self._clean) >= _MAX_CACHED:
            self._clean.clear()
        self._clean.add((name, text))

    def _spans(self, text: str, name: str) -> list[Span]:
        spans = self._scan(text, name)
        if is_disguised(text):
            read = Undisguised(text)
            spans.extend(Span(*read.original(span.start, span.end), span.kind) for span in self._scan(read.text))
        return _outside_of_marks(spans, text) if spans and MARK in text else spans

    def _scan(self, text: str, name: str = "") -> list[Span]:
        """Where secrets are in a text as it is written."""
        folded = text.lower()
        spans = self._own.spans(text, folded)
        rules = shipped_rules()
        long_words = [word for word in folded.split() if len(word) >= MIN_KEY_LENGTH]
        if long_words:
            spans += _to_the_end(rules.key_spans(text, " ".join(long_words)), text) + self._wrapped(text, long_words)
        spans += rules.texts.spans(text, folded)
        if not _SIGNS.isdisjoint(text):
            spans.extend(assigned_spans(text, folded))
            spans.extend(structured_spans(text))
            spans.extend(column_spans(text))
        # High entropy counts where no rule has found anything.
        return spans or (_high_entropy(text, name) if long_words else spans)

    def _wrapped(self, text: str, long_words: list[str]) -> list[Span]:
        """Words in base64 that decode to a secret."""
        if not any(len(word) >= _SHORTEST_WRAPPED for word in long_words):
            return []
        return [
            Span(*blob.span(), "encoded_secret")
            for blob in islice(matches(_BLOB, text), _MOST_WRAPPED)
            if (said := _decoded(blob[0])) is not None and self._scan(said)
        ]


class OpaqueValues:
    """A redactor that leaves the values of some JSON keys as they are: ids and signatures, which look like secrets.

    Long values in base64 under any key of `_BLOBS`, as images, are left as well.
    """

    def __init__(self, redactor: Redactor, keys: Iterable[str]) -> None:
        self._redactor = redactor
        self._keys = frozenset(keys)

    def redact(self, text: str, name: str = "") -> Redacted:
        if name in self._keys or (name in _BLOBS and _is_blob(text)):
            return Redacted(text)
        return self._redactor.redact(text, name)


def _is_blob(text: str) -> bool:
    """Whether a text is a file in base64, bare or as a data URL."""
    body = text.partition(";base64,")[2] if text.startswith("data:") else text
    return len(body) >= _SHORTEST_BLOB and _BASE64.fullmatch(body) is not None


_BLOBS = frozenset({"data", "url", "image_url", "file_data", "file_url", "base64"})
_SHORTEST_BLOB = 256
_BASE64 = lazy_regex(r"[A-Za-z0-9+/_-]++={0,2}")


def _to_the_end(keys: list[Span], text: str) -> list[Span]:
    """Keys that a line break splits, with their rest on the next line."""
    return [
        span
        if (rest := _NEXT_LINE.match(text, span.end)) is None or not looks_random(rest[1])
        else Span(span.start, rest.end(1), span.kind)
        for span in keys
    ]


def _high_entropy(text: str, name: str) -> list[Span]:
    """Words of high entropy, except base64 of readable text and values under the name of an id."""
    if names_an_id(name):
        return []
    return [span for span in high_entropy_spans(text) if _decoded(text[span.start : span.end]) is None]


def _decoded(blob: str) -> str | None:
    """A word in base64, decoded; None where that is not readable."""
    padded = blob.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        said = base64.b64decode(padded + "=" * (-len(padded) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    return said if said.replace("\n", "").replace("\t", "").replace("\r", "").isprintable() else None


def _outside_of_marks(spans: Iterable[Span], text: str) -> list[Span]:
    """The spans that are not inside of a mask, which a custom rule may match."""
    marks = [mark.span() for mark in matches(MASKS, text)]
    return [span for span in spans if not any(start <= span.start and span.end <= end for start, end in marks)]


_NEXT_LINE = lazy_regex(r"\\?\r?\n[ \t>]*([A-Za-z0-9_+/=-]{8,})(?=\s|\\?\Z|[\"',;.)])")
_BLOB = lazy_regex(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_SHORTEST_WRAPPED, _MOST_WRAPPED = 24, 20
# Values have digits or follow one of these signs; without any, only the rules can match.
_SIGNS = frozenset("0123456789:=|\"'`“@$%/\\<>#&*+~!?→–：-")


DEFAULT_REDACTOR: Redactor = SecretRedactor()
"""The redactor used by default."""
mask_messages(lambda text: DEFAULT_REDACTOR.redact(text).text)


def masking(redactor: Redactor | None) -> Callable[[str], str]:
    """A function from text to text without secrets; None leaves texts as they are."""
    return lambda text: text if redactor is None else redactor.redact(text).text


def redact_text(text: str, redactor: Redactor = DEFAULT_REDACTOR) -> Redacted:
    """The text without secrets, for logs and messages."""
    return redactor.redact(text)


def redact_json(value: Any, redactor: Redactor = DEFAULT_REDACTOR) -> Any:
    """A JSON value without secrets in any of its texts and keys."""
    return redacted_value(value, "", "", redactor.redact, [])


def redact_record(record: T, redactor: Redactor = DEFAULT_REDACTOR) -> tuple[T, tuple[Masked, ...]]:
    """The record without secrets in any of its texts, lists and JSON, and the masked secrets.

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
    """A masked value may be longer than the original; cut it to the limit of its field."""
    longest = next((rule.characters for rule in field.rules if isinstance(rule, MaxLength)), None)
    return value[:longest] if longest is not None and isinstance(value, str) else value


def _without(text: str, spans: Iterable[Span], name: str) -> Redacted:
    """The text with each span masked; the first, then the longest, of overlapping spans names the kind."""
    parts: list[str] = []
    findings: list[Masked] = []
    end = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start < end:
            end = max(end, span.end)
            continue
        parts.extend((text[end : span.start], _replacement(span.kind)))
        findings.append(Masked(span.kind, name))
        end = span.end
    return Redacted("".join((*parts, text[end:])), tuple(findings))


def _replacement(kind: str) -> str:
    return f"{MARK}{kind}]"


class CheckedRedactor:
    """Wraps a custom redactor: if it fails, the write is refused with an error that does not repeat the text."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def redact(self, text: str, name: str = "") -> Redacted:
        try:
            redacted: Any = self._redactor.redact(text, name)
        except Exception as exc:  # noqa: BLE001 - unredacted text must not pass on any error
            raise self._refusal(f"failed with {type(exc).__name__}") from None
        if not isinstance(redacted, Redacted) or not isinstance(redacted.text, str):
            raise self._refusal("did not return a Redacted, as Redacted(text)")
        return redacted

    def _refusal(self, what: str) -> RefusedError:
        named = type(self._redactor).__name__
        return RefusedError("redaction", f"nothing was stored: the redactor {named} {what}; fix it or leave it out")

    def __repr__(self) -> str:
        return f"CheckedRedactor({self._redactor!r})"


def checked_redactor(what: str, redactor: Redactor | None) -> Redactor | None:
    """The redactor, wrapped where it is a custom one; an error when it is neither a redactor nor None."""
    if redactor is None or type(redactor) in (SecretRedactor, CheckedRedactor):
        return redactor
    if callable(getattr(redactor, "redact", None)):
        return CheckedRedactor(redactor)
    raise ValidationError(
        what, "redactor", redactor, "must have a method redact(text, name), or be None for no redaction"
    )


_Span = tuple[int, int]


class MaskedText:
    """A redacted text with a way back to places of the original; `findings` are the masked secrets."""

    def __init__(self, said: str, redactor: Redactor | None) -> None:
        clean = Redacted(said) if redactor is None else redactor.redact(said)
        self.text = clean.text
        self.findings = clean.findings
        self._said = said

    def original(self, start: int, end: int) -> _Span:
        """Where this part is in the original; all of it where that is unknown."""
        if self.text == self._said:
            return start, end
        places = self._masked()
        if places is None:
            return 0, len(self._said)
        return _moved(start, places, 0), _moved(end, places, 1)

    def _masked(self) -> list[tuple[_Span, _Span]] | None:
        """The span of each mask and of its original; None where they cannot be aligned."""
        masks = [mask.span() for mask in matches(MASKS, self.text)]
        places: list[tuple[_Span, _Span]] = []
        read = 0
        for number, (start, end) in enumerate(masks):
            begun = read + start - (masks[number - 1][1] if number else 0)
            if number + 1 < len(masks):
                read = self._said.find(self.text[end : masks[number + 1][0]], begun)
            else:
                read = len(self._said) - (len(self.text) - end)
            if read < begun:
                return None
            places.append(((start, end), (begun, read)))
        return places or None


def _moved(at: int, places: list[tuple[_Span, _Span]], side: int) -> int:
    """A place of the masked text in the original; within a mask, the end on that side."""
    shift = 0
    for mask, said in places:
        if at <= mask[0]:
            break
        if at < mask[1]:
            return said[side]
        shift = said[1] - mask[1]
    return at + shift


def masks_in(text: str) -> tuple[str, ...]:
    """The kinds of the masks in a text."""
    return tuple(mask[1] for mask in matches(MASKS, text))


_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_FORMATTER = logging.Formatter()
_LEFT_OUT = "a message was left out, as the redactor failed at it"


class RedactingFilter(logging.Filter):
    """Masks secrets in the message, its arguments, exception and extra fields of log records.

    `handler.addFilter(RedactingFilter())` is enough; a filter on a logger does not see what its children log.
    """

    def __init__(self, redactor: Redactor = DEFAULT_REDACTOR) -> None:
        super().__init__()
        self._redactor = checked_redactor("filter", redactor) or DEFAULT_REDACTOR

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            self._mask(record)
        except RefusedError:
            # Logging must not raise, and unredacted text must not be logged.
            _empty(record)
        return True

    def _mask(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        clean = self._clean(message)
        if clean != message:
            record.msg, record.args = clean, None
        if record.exc_info and any(record.exc_info):
            self._mask_error(record)
        record.exc_text, record.stack_info = self._clean(record.exc_text), self._clean(record.stack_info)
        for name, value in _facts(record).items():
            record.__dict__[name] = self._clean(value, name)

    def _mask_error(self, record: logging.LogRecord) -> None:
        """Replace the exception by its masked traceback when that holds a secret."""
        assert record.exc_info
        text = _FORMATTER.formatException(record.exc_info)
        clean = self._clean(text)
        if clean != text:
            record.exc_info, record.exc_text = None, clean

    def _clean(self, value: Any, name: str = "") -> Any:
        return redacted_value(value, name, name, self._redactor.redact, []) if _can_be_read(value) else value


def _can_be_read(value: Any) -> bool:
    """Whether this is text or JSON; other values are left as they are."""
    if type(value) is dict:
        return all(isinstance(key, str) and _can_be_read(each) for key, each in value.items())
    if type(value) in (list, tuple):
        return all(map(_can_be_read, value))
    return value is None or type(value) in (str, bool, int, float)


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """The fields given as `extra`."""
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD}


def _empty(record: logging.LogRecord) -> None:
    record.msg, record.args = _LEFT_OUT, None
    record.exc_info = record.exc_text = record.stack_info = None
    for name in _facts(record):
        record.__dict__[name] = None
