"""The collections of a store in Qdrant: one for each kind and embedding model, behind aliases."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from alma.errors import ValidationError
from alma.model.record import Record
from alma.vectors.qdrant_points import KINDS, payload_indexes
from alma.vectors.qdrant_server import MissingCollectionError, QdrantServer
from alma.vectors.qdrant_server import models as m

_POINTS = ".points"
_LONGEST_MODEL = 100
# In kilobytes of vectors: as many are compared one by one, where a filter leaves no more.
_FULL_SCAN = 20_000


class Collections:
    """The names of the collections, and their creation.

    `memory_embeddings` and its like are aliases for the collection of the current model, and
    `memory_embeddings.MODEL` for that of each model. A move to another model fills a second collection, and then the
    first alias is switched to it in one step.
    """

    def __init__(
        self, server: QdrantServer, prefix: str = "", model: str | None = None, replication_factor: int | None = None
    ) -> None:
        self._server = server
        self._prefix = f"{prefix}_" if prefix and not prefix.endswith(("_", "-")) else prefix
        self._model = model
        self._replication = replication_factor or (2 if len(server.urls) > 1 else 1)

    def base(self, cls: type[Record]) -> str:
        """The alias for the collection of a kind and the current model."""
        return self._prefix + KINDS[cls].collection

    def name(self, cls: type[Record], model: str) -> str:
        """The alias for the collection of a kind and a model."""
        return f"{self.base(cls)}.{_spelled(model)}"

    def aliases(self) -> dict[str, str]:
        """Every alias of the server with its collection."""
        found = self._server.call(lambda client: client.get_aliases()).aliases
        return {each.alias_name: each.collection_name for each in found}

    def of_kind(self, cls: type[Record], aliases: Mapping[str, str]) -> list[str]:
        """The aliases for the collections of a kind, one for each model."""
        start = f"{self.base(cls)}."
        return [alias for alias in sorted(aliases) if alias.startswith(start)]

    def create(self, cls: type[Record], model: str, dims: int, aliases: Mapping[str, str]) -> str:
        """Create what is missing of a collection and its indexes, and return its alias; that comes last."""
        alias = self.name(cls, model)
        collection = aliases.get(alias, alias + _POINTS)
        if alias not in aliases:
            self._create(collection, dims, model)
        self._index(cls, collection)
        if alias not in aliases:
            self._point(alias, collection)
            if self.base(cls) not in aliases:
                self._point(self.base(cls), collection)
        return alias

    def settle(self, cls: type[Record], aliases: Mapping[str, str]) -> None:
        """Switch the alias of a kind to the current model once its collection has no fewer points than the other."""
        base, now = self.base(cls), aliases.get(self.base(cls))
        wanted = None if self._model is None else aliases.get(self.name(cls, self._model))
        if wanted is None or wanted == now:
            return
        of_models = {aliases[alias] for alias in self.of_kind(cls, aliases)}
        if now not in of_models or self.points(wanted) >= self.points(now):
            self._point(base, wanted)

    def points(self, name: str) -> int:
        """How many points a collection has."""
        try:
            return self._server.call(lambda client: client.count(name, exact=True)).count
        except MissingCollectionError:
            return 0

    def misfits(self, dims: int | None, aliases: Mapping[str, str]) -> list[str]:
        """The collections of the current model whose vectors have another length."""
        if self._model is None or dims is None:
            return []
        names = [aliases[alias] for cls in KINDS if (alias := self.name(cls, self._model)) in aliases]
        return [name for name in names if self._length(name) != dims]

    def _length(self, name: str) -> int | None:
        """The length of a collection's vectors; None for one that is not ALMA's."""
        vectors = self._server.call(lambda client: client.get_collection(name)).config.params.vectors
        return vectors.size if isinstance(vectors, m.VectorParams) else None

    def delete_all(self, dims: int | None) -> None:
        """Delete every collection of these kinds that has points or does not fit; their aliases go with them."""
        starts = tuple(f"{self.base(cls)}." for cls in KINDS)
        aliases = self.aliases()
        complete = {*aliases.values()}.difference(self.misfits(dims, aliases))
        for each in self._server.call(lambda client: client.get_collections()).collections:
            name = each.name
            if name.startswith(starts) and (name not in complete or self.points(name)):
                self._server.call(lambda client, name=name: client.delete_collection(name))  # type: ignore[misc]

    def _create(self, collection: str, dims: int, model: str) -> None:
        vectors = m.VectorParams(size=dims, distance=m.Distance.COSINE)
        try:
            self._server.call(
                lambda client: client.create_collection(
                    collection,
                    vectors_config=vectors,
                    replication_factor=self._replication,
                    hnsw_config=m.HnswConfigDiff(full_scan_threshold=_FULL_SCAN),
                    metadata={"model": model},
                )
            )
        except ValidationError:
            # Another relay may have created it in the meantime.
            if not self._server.call(lambda client: client.collection_exists(collection)):
                raise

    def _index(self, cls: type[Record], collection: str) -> None:
        """Create the payload indexes that a collection lacks."""
        there = self._server.call(lambda client: client.get_collection(collection)).payload_schema
        for key, schema in payload_indexes(cls).items():
            if key not in there:
                # Without waiting for each: every later change of the collection comes behind it.
                self._server.call(
                    lambda client, key=key, schema=schema: client.create_payload_index(  # type: ignore[misc]
                        collection, key, schema, wait=False
                    )
                )

    def _point(self, alias: str, collection: str) -> None:
        """Point an alias at a collection."""
        step = m.CreateAliasOperation(create_alias=m.CreateAlias(collection_name=collection, alias_name=alias))
        self._server.call(lambda client: client.update_collection_aliases([step]))


def _spelled(model: str) -> str:
    """The name of a model as a part of a collection's; one with other characters gets a hash of its own."""
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in model)
    if plain == model and len(model) <= _LONGEST_MODEL and not plain.endswith(_POINTS):
        return plain
    return f"{plain[:_LONGEST_MODEL]}-{blake2b(model.encode(), digest_size=4).hexdigest()}"
