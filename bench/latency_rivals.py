"""Measure a published package in one place, with the Python of an environment that has it.

The packages are loaded by name at run time: one has our import name, the others are installed nowhere else. No package
may send telemetry.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from hashlib import md5
from pathlib import Path
from typing import Any

from latency_data import DIMS, NEIGHBOURS, PROJECT, Fact, Question
from latency_steps import Contender, arguments, drive

_LARGEST_PERSISTED_MEM0 = 1_000


class _Rival:
    """Shared by all rivals."""

    batch_rows = 500
    reopens = True

    def __init__(self, place: str, count: int) -> None:
        self.place = place
        self.notes: list[str] = []
        self._count = count
        Path(place).mkdir(parents=True, exist_ok=True)

    def settle(self) -> None:
        pass

    def expect(self, question: Question) -> None:
        pass

    def retrieve(self, question: Question) -> Sequence[str]:
        raise NotImplementedError

    def nearest(self, question: Question) -> Sequence[str]:
        return self.retrieve(question)

    def embed_for_real(self) -> bool:
        return False


class _Given:
    """An embedder that returns the vector set before, whatever the text."""

    dimension = DIMS

    def __init__(self) -> None:
        self.vector: list[float] = []

    def encode(self, text: str) -> list[float]:
        return self.vector

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.vector for _ in texts]


class AlmaMemory(_Rival):
    """alma-memory on SQLite with FAISS: RetrievalEngine.retrieve(…, bypass_cache=True)."""

    def __init__(self, place: str, count: int) -> None:
        super().__init__(place, count)
        self._given = _Given()

    def open(self) -> None:
        module = importlib.import_module("alma.storage.sqlite_local")
        if not module.FAISS_AVAILABLE:
            raise SystemExit("faiss is not installed, so alma-memory would be measured without its index")
        self._heuristic = importlib.import_module("alma.types").Heuristic
        self._storage = module.SQLiteStorage(str(Path(self.place) / "alma.db"), embedding_dim=DIMS)
        self._engine = importlib.import_module("alma.retrieval.engine").RetrievalEngine(self._storage, "mock")
        # The engine makes an embedder by name only; this is where it keeps it.
        self._engine._embedder = self._given

    def close(self) -> None:
        # It opens a connection for every call and has nothing to close.
        del self._storage, self._engine

    def load(self, facts: list[Fact]) -> None:
        self._storage.save_heuristics([self._record(fact) for fact in facts])

    def expect(self, question: Question) -> None:
        self._given.vector = question.vector.tolist()

    def retrieve(self, question: Question) -> Sequence[str]:
        found = self._engine.retrieve(question.text, question.agent, PROJECT, top_k=NEIGHBOURS, bypass_cache=True)
        return [record.id for record in found.heuristics]

    def write(self, fact: Fact) -> str:
        return str(self._storage.save_heuristic(self._record(fact)))

    def delete(self, record_id: str) -> None:
        self._storage.delete_heuristic(record_id)

    def _record(self, fact: Fact) -> Any:
        return self._heuristic(
            id=fact.id,
            agent=fact.agent,
            project_id=PROJECT,
            condition=fact.condition,
            strategy=fact.strategy,
            confidence=0.5 + fact.number % 50 / 100,
            occurrence_count=10,
            success_count=5 + fact.number % 6,
            last_validated=fact.moment,
            created_at=fact.moment,
            embedding=fact.vector.tolist(),
        )


class Mem0(_Rival):
    """mem0ai on its default store, Qdrant in the process: Memory.search with a filter, Memory.add(infer=False).

    Its store commits every vector by itself, which takes too long for many: they are handed to the store in batches,
    without the history of changes that `add` keeps beside it, and above a thousand the store is one in memory.
    """

    def __init__(self, place: str, count: int) -> None:
        super().__init__(place, count)
        self.reopens = count <= _LARGEST_PERSISTED_MEM0
        self._given = _Given()
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(Path(place) / "home")}
        self.notes.append("without its optional keyword search (fastembed, spaCy), loaded in batches by its store")
        if not self.reopens:
            self.notes.append("vectors kept in memory only, because on disk each takes its own commit; no cold start")

    def open(self) -> None:
        config = importlib.import_module("mem0").Memory.from_config
        self._memory = config(
            {
                "vector_store": {"provider": "qdrant", "config": {"collection_name": "bench", **self._store()}},
                "llm": {"provider": "openai", "config": {"api_key": "never used"}},
                "embedder": {"provider": "openai", "config": {"api_key": "never used"}},
                "history_db_path": str(Path(self.place) / "history.db"),
            }
        )
        self._memory.embedding_model = self._given

    def _store(self) -> dict[str, Any]:
        if self.reopens:
            return {"path": str(Path(self.place) / "qdrant"), "on_disk": True, "embedding_model_dims": DIMS}
        client = importlib.import_module("qdrant_client").QdrantClient(":memory:")
        return {"client": client, "embedding_model_dims": DIMS}

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()

    def load(self, facts: list[Fact]) -> None:
        self._memory.vector_store.insert(
            vectors=[fact.vector.tolist() for fact in facts],
            ids=[fact.id for fact in facts],
            payloads=[_payload(fact) for fact in facts],
        )

    def expect(self, question: Question) -> None:
        self._given.vector = question.vector.tolist()

    def retrieve(self, question: Question) -> Sequence[str]:
        found = self._memory.search(question.text, top_k=NEIGHBOURS, filters={"agent_id": question.agent})
        return [hit["id"] for hit in found["results"]]

    def nearest(self, question: Question) -> Sequence[str]:
        """Without its score threshold."""
        filters = {"agent_id": question.agent}
        found = self._memory.search(question.text, top_k=NEIGHBOURS, filters=filters, threshold=0.0)
        return [hit["id"] for hit in found["results"]]

    def write(self, fact: Fact) -> str:
        self._given.vector = fact.vector.tolist()
        added = self._memory.add(_text(fact), agent_id=fact.agent, infer=False)
        return str(added["results"][0]["id"])

    def delete(self, record_id: str) -> None:
        self._memory.delete(record_id)


class Chroma(_Rival):
    """chromadb's persistent client: Collection.query with a `where` filter on the agent."""

    batch_rows = 1_000

    def open(self) -> None:
        settings = importlib.import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._client = importlib.import_module("chromadb").PersistentClient(self.place, settings=settings)
        self._collection = self._client.get_or_create_collection(
            "bench", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def close(self) -> None:
        self._client.close()

    def load(self, facts: list[Fact]) -> None:
        self._collection.add(
            ids=[fact.id for fact in facts],
            embeddings=[fact.vector for fact in facts],
            documents=[_text(fact) for fact in facts],
            metadatas=[{"agent": fact.agent} for fact in facts],
        )

    def retrieve(self, question: Question) -> Sequence[str]:
        found = self._collection.query(
            query_embeddings=[question.vector], n_results=NEIGHBOURS, where={"agent": question.agent}
        )
        return list(found["ids"][0])

    def write(self, fact: Fact) -> str:
        self.load([fact])
        return fact.id

    def delete(self, record_id: str) -> None:
        self._collection.delete(ids=[record_id])


def _text(fact: Fact) -> str:
    return f"{fact.condition}\n{fact.strategy}"


def _payload(fact: Fact) -> dict[str, str]:
    """What `Memory.add` puts beside a vector."""
    text, moment = _text(fact), fact.moment.isoformat()
    digest = md5(text.encode(), usedforsecurity=False).hexdigest()
    made = {"created_at": moment, "updated_at": moment}
    return {"data": text, "text_lemmatized": text, "hash": digest, "agent_id": fact.agent, "role": "user", **made}


_RIVALS: dict[str, type[Any]] = {"alma-memory": AlmaMemory, "mem0ai": Mem0, "chromadb": Chroma}


def main() -> None:
    """Measure, and write the measurements to the given file."""
    parser = arguments(__doc__)
    parser.add_argument("--package", required=True, choices=_RIVALS)
    args = parser.parse_args()
    contender: Contender = _RIVALS[args.package](args.place, args.count)
    drive(contender, args)


if __name__ == "__main__":
    main()
