"""A language model with scripted replies, for tests and examples."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from alma.errors import LanguageModelError
from alma.llm.base import Completion, LanguageModel, Request
from alma.retry import Failure

Reply = str | dict[str, Any] | Exception | Callable[[Request], str]


class ScriptedModel(LanguageModel):
    """Returns its replies in order, repeating the last one; `asked` holds the requests.

    A reply is text, an object sent as JSON, an error, or a function of the request.
    """

    def __init__(self, *replies: Reply, attempts: int = 1) -> None:
        super().__init__(attempts=attempts, backoff_seconds=0.0)
        if not replies:
            raise LanguageModelError("a scripted model needs at least one reply")
        self._replies: list[Reply] = list(replies)
        self.asked: list[Request] = []

    @property
    def model(self) -> str:
        return "scripted"

    def _attempt(self, request: Request) -> Completion | Failure:
        reply = self._replies[min(len(self.asked), len(self._replies) - 1)]
        self.asked.append(request)
        if isinstance(reply, Exception):
            return Failure(str(reply), transient=True, cause=reply)
        if isinstance(reply, dict):
            return Completion(json.dumps(reply), self.model, "stop")
        return Completion(reply if isinstance(reply, str) else reply(request), self.model, "stop")
