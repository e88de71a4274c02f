"""An agent of Google ADK that remembers earlier sessions; run it twice. Its model is scripted: no key."""

import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import preload_memory
from google.genai import types

from alma import ALMA
from alma.integration.google_adk import ALMAMemoryService


class Scripted(BaseLlm):
    """Says whether it is told of an earlier conversation."""

    async def generate_content_async(self, request: LlmRequest, stream: bool = False) -> AsyncGenerator[LlmResponse]:
        knows = "PAST_CONVERSATIONS" in str(request.contents)
        said = "I know of the green parcel." if knows else "I know nothing yet."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))


async def main() -> None:
    with ALMA.quickstart(project_id="shop") as memory:
        service = ALMAMemoryService(memory)
        sessions = InMemorySessionService()
        agent = LlmAgent(name="support", model=Scripted(model="scripted"), tools=[preload_memory])
        runner = Runner(app_name="shop", agent=agent, session_service=sessions, memory_service=service)
        session = await sessions.create_session(app_name="shop", user_id="ana")
        asked = types.Content(role="user", parts=[types.Part(text="My green parcel was lost in Lisbon.")])
        async for event in runner.run_async(user_id="ana", session_id=session.id, new_message=asked):
            print("assistant:", event.content.parts[0].text)
        done = await sessions.get_session(app_name="shop", user_id="ana", session_id=session.id)
        await service.add_session_to_memory(done)
        print("found in ALMA:", memory.journal.search("lost parcels", memory.scope(), limit=1).memories[0].content)


asyncio.run(main())
