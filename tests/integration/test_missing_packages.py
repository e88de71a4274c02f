"""Without the package of a framework, its adapter says which extra to install."""

from __future__ import annotations

import subprocess
import sys

BLOCKED = """
import importlib, sys
for module, package in {cases!r}:
    sys.modules[package] = None
    try:
        importlib.import_module(f"alma.integration.{{module}}")
    except Exception as exc:
        print(type(exc).__name__, exc)
"""


CASES = [
    (
        "openai_agents",
        "agents",
        "openai-agents is not installed: run  pip install 'alma-agent-memory[openai-agents]'",
    ),
    (
        "claude_agent_sdk",
        "claude_agent_sdk",
        "claude-agent-sdk is not installed: run  pip install 'alma-agent-memory[claude-agent-sdk]'",
    ),
    (
        "anthropic_memory",
        "anthropic.tools",
        "anthropic is not installed: run  pip install 'alma-agent-memory[anthropic]'",
    ),
    (
        "langgraph_store",
        "langgraph.store.base",
        "langgraph-checkpoint is not installed: run  pip install 'alma-agent-memory[langgraph]'",
    ),
    (
        "langgraph_checkpoint",
        "langgraph.checkpoint.base",
        "langgraph-checkpoint is not installed: run  pip install 'alma-agent-memory[langgraph]'",
    ),
    (
        "langchain",
        "langchain_core",
        "langchain-core is not installed: run  pip install 'alma-agent-memory[langchain]'",
    ),
    (
        "pydantic_ai",
        "pydantic_ai",
        "pydantic-ai is not installed: run  pip install 'alma-agent-memory[pydantic-ai]'",
    ),
    (
        "llama_index",
        "llama_index",
        "llama-index-core is not installed: run  pip install 'alma-agent-memory[llama-index]'",
    ),
    (
        "crewai",
        "crewai",
        "crewai is not installed: run  pip install 'alma-agent-memory[crewai]'",
    ),
    (
        "google_adk",
        "google.adk",
        "google-adk is not installed: run  pip install 'alma-agent-memory[google-adk]'",
    ),
    (
        "autogen",
        "autogen_core",
        "autogen-core is not installed: run  pip install 'alma-agent-memory[autogen]'",
    ),
    (
        "agent_framework",
        "agent_framework",
        "agent-framework-core is not installed: run  pip install 'alma-agent-memory[agent-framework]'",
    ),
    (
        "strands",
        "strands",
        "strands-agents is not installed: run  pip install 'alma-agent-memory[strands]'",
    ),
]


def test_a_missing_package_is_one_sentence_that_names_the_extra() -> None:
    code = BLOCKED.format(cases=[case[:2] for case in CASES])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [f"MissingDependencyError {sentence}" for _, _, sentence in CASES]
