"""The exception tree: every failure a caller can meet, built from facts and carrying them as attributes.

ALMAError
├── ConfigurationError ── MissingDependencyError · ModelMismatchError
├── ValidationError (also ValueError) ── ScopeViolationError
│   └── UniquenessError (also ConflictError) ── AlreadyExistsError
├── NotFoundError (also LookupError)
├── StorageError ── ConflictError · MigrationError · UnsupportedOperation · DamagedFileError · StorageFullError
│                  TransferError · FullTextMissingError
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
"""What the vectors of a store are labelled with as long as nobody says which model makes them."""


class ALMAError(Exception):
    """The root of every error that ALMA raises on purpose; `audited` says that the audit log tells of it already."""

    audited = False


class ConfigurationError(ALMAError):
    """Something in the configuration or the call that opens ALMA is wrong."""


class MissingDependencyError(ConfigurationError):
    """An optional package is needed; `extra` names what to install."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed: run  pip install 'alma-memory[{extra}]'")


_REEMBED = "alma reembed --config FILE  or  alma reembed --store STORE --provider NAME"


class ModelMismatchError(ConfigurationError):
    """A store was opened for one embedding model and holds the vectors of others; `dims` says how long those are."""

    def __init__(self, opened_for: str, dims: Mapping[str, int]) -> None:
        self.opened_for = opened_for
        self.dims = dict(dims)
        self.holds = tuple(self.dims)
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        if self.holds == (UNNAMED_MODEL,):
            return (
                f"the vectors of this store do not say which model made them, so they cannot be compared with those of "
                f"{self.opened_for}: make them anew with  {_REEMBED}"
            )
        first = self.holds[0]
        return (
            f"the vectors of this store were made by {' and '.join(self.holds)}, but it was opened for "
            f"{self.opened_for}: open it with embedding_model={first!r} and embedding_dim={self.dims[first]}, "
            f"or a memory with the embedding_provider that makes these; or move it to the other model with  {_REEMBED}"
        )


class ValidationError(ALMAError, ValueError):
    """A value breaks a rule of the record it was meant for; nothing was written."""

    def __init__(self, subject: str, field: str | None, value: object, reason: str) -> None:
        self.subject = subject
        self.field = field
        self.value = value
        self.reason = reason
        where = subject if field is None else f"{subject}.{field}"
        super().__init__(f"{where} {reason} (got {shown(value)})")


class ScopeViolationError(ValidationError):
    """A read or write would cross, or leave open, the scope it must stay in."""


class NotFoundError(ALMAError, LookupError):
    """A record that was required does not exist, or not inside the scope."""

    def __init__(self, kind: str, record_id: str) -> None:
        self.kind = kind
        self.record_id = record_id
        super().__init__(f"there is no {kind} with id {shown(record_id)}")


class PermissionDeniedError(ALMAError):
    """The caller's key does not allow this, or not there; nothing was read or written."""


class StorageError(ALMAError):
    """The system of record could not do what was asked."""


class ConflictError(StorageError):
    """Another writer got there first; the same call may succeed when repeated."""


class UniquenessError(ValidationError, ConflictError):
    """Another record already holds values that must be unique."""

    def __init__(self, kind: str, fields: Iterable[str], values: Iterable[object]) -> None:
        self.fields = tuple(fields)
        self.values = tuple(values)
        what = ", ".join(self.fields)
        taken = self.values[0] if len(self.values) == 1 else self.values
        super().__init__(kind, what, taken, "must be unique, and another record has this value")


class AlreadyExistsError(UniquenessError):
    """A record was to be made or brought back under an id that another record has."""

    def __init__(self, kind: str, key_field: str, record_id: object) -> None:
        super().__init__(kind, [key_field], [record_id])
        self.args = (
            f"there is a {kind} with the {key_field} {shown(record_id)} already: delete or archive that one first, "
            f"or choose another {key_field}",
        )


class MigrationError(StorageError):
    """The schema of a store and the schema this version knows do not fit together."""


class UnsupportedOperation(StorageError):
    """This store cannot do that, and says so instead of pretending."""


class DamagedFileError(StorageError):
    """A file of the store cannot be read; it was left untouched."""

    def __init__(self, path: Path, backup: Path | None, reason: str) -> None:
        self.path = path
        self.backup = backup
        good = f"the last good copy is {backup}" if backup else "there is no backup copy"
        super().__init__(f"{path} is damaged ({reason}) and was left as it is; {good}")


class TransferError(StorageError):
    """A file that records travel in cannot be taken as it is; nothing of the line that is named was stored."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(f"{path}, line {line}: {reason}")


class StorageFullError(StorageError):
    """There is no room left on the disk; the transaction was rolled back and the store is intact."""


class StoreReplacedError(StorageError):
    """The file or folder of an open store was deleted, moved or replaced; nothing is written into it any more."""


class FullTextMissingError(StorageError):
    """What words are looked up in is gone, all of it or a part: records are found without it, and none is written."""

    def __init__(self, index: str, place: str) -> None:
        self.index = index
        self.place = place
        super().__init__(f"{index} is missing in {place}, or a part of it: open the store again, which makes it anew")


class RefusedError(ALMAError):
    """Something was not remembered, on purpose: `code` is the rule in one word, `reason` says why in a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


class ProviderError(ALMAError):
    """A model, index or other service outside the store failed."""


class EmbeddingError(ProviderError):
    """Text could not be turned into a vector."""


class LanguageModelError(ProviderError):
    """A language model did not answer usefully."""


class IndexUnavailable(ProviderError):
    """A search index cannot be reached."""


class ExtractionError(ProviderError):
    """Facts could not be extracted."""


class RetrievalError(ProviderError):
    """Retrieval failed as a whole."""


class _Messages:
    """What takes secrets out of messages; whatever knows secrets stands above this module and gives it."""

    mask: Callable[[str], str] = str


def mask_messages(mask: Callable[[str], str]) -> None:
    """From now on, have values that stand in messages go through this."""
    _Messages.mask = staticmethod(mask)


def shown(value: object) -> str:
    """The value as one short piece of an error message, without secrets: messages end up in logs."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - a value that cannot even be printed must not hide the error it caused
        text = f"a {type(value).__name__}"
    text = _Messages.mask(text[:_LONGEST_LOOKED_THROUGH])
    return text if len(text) <= _LONGEST_SHOWN_VALUE else text[: _LONGEST_SHOWN_VALUE - 1] + "…"
