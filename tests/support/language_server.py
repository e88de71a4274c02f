"""A small server that speaks the protocols of OpenAI, Azure OpenAI, Anthropic and Ollama."""

from __future__ import annotations

import json
from typing import Any

from tests.support.http_server import Received, Reply, ScriptedServer, error

KEY = "sk-the-right-key"


class LanguageServer(ScriptedServer):
    """Says `text`; to whom asks for a shape, `answer_object` as JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.text = "Four."
        self.answer_object: dict[str, Any] = {"n": 4}
        self.refuses = False

    def respond(self, request: Received) -> Reply:
        path = request.path.partition("?")[0]
        if path == "/api/chat":
            return self._ollama(request.body)
        given = request.headers.get("x-api-key") or request.headers.get("api-key")
        if KEY not in (given, request.headers.get("authorization", "").removeprefix("Bearer ")):
            return error(401, f"Incorrect API key provided: {given}")
        if "nobody" in path or request.body.get("model") == "nobody":
            return error(404, "The model does not exist")
        if path == "/v1/messages":
            return self._anthropic(request.body)
        return self._openai(request.body)

    def _openai(self, body: dict[str, Any]) -> Reply:
        text = json.dumps(self.answer_object) if "response_format" in body else self.text
        message: dict[str, str | None] = {"role": "assistant", "content": text}
        if self.refuses:
            message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
        made = {"id": "c1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
        return Reply(body=json.dumps({**made, "usage": usage}).encode())

    def _anthropic(self, body: dict[str, Any]) -> Reply:
        text = json.dumps(self.answer_object) if "format" in body.get("output_config", {}) else self.text
        block = {"type": "text", "text": text}
        usage = {"input_tokens": 7, "output_tokens": 2}
        made = {"id": "m1", "type": "message", "role": "assistant", "model": body["model"], "content": [block]}
        stopped = {"content": [], "stop_reason": "refusal"} if self.refuses else {"stop_reason": "end_turn"}
        return Reply(body=json.dumps({**made, **stopped, "usage": usage}).encode())

    def _ollama(self, body: dict[str, Any]) -> Reply:
        if body["model"] == "nobody":
            return Reply(404, json.dumps({"error": "model 'nobody' not found"}).encode())
        text = json.dumps(self.answer_object) if body.get("format") else self.text
        message = {"role": "assistant", "content": text}
        counts = {"prompt_eval_count": 7, "eval_count": 2, "done_reason": "stop"}
        made = {"model": body["model"], "created_at": "2026-05-03T12:00:00Z", "message": message, "done": True}
        return Reply(body=json.dumps({**made, **counts}).encode())
