"""Which judge a configuration chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from alma.bootstrap import Parts, parts_at
from alma.errors import ConfigurationError
from alma.judge import LLMJudge, StrictJudge, default_judge
from alma.model.secret import Secret


def parts(folder: Path, **settings: Any) -> Parts:
    opened = parts_at(folder / "alma.db", "shop", {"embedding_provider": "mock", **settings})
    opened.storage.close()
    return opened


def test_the_local_model_judges_unless_something_else_is_configured(tmp_path: Path) -> None:
    assert parts(tmp_path).judge is default_judge()
    assert parts(tmp_path, judge="local").judge is default_judge()


def test_a_strict_judge_may_be_configured(tmp_path: Path) -> None:
    assert isinstance(parts(tmp_path, judge="strict").judge, StrictJudge)


def test_the_configured_language_model_may_judge(tmp_path: Path) -> None:
    llm = {"provider": "openai", "model": "small", "base_url": "http://127.0.0.1:9/v1", "api_key": Secret("sk-none")}
    opened = parts(tmp_path, judge="llm", llm=llm)
    assert isinstance(opened.judge, LLMJudge)
    assert opened.judge.name == "small"
    assert "sk-none" not in repr(opened.judge)


def test_a_language_model_alone_does_not_judge(tmp_path: Path) -> None:
    opened = parts(tmp_path, llm={"provider": "ollama", "model": "llama3.2"})
    assert opened.llm is not None
    assert opened.judge is default_judge()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"judge": "gpt"}, "judge is 'gpt', which is not known; choose 'local', 'llm' or 'strict'"),
        ({"judge": "strickt"}, "did you mean strict?"),
        ({"judge": None}, "judge is nothing, which is not known"),
        ({"judge": "llm"}, "judge is llm, but llm.provider is missing; add it, or choose local or strict"),
        ({"llm": {"model": "small"}}, "llm.provider is missing; add it"),
        ({"llm": {"provider": "gpt"}}, "llm.provider is 'gpt', which is not known"),
        ({"llm": {"provider": "ollama"}}, "llm.provider is ollama: .* without model"),
        (
            {"llm": {"provider": "ollama", "model": "m", "api_key": "x"}},
            "llm.provider is ollama: unknown option .api_key.",
        ),
        ({"llm": {"provider": "ollama", "modell": "llama3.2"}}, "llm.modell is not known; did you mean model"),
    ],
)
def test_a_wrong_choice_is_one_sentence_that_names_it(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        parts(tmp_path, **settings)
    assert "\n" not in str(caught.value)
