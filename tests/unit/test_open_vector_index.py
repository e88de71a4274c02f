"""Which vector index a store gets."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from alma.bootstrap import open_storage, open_vector_index
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.testing import builders as make
from alma.vectors.mapped import MappedIndex
from alma.vectors.native import NativeIndex


def test_an_sqlite_store_gets_an_index_in_a_folder_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    with open_storage(str(path), embedding_dim=2) as store, closing(open_vector_index(store)) as index:
        assert isinstance(index, MappedIndex)
        store.save(make.a_heuristic(id="h", embedding=[1, 0]))
        assert index.search(Heuristic, [1, 0], Scope(project_id="shop")) == [("h", 1.0)]
    assert (tmp_path / "alma.db.vectors").is_dir()


def test_another_model_gets_an_index_of_its_own(tmp_path: Path) -> None:
    with (
        open_storage(str(tmp_path / "alma.db"), embedding_dim=2) as store,
        closing(open_vector_index(store, model="../other model")) as index,
    ):
        assert index.search(Heuristic, [1, 0, 0], Scope(project_id="shop")) == []
        store.save(make.a_heuristic(id="h", embedding=[1, 0]))
        store.put_vectors(Heuristic, {"h": [0, 0, 0, 1]}, model="../other model")
        assert index.search(Heuristic, [0, 0, 0, 1], Scope(project_id="shop")) == [("h", 1.0)]
    (folder,) = (tmp_path / "alma.db.vectors").glob("other_model-*")
    assert folder.is_dir()


def test_a_store_without_a_feed_answers_itself(tmp_path: Path) -> None:
    with open_storage(f"file://{tmp_path}", embedding_dim=2) as store, closing(open_vector_index(store)) as index:
        assert isinstance(index, NativeIndex)
        store.save(make.a_heuristic(id="h", embedding=[1, 0]))
        assert index.search(Heuristic, [1, 0], Scope(project_id="shop")) == [("h", 1.0)]
