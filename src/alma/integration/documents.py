"""Documents: JSON under a path of names, as frameworks keep it, each as one memory with a history.

A document is kept whole in `content_json` and given back as it was, except that secrets are masked. Its texts are what
ALMA's own search finds it by.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from alma import clock
from alma.core import checked_memory
from alma.errors import ValidationError
from alma.integration.transcripts import AS_TEXT, ITEM, OPAQUE_KEYS, plain, restored, stored
from alma.model.common import LONGEST_TEXT, checked_name
from alma.model.fields import LONGEST_NAME, JsonObject
from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.query import And, At, Compare, In, Or, Order, Predicate
from alma.model.scope import Scope, alive
from alma.model.vector import Vector
from alma.redaction.redactor import OpaqueValues, redact_json
from alma.storage.base import StorageBackend, Transaction

if TYPE_CHECKING:
    from alma.core import ALMA

Path = tuple[str, ...]
R = TypeVar("R")

LATEST_FIRST = (Order("updated_at", "desc"),)
BY_ID = (Order("id"),)
_PATH, _WITHIN, _TTL = "document_path", "document_within", "document_ttl_minutes"
_NOT_JSON = "document_as_text"
_OPAQUE = frozenset((*OPAQUE_KEYS, AS_TEXT, _PATH, _WITHIN))
_LONGEST_PATH = 4_000
_LONGEST_TTL = 100 * 365 * 24 * 60
_ATTEMPTS = 20
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Document:
    """JSON under a path; `texts` say what it is about, the first one best. Without `embed` it is found by words only.

    It expires this number of minutes after it was last written or read.
    """

    path: Path
    payload: JsonObject
    texts: Sequence[str] = ()
    embed: bool = True
    ttl_minutes: float | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored document, and with a search the cosine of its nearest text."""

    path: Path
    payload: JsonObject
    created_at: datetime
    updated_at: datetime
    ttl_minutes: float | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Change(Generic[R]):
    """The writes and deletions of a plan, and its result."""

    result: R
    save: Sequence[Document] = ()
    delete: Collection[Path] = ()


class Reader:
    """Reads documents from one state of the store; those that have expired are not there."""

    def __init__(self, documents: Documents, source: StorageBackend | Transaction) -> None:
        self._documents = documents
        self._source = source

    def get(self, paths: Iterable[Path]) -> dict[Path, Kept]:
        """The documents at these paths."""
        ids = [self._documents.id_of(path) for path in paths]
        found: dict[Path, Kept] = {}
        for start in range(0, len(ids), _AT_ONCE):
            where = And(In("id", ids[start : start + _AT_ONCE]), alive(clock.now()))
            found.update((each.path, each) for each in map(kept, self._find(where)))
        return found

    def within(
        self,
        folder: Path = (),
        where: Sequence[Predicate] = (),
        order: Sequence[Order] = LATEST_FIRST,
        limit: int | None = None,
    ) -> list[Kept]:
        """The documents inside of a folder, at any depth."""
        matching = And(self._documents.inside(folder), *where)
        return [kept(memory) for memory in self._find(matching, order, limit)]

    def nearest(self, vector: Vector, folder: Path, where: Sequence[Predicate] = (), limit: int = 10) -> list[Kept]:
        """The embedded documents of a folder whose texts are nearest to the vector."""
        matching = And(self._documents.inside(folder), *where)
        hits = self._source.search_vector(Memory, vector, self._documents.scope, matching, limit)
        return [kept(hit.record, hit.score) for hit in hits]

    def paths(self, folder: Path = ()) -> list[Path]:
        """The paths of the documents inside of a folder, in no order."""
        rows = self._source.values(
            Memory, ("context_json",), self._documents.scope, self._documents.inside(folder), BY_ID
        )
        return [tuple(context[_PATH]) for (context,) in rows]

    def _find(self, where: Predicate, order: Sequence[Order] = BY_ID, limit: int | None = None) -> list[Memory]:
        return self._source.find(Memory, self._documents.scope, where, order, limit)


class Documents:
    """The documents of one framework in a project.

    What is deleted can be restored until a purge; every change is a version with its author.
    """

    def __init__(
        self, alma: ALMA, framework: str, memory_type: str, *, user_id: str | None = None, agent: str | None = None
    ) -> None:
        self._alma = checked_memory(framework, alma)
        self._storage = alma.storage
        redactor = None if alma.redactor is None else OpaqueValues(alma.redactor, _OPAQUE)
        self._redactor = redactor
        self._ingest = alma.ingest.keeping_each(redactor)
        self._framework, self._memory_type = framework, memory_type
        self._by = Attribution(user_id=user_id, agent=agent)
        self.scope = Scope(project_id=alma.project_id)

    # ------------------------------------------------------------------ reading

    def read(self, reading: Callable[[Reader], R]) -> R:
        """The result of a function that reads from one snapshot."""
        with self._storage.snapshot() as tx:
            return reading(Reader(self, tx))

    def vector(self, query: str) -> Vector:
        """The vector of a query."""
        return self._alma.retrieval.embedder.encode(plain(query))

    def relevant(self, query: str, folder: Path = (), limit: int = 10) -> list[Kept]:
        """The documents of a folder that answer a query best, by meaning and by words; none where none is relevant."""
        if not plain(query):
            return []
        places = [(self.scope, self.inside(folder))]
        found = self._alma.retrieval.search(plain(query), places, limit, mode="hybrid", narrowed=True)
        reasons = [(memory, found.explanation_of(memory.id)) for memory in found.memories]
        least = self._alma.retrieval.relevance.weak
        return [kept(each, why.score) for each, why in reasons if why.relevance is None or why.relevance >= least]

    def masked(self, given: Any) -> Any:
        """JSON without secrets, as it is stored."""
        return given if self._redactor is None else redact_json(given, self._redactor)

    # ------------------------------------------------------------------ writing

    def change(self, plan: Callable[[Reader], Change[R]]) -> R:
        """Write what a plan says, all of it or on error nothing; returns its result.

        The plan is made before the transaction, because texts are embedded then, and again inside of it; it is made
        anew until both are the same.
        """
        for _ in range(_ATTEMPTS):
            planned = self.read(plan)
            if not planned.save and not planned.delete:
                return planned.result
            ready = self._ready(planned.save)
            if self._storage.write(partial(self._commit, plan, planned, ready), self._by):
                return planned.result
        raise ValidationError(self._framework, None, None, "was changed by others all the time: try again")

    def _commit(
        self, plan: Callable[[Reader], Change[R]], planned: Change[R], ready: Mapping[Path, _Ready], tx: Transaction
    ) -> bool:
        tx.hold(f"{self._framework}/{self._alma.project_id}")
        current = plan(Reader(self, tx))
        if (current.save, current.delete) != (planned.save, planned.delete):
            return False
        self._save(tx, ready)
        self._delete(tx, planned.delete)
        return True

    def put(self, documents: Sequence[Document], gone: Collection[Path] = ()) -> None:
        """Store documents, each instead of the one at its path, and delete others."""
        ready = self._ready(documents)

        def put(tx: Transaction) -> None:
            self._save(tx, ready)
            self._delete(tx, gone)

        if documents or gone:
            self._storage.write(put, self._by)

    def put_new(self, documents: Sequence[Document]) -> None:
        """Store the documents at whose paths there never was one."""
        ids = {self.id_of(document.path): document for document in documents}
        known = {key for (key,) in self._storage.values(Memory, ("id",), self.scope, In("id", list(ids)))}
        self.put([document for key, document in ids.items() if key not in known])

    def refresh(self, documents: Iterable[Kept]) -> None:
        """Make documents with a time to live expire this number of minutes from now."""
        due = {self.id_of(each.path): each.ttl_minutes for each in documents if each.ttl_minutes is not None}

        def extend(tx: Transaction) -> None:
            for memory in tx.lock(Memory, due, self.scope):
                tx.save(memory.replace(expires_at=_expiry(due[memory.id])))

        if due:
            self._storage.write(extend, self._by)

    def sweep(self) -> int:
        """Delete the documents that have expired; returns how many."""
        expired = And(*self._own(), Compare("is_active", "eq", True), Compare("expires_at", "le", clock.now()))

        def sweep(tx: Transaction) -> int:
            found = tx.find(Memory, self.scope, expired)
            self._hide(tx, found)
            return len(found)

        return self._storage.write(sweep, self._by)

    # ------------------------------------------------------------------ internals

    def id_of(self, path: Path) -> str:
        """The id of the memory of a document, the same in every process."""
        key = joined((self._framework, self._alma.project_id, *path))
        return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def inside(self, folder: Path) -> Predicate:
        """The predicate for the documents of a folder that have not expired."""
        return And(*self._own(), *([At("context_json", _WITHIN, joined(folder))] if folder else []), alive(clock.now()))

    def _own(self) -> Iterator[Predicate]:
        yield Compare("memory_type", "eq", self._memory_type)
        yield Compare("source_tool", "eq", self._framework)

    def _ready(self, documents: Sequence[Document]) -> dict[Path, _Ready]:
        each = {document.path: document for document in documents}
        wanted = {document.path for document in each.values() if document.embed and any(map(plain, document.texts))}
        made = self._ingest.ready([self._memory(document) for document in each.values()], embed=lambda _: False)
        clean = [memory for memory, _ in made]
        texts = [
            (path, text)
            for path, memory in zip(each, clean, strict=True)
            if path in wanted
            for text in self._embedded_texts(memory, each[path])
        ]
        encoded = self._alma.retrieval.embedder.encode_texts(text for _, text in texts)
        ready = {path: _Ready(memory, []) for path, memory in zip(each, clean, strict=True)}
        for (path, _), vectors in zip(texts, encoded, strict=True):
            ready[path].vectors.extend((vectors.vector, *vectors.passages))
        return ready

    def _embedded_texts(self, memory: Memory, document: Document) -> list[str]:
        """The texts to embed, without secrets."""
        said = [text for text in map(plain, document.texts) if text]
        if len(said) == 1:
            return [memory.embedded_text()]
        return [text if self._redactor is None else self._redactor.redact(text).text for text in said]

    def _memory(self, document: Document) -> Memory:
        where = joined(document.path)
        checked_name(self._framework, "path", where, _LONGEST_PATH)
        context: JsonObject = {
            _PATH: list(document.path),
            _WITHIN: [joined(document.path[:depth]) for depth in range(1, len(document.path))],
        }
        if document.ttl_minutes is not None:
            context[_TTL] = document.ttl_minutes
        try:
            content_json = stored(document.payload, self._redactor)
        except TypeError as exc:
            raise ValidationError(self._framework, where, document.payload, f"must be JSON: {exc}") from None
        if AS_TEXT in content_json:
            context[_NOT_JSON] = True
        return Memory(
            id=self.id_of(document.path),
            user_id=self._by.user_id,
            project_id=self._alma.project_id,
            source_agent=self._by.agent,
            source_tool=self._framework,
            provenance="agent",
            memory_type=self._memory_type,
            title=plain(document.title)[:LONGEST_NAME],
            content=plain("\n".join(document.texts)) or plain(where),
            content_json=content_json,
            context_json=context,
            layer_project=True,
            expires_at=_expiry(document.ttl_minutes),
        )

    def _save(self, tx: Transaction, ready: Mapping[Path, _Ready]) -> None:
        made = [each.memory for each in ready.values()]
        known = {memory.id: memory for memory in tx.lock(Memory, [memory.id for memory in made], self.scope)}
        moment = clock.now()
        tx.save(*(_succeeding(each, known.get(each.memory.id), moment) for each in ready.values()))
        passages = {each.memory.id: each.vectors[1:] for each in ready.values() if len(each.vectors) > 1}
        if passages:
            tx.put_passages(Memory, passages)

    def _delete(self, tx: Transaction, paths: Iterable[Path]) -> None:
        held = tx.lock(Memory, [self.id_of(path) for path in paths], self.scope)
        self._hide(tx, [memory for memory in held if memory.is_active])

    def _hide(self, tx: Transaction, memories: Sequence[Memory]) -> None:
        moment = clock.now()
        with tx.audited_as("delete"):
            tx.save(*(memory.replace(is_active=False, updated_at=moment) for memory in memories))


@dataclass(frozen=True, slots=True)
class _Ready:
    """A memory without secrets, and the vectors of its texts."""

    memory: Memory
    vectors: list[Vector]


def _succeeding(ready: _Ready, before: Memory | None, moment: datetime) -> Memory:
    """The memory to save, which keeps the age of the one that it replaces."""
    made = ready.memory.replace(updated_at=moment, embedding=ready.vectors[0] if ready.vectors else None)
    if before is None or not before.is_active or (before.expires_at is not None and before.expires_at <= moment):
        return made.replace(created_at=moment)
    return made.replace(created_at=before.created_at, access_count=before.access_count)


def kept(memory: Memory, score: float | None = None) -> Kept:
    """The document of a memory."""
    context = memory.context_json
    payload = restored(memory.content_json or {})
    return Kept(tuple(context[_PATH]), payload, memory.created_at, memory.updated_at, context.get(_TTL), score)


def having(name: str, value: str | float) -> Predicate:
    """A predicate that documents with this value under this name fulfil, and some others."""
    return Or(At("content_json", (ITEM, name), value), At("context_json", _NOT_JSON, True))


def under(value: Any, name: str) -> Any:
    """The value under a key, or else under a path of keys with dots."""
    if not isinstance(value, Mapping):
        return None
    first, _, rest = name.partition(".")
    return under(value.get(first), rest) if rest and name not in value else value.get(name)


def joined(path: Path) -> str:
    """A path as one text, different for different paths."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in path)


def readable(value: Any, name: str = "") -> str:
    """The text of JSON for people and for search: a line for each value, under its name where there are several."""
    lines = list(_lines(value, name))
    text = lines[0][1] if len(lines) == 1 else "\n".join(f"{key}: {said}" if key else said for key, said in lines)
    return text[:LONGEST_TEXT]


def _lines(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _lines(each, str(key))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _lines(each, name)
    elif value is not None and str(value).strip():
        yield name, str(value)


def _expiry(minutes: float | None) -> datetime | None:
    if minutes is None:
        return None
    if isinstance(minutes, bool) or not 0 <= minutes <= _LONGEST_TTL:
        raise ValidationError("document", "ttl", minutes, f"must be a number of minutes from 0 to {_LONGEST_TTL:,}")
    return clock.now() + timedelta(minutes=minutes)
