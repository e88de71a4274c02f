"""Long memories beside short questions: the service goes on answering while it embeds."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import anyio
from mcp.client import Client

from alma import ALMA
from alma.mcp.service import THREADS as MCP_THREADS
from tests.faces.rest import client_of, served
from tests.support.mcp import HttpServer, configured

THREADS = 4


def prose(characters: int, seed: int) -> str:
    source = random.Random(seed)
    letters = "abcdeilmnorstu"
    words = ["".join(source.choices(letters, k=source.randint(3, 9))) for _ in range(characters // 7)]
    return " ".join(words)[:characters]


def test_searches_are_answered_while_as_many_long_memories_are_written_as_there_are_threads(tmp_path: Path) -> None:
    with (
        ALMA.quickstart(tmp_path / "alma.db", project_id="shop") as alma,
        served(alma, threads=THREADS) as address,
        client_of(address) as client,
    ):
        for n in range(20):
            client.post("/v1/memories", json={"content": f"Note {n}: {prose(150, n)}"}).raise_for_status()
        assert client.post("/v1/memories/search", json={"query": "warm"}).status_code == 200
        statuses: list[int] = []
        texts = [prose(10_000, 100 + n) for n in range(THREADS)]

        def write(text: str) -> None:
            with client_of(address) as own:
                statuses.append(own.post("/v1/memories", json={"content": text}, timeout=300).status_code)

        writers = [threading.Thread(target=write, args=(text,)) for text in texts]
        for writer in writers:
            writer.start()
        waits: list[float] = []
        while any(writer.is_alive() for writer in writers):
            began = time.perf_counter()
            assert client.post("/v1/memories/search", json={"query": prose(60, len(waits))}).status_code == 200
            waits.append(time.perf_counter() - began)
        assert statuses == [201] * THREADS
        # On two idle processors it is 0.2 s; before, one search waited until a thread was done with its long memory.
        assert max(waits) < 15.0


def test_calls_over_mcp_are_answered_while_long_memories_are_written(tmp_path: Path) -> None:
    file = configured(tmp_path)
    file.write_text(file.read_text().replace("mock", "local"))
    waits: list[float] = []
    written: list[bool] = []

    async def write(client: Client, number: int) -> None:
        answer = await client.call_tool("alma_remember", {"content": prose(4_000, number)})
        written.append(not answer.is_error)

    async def conversation(url: str) -> None:
        async with Client(url) as client, anyio.create_task_group() as tasks:
            assert not (await client.call_tool("alma_search", {"query": "warm"})).is_error
            for number in range(MCP_THREADS + 2):
                tasks.start_soon(write, client, number)
            while len(written) < MCP_THREADS + 2:
                began = time.perf_counter()
                assert not (await client.call_tool("alma_search", {"query": prose(60, len(waits))})).is_error
                waits.append(time.perf_counter() - began)

    with HttpServer("--config", str(file)) as server:
        anyio.run(conversation, server.url)
    assert all(written)
    assert max(waits) < 15.0
