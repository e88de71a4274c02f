"""An agent of Strands that remembers what it was told; run it twice. Its model is scripted: no key."""

from collections.abc import AsyncIterable
from typing import Any

from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model

from alma import ALMA
from alma.integration.strands import ALMAMemoryStore


class Scripted(Model):
    """Says whether its input names the customer's allergy."""

    def update_config(self, **config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, output_model: Any, prompt: Any, system_prompt: str | None = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterable[Any]:
        said = "You are allergic to peanuts." if "peanuts" in str(messages) else "I know of no allergy."
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": said}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


with ALMA.quickstart(project_id="shop") as memory:
    store = ALMAMemoryStore(memory, name="customers")
    manager = MemoryManager(stores=[store], add_tool_config=True)
    agent = Agent(model=Scripted(), memory_manager=manager, callback_handler=None)
    print("assistant:", str(agent("Which food am I allergic to?")).strip())
    agent.tool.add_memory(entries=["The customer is allergic to peanuts."])
    print("found in ALMA:", memory.journal.search("allergies", memory.scope(), limit=1).memories[0].content)
