"""OpenAI models on Azure: endpoint, deployment and API version."""

from __future__ import annotations

from alma.errors import ConfigurationError
from alma.llm.openai import ChatModel, openai_package
from alma.llm.sdk import deadline_hooks
from alma.model.secret import Secret

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
