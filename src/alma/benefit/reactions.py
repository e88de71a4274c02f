"""Reactions: whether the prompt after a task says that it went well or badly, as a small model decides.

A logistic regression on the vector of the prompt and on what the judge says of it beside a few statements.
`training/reactions/train.py` fits it and measures it on prompts that it was not fitted on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from alma.embeddings.local import LocalEmbedder
from alma.judge.base import LABELS, StrictJudge
from alma.judge.default import default_judge
from alma.lazy import lazy_module

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

WEIGHTS = "reactions.json"
REACTIONS = ("none", "correction", "thanks")
THRESHOLD = 0.6
"""A reaction is assumed from this probability on."""

STATEMENTS = (
    "It works now.",
    "It does not work.",
    "That is wrong.",
    "That is right.",
    "Thank you, well done.",
    "This is not what I asked for.",
    "Please do this next.",
    "Something is missing.",
    "I am happy with the result.",
    "I have a question.",
)
# A reaction is at the beginning of a prompt.
_LONGEST = 40
_LEAST, _SCALE = 1e-3, 0.2

Floats = Any


def reaction_in(prompt: str) -> str | None:
    """*correction* or *thanks*; None for any other prompt, and where the model of the judge cannot be used."""
    if not prompt.strip() or default_judge().name == StrictJudge().name:
        return None
    (found,) = probabilities(features([prompt]), _weights())
    best = int(np.argmax(found))
    return REACTIONS[best] if best and found[best] >= THRESHOLD else None


def features(prompts: Sequence[str]) -> Floats:
    """What the model reads of each prompt."""
    texts = [" ".join(prompt.split()[:_LONGEST]) for prompt in prompts]
    vectors = [np.frombuffer(each.to_bytes(), dtype="<f4") for each in LocalEmbedder().encode_batch(texts)]
    judged = default_judge().compare([(text, statement) for text in texts for statement in STATEMENTS])
    relations = np.array([[each[label] for label in LABELS] for each in judged]).reshape(len(texts), -1)
    return np.hstack([np.array(vectors), _SCALE * np.log(relations + _LEAST), np.ones((len(texts), 1))])


def probabilities(rows: Floats, weights: Floats) -> Floats:
    """The probability of each reaction."""
    logits = rows @ weights
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@cache
def _weights() -> Floats:
    stored: Mapping[str, Sequence[float]] = json.loads(
        files("alma.benefit").joinpath(WEIGHTS).read_text(encoding="utf-8")
    )
    return np.array([stored[name] for name in REACTIONS]).T
