"""A store goes to Azure Cosmos DB and comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from alma import open_storage
from alma.model.governance import Setting
from alma.model.kinds import KINDS
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, SHOP
from tests.support.command_line import run
from tests.support.cosmos_server import KEY, CosmosServer


def test_an_export_moves_a_store_to_cosmos_db_and_back_without_loss(
    cosmos: CosmosServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_COSMOS_KEY", KEY)
    there = f"{cosmos.url.replace('http://', 'azure+http://')}/{tmp_path.name.replace('_', '-')}"
    first, second = str(tmp_path / "first.db"), str(tmp_path / "second.db")
    with open_storage(first, embedding_dim=4, embedding_model="m") as store:
        _fill(store)
        before = _everything(store)
    for source, target in ((first, there), (there, second)):
        file = str(tmp_path / "export.jsonl")
        Path(file).unlink(missing_ok=True)
        assert run("export", source, file).returncode == 0
        imported = run("import", file, "--from", "jsonl", "--store", target)
        assert imported.returncode == 0, imported.stderr
    with open_storage(there, embedding_dim=4, embedding_model="m") as store:
        assert [hit.record.id for hit in store.search_vector(Heuristic, [1, 1, 0, 0], SHOP, limit=1)] == ["h1"]
        assert [hit.record.id for hit in store.search_text(Memory, "needle", EVERYWHERE)] == ["m0"]
        assert _everything(store) == before
    with open_storage(second, embedding_dim=4, embedding_model="m") as store:
        assert _everything(store) == before


def _fill(store: StorageBackend) -> None:
    store.save_many([make.a_heuristic(id=f"h{number}", embedding=[1, number, 0, 0]) for number in range(4)])
    exact = {"large": 2**60 + 1, "one": 1.0, "nested": [{"x": None}], "text": "日本 \u2028"}
    store.save(make.a_memory(id="m0", content="needle", context_json=exact, tags=["a", "b"], embedding=[0, 0, 0, 0]))
    store.put_passages(Memory, {"m0": [[0, 1, 0, 0], [0, 0, 1, 0]]})
    store.put_vectors(Memory, {"m0": [1, 2, 3]}, model="other")
    store.save_many([make.an_outcome(id="an/id?with#signs"), make.a_preference(), make.some_knowledge()])
    store.save(make.a_session(id="s"))
    store.update(Heuristic, "h0", {"confidence": 0.7}, SHOP)
    store.delete(Heuristic, ["h3"], SHOP)


def _everything(store: StorageBackend) -> dict[str, object]:
    """Every record but those that a transfer adds, with vectors and history."""
    found: dict[str, object] = {}
    for cls in KINDS:
        # Every store has made the documented settings itself.
        if not cls.spec.append_only and cls is not Setting:
            records = store.find(cls, EVERYWHERE)
            found[cls.spec.kind] = records
            if cls.spec.embeds:
                found[f"vectors of {cls.spec.kind}"] = store.vectors_of(cls, [record.key for record in records])
    for key in ("h0", "h3"):
        history = store.history(Heuristic, key, SHOP)
        found[f"history of {key}"] = [(row.version_number, row.change_type, row.record_json) for row in history]
    return found
