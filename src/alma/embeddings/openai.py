"""Embeddings of OpenAI, or of a service with a compatible API."""

from __future__ import annotations

from alma.embeddings.remote import DEFAULT_MODEL, RemoteEmbedder
from alma.embeddings.transport import Service, base_of, key_of, text_of
from alma.model.secret import Secret

_DEFAULT_URL = "https://api.openai.com/v1"
_NO_KEY = "OpenAI needs an API key: set OPENAI_API_KEY or give api_key=…"


class OpenAIEmbedder(RemoteEmbedder):
    """text-embedding-3-small with 1,536 dimensions by default. `base_url` is the address of a compatible service."""

    def __init__(
        self,
        api_key: str | Secret | None,
        model: str = DEFAULT_MODEL,
        dimensions: int | None = None,
        base_url: str = _DEFAULT_URL,
        timeout_seconds: float = 30.0,
        attempts: int = 5,
        backoff_seconds: float = 0.5,
        batch_size: int = 256,
    ) -> None:
        key = key_of(api_key, _NO_KEY)
        text_of("model", model, "OpenAI needs the name of a model: give model=…, or leave it out")
        base = base_of("base_url", base_url, "OpenAI needs an address: give base_url=…, or leave it out")
        service = Service(
            name="OpenAI" if base_url == _DEFAULT_URL else f"the embedding service at {base_url}",
            url=f"{base}/embeddings",
            key_header="Authorization",
            key_prefix="Bearer ",
            key=key,
            fixes={
                401: "check the API key (OPENAI_API_KEY, or api_key=…)",
                403: "this API key may not use the model; check the project's permissions",
                404: f"check the model {model!r} and base_url",
                429: "ask for less at once, or raise the account's limits",
            },
            timeout_seconds=timeout_seconds,
            attempts=attempts,
            backoff_seconds=backoff_seconds,
        )
        super().__init__(service, model, dimensions, batch_size)
