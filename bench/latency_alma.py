"""Measure this repository's retrieval on one store; `latency.py` starts it for each store and kind of memory."""

from __future__ import annotations

from collections.abc import Sequence

from alma.bootstrap import create_embedder, open_storage, open_vector_index
from alma.embeddings.base import EmbeddingProvider, Passage
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.model.workspace import Session
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import DEFAULT_MODEL, StorageBackend
from alma.vectors.base import VectorIndex
from latency_data import DIMS, NEIGHBOURS, PROJECT, Fact, Question
from latency_steps import Contender, arguments, drive
from places import place_at

_EVERYWHERE = Scope.everywhere()


class GivenVectors(EmbeddingProvider):
    """Returns given vectors.

    The memories' vectors are synthetic, so those of a real model would be near none of them: with `inner` a question is
    embedded for real, which takes its time, and then given the vector that was made for it.
    """

    def __init__(self) -> None:
        self.inner: EmbeddingProvider | None = None
        self._known: dict[str, Vector] = {}

    @property
    def model(self) -> str:
        return DEFAULT_MODEL

    @property
    def dimension(self) -> int:
        return DIMS

    def expect(self, text: str, vector: Vector) -> None:
        self._known = {text: vector}

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        if self.inner is not None:
            self.inner.encode_batch(texts)
        return [[Passage(self._known[text], 1)] for text in texts]


class Heuristics:
    """Retrieval of what agents have learned."""

    batch_rows = 5_000
    reopens = True

    def __init__(self, place: str) -> None:
        self.place = place
        self.notes: list[str] = []
        self._embedder = GivenVectors()

    def open(self) -> None:
        self._storage = self._opened()
        # Writes come from elsewhere, as from another process.
        self._elsewhere = self._opened()
        self._index: VectorIndex = open_vector_index(self._storage)
        self._engine = RetrievalEngine(self._storage, self._embedder, vector_index=self._index)

    def _opened(self) -> StorageBackend:
        return open_storage(place_at(self.place).target, DIMS)

    def close(self) -> None:
        self._engine.close()
        self._elsewhere.close()
        self._storage.close()

    def load(self, facts: list[Fact]) -> None:
        self._storage.save_many([self._record(fact) for fact in facts])

    def settle(self) -> None:
        from alma.storage.postgresql import PostgreSQLStorage
        from alma.vectors.mapped import MappedIndex

        if isinstance(self._storage, PostgreSQLStorage):
            self._storage.prepare_vector_index(self._kind)
            place_at(self.place).settle()
        if isinstance(self._index, MappedIndex):
            self._index.settle()

    def expect(self, question: Question) -> None:
        self._embedder.expect(question.text, Vector(question.vector))

    def retrieve(self, question: Question) -> Sequence[str]:
        found = self._engine.retrieve(
            question.text, question.agent, self._project(question), top_k=NEIGHBOURS, bypass_cache=True
        )
        if found.degraded:
            raise SystemExit(f"the retrieval was degraded: {found.degraded}")
        return [str(record.key) for record in found]

    def nearest(self, question: Question) -> Sequence[str]:
        """By vectors alone; a retrieval also ranks by words, age and success."""
        found = self._index.search(self._kind, question.vector, self._scope(question), limit=NEIGHBOURS)
        return [hit.record_id for hit in found]

    def write(self, fact: Fact) -> str:
        return self._elsewhere.save(self._record(fact))

    def delete(self, record_id: str) -> None:
        self._elsewhere.delete(self._kind, [record_id], _EVERYWHERE)

    def embed_for_real(self) -> bool:
        self._embedder.inner = create_embedder("local", cache_size=0)
        return True

    # ------------------------------------------------------------------ what differs between the kinds

    _kind: type[Record] = Heuristic

    def _record(self, fact: Fact) -> Record:
        return Heuristic(
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
            embedding=Vector(fact.vector),
        )

    def _project(self, question: Question) -> str:
        return PROJECT

    def _scope(self, question: Question) -> Scope:
        return Scope(project_id=PROJECT, agent=question.agent)


class GeneralMemories(Heuristics):
    """Retrieval of general memories, the turns of conversations."""

    _kind = Memory

    def load(self, facts: list[Fact]) -> None:
        sessions = {fact.session: Session(id=fact.session, project_id=fact.project) for fact in facts}
        self._storage.save_many([*sessions.values(), *map(self._record, facts)])

    def _record(self, fact: Fact) -> Record:
        return Memory(
            id=fact.id,
            project_id=fact.project,
            session_id=fact.session,
            source_agent=fact.agent,
            title=fact.condition,
            content=fact.strategy,
            layer_project=True,
            event_time=fact.moment,
            created_at=fact.moment,
            updated_at=fact.moment,
            last_accessed_at=fact.moment,
            embedding=Vector(fact.vector),
        )

    def _project(self, question: Question) -> str:
        return question.project

    def _scope(self, question: Question) -> Scope:
        return Scope(project_id=question.project)


def main() -> None:
    """Measure, and write the measurements to the given file."""
    parser = arguments(__doc__)
    parser.add_argument("--general", action="store_true", help="general memories instead of heuristics")
    args = parser.parse_args()
    contender: Contender = GeneralMemories(args.place) if args.general else Heuristics(args.place)
    drive(contender, args, by_project=args.general)


if __name__ == "__main__":
    main()
