"""Claude's memory tool with ALMA below; run it twice. The calls of the model are scripted: no key."""

from anthropic.tools import ToolError

from alma import ALMA
from alma.integration.anthropic_memory import ALMAMemoryTool

with ALMA.quickstart(project_id="shop") as memory:
    tool = ALMAMemoryTool(memory, agent="claude")
    # With a model: Anthropic().beta.messages.run_tools(tools=[tool], ...)
    try:
        print(tool.call({"command": "view", "path": "/memories/customers/ana.md"}))
    except ToolError as error:
        print(error)
        text = "Ana is allergic to peanuts.\n"
        print(tool.call({"command": "create", "path": "/memories/customers/ana.md", "file_text": text}))
    print("found in ALMA:", memory.journal.search("Who has allergies?", memory.scope(), limit=1).memories[0].content)
