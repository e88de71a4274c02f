"""The exception tree; exceptions carry the facts of their messages as attributes.

ALMAError
├── ConfigurationError ── MissingDependencyError · ModelMismatchError
├── ValidationError (also ValueError) ── ScopeViolationError
│   └── UniquenessError (also ConflictError) ── AlreadyExistsError
├── NotFoundError (also LookupError)
├── StorageError ── ConflictError · MigrationError · UnsupportedOperation · DamagedFileError · StorageFullError
│                  StoreReplacedError · TransferError · FullTextMissingError
├── RefusedError
├── PermissionDeniedError
└── ProviderError ── EmbeddingError · LanguageModelError · IndexUnavailable · ExtractionError · RetrievalError
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_LONGEST_SHOWN_VALUE = 80
_LONGEST_LOOKED_THROUGH = 4_000

UNNAMED_MODEL = "default"
"""The model name of vectors in a store that was opened without one."""


class ALMAError(Exception):
    """Base class of all ALMA errors; `audited` is set once the audit log has recorded the error."""

    audited = False


class ConfigurationError(ALMAError):
    """The configuration, or a constructor argument, is invalid."""


class MissingDependencyError(ConfigurationError):
    """An optional package is missing; `extra` is what to install."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed: run  pip install 'alma-agent-memory[{extra}]'")


_REEMBED = "alma reembed --config FILE  or  alma reembed --store STORE --provider NAME"


class ModelMismatchError(ConfigurationError):
    """The store was opened for another embedding model than that of its vectors; `dims` are their lengths by model."""

    def __init__(self, opened_for: str, dims: Mapping[str, int]) -> None:
        self.opened_for = opened_for
        self.dims = dict(dims)
        self.holds = tuple(self.dims)
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        if self.holds == (UNNAMED_MODEL,):
            return (
                f"the vectors of this store have no model name, so they cannot be compared with those of "
                f"{self.opened_for}: re-embed them with  {_REEMBED}"
            )
        first = self.holds[0]
        return (
            f"the vectors of this store were made by {' and '.join(self.holds)}, but it was opened for "
            f"{self.opened_for}: open it with embedding_model={first!r} and embedding_dim={self.dims[first]}, "
            f"or a memory with the embedding_provider that makes these; or move it to the other model with  {_REEMBED}"
        )


class ValidationError(ALMAError, ValueError):
    """A value violates a rule of its record; nothing was written."""

    def __init__(self, subject: str, field: str | None, value: object, reason: str) -> None:
        self.subject = subject
        self.field = field
        self.value = value
        self.reason = reason
        where = subject if field is None else f"{subject}.{field}"
        super().__init__(f"{where} {reason} (got {shown(value)})")


class ScopeViolationError(ValidationError):
    """A read or write without a scope, or outside of it; one sentence alone is the message."""

    def __init__(self, subject: str, field: str | None = None, value: object = None, reason: str | None = None) -> None:
        super().__init__(subject, field, value, reason or "")
        if reason is None:
            self.args = (subject,)


class NotFoundError(ALMAError, LookupError):
    """A required record does not exist, or not in the scope."""

    def __init__(self, kind: str, record_id: str) -> None:
        self.kind = kind
        self.record_id = record_id
        super().__init__(f"there is no {kind} with id {shown(record_id)}")


class PermissionDeniedError(ALMAError):
    """The API key does not allow this; nothing was read or written."""


class StorageError(ALMAError):
    """The store failed."""


class ConflictError(StorageError):
    """Another writer was first; repeating the call may succeed."""


class UniquenessError(ValidationError, ConflictError):
    """Another record has the same unique values."""

    def __init__(self, kind: str, fields: Iterable[str], values: Iterable[object]) -> None:
        self.fields = tuple(fields)
        self.values = tuple(values)
        what = ", ".join(self.fields)
        taken = self.values[0] if len(self.values) == 1 else self.values
        super().__init__(kind, what, taken, "must be unique, and another record has this value")


class AlreadyExistsError(UniquenessError):
    """A record was created or restored with an id that another record has."""

    def __init__(self, kind: str, key_field: str, record_id: object) -> None:
        super().__init__(kind, [key_field], [record_id])
        self.args = (
            f"a {kind} with the {key_field} {shown(record_id)} exists: delete or archive it first, "
            f"or choose another {key_field}",
        )


class ConnectionLostError(StorageError):
    """The connection to the server was lost before the commit; nothing was stored, and repeating the call is safe."""


class UnknownOutcomeError(StorageError):
    """The connection to the server was lost during the commit; whether it was stored is not known."""


class MigrationError(StorageError):
    """The schema of the store does not match this version of ALMA."""


class UnsupportedOperation(StorageError):
    """This store does not support the operation."""


class DamagedFileError(StorageError):
    """A file of the store is damaged; it was not changed."""

    def __init__(self, path: Path, backup: Path | None, reason: str) -> None:
        self.path = path
        self.backup = backup
        good = f"the last good copy is {backup}" if backup else "there is no backup"
        super().__init__(f"{path} is damaged ({reason}) and was not changed; {good}")


class TransferError(StorageError):
    """A line of an export or import file is invalid; nothing of that line was stored."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(f"{path}, line {line}: {reason}")


class StorageFullError(StorageError):
    """The disk is full; the transaction was rolled back and the store is intact."""


class StoreReplacedError(StorageError):
    """The file or directory of an open store was deleted, moved or replaced; nothing more is written to it."""


class FullTextMissingError(StorageError):
    """The full-text index is missing or incomplete: records can be found without it, but not written."""

    def __init__(self, index: str, place: str) -> None:
        self.index = index
        self.place = place
        super().__init__(f"{index} is missing in {place}, or a part of it: open the store again to rebuild it")


class RefusedError(ALMAError):
    """A rule refused the write: `code` is the rule, `reason` a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


class ProviderError(ALMAError):
    """A model, index or other external service failed."""


class EmbeddingError(ProviderError):
    """Text could not be encoded as a vector."""


class LanguageModelError(ProviderError):
    """A language model gave no usable response."""


class IndexUnavailable(ProviderError):
    """A search index is unavailable."""


class ExtractionError(ProviderError):
    """Fact extraction failed."""


class RetrievalError(ProviderError):
    """Retrieval failed."""


class _Messages:
    """Removes secrets from messages; set by the redaction package, which this module cannot import."""

    mask: Callable[[str], str] = str


def mask_messages(mask: Callable[[str], str]) -> None:
    """Set the function that removes secrets from values in messages."""
    _Messages.mask = staticmethod(mask)


def shown(value: object) -> str:
    """A value for an error message: one short line without secrets."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - a value that cannot even be printed must not hide the error it caused
        text = f"a {type(value).__name__}"
    text = _Messages.mask(text[:_LONGEST_LOOKED_THROUGH])
    return text if len(text) <= _LONGEST_SHOWN_VALUE else text[: _LONGEST_SHOWN_VALUE - 1] + "…"
