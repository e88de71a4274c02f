"""Whose vectors a store holds: it takes the name of the first model that is used with it, and refuses any other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from alma.bootstrap import open_storage, open_vector_index, reembed_storage
from alma.core import ALMA
from alma.embeddings.base import EmbeddingProvider
from alma.embeddings.mock import MockEmbedder
from alma.errors import ConfigurationError, ModelMismatchError
from alma.ingest.pipeline import Ingest
from alma.learning.protocols import LearningProtocol
from alma.memory.history import History
from alma.memory.patterns import Patterns
from alma.model.memory import Memory
from alma.model.query import EVERYTHING
from alma.model.scope import Scope
from alma.retrieval import query_text
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.storage.in_memory import InMemoryStorage
from alma.sync.reembed import reembed
from alma.testing import builders as make
from alma.vectors.native import NativeIndex
from tests.conftest import empty_store
from tests.support.together import together

SHOP = Scope(project_id="shop")
TEXT = "the login form was tested"


class Named(MockEmbedder):
    """A model with a name and the usual length."""

    def __init__(self, name: str) -> None:
        super().__init__(384)
        self._name = name

    @property
    def model(self) -> str:
        return self._name


ONE, OTHER = Named("one"), Named("other")


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def place(request: pytest.FixtureRequest) -> str:
    """The address of an empty store of each kind."""
    return empty_store(request, request.param)


@pytest.fixture
def written(place: str) -> str:
    """A store that was opened without a model's name, and written to with a provider."""
    with open_storage(place) as store, closing(RetrievalEngine(store, ONE)) as engine:
        MemoryWriter(store, engine.embedder).save(a_memory("m"))
    return place


@pytest.fixture
def unnamed(place: str) -> str:
    """A store whose vectors have no model name."""
    with open_storage(place) as store:
        store.save(a_memory("m").replace(embedding=ONE.encode(TEXT)))
    return place


def a_memory(memory_id: str) -> Memory:
    return make.a_memory(id=memory_id, content=TEXT, title="")


def found_by_meaning(store: StorageBackend, embedder: EmbeddingProvider) -> list[str]:
    with closing(RetrievalEngine(store, embedder)) as engine:
        found = engine.search(TEXT, [(SHOP, EVERYTHING)], mode="semantic")
    assert not found.degraded
    return [memory.id for memory in found.memories]


def test_a_store_takes_the_name_of_the_first_model_that_is_used_with_it(written: str) -> None:
    with open_storage(written) as store:
        assert store.models() == {"one": 384}
        assert found_by_meaning(store, ONE) == ["m"]


def test_a_store_opened_without_a_name_is_the_same_as_one_opened_with_it(written: str) -> None:
    with open_storage(written, embedding_model="one") as store:
        assert found_by_meaning(store, ONE) == ["m"]


def test_another_model_of_the_same_length_is_refused_with_the_fix(written: str) -> None:
    fix = (
        "made by one, but it was opened for other: open it with embedding_model='one' and embedding_dim=384, or .*alma"
    )
    with open_storage(written) as store, pytest.raises(ModelMismatchError, match=fix):
        RetrievalEngine(store, OTHER)
    with open_storage(written) as store, pytest.raises(ModelMismatchError, match=fix):
        MemoryWriter(store, OTHER)
    with open_storage(written) as store:
        assert store.models() == {"one": 384}


def test_a_refused_model_leaves_the_store_to_the_right_one(written: str) -> None:
    with open_storage(written) as store:
        with pytest.raises(ModelMismatchError):
            RetrievalEngine(store, OTHER)
        assert found_by_meaning(store, ONE) == ["m"]


@pytest.mark.parametrize(
    "use",
    [
        lambda store: RetrievalEngine(store, OTHER),
        lambda store: MemoryWriter(store, OTHER),
        lambda store: Ingest(store, OTHER),
        lambda store: History(store, OTHER),
        lambda store: Patterns(store, OTHER),
        lambda store: LearningProtocol(store, OTHER, NativeIndex(store)),
    ],
)
def test_one_store_serves_one_model_whatever_it_is_used_through(use: Callable[[StorageBackend], object]) -> None:
    with InMemoryStorage() as store:
        MemoryWriter(store, ONE)
        with pytest.raises(ConfigurationError, match=r"embedding_model='other' and embedding_dim=384, .*alma reembed"):
            use(store)
    with InMemoryStorage() as store:
        use(store)
        assert store.embedding_model == "other"


def test_quickstart_opens_what_was_made_by_hand(tmp_path: Path, local: EmbeddingProvider) -> None:
    path = tmp_path / "memories.db"
    with open_storage(path) as store, closing(RetrievalEngine(store, local)) as engine:
        MemoryWriter(store, engine.embedder).save(make.a_heuristic(id="h", condition="testing a login form"))
    with ALMA.quickstart(path, project_id="shop") as memory:
        found = memory.retrieve("how do I test the login form?", "helena")
        assert [lesson.id for lesson in found.heuristics] == ["h"]
        assert "meaning" in found.explanation_of("h").found_by
    with open_storage(path) as store, closing(RetrievalEngine(store, local)) as engine:
        assert engine.retrieve("how do I test the login form?", "helena", "shop").heuristics


def test_a_process_that_opened_an_empty_store_learns_of_the_others_model(place: str) -> None:
    with open_storage(place) as mine, open_storage(place) as theirs:
        engine, writer = RetrievalEngine(mine, OTHER), MemoryWriter(mine, OTHER)
        MemoryWriter(theirs, ONE).save(a_memory("m"))
        with pytest.raises(ModelMismatchError, match="made by one, but it was opened for other"):
            writer.save(a_memory("n"))
        with pytest.raises(ModelMismatchError, match="made by one, but it was opened for other"):
            engine.retrieve(TEXT, "helena", "shop")
        engine.close()


def test_of_two_who_bring_the_first_vectors_at_once_one_is_refused(place: str) -> None:
    with open_storage(place) as mine, open_storage(place) as theirs:
        writers = MemoryWriter(mine, ONE), MemoryWriter(theirs, OTHER)
        [refused] = together(*(partial(writer.save, a_memory(str(i))) for i, writer in enumerate(writers)))
        assert isinstance(refused, ModelMismatchError)
        assert len(mine.models()) == 1


def test_vectors_that_someone_stored_without_a_name_are_found_by_their_model(unnamed: str) -> None:
    with open_storage(unnamed) as store:
        assert found_by_meaning(store, ONE) == ["m"]
        MemoryWriter(store, ONE).save(a_memory("n"))
        assert sorted(found_by_meaning(store, ONE)) == ["m", "n"]
        assert store.models() == {"default": 384}


def test_vectors_without_a_name_get_one_when_they_are_made_anew(unnamed: str) -> None:
    said = r"have no model name, .* of one: .*alma reembed"
    with open_storage(unnamed, embedding_model="one") as store, pytest.raises(ModelMismatchError, match=said):
        MemoryWriter(store, ONE).save(a_memory("n"))
    assert reembed_storage(unnamed, ONE) == 1
    with open_storage(unnamed) as store:
        assert found_by_meaning(store, ONE) == ["m"]
        with pytest.raises(ConfigurationError, match="alma reembed"):
            RetrievalEngine(store, OTHER)


def test_a_store_whose_last_vector_is_gone_is_free_for_another_model(unnamed: str) -> None:
    with open_storage(unnamed) as store:
        store.delete(Memory, ["m"], SHOP)
        MemoryWriter(store, OTHER).save(a_memory("n"))
        assert store.models() == {"other": 384}


def test_inside_a_transaction_the_name_holds_for_what_is_written_next(place: str) -> None:
    with open_storage(place) as store:
        with store.transaction():
            MemoryWriter(store, ONE).save(a_memory("m"))
        assert store.models() == {"one": 384}


def test_an_index_that_was_opened_before_the_model_was_named_finds_its_vectors(place: str) -> None:
    with open_storage(place) as store, closing(open_vector_index(store)) as index:
        assert index.search(Memory, ONE.encode(TEXT), SHOP) == []
        MemoryWriter(store, ONE).save(a_memory("m"))
        assert [key for key, _ in index.search(Memory, ONE.encode(TEXT), SHOP)] == ["m"]


# ---------------------------------------------------------------------- half-way to another model


def test_a_store_half_way_to_another_model_says_so_and_finds_the_rest_by_words(place: str) -> None:
    moved, left = a_memory("moved"), Memory(id="left", project_id="shop", content="the zeppelin landed")
    with open_storage(place, embedding_model="one") as store:
        MemoryWriter(store, ONE).save_many([moved, left])
        store.put_vectors(Memory, {"moved": OTHER.encode(moved.embedded_text())}, model="other")
        with closing(RetrievalEngine(store, ONE)) as engine:
            assert engine.retrieve(TEXT, "helena", "shop").degraded == ""
    with open_storage(place, embedding_model="other") as store:
        with closing(RetrievalEngine(store, OTHER)) as engine:
            found = engine.retrieve("When did the zeppelin land?", "helena", "shop")
            assert [each.id for each in found.memories] == ["left"]
            assert "no vectors of other yet" in found.degraded
            assert "alma reembed" in found.degraded
            assert not engine.retrieve("When did the zeppelin land?", "helena", "shop").from_cache
            assert not engine.retrieve("Who was at the opera?", "helena", "shop")
            semantic = engine.search(TEXT, [(SHOP, EVERYTHING)], mode="semantic")
            assert "no vectors of other yet" in semantic.degraded
        reembed(store, OTHER)
        with closing(RetrievalEngine(store, OTHER)) as engine:
            assert engine.retrieve(TEXT, "helena", "shop").degraded == ""


def test_what_never_had_a_vector_is_not_left_behind(place: str) -> None:
    with open_storage(place, embedding_model="one") as store, closing(RetrievalEngine(store, ONE)) as engine:
        MemoryWriter(store, ONE).save(a_memory("m"))
        store.save(Memory(id="bare", project_id="shop", content="the zeppelin landed"))
        assert engine.retrieve(TEXT, "helena", "shop").degraded == ""


def test_the_end_of_a_move_is_noticed(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # However slow the machine is that runs this.
    monkeypatch.setattr(query_text, "_QUICK_CHECK", 60.0)
    with open_storage(place, embedding_model="one") as store:
        MemoryWriter(store, ONE).save_many([a_memory("a"), a_memory("b")])
        store.put_vectors(Memory, {"a": OTHER.encode(TEXT)}, model="other")
    with open_storage(place, embedding_model="other") as store, closing(RetrievalEngine(store, OTHER)) as engine:
        assert engine.retrieve(TEXT, "helena", "shop").degraded
        reembed(store, OTHER)
        assert engine.retrieve(TEXT, "helena", "shop").degraded == ""
