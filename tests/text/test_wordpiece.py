"""Texts have the tokens that the reference, the package tokenizers, gives them."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Reference

from alma.errors import ConfigurationError, ProviderError
from alma.judge.local import SHIPPED
from alma.tokenizer import Tokenizer, load_tokenizer
from tests.text.bert_characters import CHARACTERS, VOCABULARY

ROOT = Path(__file__).parents[2]
# The kinds of characters that texts are mixed from.
POOLS = (
    "abcdefghij ABC 0123456789",
    " \t\n\r\x0b\x0c\x00\x1b\x85\xa0\u2003\u3000",
    ".,;:!?-_[](){}<>/\\|@'\"`#$%^&*+=~…–«»",
    "äöüßÄÖÜéèêñçŁłøåÆİıΣσςΔθЖдЩ",
    "日本語漢字ひらがなカタカナ中文測試㐀\U00020000",
    "العربيةשלוםहिन्दीไทย한국어",
    "😀👩‍👩‍👧🇩🇪❤️🏽",
    "\u0301\u0308\u0327\u200b\u200d\u202e\ufeff\ufe0f\ue000\ufffd",
    "ⅷ①ﬁ½℃™≠≮\u037e\u0387\u1fef\uf900\u1734",
)
FILES = [(VOCABULARY, True), (SHIPPED / "tokenizer.json", False)]
SPELLED = ("[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "[sep]", "[ SEP]", "<s>", "</s>", "<unk>", "<mask>")
TEXTS = (
    "Deploy with the script, not by hand: the hook doesn't run (see #42).",
    "for f in *.py; do sed -i 's/\\t/    /g' \"$f\" && git add -p; done  # 3x",
    "async def get_user_name(self) -> str | None:\n    return self._names.get(user_id, None)",
    "Die Prüfung schlägt fehl, weil der Schlüssel für Größe fehlt.",
    "本番環境へのデプロイは金曜日に行わないでください。",
    "لا تنشر يوم الجمعة لأن النسخ الاحتياطي يعمل ليلا",
    "",
)


def _mixed(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        parts = (
            chance.choice(SPELLED) if chance.random() < 0.05 else chance.choice(chance.choice(POOLS))
            for _ in range(chance.choice((1, 3, 10, 40)))
        )
        yield "".join(parts)


def _long() -> Iterator[str]:
    for count in (99, 100, 101, 2_000):
        yield from (each * count for each in ("a", "é", "e\u0301", "한", "-", "\u200b", "日", "😀"))
    for file in (*(ROOT / "docs" / "how-to").glob("*.md"), *(ROOT / "src" / "alma" / "redaction").glob("*.py")):
        yield file.read_text(encoding="utf-8")[:100_000]


def _characters() -> Iterator[str]:
    """All of the basic plane, and some of the others."""
    chosen = [*CHARACTERS[: 0x10000 - 0x800], *CHARACTERS[0x10000 - 0x800 :: 97]]
    for start in range(0, len(chosen), 500):
        yield " ".join(f"a{each}b {each}" for each in chosen[start : start + 500])


@pytest.fixture(scope="module", params=FILES, ids=["model", "judge"])
def pair(request: pytest.FixtureRequest) -> tuple[Tokenizer, Reference]:
    """A tokenizer of ours, and the reference."""
    file, special = request.param
    reference = Reference.from_file(str(file))
    reference.no_truncation()
    reference.no_padding()
    reference.encode_special_tokens = not special
    return load_tokenizer(file, ProviderError, special=special), reference


def test_texts_have_the_tokens_and_the_words_of_the_reference(pair: tuple[Tokenizer, Reference]) -> None:
    ours, reference = pair
    for text in (*TEXTS, *_mixed(seed=32, count=1_500), *_long()):
        expected = reference.encode(text, add_special_tokens=False)
        assert ours.ids(text) == expected.ids, text[:200]
        tokens = zip(expected.word_ids, expected.ids, expected.offsets, strict=True)
        words = [list(word) for _, word in groupby(tokens, key=lambda token: token[0])]
        assert [tuple(word) for word in ours.words(text)] == [
            (tuple(ids for _, ids, _ in word), word[0][2][0], word[-1][2][1]) for word in words
        ], text[:200]


@pytest.mark.parametrize("pair", FILES[:1], indirect=True, ids=["model"])
def test_every_character_has_the_tokens_of_the_reference(pair: tuple[Tokenizer, Reference]) -> None:
    ours, reference = pair
    for text in _characters():
        assert ours.ids(text) == reference.encode(text, add_special_tokens=False).ids


def test_special_tokens_are_those_of_the_reference(pair: tuple[Tokenizer, Reference]) -> None:
    ours, reference = pair
    for frame, texts in ((ours.alone, ("a",)), (ours.pair, ("a", "b"))):
        expected = reference.encode(*texts)
        first, second = (ours.ids(texts[0]), ours.ids(texts[1])) if len(texts) > 1 else (ours.ids(texts[0]), [])
        parts = frame.before, first, frame.between, second, frame.after
        assert [token for part in parts for token in part] == expected.ids
        assert [kind for part, kind in zip(parts, frame.types, strict=True) for _ in part] == expected.type_ids
    assert ours.unknown == reference.token_to_id("[UNK]")


def test_threads_get_the_same_tokens(pair: tuple[Tokenizer, Reference]) -> None:
    ours, reference = pair
    texts = list(_mixed(seed=1, count=200))
    expected = [reference.encode(text, add_special_tokens=False).ids for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert all(found == expected for found in threads.map(lambda _: [ours.ids(text) for text in texts], range(16)))


def test_another_kind_of_tokenizer_is_left_to_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tokenizer.json"
    cased = json.loads(VOCABULARY.read_text())
    cased["normalizer"]["lowercase"] = False
    file.write_text(json.dumps(cased))
    ours = load_tokenizer(file, ProviderError, special=True)
    assert ours.ids("The cat") == [ours.unknown, *ours.ids("cat")]
    assert [(word.start, word.end) for word in ours.words("the cat")] == [(0, 3), (4, 7)]
    assert (ours.alone.before, ours.alone.after, ours.pair.between) == ([101], [102], [102])
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigurationError, match="pip install tokenizers"):
        load_tokenizer(file, ProviderError, special=True)


def test_a_file_without_a_model_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    for content, problem in (("{}", "it lacks 'model'"), ("not JSON", "Expecting value"), ("[]", "indices")):
        file.write_text(content)
        with pytest.raises(ProviderError, match=f"tokenizer.json is not a .*tokenizer file: .*{problem}"):
            load_tokenizer(file, ProviderError, special=True)
