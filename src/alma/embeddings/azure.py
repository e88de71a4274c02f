"""Embeddings of Azure OpenAI, addressed by resource, deployment and API version."""

from __future__ import annotations

from urllib.parse import quote

from alma.embeddings.remote import DEFAULT_MODEL, RemoteEmbedder
from alma.embeddings.transport import Service, base_of, key_of, text_of
from alma.model.secret import Secret

_DEFAULT_API_VERSION = "2024-10-21"


class AzureEmbedder(RemoteEmbedder):
    """The model of a deployment in an Azure OpenAI resource.

    `model` is the model of the `deployment`; its vectors are comparable with those of the same model at OpenAI.
    """

    def __init__(
        self,
        endpoint: str,
        api_key: str | Secret | None,
        deployment: str = DEFAULT_MODEL,
        api_version: str = _DEFAULT_API_VERSION,
        model: str = DEFAULT_MODEL,
        dimensions: int | None = None,
        timeout_seconds: float = 30.0,
        attempts: int = 5,
        backoff_seconds: float = 0.5,
        batch_size: int = 256,
    ) -> None:
        key = key_of(api_key, "Azure OpenAI needs an API key: set AZURE_OPENAI_API_KEY or give api_key=…")
        no_endpoint = "Azure OpenAI needs an endpoint: set AZURE_OPENAI_ENDPOINT or give endpoint=…"
        base = base_of("endpoint", endpoint, no_endpoint)
        text_of("deployment", deployment, "Azure OpenAI needs a deployment: give deployment=…, or leave it out")
        text_of("api_version", api_version, "Azure OpenAI needs a version: give api_version=…, or leave it out")
        text_of("model", model, "Azure OpenAI needs the name of the deployed model: give model=…, or leave it out")
        path = f"openai/deployments/{quote(deployment, safe='')}/embeddings?api-version={quote(api_version)}"
        service = Service(
            name="Azure OpenAI",
            url=f"{base}/{path}",
            key_header="api-key",
            key_prefix="",
            key=key,
            fixes={
                401: "check the API key (AZURE_OPENAI_API_KEY, or api_key=…) and that it belongs to this endpoint",
                403: "this key or this network may not use the resource; check its access rules",
                404: f"check the deployment {deployment!r}, the endpoint and api_version {api_version}",
                429: "ask for less at once, or raise the deployment's limits",
            },
            timeout_seconds=timeout_seconds,
            attempts=attempts,
            backoff_seconds=backoff_seconds,
        )
        super().__init__(service, model, dimensions, batch_size)
