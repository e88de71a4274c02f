"""Focus: what a task asks that mostly consists of something else, such as a log, code or a document."""

from __future__ import annotations

import re

# In characters: a task that is longer may be a question with something pasted beside it, and what is asked is no longer
# than that.
_LONG, _ASKED = 400, 300
_SENTENCES = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？؟।])\s*|\n")
_PARAGRAPHS = re.compile(r"\n\s*\n")
_QUESTION_MARK = re.compile(r"[?？؟]\W*$")
_LETTERS = re.compile(r"[^\W\d_]")


def asked_part(task: str) -> str | None:
    """What a long task asks at its beginning or at its end, or None where the task is that itself.

    Who pastes something says before or behind it what it is for. Of both, what ends with a question mark is meant;
    where neither does, both.
    """
    text = task.strip()
    if len(text) <= _LONG:
        return None
    ends = [end for end in (_first(text), _last(text)) if end and _LETTERS.search(end)]
    asking = [end for end in ends if _QUESTION_MARK.search(end)]
    return " ".join(dict.fromkeys(asking or ends)) or None


def _first(text: str) -> str:
    """The first paragraph, or else its first sentence, if it is short."""
    head = text[: _ASKED + 1]
    paragraph = _PARAGRAPHS.split(head, maxsplit=1)[0]
    if len(paragraph) <= _ASKED:
        return paragraph
    sentence = _SENTENCES.split(head, maxsplit=1)[0]
    return sentence if len(sentence) <= _ASKED else ""


def _last(text: str) -> str:
    """The last paragraph, or else its last sentence, if it is short."""
    tail = text[-_ASKED - 1 :]
    paragraph = _PARAGRAPHS.split(tail)[-1]
    if len(paragraph) <= _ASKED:
        return paragraph
    sentence = _SENTENCES.split(tail.rstrip())[-1]
    return sentence if len(sentence) <= _ASKED else ""
