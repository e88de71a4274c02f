"""Anthropic models."""

from __future__ import annotations

from typing import Any

from alma.errors import ConfigurationError, MissingDependencyError
from alma.llm.base import Completion, Request
from alma.llm.sdk import SdkModel, deadline_hooks
from alma.model.secret import Secret

DEFAULT_MODEL = "claude-haiku-5-5"


class AnthropicModel(SdkModel):
    """An Anthropic model; the temperature is not sent, because these models do not accept one."""

    def __init__(
        self,
        api_key: str | Secret,
        model: str = DEFAULT_MODEL,
        base_url: str | None = None,
        timeout_seconds: float = 60.0,
        attempts: int = 3,
        backoff_seconds: float = 0.5,
    ) -> None:
        key = Secret(api_key)
        if not key:
            raise ConfigurationError("Anthropic needs an API key: set ANTHROPIC_API_KEY or give api_key=…")
        try:
            import anthropic
        except ImportError as exc:
            raise MissingDependencyError("anthropic", "anthropic") from exc
        fixes = {
            401: "check the API key (ANTHROPIC_API_KEY, or api_key=…)",
            403: "this API key may not use the model",
            404: f"check the model {model!r} and base_url",
            429: "ask for less at once, or raise the account's limits",
        }
        patience = {"timeout_seconds": timeout_seconds, "attempts": attempts, "backoff_seconds": backoff_seconds}
        super().__init__("Anthropic", model, key, fixes, anthropic, **patience)
        self._client = anthropic.Anthropic(
            api_key=key.reveal(),
            base_url=base_url,
            max_retries=0,
            # A redirect would send the API key to another host.
            http_client=anthropic.DefaultHttpxClient(
                follow_redirects=False, event_hooks=deadline_hooks(anthropic.DefaultHttpxClient)
            ),
        )

    def _ask(self, request: Request) -> Any:
        create: Any = self._client.messages.create
        return create(**self._parameters(request), timeout=request.timeout_seconds)

    def _read(self, answer: Any) -> Completion:
        return Completion(
            text="".join(block.text for block in answer.content if block.type == "text"),
            model=str(answer.model or self._model_name),
            finish_reason="length" if answer.stop_reason == "max_tokens" else answer.stop_reason,
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
        )

    def _parameters(self, request: Request) -> dict[str, Any]:
        spoken = [message for message in request.messages if message.role != "system"]
        parameters: dict[str, Any] = {
            "model": self._model_name,
            "max_tokens": request.max_tokens,
            "messages": [{"role": message.role, "content": message.content} for message in spoken],
        }
        told = "\n\n".join(message.content for message in request.messages if message.role == "system")
        if told:
            parameters["system"] = told
        if request.schema is not None:
            parameters["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        return parameters

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()
