"""Transcripts of the Claude Agent SDK in ALMA; run it twice. With the SDK: ClaudeAgentOptions(session_store=store)."""

import asyncio
from typing import Any

from claude_agent_sdk import SessionKey, list_sessions_from_store, project_key_for_directory

from alma import ALMA
from alma.integration.claude_agent_sdk import ALMASessionStore


async def main() -> None:
    with ALMA.quickstart(project_id="shop") as memory:
        store = ALMASessionStore(memory)
        key: SessionKey = {
            "project_key": project_key_for_directory("."),
            "session_id": "0196b1a2-0000-7000-8000-000000000001",
        }
        known = await store.load(key) or []
        titles = [session.summary for session in await list_sessions_from_store(store, directory=".")]
        print(f"before: {len(known)} entries" + "".join(f", title: {title}" for title in titles))
        # What the SDK does while an agent works.
        asked = {"role": "user", "content": "Where is my order?"}
        answered = {"role": "assistant", "content": [{"type": "text", "text": "It left Lisbon yesterday."}]}
        turns: list[Any] = [
            {"type": "user", "uuid": "u1", "message": asked},
            {"type": "assistant", "uuid": "a1", "message": answered},
        ]
        await store.append(key, turns)
        found = memory.journal.search("Where is the parcel?", memory.scope(), limit=1)
        print("found in ALMA:", found.memories[0].content)


asyncio.run(main())
