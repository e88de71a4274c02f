"""The judge: models that relate two texts, rate the relevance of a memory for a task, and detect prompt injections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.judge.base import LABELS as LABELS
    from alma.judge.base import Judge as Judge
    from alma.judge.base import Judgement as Judgement
    from alma.judge.base import Label as Label
    from alma.judge.base import StrictJudge as StrictJudge
    from alma.judge.default import FallbackJudge as FallbackJudge
    from alma.judge.default import default_judge as default_judge
    from alma.judge.llm import LLMJudge as LLMJudge
    from alma.judge.local import LocalJudge as LocalJudge

_HOME_OF = {
    "LABELS": "alma.judge.base",
    "Label": "alma.judge.base",
    "Judge": "alma.judge.base",
    "Judgement": "alma.judge.base",
    "LLMJudge": "alma.judge.llm",
    "LocalJudge": "alma.judge.local",
    "StrictJudge": "alma.judge.base",
    "FallbackJudge": "alma.judge.default",
    "default_judge": "alma.judge.default",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
