"""Without the package of a framework, its adapter says which extra to install, as the client of a service does."""

from __future__ import annotations

import subprocess
import sys

BLOCKED = """
import importlib, sys
for module, package in {cases!r}:
    sys.modules[package] = None
    try:
        importlib.import_module(f"alma.{{module}}")
    except Exception as exc:
        print(type(exc).__name__, exc)
"""


CASES = [
    (
        "integration.openai_agents",
        "agents",
        "openai-agents is not installed: run  pip install 'alma-agent-memory[openai-agents]'",
    ),
    (
        "integration.claude_agent_sdk",
        "claude_agent_sdk",
        "claude-agent-sdk is not installed: run  pip install 'alma-agent-memory[claude-agent-sdk]'",
    ),
    (
        "integration.anthropic_memory",
        "anthropic.tools",
        "anthropic is not installed: run  pip install 'alma-agent-memory[anthropic]'",
    ),
    (
        "integration.langgraph_store",
        "langgraph.store.base",
        "langgraph-checkpoint is not installed: run  pip install 'alma-agent-memory[langgraph]'",
    ),
    (
        "integration.langgraph_checkpoint",
        "langgraph.checkpoint.base",
        "langgraph-checkpoint is not installed: run  pip install 'alma-agent-memory[langgraph]'",
    ),
    (
        "integration.langchain",
        "langchain_core",
        "langchain-core is not installed: run  pip install 'alma-agent-memory[langchain]'",
    ),
    (
        "integration.pydantic_ai",
        "pydantic_ai",
        "pydantic-ai is not installed: run  pip install 'alma-agent-memory[pydantic-ai]'",
    ),
    (
        "integration.llama_index",
        "llama_index",
        "llama-index-core is not installed: run  pip install 'alma-agent-memory[llama-index]'",
    ),
    (
        "integration.crewai",
        "crewai",
        "crewai is not installed: run  pip install 'alma-agent-memory[crewai]'",
    ),
    (
        "integration.google_adk",
        "google.adk",
        "google-adk is not installed: run  pip install 'alma-agent-memory[google-adk]'",
    ),
    (
        "integration.autogen",
        "autogen_core",
        "autogen-core is not installed: run  pip install 'alma-agent-memory[autogen]'",
    ),
    (
        "integration.agent_framework",
        "agent_framework",
        "agent-framework-core is not installed: run  pip install 'alma-agent-memory[agent-framework]'",
    ),
    (
        "integration.strands",
        "strands",
        "strands-agents is not installed: run  pip install 'alma-agent-memory[strands]'",
    ),
    (
        "client",
        "httpx",
        "httpx is not installed: run  pip install 'alma-agent-memory[client]'",
    ),
]


def test_a_missing_package_is_one_sentence_that_names_the_extra() -> None:
    code = BLOCKED.format(cases=[case[:2] for case in CASES])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [f"MissingDependencyError {sentence}" for _, _, sentence in CASES]
