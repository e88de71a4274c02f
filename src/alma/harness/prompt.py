"""The prompt of a run: who acts, with what, under which rules, on which task, knowing what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from alma.harness.base import Agent, Context, Setting, Tool
from alma.model.prompt import as_data
from alma.text.invisible import visible

# Also behind characters that end a line for some readers and not for others.
_HEADING = re.compile(r"(^|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])(?=[^\S\n]*#)")


def written_prompt(setting: Setting, agent: Agent, context: Context, knowledge: str) -> str:
    """The prompt as text; `knowledge` is what memory has to say, and may be empty."""
    constraints = (*setting.constraints, *context.constraints)
    sections = (
        ("Your Role", _role(agent)),
        ("Environment", visible(setting.description)),
        ("Tools", "\n".join(line for tool in setting.tools for line in _tool_lines(tool))),
        ("Constraints", _listed(constraints)),
        ("Your Task", _told(context.task)),
        ("Strategy to Follow", _told(context.strategy or "")),
        ("Inputs", "\n".join(_input_lines(context.inputs))),
    )
    parts = [f"## {heading}\n{text}" for heading, text in sections if text.strip()]
    if knowledge:
        parts.append(f"# Knowledge from Past Runs\n\n{knowledge}")
    return "\n\n".join(parts)


def _told(text: str) -> str:
    """What the run is told to do, as it was written, but without headings: those are the prompt's own."""
    return _HEADING.sub(r"\1│ ", visible(text).strip())


def _role(agent: Agent) -> str:
    named = f"You are {agent.name}, {agent.role}." if agent.role else f"You are {agent.name}."
    return visible(f"{named}\n{agent.description}").strip()


def _tool_lines(tool: Tool) -> Iterator[str]:
    what = f": {as_data(tool.description)}" if tool.description else ""
    yield f"- {as_data(tool.name)} ({tool.tool_type}){what}"
    for constraint in tool.constraints:
        yield f"  - {as_data(constraint)}"


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {as_data(text)}" for text in dict.fromkeys(texts))


def _input_lines(inputs: Mapping[str, Any]) -> Iterator[str]:
    for name, value in inputs.items():
        yield f"- {as_data(name)}: {as_data(_text(value))}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(value)
