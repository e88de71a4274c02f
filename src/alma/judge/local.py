"""The local judge: a small cross-encoder on onnxruntime, with a cache of its answers."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from alma.errors import ConfigurationError, ProviderError
from alma.judge.base import LABELS, AnswerCache, Judgement, Probabilities, StrictJudge, compared, swapped
from alma.onnx import first_line, load_session, sha256_of
from alma.paths import expand_home
from alma.process import LazyValue, PerProcess, ShortestJobFirst, spare_cpus
from alma.text.tokens import terms
from alma.tokenizer import load_tokenizer

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]


SHIPPED: Final = Path(__file__).parent / "data"
"""The folder of the packaged model."""

Texts = TypeVar("Texts", bound=tuple[str, ...])


class LocalJudge:
    """The packaged model, or the one in `folder`.

    A folder holds `judge.onnx`, its `tokenizer.json`, and `judge.json` with their digests. They are verified and loaded
    by the first call that needs them. It is thread-safe and fork-safe.

    Texts that the model cannot read as a whole, because they are too long or have characters without a token, are never
    *same*.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = SHIPPED if folder is None else expand_home(folder)
        self._card = read_card(self._folder)
        self._network = PerProcess(lambda: LazyValue(lambda: Network(self._folder, self._card)))
        self._answers = PerProcess(AnswerCache)

    @property
    def name(self) -> str:
        return self._card.name

    @property
    def folder(self) -> Path:
        """The folder of the model files."""
        return self._folder

    def load(self) -> None:
        """Verify and load the files now; an `ALMAError` says what is wrong with them."""
        self._network.get().loaded()

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """The relation of the first text of each pair to the second; in reverse, *more* and *less* are exchanged."""
        return compared(
            pairs, self._answers.get(), lambda each: self._network.get().loaded().relations(each), StrictJudge()
        )

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """For each (task, memory) the probability that the memory helps with the task."""
        return self._answer("useful", pairs, lambda each: self._network.get().loaded().useful(each))

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        """For each text the probability that it holds instructions aimed at its reader."""
        return self._answer(
            "injection",
            [(text,) for text in texts],
            lambda each: self._network.get().loaded().injection([text for (text,) in each]),
        )

    def __repr__(self) -> str:
        return f"LocalJudge(name={self.name!r})"

    def _answer(
        self, head: Head, asked: Sequence[Texts], ask: Callable[[Sequence[Texts]], list[float]]
    ) -> list[float | None]:
        """The probability of a head with one output; None where the model has no such head, 0 for an empty text."""
        if head not in self._card.temperatures:
            return [None] * len(asked)
        readable = [texts for texts in asked if all(map(str.strip, texts))]
        answers = iter(self._answers.get().found(head, readable, ask))
        return [next(answers) if all(map(str.strip, texts)) else 0.0 for texts in asked]


Head = Literal["relation", "useful", "injection"]
MODEL_FILE, TOKENIZER_FILE, CARD_FILE = "judge.onnx", "tokenizer.json", "judge.json"

# Of a longer text only the beginning is read and, to detect injections, the end.
_LONGEST_READ = 32_768
# The maximum number of windows in which an injection is searched; they are evenly spaced in a longer text.
_MOST_WINDOWS = 32
_WORDS_LOOKED_AT = 100
# Larger batches exceed the CPU cache and take longer per sequence.
_SEQUENCES_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Card:
    """The content of `judge.json`: the description of the model in its folder."""

    name: str
    digests: Mapping[str, str]
    max_tokens: int
    temperatures: Mapping[str, float]
    both_orders: bool


def read_card(folder: Path) -> Card:
    """The card of the model in a folder."""
    file = folder / CARD_FILE
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        if tuple(said["labels"]) != LABELS:
            raise ValueError(f"its labels are not {', '.join(LABELS)}")
        temperatures = {str(head): float(value) for head, value in said["temperature"].items()}
        if "relation" not in temperatures or min(temperatures.values()) <= 0:
            raise ValueError("it needs a temperature above 0 for each head, and one for relation")
        digests = {name: str(said["sha256"][name]) for name in (MODEL_FILE, TOKENIZER_FILE)}
        return Card(str(said["name"]), digests, int(said["max_tokens"]), temperatures, bool(said["both_orders"]))
    except OSError as exc:
        raise ConfigurationError(
            f"{file} cannot be read ({exc.strerror}): the folder of a judge holds {MODEL_FILE}, {TOKENIZER_FILE} and "
            f"{CARD_FILE}"
        ) from exc
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ConfigurationError(f"{file} does not describe a judge: {first_line(exc)}") from exc


@dataclass(frozen=True, slots=True)
class _Read:
    """A tokenized text, with the pieces for which the model has no token."""

    ids: list[int]
    unknown: Counter[str]
    whole: bool
    states: bool


_Sequence = tuple[list[int], list[int]]
"""Token ids and token types."""


class Network:
    """A loaded model and its tokenizer."""

    def __init__(self, folder: Path, card: Card) -> None:
        model, tokenizer = (_verified(folder / name, card) for name in (MODEL_FILE, TOKENIZER_FILE))
        self._card = card
        # A text that spells "[SEP]" must not end the text.
        self._tokenizer = load_tokenizer(tokenizer, ProviderError, special=False)
        self._session = load_session(model, 1, ProviderError)
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._turns = ShortestJobFirst(spare_cpus())

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Probabilities]:
        """The probabilities of the labels for each pair."""
        read = self._read_all(pairs)
        asked = [(read[a], read[b]) for a, b in pairs]
        both = self._card.both_orders
        orders = [[self._joined(a, b), self._joined(b, a)] if both else [self._joined(a, b)] for a, b in asked]
        found = [_averaged(_softmax(rows)) for rows in self._run("relation", orders)]
        return [self._as_far_as_read(each, *texts) for each, texts in zip(found, asked, strict=True)]

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability that the second text of each pair helps with the task that is the first."""
        read = self._read_all(pairs)
        rows = self._run("useful", [[self._joined(read[task], read[memory])] for task, memory in pairs])
        return [float(_sigmoid(each).max()) for each in rows]

    def injection(self, texts: Sequence[str]) -> list[float]:
        """The probability that a text holds an injection: that of its most suspicious window."""
        rows = self._run("injection", [self._windows(text) for text in texts])
        return [float(_sigmoid(each).max()) for each in rows]

    def _read_all(self, pairs: Sequence[tuple[str, str]]) -> dict[str, _Read]:
        return {text: self._read(text) for text in dict.fromkeys(text for pair in pairs for text in pair)}

    def _read(self, text: str) -> _Read:
        beginning = _encodable(text[:_LONGEST_READ])
        ids, unknown = self._tokenizer.ids(beginning), self._tokenizer.unknown
        words = self._tokenizer.words(beginning) if unknown in ids else ()
        pieces = Counter(beginning[word.start : word.end] for word in words if unknown in word.ids)
        return _Read(ids, pieces, whole=len(text) <= _LONGEST_READ, states=_states_something(beginning))

    def _joined(self, a: _Read, b: _Read) -> _Sequence:
        """Two texts as one sequence; the longer text is truncated first."""
        frame, (first, second) = self._tokenizer.pair, self._kept(a, b)
        parts = frame.before, a.ids[:first], frame.between, b.ids[:second], frame.after
        return _assembled(parts, frame.types)

    def _kept(self, a: _Read, b: _Read) -> tuple[int, int]:
        """How many tokens of each text the model reads."""
        room = self._card.max_tokens - self._tokenizer.pair.size
        first, second = len(a.ids), len(b.ids)
        return min(first, max(room - second, room // 2)), min(second, max(room - first, room // 2))

    def _as_far_as_read(self, found: Probabilities, a: _Read, b: _Read) -> Probabilities:
        """The probabilities for the whole texts, given how much of them was read.

        A truncated text, or one with unknown tokens, may say more than was read, so the other text does not imply it.
        Texts without a statement are never *same*.
        """
        first, second = self._kept(a, b)
        stated = a.states and b.states
        same, more, less, opposite, supersedes, other = found
        if first < len(a.ids) or not a.whole or a.unknown - b.unknown or not stated:
            same, more, less, other = 0.0, more + same, 0.0, other + less
        if second < len(b.ids) or not b.whole or b.unknown - a.unknown or not stated:
            same, more, less, other = 0.0, 0.0, less + same, other + more
        return same, more, less, opposite, supersedes, other

    def _windows(self, text: str) -> list[_Sequence]:
        """A text as windows that overlap by a quarter."""
        half = _LONGEST_READ // 2
        ends = text if len(text) <= _LONGEST_READ else f"{text[:half]} {text[-half:]}"
        ids = self._read(ends).ids
        frame = self._tokenizer.alone
        size = self._card.max_tokens - frame.size
        last = max(0, len(ids) - size)
        count = min(_MOST_WINDOWS, 1 + -(-last // (size * 3 // 4)))
        starts = [last * i // max(1, count - 1) for i in range(count)]
        return [
            _assembled((frame.before, ids[start : start + size], [], [], frame.after), frame.types) for start in starts
        ]

    def _run(self, head: Head, groups: Sequence[Sequence[_Sequence]]) -> list[Floats]:
        """The logits of the sequences of each group, divided by the temperature of the head.

        Each group is one batch, of sequences of one length: the scale of the quantized activations depends on the whole
        batch, so a pair would get another answer in another batch. Several groups take turns with those of other
        threads.
        """
        tokens = sum(len(ids) for group in groups for ids, _ in group)
        with self._turns.job(tokens) if len(groups) > 1 else nullcontext(lambda: None) as take_turn:
            return [self._logits(head, group, take_turn) for group in groups]

    def _logits(self, head: Head, group: Sequence[_Sequence], take_turn: Callable[[], object]) -> Floats:
        import numpy as np

        found = []
        for start in range(0, len(group), _SEQUENCES_AT_ONCE):
            take_turn()
            ids, types = map(np.array, zip(*group[start : start + _SEQUENCES_AT_ONCE], strict=True))
            inputs = {"input_ids": ids, "token_type_ids": types, "attention_mask": np.ones_like(ids)}
            try:
                found.append(self._session.run([head], {name: inputs[name] for name in self._inputs})[0])
            except Exception as exc:
                # The runtime's own errors share no base class.
                raise ProviderError(f"{self._card.name} failed on {ids.shape[1]} tokens: {first_line(exc)}") from exc
        logits = np.concatenate(found).astype(np.float64)
        if not np.all(np.isfinite(logits)):
            raise ProviderError(f"{self._card.name} returned values that are not numbers; its file is damaged")
        return logits / self._card.temperatures[head]


def _verified(file: Path, card: Card) -> Path:
    try:
        digest = sha256_of(file)
    except OSError as exc:
        raise ProviderError(f"{file} cannot be read: {exc.strerror}; reinstall alma-agent-memory") from exc
    if digest != card.digests[file.name]:
        raise ProviderError(
            f"{file} is not the file that its {CARD_FILE} describes (its SHA-256 is {digest}): it was damaged or "
            f"replaced; run  pip install --force-reinstall --no-deps alma-agent-memory"
        )
    return file


def _assembled(parts: Sequence[list[int]], types: Sequence[int]) -> _Sequence:
    ids = [token for part in parts for token in part]
    return ids, [kind for part, kind in zip(parts, types, strict=True) for _ in part]


def _states_something(text: str) -> bool:
    """Whether a text has at least two words: a number, a sign, a name or a piece of code is not a statement. The model
    was trained on statements, and its answers for other texts are arbitrary.
    """
    words = (term for term in terms(text) if len(term) > 1 and term.isalpha())
    return len(set(islice(words, _WORDS_LOOKED_AT))) > 1


def _encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _averaged(rows: Floats) -> Probabilities:
    """The probabilities of a pair: the mean of both orders, if both were run."""
    orders = [swapped(row) if i % 2 else tuple(row) for i, row in enumerate(rows.tolist())]
    return tuple(sum(each) / len(orders) for each in zip(*orders, strict=True))


def _softmax(logits: Floats) -> Floats:
    import numpy as np

    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Floats = powers / powers.sum(axis=1, keepdims=True)
    return found


def _sigmoid(logits: Floats) -> Floats:
    import numpy as np

    found: Floats = 1 / (1 + np.exp(-np.clip(logits.reshape(-1), -60, 60)))
    return found
