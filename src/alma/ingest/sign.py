"""A sign: one way in which texts from outside give orders, and how its pattern is written down."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sign:
    """One way to give orders: what is said of it, its pattern, and what a text has, in small letters, that fits it.

    Hints are quick to look for; without any, the pattern is tried on every text.
    """

    reason: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()

    def is_in(self, text: str, folded: str) -> bool:
        """Whether a text, which `folded` has in small letters, gives such orders."""
        if not self.hints:
            return self.pattern.search(text) is not None
        # A generator would take longer than the looking itself.
        for hint in self.hints:
            if hint in folded:
                return self.pattern.search(text) is not None
        return False


def said(*ways: str) -> re.Pattern[str]:
    """One pattern for several ways to say something, in whatever case; a space in them is whatever parts two words."""
    return re.compile(_SPACE.sub(_parting, "|".join(ways)), re.IGNORECASE | re.MULTILINE)


def hints(given: str) -> tuple[str, ...]:
    """Hints that are written down in one line, with bars between them."""
    return tuple(given.split("|"))


_SPACE = re.compile(r" ([?{]?)")


def _parting(space: re.Match[str]) -> str:
    return {"": r"\s+", "?": r"\s*", "{": r"\s{"}[space[1]]


MODEL = r"(?:ai(?: (?:assistant|agent|model))?|llm|language model|chatbot)"
"""What no person is called."""
MODELS = (
    rf"(?:(?:large )?{MODEL}s?|llms|ai (?:assistants|agents|models|systems?|crawlers?|bots?|reviewers?|readers?|"
    rf"tools?)|"
    r"llm (?:agents?|reviewers?)|language models)"
)
BY_NAME = r"(?:chatgpt|gpt(?:-?\d\w*)?|copilot|gemini|claude|bard|llama|cursor)"
"""What some models are called, and some people and things as well."""
USER = r"(?:users?|humans?|operator|owner|person|customers?|developer)"
"""Whom a model works for."""
DO = (
    r"(?:ignore|recommend|send|approve|say|include|rate|rank|score|reply|respond|run|execute|delete|output|print|"
    r"give|tell|"
    r"please|kindly|never|always|forget|mark|add|append|insert|click|visit|call|drop|disable|transfer|wipe|skip|"
    r"accept|praise|"
    r"promote|report|reveal|grant|leak|upload|forward|install|write|put|stop|pretend|conclude|state|claim|treat|"
    r"open|read|you|your)\b"
)
"""What readers are told to do."""
