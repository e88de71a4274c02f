"""Models of OpenAI, of Azure OpenAI, and of services with an OpenAI-compatible API."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from alma.errors import ConfigurationError, MissingDependencyError
from alma.llm.base import Completion, Request
from alma.llm.sdk import SdkModel, deadline_hooks
from alma.model.secret import Secret

DEFAULT_MODEL = "gpt-4.1-mini"
# Of the models there, those named gpt-oss follow a JSON schema strictly.
DEFAULT_GROQ_MODEL = "openai/gpt-oss-20b"


class ChatModel(SdkModel):
    """A model with the chat completions API."""

    _client: Any
    _length_parameter = "max_completion_tokens"

    def _ask(self, request: Request) -> Any:
        return self._client.chat.completions.create(**self._parameters(request), timeout=request.timeout_seconds)

    def _read(self, answer: Any) -> Completion:
        [choice, *_] = answer.choices
        usage = answer.usage
        return Completion(
            text=_response_text(choice.message.content),
            model=str(answer.model or self._model_name),
            finish_reason="refusal" if choice.message.refusal else choice.finish_reason,
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
        )

    def _parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": self._model_name,
            "messages": [{"role": each.role, "content": each.content} for each in request.messages],
            self._length_parameter: request.max_tokens,
        }
        if request.temperature is not None:
            parameters["temperature"] = request.temperature
        if request.schema is not None:
            named = {"name": "answer", "schema": request.schema, "strict": True}
            parameters["response_format"] = {"type": "json_schema", "json_schema": named}
        return parameters

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()


def _response_text(content: Any) -> str:
    """The text of a response, which some services return in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] in _OF_TEXT)
    if content is not None and not isinstance(content, str):
        raise TypeError("the content is not text")
    return content or ""


_OF_TEXT = ("text", "output_text")


class OpenAIModel(ChatModel):
    """An OpenAI model; `base_url` names a compatible service, which may need no key."""

    _vendor, _variable = "OpenAI", "OPENAI_API_KEY"
    _address: str | None = None

    def __init__(
        self,
        api_key: str | Secret = "",
        model: str = DEFAULT_MODEL,
        base_url: str | None = None,
        timeout_seconds: float = 60.0,
        attempts: int = 3,
        backoff_seconds: float = 0.5,
    ) -> None:
        key = Secret(api_key)
        if not key and base_url is None:
            raise ConfigurationError(f"{self._vendor} needs an API key: set {self._variable} or give api_key=…")
        openai = openai_package("openai")
        fixes = {
            401: f"check the API key ({self._variable}, or api_key=…)",
            403: "this API key may not use the model; check the project's permissions",
            404: f"check the model {model!r} and base_url",
            429: "ask for less at once, or raise the account's limits",
        }
        patience = {"timeout_seconds": timeout_seconds, "attempts": attempts, "backoff_seconds": backoff_seconds}
        base_url = base_url or self._address
        name = self._vendor if base_url == self._address else f"the language model at {base_url}"
        super().__init__(name, model, key, fixes, openai, **patience)
        if base_url != self._address:
            # Compatible services know the older parameter name.
            self._length_parameter = "max_tokens"
        self._client = openai.OpenAI(
            api_key=key.reveal() or "none",
            base_url=base_url,
            max_retries=0,
            # A redirect would send the API key to another host.
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False, event_hooks=deadline_hooks(openai.DefaultHttpxClient)
            ),
        )


class GroqModel(OpenAIModel):
    """A model of Groq, which has OpenAI's API; `base_url` names a gateway to it."""

    _vendor, _variable = "Groq", "GROQ_API_KEY"
    _address = "https://api.groq.com/openai/v1"

    def __init__(
        self,
        api_key: str | Secret = "",
        model: str = DEFAULT_GROQ_MODEL,
        base_url: str | None = None,
        timeout_seconds: float = 60.0,
        attempts: int = 3,
        backoff_seconds: float = 0.5,
    ) -> None:
        super().__init__(api_key, model, base_url, timeout_seconds, attempts, backoff_seconds)


def openai_package(extra: str) -> ModuleType:
    """The openai package, imported on first use."""
    try:
        import openai
    except ImportError as exc:
        raise MissingDependencyError("openai", extra) from exc
    return openai


_DEFAULT_API_VERSION = "2024-10-21"


class AzureOpenAIModel(ChatModel):
    """The model of an Azure OpenAI deployment."""

    def __init__(
        self,
        endpoint: str,
        api_key: str | Secret,
        deployment: str,
        api_version: str = _DEFAULT_API_VERSION,
        timeout_seconds: float = 60.0,
        attempts: int = 3,
        backoff_seconds: float = 0.5,
    ) -> None:
        key = Secret(api_key)
        if not key:
            raise ConfigurationError("Azure OpenAI needs an API key: set AZURE_OPENAI_API_KEY or give api_key=…")
        if not endpoint.startswith(("http://", "https://")):
            raise ConfigurationError(
                "Azure OpenAI needs an endpoint that begins with https://: set AZURE_OPENAI_ENDPOINT or give endpoint=…"
            )
        openai = openai_package("azure")
        fixes = {
            401: "check the API key (AZURE_OPENAI_API_KEY, or api_key=…) and that it belongs to this endpoint",
            403: "this key or this network may not use the resource; check its access rules",
            404: f"check the deployment {deployment!r}, the endpoint and api_version {api_version}",
            429: "ask for less at once, or raise the deployment's limits",
        }
        patience = {"timeout_seconds": timeout_seconds, "attempts": attempts, "backoff_seconds": backoff_seconds}
        super().__init__("Azure OpenAI", deployment, key, fixes, openai, **patience)
        self._client = openai.AzureOpenAI(
            azure_endpoint=endpoint.rstrip("/"),
            api_key=key.reveal(),
            api_version=api_version,
            max_retries=0,
            # A redirect would send the API key to another host.
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False, event_hooks=deadline_hooks(openai.DefaultHttpxClient)
            ),
        )
