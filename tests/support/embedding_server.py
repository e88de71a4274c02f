"""A small server that speaks OpenAI's embeddings protocol, and misbehaves when told to."""

from __future__ import annotations

import json

from alma.embeddings.mock import MockEmbedder
from tests.support.http_server import Received, Reply, ScriptedServer, error

KEY = "sk-the-right-key"


class EmbeddingServer(ScriptedServer):
    """Answers with vectors made from the texts, last text first."""

    def __init__(self, dimension: int = 1536) -> None:
        super().__init__()
        self.dimension = dimension

    def respond(self, request: Received) -> Reply:
        if KEY not in (
            request.headers.get("api-key"),
            request.headers.get("authorization", "").removeprefix("Bearer "),
        ):
            return error(401, "Incorrect API key provided: sk-t***key")
        if "deployments/nobody" in request.path or request.body.get("model") == "nobody":
            return error(404, "The model does not exist")
        texts = request.body["input"]
        if len(texts) > 2_048 or any(not text.strip() or len(text.encode()) > 8_191 for text in texts):
            return error(400, "the input is too long")
        dimension = request.body.get("dimensions", self.dimension)
        vectors = [list(MockEmbedder(dimension).encode(text)) for text in (text[:900] for text in texts)]
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return Reply(body=json.dumps({"object": "list", "data": data[::-1]}).encode())
