"""A graph of LangGraph that remembers facts and conversations in ALMA; run it twice. It needs no language model."""

from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from alma import ALMA
from alma.integration.langgraph_checkpoint import ALMASaver
from alma.integration.langgraph_store import ALMAStore


def answer(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
    """Say what is known that answers the user's last message, and keep the message."""
    assert runtime.store is not None
    said = str(state["messages"][-1].content)
    known = runtime.store.search(("customers", "7"), query=said, limit=1)
    runtime.store.put(("customers", "7"), "last", {"text": said})
    return {"messages": [("ai", known[0].value["text"] if known else "nothing")]}


with ALMA.quickstart(project_id="shop") as memory:
    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
    app = graph.compile(store=ALMAStore(memory), checkpointer=ALMASaver(memory))
    thread: Any = {"configurable": {"thread_id": "customer-7"}}
    state = app.invoke({"messages": [("user", "I am allergic to peanuts.")]}, thread)
    print("messages in the thread:", len(state["messages"]))
    print("before:", state["messages"][-1].content)
    print("found in ALMA:", memory.journal.search("allergies", memory.scope(), limit=1).memories[0].content)
