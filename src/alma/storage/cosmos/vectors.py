"""Vectors: in the document of their record for the store's model, in a container of their own for all others.

The service searches `embedding`, whose length its policy fixes. That of a record is in the record's document, those of
its passages are documents of their own. Vectors of other models, and vectors of zeros, which have no direction, are
compared here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from alma.model.query import And, In, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.backend import RecordVector
from alma.storage.cosmos.documents import EMBEDDING, PARTITION, VECTORS, Document, key_of, table_document, vector_key
from alma.storage.cosmos.queries import KEY, Condition, condition
from alma.storage.cosmos.view import Seen
from alma.storage.nearest import cosines, nearest

if TYPE_CHECKING:
    from alma.storage.cosmos.backend import CosmosBackend

_IN_DOCUMENTS, _BESIDE = "documents", "beside"
_KEYS_AT_ONCE = 100


class Vectors:
    """The vectors that one transaction reads and writes."""

    def __init__(self, backend: CosmosBackend) -> None:
        self._backend = backend
        self._view = backend.view

    # ------------------------------------------------------------------ models

    def dims_of(self, model: str, claim: int | None) -> int | None:
        """The length of a model's vectors. The first model of the length of the containers' policy is in documents."""
        models = self._view.state["models"]
        if model in models:
            return int(models[model]["dims"])
        if claim is None:
            return None
        is_first = all(each["where"] != _IN_DOCUMENTS for each in models.values())
        fits = is_first and claim == self._view.state.get("policy_dims", claim)
        models[model] = {"dims": claim, "where": _IN_DOCUMENTS if fits else _BESIDE}
        return claim

    def is_in_documents(self, model: str) -> bool:
        """Whether the vectors of a model are those that the service searches."""
        known = self._view.state["models"].get(model)
        return known is not None and known["where"] == _IN_DOCUMENTS

    def _main_model(self) -> str | None:
        models = self._view.state["models"]
        return next((name for name, each in models.items() if each["where"] == _IN_DOCUMENTS), None)

    def _count(self, name: str, key: str, by: int) -> None:
        numbers = self._view.state[name]
        numbers[key] = numbers.get(key, 0) + by

    def _has_apart(self, spec: RecordSpec, model: str | None = None) -> bool:
        """Whether any vector of a kind, or of a kind and model, has a document of its own."""
        apart = self._view.state["apart"]
        kinds = [f"{spec.kind}|{model}"] if model is not None else [k for k in apart if k.startswith(f"{spec.kind}|")]
        return any(apart.get(key, 0) for key in kinds)

    # ------------------------------------------------------------------ writing

    def put(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        self._backend.load(spec, vectors)
        self._drop_apart(spec, vectors, lambda held, part: held == model and part == 0)
        in_documents = self.is_in_documents(model)
        for key, vector in vectors.items():
            document = dict(self._view.current(spec.table, key) or {})
            inside = in_documents and any(vector)
            if in_documents and document.get(EMBEDDING) is not None:
                del document[EMBEDDING]
                self._count("vectors", model, -1)
            if inside:
                document[EMBEDDING] = list(vector)
                self._count("vectors", model, 1)
            if in_documents:
                self._view.put(spec.table, document)
            if not inside:
                self._put_apart(spec, key, model, 0, vector)

    def put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        self._drop_apart(spec, passages, lambda held, part: held == model and part > 0)
        for key, vectors in passages.items():
            for part, vector in enumerate(vectors, start=1):
                self._put_apart(spec, key, model, part, vector)

    def _put_apart(self, spec: RecordSpec, key: str, model: str, part: int, vector: Vector) -> None:
        document = self._view.current(spec.table, key) or {}
        partition = document[PARTITION] if document else key
        fields: Document = {"type": "embedding", "kind": spec.kind, "record_id": key, "model": model, "part": part}
        if self.is_in_documents(model) and any(vector):
            fields[EMBEDDING] = list(vector)
        else:
            fields["data"] = base64.b64encode(vector.to_bytes()).decode()
        self._view.put(VECTORS, table_document(vector_key(spec.kind, key, model, part), partition, fields))
        self._count("vectors", model, 1)
        self._count("apart", f"{spec.kind}|{model}", 1)

    def drop(self, spec: RecordSpec, keys: Collection[str], of_model: Callable[[str], bool]) -> None:
        """Delete the vectors of some models."""
        main = self._main_model()
        if main is not None and of_model(main):
            self._backend.load(spec, keys)
            for key in keys:
                document = dict(self._view.current(spec.table, key) or {})
                if document.pop(EMBEDDING, None) is not None:
                    self._view.put(spec.table, document)
                    self._count("vectors", main, -1)
        self._drop_apart(spec, keys, lambda held, part: of_model(held))

    def move(self, spec: RecordSpec, key: str, partition: str) -> None:
        """Move a record's vectors into the partition that it is in now."""
        for document in self._apart(spec, [key]):
            moved = {name: value for name, value in document.items() if not name.startswith("_")}
            self._view.put(VECTORS, {**moved, PARTITION: partition})

    def forget(self, spec: RecordSpec, keys: Collection[str]) -> None:
        """Delete every vector of records that are about to be deleted."""
        if spec.embeds:
            self.drop(spec, keys, lambda _: True)

    def _drop_apart(self, spec: RecordSpec, keys: Iterable[str], gone: Callable[[str, int], bool]) -> None:
        for document in self._apart(spec, list(keys)):
            if gone(document["model"], document["part"]):
                self._view.delete(VECTORS, key_of(document))
                self._count("vectors", document["model"], -1)
                self._count("apart", f"{spec.kind}|{document['model']}", -1)

    # ------------------------------------------------------------------ reading

    def _apart(
        self, spec: RecordSpec, keys: Sequence[str] | None, model: str | None = None, also: str = "true"
    ) -> list[Document]:
        """The documents of vectors of a kind, or of some records, or of one model."""
        if not self._has_apart(spec, model):
            return []
        found: list[Document] = []
        starts = [0] if keys is None else range(0, len(keys), _KEYS_AT_ONCE)
        for start in starts:
            part = None if keys is None else list(keys[start : start + _KEYS_AT_ONCE])
            asked = Condition(f"c.kind = @kind AND {also}", {"@kind": spec.kind})
            if part is not None:
                named = {f"r{number}": key for number, key in enumerate(part)}
                asked = asked.also(f"c.record_id IN ({', '.join('@' + name for name in named)})", **named)
            if model is not None:
                asked = asked.also("c.model = @model", model=model)
            found += [seen.document or {} for seen in self._view.documents(VECTORS, asked, _of(spec, part, model))]
        return found

    def of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        keys = list(dict.fromkeys(record_ids))
        found = [_vector(document) for document in self._apart(spec, keys)]
        main = self._main_model()
        if main is not None and keys:
            for seen in self._backend.seen(spec, In(spec.key, keys)):
                document = seen.document or {}
                if document.get(EMBEDDING) is not None:
                    found.append(RecordVector(key_of(document), main, 0, Vector(document[EMBEDDING])))
        return sorted(found, key=lambda each: (each.record_id, each.model, each.part))

    def attached(self, spec: RecordSpec, records: list[Record]) -> list[Record]:
        """The records with those vectors of the store's own model that are not in their documents."""
        name, model = spec.vector_field, self._backend.embedding_model
        if name is None or not records or not self._has_apart(spec, model):
            return records
        bare = [record.key for record in records if getattr(record, name) is None]
        held = {
            document["record_id"]: _vector(document).vector
            for document in self._apart(spec, bare, model)
            if document["part"] == 0
        }
        return [record.apart({name: held[record.key]}) if record.key in held else record for record in records]

    def keys_apart(self, spec: RecordSpec, model: str) -> set[str]:
        """The records whose own vector of a model has a document of its own."""
        return {each["record_id"] for each in self._apart(spec, None, model) if each["part"] == 0}

    def is_held(self, seen: Seen, model: str) -> bool:
        """Whether a document holds the vector of a model."""
        return self.is_in_documents(model) and (seen.document or {}).get(EMBEDDING) is not None

    def is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        if len(self._view.state["models"]) < 2:
            return False
        holders: dict[str, set[tuple[str, bool]]] = {}
        for document in self._apart(spec, None):
            holders.setdefault(document["model"], set()).add((document["record_id"], document["part"] == 0))
        own = {key for key, is_own in holders.get(model, set()) if is_own}
        others = {key for name, keys in holders.items() if name != model for key, _ in keys}
        others |= {key for key, _ in holders.get(model, set())}
        main = self._main_model()
        if main is not None:
            asked = condition(spec, And()).also("IS_DEFINED(c.embedding)")
            inside = {
                key_of(seen.document or {})
                for seen in self._backend.seen(spec, And(), asked)
                if self.is_held(seen, main)
            }
            own, others = (own | inside, others) if main == model else (own, others | inside)
        return bool(others - own)

    # ------------------------------------------------------------------ searching

    def nearest(
        self, spec: RecordSpec, wanted: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        found: dict[str, float] = {}
        if not any(wanted):
            # Everything is at a right angle to nothing.
            found = dict.fromkeys(self._keys_with_vector(spec, model, where), 0.0)
        else:
            if self.is_in_documents(model):
                found = self._nearest_documents(spec, wanted, where, limit, exact=exact)
            for key, score in self._nearest_apart(spec, wanted, model, where, limit, exact=exact):
                found[key] = max(score, found.get(key, -1.0))
        return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def _keys_with_vector(self, spec: RecordSpec, model: str, where: Predicate) -> set[str]:
        seen = self._backend.seen(spec, where)
        apart = {each["record_id"] for each in self._apart(spec, None, model)}
        keys = ((each.record(spec.cls).key, self.is_held(each, model)) for each in seen)
        return {key for key, is_held in keys if is_held or key in apart}

    def _nearest_documents(
        self, spec: RecordSpec, wanted: Vector, where: Predicate, limit: int, *, exact: bool
    ) -> dict[str, float]:
        asked = condition(spec, where)
        fits = self._backend.fits(spec, where)
        partition = self._backend.partition(spec, where)
        if not asked.exact:
            return dict(_cosines(wanted, (_embedding(seen) for seen in self._backend.seen(spec, where, asked))))
        found = self._closest(spec.table, asked, wanted, limit, partition, KEY, exact=exact)
        # The table may have become longer while it was searched.
        mine = (seen for seen in self._view.covered(spec.table).values() if seen.document is not None and fits(seen))
        found.update(_cosines(wanted, map(_embedding, mine)))
        return found

    def _closest(
        self,
        table: str,
        asked: Condition,
        wanted: Vector,
        limit: int,
        partition: str | None,
        named: str,
        *,
        exact: bool,
    ) -> dict[str, float]:
        """The best of a table by the service; those equal to the last one are all there, so that ids decide."""
        distance = f"VectorDistance(c.embedding, @wanted{', true' if exact else ''})"
        asked = asked.also("IS_DEFINED(c.embedding)", wanted=list(wanted))
        select = f"{named} AS named, {KEY} AS key, {distance} AS score"
        top = limit + 5
        while True:
            rows = self._view.answers(table, asked, select, distance, top, partition)
            best: dict[str, float] = {}
            for row in rows:
                best[row["named"]] = max(row["score"], best.get(row["named"], -1.0))
            scores = sorted(best.values(), reverse=True)
            is_all = len(rows) < top
            if is_all or (len(best) > limit and scores[limit - 1] > scores[-1]):
                return {key: min(1.0, max(-1.0, score)) for key, score in best.items()}
            top *= 2

    def _nearest_apart(
        self, spec: RecordSpec, wanted: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        """The best by vectors with documents of their own; `where` is about the records, which are looked up."""
        if not self._has_apart(spec, model):
            return []
        compared = self._apart(spec, None, model, "NOT IS_DEFINED(c.embedding)")
        candidates = [(each["record_id"], _vector(each).vector.to_bytes()) for each in compared]
        inside = self._inside(spec, where, {key for key, _ in candidates})
        best = dict(nearest(wanted, [(key, data) for key, data in candidates if key in inside], limit))
        if self.is_in_documents(model):
            for key, score in self._nearest_passages(spec, wanted, model, where, limit, exact=exact).items():
                best[key] = max(score, best.get(key, -1.0))
        return list(best.items())

    def _nearest_passages(
        self, spec: RecordSpec, wanted: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> dict[str, float]:
        """The best by passages that the service compares, asked for more until enough of them match."""
        asked = Condition("c.kind = @kind AND c.model = @model", {"@kind": spec.kind, "@model": model})
        partition = self._backend.partition(spec, where)
        fits = _of(spec, None, model)
        most = limit
        while True:
            mine = [seen for seen in self._view.covered(VECTORS).values() if seen.document is not None and fits(seen)]
            found = self._closest(VECTORS, asked, wanted, most, partition, "c.record_id", exact=exact)
            count = len(found)
            for key, score in _cosines(wanted, map(_passage, mine)):
                found[key] = max(score, found.get(key, -1.0))
            inside = self._inside(spec, where, found)
            if len(inside) >= limit or count < most:
                return {key: score for key, score in found.items() if key in inside}
            most *= 4

    def _inside(self, spec: RecordSpec, where: Predicate, keys: Iterable[str]) -> set[str]:
        """Those of these records that match a predicate."""
        listed = sorted(keys)
        if not listed:
            return set()
        return {seen.record(spec.cls).key for seen in self._backend.seen(spec, And(where, In(spec.key, listed)))}


def _of(spec: RecordSpec, keys: Sequence[str] | None, model: str | None) -> Callable[[Seen], bool]:
    wanted = None if keys is None else set(keys)

    def fits(seen: Seen) -> bool:
        document: Document = seen.document or {}
        of_record = wanted is None or document["record_id"] in wanted
        return bool(document["kind"] == spec.kind and of_record and model in (None, document["model"]))

    return fits


def _vector(document: Mapping[str, Any]) -> RecordVector:
    if document.get(EMBEDDING) is not None:
        vector = Vector(document[EMBEDDING])
    else:
        vector = Vector.from_bytes(base64.b64decode(document["data"]))
    return RecordVector(document["record_id"], document["model"], document["part"], vector)


def _embedding(seen: Seen) -> tuple[str, Any]:
    document = seen.document or {}
    return key_of(document), document.get(EMBEDDING)


def _passage(seen: Seen) -> tuple[str, Any]:
    document = seen.document or {}
    return document["record_id"], document.get(EMBEDDING)


def _cosines(wanted: Vector, candidates: Iterable[tuple[str, Any]]) -> list[tuple[str, float]]:
    held = [(key, Vector(embedding).to_bytes()) for key, embedding in candidates if embedding is not None]
    return list(zip([key for key, _ in held], cosines(wanted, [data for _, data in held]), strict=True))
