"""LangGraph: a long-term memory (`BaseStore`) that keeps its items in ALMA."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from alma.errors import MissingDependencyError, ValidationError
from alma.integration.documents import Document, Documents, Kept, Path, Reader, having, readable, under
from alma.integration.transcripts import plain
from alma.model.query import Predicate

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )
except ModuleNotFoundError as exc:
    raise MissingDependencyError("langgraph-checkpoint", "langgraph") from exc

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["ALMAStore"]

_MOST = 100_000
_LARGEST = 1 << 53
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class ALMAStore(BaseStore):
    """A `BaseStore` of LangGraph: `graph.compile(store=ALMAStore(memory))`.

    Items are memories of the project with a history; secrets in them are masked. A query is answered by meaning, with
    the vectors of the memory's own embedding model; `index={"fields": [...]}` chooses the fields that are embedded, by
    default all. Items that have expired are gone at once.
    """

    supports_ttl = True

    def __init__(
        self,
        alma: ALMA,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        user_id: str | None = None,
        agent: str | None = None,
    ) -> None:
        self._documents = Documents(alma, "langgraph", "item", user_id=user_id, agent=agent)
        self._embedder = alma.retrieval.embedder
        self._fields = _fields(index, self._embedder.dimension)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of operations; reads see the state before the writes of the same batch."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        vectors = self._vectors(asked)
        touched: list[Kept] = []
        results = self._documents.read(lambda reader: [self._read(reader, op, vectors, touched) for op in asked])
        self._documents.refresh(touched)
        self._write([op for op in asked if isinstance(op, PutOp)])
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, without blocking the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete the items that have expired; returns how many. They are not found before either."""
        return self._documents.sweep()

    # ------------------------------------------------------------------ reading

    def _vectors(self, ops: Sequence[Op]) -> dict[str, Any]:
        """The vectors of all queries, made before the store is read."""
        queries = {op.query for op in ops if isinstance(op, SearchOp) and op.query is not None and plain(op.query)}
        return {query: self._documents.vector(query) for query in queries}

    def _read(self, reader: Reader, op: Op, vectors: Mapping[str, Any], touched: list[Kept]) -> Result:
        if isinstance(op, GetOp):
            path = (*op.namespace, op.key)
            found = [*reader.get([path]).values()]
            touched += found if op.refresh_ttl else []
            return _item(found[0]) if found else None
        if isinstance(op, SearchOp):
            page = self._search(reader, op, vectors.get(op.query or ""))
            touched += page if op.refresh_ttl else []
            return [_search_item(each) for each in page]
        if isinstance(op, ListNamespacesOp):
            return _namespaces(reader.paths(), op)
        if isinstance(op, PutOp):
            return None
        raise ValidationError("langgraph", "op", op, "must be a GetOp, SearchOp, PutOp or ListNamespacesOp")

    def _search(self, reader: Reader, op: SearchOp, vector: Any) -> list[Kept]:
        conditions, folder = op.filter or {}, op.namespace_prefix
        known = list(_known_to_the_store(conditions))
        wanted = op.offset + op.limit if op.limit >= 0 and op.offset >= 0 else _MOST
        if wanted <= 0:
            return []
        most = _MOST if conditions else wanted
        if vector is None:
            found = reader.within(folder, known, limit=most)
        else:
            found = reader.nearest(vector, folder, known, most)
            if len(found) < most:
                # What is not embedded comes last, without a score.
                scored = {each.path for each in found}
                found += [each for each in reader.within(folder, known) if each.path not in scored]
        return [each for each in found if _fulfils(each.payload, conditions)][op.offset : op.offset + op.limit]

    # ------------------------------------------------------------------ writing

    def _write(self, ops: Sequence[PutOp]) -> None:
        latest = {(*op.namespace, op.key): op for op in ops}
        put = [self._document(path, op) for path, op in latest.items() if op.value is not None]
        self._documents.put(put, [path for path, op in latest.items() if op.value is None])

    def _document(self, path: Path, op: PutOp) -> Document:
        if not isinstance(op.value, Mapping):
            raise ValidationError("langgraph", "value", op.value, "must be a dict with text keys")
        value = dict(op.value)
        fields = self._fields if op.index is None else op.index or ()
        texts = [text for field in fields for text in _texts(value, field)]
        return Document(path, value, texts or [readable(value)], bool(texts), op.ttl)


def _fields(index: IndexConfig | None, dimension: int) -> Sequence[str]:
    config = index or {}
    if config.get("embed") is not None or config.get("dims", dimension) != dimension:
        raise ValidationError(
            "langgraph",
            "index",
            index,
            f"may only name fields: vectors are made by the memory's embedding model, with {dimension} dimensions; "
            "choose another one when you open the memory",
        )
    return config.get("fields") or ["$"]


def _texts(value: dict[str, Any], field: str) -> list[str]:
    return [readable(value)] if field == "$" else get_text_at_path(value, tokenize_path(field))


def _item(kept: Kept) -> Item:
    *namespace, key = kept.path
    return Item(
        value=kept.payload,
        key=key,
        namespace=tuple(namespace),
        created_at=kept.created_at,
        updated_at=kept.updated_at,
    )


def _search_item(kept: Kept) -> SearchItem:
    *namespace, key = kept.path
    return SearchItem(tuple(namespace), key, kept.payload, kept.created_at, kept.updated_at, kept.score)


# ---------------------------------------------------------------------- filters


def _known_to_the_store(conditions: Mapping[str, Any]) -> Iterator[Predicate]:
    """Predicates that every match fulfils, so that fewer items are read."""
    for name, wanted in conditions.items():
        is_text = isinstance(wanted, str) and wanted == plain(wanted)
        # In Python 0 and 1 equal False and True, in the store they do not.
        is_number = isinstance(wanted, int | float) and wanted not in (0, 1) and abs(wanted) < _LARGEST
        if (is_text or is_number) and "." not in name:
            yield having(name, wanted)


def _fulfils(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    return all(_matches(under(value, name), wanted) for name, wanted in conditions.items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_compares(value, name, limit) for name, limit in wanted.items())
        return isinstance(value, Mapping) and _fulfils(value, wanted)
    if isinstance(wanted, list | tuple):
        same_length = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same_length and all(_matches(each, other) for each, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, name: str, limit: Any) -> bool:
    if name not in _COMPARISONS:
        raise ValidationError("langgraph", "filter", name, f"must be one of {', '.join(_COMPARISONS)}")
    if name in ("$eq", "$ne"):
        return _COMPARISONS[name](value, limit)
    if isinstance(value, str) and isinstance(limit, str):
        # Times are often texts; numbers that are written as texts are compared as numbers.
        numbers = _number(value), _number(limit)
        return _COMPARISONS[name](*((value, limit) if None in numbers else numbers))
    numbers = _number(value), _number(limit)
    return None not in numbers and _COMPARISONS[name](*numbers)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


# ---------------------------------------------------------------------- namespaces


def _namespaces(paths: Iterable[Path], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    conditions = op.match_conditions or ()
    found = {path[:-1] for path in paths}
    matching = {each for each in found if all(_is_at(each, condition) for condition in conditions)}
    shown = {each if op.max_depth is None else each[: op.max_depth] for each in matching}
    return sorted(shown)[op.offset : op.offset + op.limit]


def _is_at(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValidationError("langgraph", "match_type", condition.match_type, "must be prefix or suffix")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
