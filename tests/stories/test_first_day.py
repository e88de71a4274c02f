"""A first day of three agents: what they are handed over is right, nothing, or marked as out of date.

One story is the example; the two others were written apart, before the code, and are judged as they are.
"""

from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alma import ALMA

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "training" / "judge" / "blind" / "stories"

example: Any = SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "first_day.py")))


@pytest.fixture
def alma(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(path=tmp_path / "alma.db", project_id="story") as made:
        yield made


def tell(alma: ALMA, story: dict[str, Any]) -> None:
    for each in story["outcomes"]:
        alma.learn(
            each["agent"], each["task"], each["outcome"], each["strategy_used"], error_message=each.get("error_message")
        )
    for fact in story["facts"]:
        alma.add_domain_knowledge(fact["agent"], "business", fact["text"])
    for wish in story["preferences"]:
        alma.add_user_preference("owner", "general", wish["text"])


def question(asked: dict[str, Any]) -> Any:
    expect = asked["expect"]
    unwanted = tuple(expect.get("must_not_contain", ()))
    # Of a fact that changed, the older value may be shown with a mark.
    none_of, stale = ((), unwanted) if expect.get("superseded_marked") else (unwanted, ())
    contains = tuple(expect.get("contains_any", ()))
    return example.Question(asked["agent"], asked["task"], expect["kind"], contains, none_of, stale)


def verdicts(alma: ALMA, questions: list[Any]) -> Counter[tuple[str, str]]:
    return Counter((each.kind, example.ask(alma, each)[1]) for each in questions)


def test_the_example_gets_what_it_asks_for(alma: ALMA) -> None:
    example.tell(alma)
    found = verdicts(alma, example.QUESTIONS)
    print(found)
    assert found["nothing", "right"] == 4
    assert found["fact", "right"] == 2
    assert found["preference", "right"] == 1
    assert found["strategy", "right"] + found["warning", "right"] >= 5


@pytest.mark.parametrize("name", ["story_1", "story_2"])
def test_a_story_that_was_written_apart_is_never_told_what_is_out_of_date(alma: ALMA, name: str) -> None:
    story = json.loads((STORIES / f"{name}.json").read_text(encoding="utf-8"))
    tell(alma, story)
    found = verdicts(alma, [question(each) for each in story["questions"]])
    print(found)
    assert sum(count for (_, said), count in found.items() if said == "right") >= 9
