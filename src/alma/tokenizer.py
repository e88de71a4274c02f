"""Load the tokenizer of a model: BERT's is our own, any other needs the package tokenizers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from alma.errors import ProviderError
from alma.onnx import first_line, import_package
from alma.text.wordpiece import Word, WordPiece


class Frame(NamedTuple):
    """The special tokens around one text or two, and the types of all tokens."""

    before: list[int]
    between: list[int]
    after: list[int]
    types: tuple[int, int, int, int, int]

    @property
    def size(self) -> int:
        """The number of special tokens."""
        return len(self.before) + len(self.between) + len(self.after)


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A loaded tokenizer; `words` also gives the places of the words."""

    ids: Callable[[str], list[int]]
    words: Callable[[str], Iterator[Word]]
    unknown: int | None
    alone: Frame
    pair: Frame


def load_tokenizer(file: Path, error: type[ProviderError], *, special: bool) -> Tokenizer:
    """The tokenizer in the file, without truncation and padding; raises `error` if there is none.

    With `special`, a text that spells a special token, such as [SEP], has this token.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return _bert(content, special) or _from_library(file, special)
    except LookupError as exc:
        raise error(f"{file} is not a tokenizer file: it lacks {exc}") from exc
    except (OSError, ValueError, TypeError, AttributeError) as exc:
        raise error(f"{file} is not a usable tokenizer file: {first_line(exc)}") from exc


# ---------------------------------------------------------------------- BERT

_BERT = {
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
_WORD_PIECE = {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
_SPECIAL = {"special": True, "single_word": False, "rstrip": False}


def _bert(content: Mapping[str, Any], special: bool) -> Tokenizer | None:
    """The tokenizer that a file describes, or None if it is of another kind."""
    model, processor, added = content["model"], content.get("post_processor") or {}, content.get("added_tokens", ())
    plain = {**_SPECIAL, "lstrip": False, "normalized": False} if special else _SPECIAL
    if not (
        _has(content, _BERT)
        and _has(model, _WORD_PIECE)
        and processor.get("type") in _FRAMES
        and all(_has(each, plain) for each in added)
    ):
        return None
    tokens = {each["content"]: each["id"] for each in added} if special else {}
    pieces = WordPiece(model["vocab"], model["unk_token"], tokens)
    return Tokenizer(pieces.ids, pieces.words, pieces.unknown, *_FRAMES[processor["type"]](processor))


def _has(described: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(described.get(name) == value for name, value in wanted.items())


def _roberta_frames(processor: Mapping[str, Any]) -> tuple[Frame, Frame]:
    begin, end = processor["cls"][1], processor["sep"][1]
    no_types = (0, 0, 0, 0, 0)
    return Frame([begin], [], [end], no_types), Frame([begin], [end, end], [end], no_types)


def _template_frames(processor: Mapping[str, Any]) -> tuple[Frame, Frame]:
    alone, pair = (list(_places(processor, processor[name])) for name in ("single", "pair"))
    return _frame(alone), _frame(pair)


def _places(processor: Mapping[str, Any], template: Sequence[Mapping[str, Any]]) -> Iterator[_Place]:
    for each in template:
        [(kind, item)] = each.items()
        if kind == "Sequence":
            yield _Place(0, item["type_id"], "AB".index(item["id"]))
        else:
            yield from (_Place(n, item["type_id"], None) for n in processor["special_tokens"][item["id"]]["ids"])


_FRAMES = {"RobertaProcessing": _roberta_frames, "TemplateProcessing": _template_frames}


# ---------------------------------------------------------------------- any other


def _from_library(file: Path, special: bool) -> Tokenizer:
    tokenizers = import_package("tokenizers")
    try:
        made = tokenizers.Tokenizer.from_file(os.fspath(file))
    except Exception as exc:
        # The library raises plain Exception.
        raise ValueError(first_line(exc)) from exc
    made.no_truncation()
    made.no_padding()
    made.encode_special_tokens = not special

    def encoded(text: str) -> Any:
        return made.encode(text, add_special_tokens=False)

    def words(text: str) -> Iterator[Word]:
        encoding = encoded(text)
        tokens = zip(encoding.word_ids, encoding.ids, encoding.offsets, strict=True)
        for _, word in groupby(tokens, key=lambda token: token[0]):
            _, ids, places = zip(*word, strict=True)
            yield Word(ids, places[0][0], places[-1][1])

    name = getattr(made.model, "unk_token", None)
    unknown = None if name is None else made.token_to_id(name)
    frames = (_frame(list(_encoded_places(made.encode(*texts)))) for texts in (("a",), ("a", "a")))
    return Tokenizer(lambda text: list(encoded(text).ids), words, unknown, *frames)


def _encoded_places(sample: Any) -> Iterator[_Place]:
    return map(_Place, sample.ids, sample.type_ids, sample.sequence_ids)


class _Place(NamedTuple):
    """A token of a sample: its text is the first (0), the second (1), or none, if it is special."""

    id: int
    type: int
    text: int | None


def _frame(sample: Sequence[_Place]) -> Frame:
    """The special tokens of a sample of one text or two."""
    content = [place for place, each in enumerate(sample) if each.text is not None]
    if not content:
        raise ValueError("it has no tokens for letters")
    seconds = [place for place in content if sample[place].text == 1]
    end = max(place for place in content if sample[place].text == 0) + 1
    start, stop = (seconds[0], seconds[-1] + 1) if seconds else (end, end)
    parts = sample[: content[0]], sample[content[0] : end], sample[end:start], sample[start:stop], sample[stop:]
    before, _, between, _, after = ([each.id for each in part] for part in parts)
    types = [part[0].type if part else 0 for part in parts]
    return Frame(before, between, after, (types[0], types[1], types[2], types[3], types[4]))
