"""A crew of CrewAI that remembers what it was told; run it twice. Its model is scripted: no key."""

from typing import Any

from crewai import Agent, BaseLLM, Crew, Memory, Task

from alma import ALMA
from alma.integration.crewai import ALMAStorage


class Scripted(BaseLLM):
    """Says whether its task names the customer's allergy."""

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        knows = "peanuts" in str(messages)
        return f"Thought: I know.\nFinal Answer: {'You are allergic to peanuts.' if knows else 'I know of no allergy.'}"


with ALMA.quickstart(project_id="shop") as alma:
    storage = ALMAStorage(alma)
    model = Scripted(model="scripted")
    memory = Memory(storage=storage, embedder=storage.embed, llm=model)
    agent = Agent(role="support", goal="help", backstory="a shop", llm=model)
    task = Task(description="Which food is the customer allergic to?", expected_output="a sentence", agent=agent)
    crew = Crew(agents=[agent], tasks=[task], memory=memory, verbose=False)
    print("assistant:", crew.kickoff().raw)
    told = "The customer is allergic to peanuts."
    memory.remember(told, scope="/customers/7", categories=["health"], importance=0.9)
    memory.close()
    print("found in ALMA:", alma.journal.search(told, alma.scope(), limit=1).memories[0].content)
