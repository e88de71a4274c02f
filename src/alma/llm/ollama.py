"""Local models served by Ollama."""

from __future__ import annotations

from typing import Any

from alma.errors import ConfigurationError, MissingDependencyError
from alma.llm.base import Completion, LanguageModel, Request
from alma.llm.sdk import deadline_hooks
from alma.redaction.redactor import redact_text
from alma.retry import RETRIED_STATUSES, Failure

_DEFAULT_HOST = "http://127.0.0.1:11434"


class OllamaModel(LanguageModel):
    """A model of Ollama; download it with  ollama pull <model>."""

    def __init__(
        self,
        model: str,
        host: str = _DEFAULT_HOST,
        timeout_seconds: float = 120.0,
        attempts: int = 3,
        backoff_seconds: float = 0.5,
    ) -> None:
        super().__init__(timeout_seconds, attempts, backoff_seconds)
        if not model.strip():
            raise ConfigurationError("Ollama needs the name of a model (model=…), for example llama3.2")
        try:
            import httpx
            import ollama
        except ImportError as exc:
            raise MissingDependencyError("ollama", "ollama") from exc
        self._model_name = model
        self._host = host
        self._refused = ollama.ResponseError
        self._unreachable: tuple[type[Exception], ...] = (ConnectionError, httpx.TransportError)
        self._timed_out = httpx.TimeoutException
        self._new_client: Any = ollama.Client
        self._http_client = httpx.Client
        self._client = self._client_for(timeout_seconds)

    @property
    def model(self) -> str:
        return self._model_name

    def _attempt(self, request: Request) -> Completion | Failure:
        try:
            return self._ask(request)
        except self._refused as exc:
            return self._refusal(exc)
        except self._timed_out as exc:
            return Failure(f"Ollama did not answer within {request.timeout_seconds:g} seconds", True, cause=exc)
        except self._unreachable as exc:
            return Failure(f"Ollama cannot be reached at {self._host}: start it with  ollama serve", True, cause=exc)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as exc:
            return Failure("the response of Ollama is not a completion", True, cause=exc)

    def _ask(self, request: Request) -> Completion:
        options: dict[str, Any] = {"num_predict": request.max_tokens}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        own = request.timeout_seconds != self._timeout_seconds
        client = self._client_for(request.timeout_seconds) if own else self._client
        try:
            answer = client.chat(
                model=self._model_name,
                messages=[{"role": each.role, "content": each.content} for each in request.messages],
                format=request.schema,
                options=options,
            )
        finally:
            if own:
                client.close()
        return Completion(
            text=answer.message.content or "",
            model=str(answer.model or self._model_name),
            finish_reason=answer.done_reason,
            input_tokens=answer.prompt_eval_count,
            output_tokens=answer.eval_count,
        )

    def _refusal(self, exc: Any) -> Failure:
        said = redact_text(" ".join(str(exc.error).split())[:300]).text
        fix = f"; fetch it with  ollama pull {self._model_name}" if exc.status_code == 404 else ""
        return Failure(
            f"Ollama answered {exc.status_code}: {said}{fix}", exc.status_code in RETRIED_STATUSES, cause=exc
        )

    def _client_for(self, timeout_seconds: float) -> Any:
        hooks = deadline_hooks(self._http_client)
        return self._new_client(host=self._host, timeout=timeout_seconds, follow_redirects=False, event_hooks=hooks)

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()
