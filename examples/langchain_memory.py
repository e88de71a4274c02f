"""A chain of LangChain that remembers its conversation in ALMA; run it twice. Its model is scripted: no key."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

from alma import ALMA
from alma.integration.langchain import ALMAChatMessageHistory, ALMARetriever


def scripted(messages: list[BaseMessage]) -> AIMessage:
    """Say what the user asked before."""
    asked = [message.content for message in messages if message.type == "human"]
    return AIMessage(f"You asked before: {asked[-2]}" if len(asked) > 1 else "(no earlier question)")


with ALMA.quickstart(project_id="shop") as memory:
    history = ALMAChatMessageHistory("customer-7", memory)
    asked = HumanMessage("Where is my order?")
    answer = RunnableLambda(scripted).invoke([*history.messages, asked])
    history.add_messages([asked, answer])
    print("assistant:", answer.content)
    found = ALMARetriever(memory, k=1).invoke("questions about orders")
    print("found in ALMA:", found[0].page_content)
