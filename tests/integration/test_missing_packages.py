"""Without the package of a framework, its adapter says which extra to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = """
import sys
sys.modules[{package!r}] = None
try:
    import alma.integration.{module}
except Exception as exc:
    print(type(exc).__name__, exc)
"""


@pytest.mark.parametrize(
    ("module", "package", "sentence"),
    [
        (
            "openai_agents",
            "agents",
            "openai-agents is not installed: run  pip install 'alma-memory[openai-agents]'",
        ),
        (
            "claude_agent_sdk",
            "claude_agent_sdk",
            "claude-agent-sdk is not installed: run  pip install 'alma-memory[claude-agent-sdk]'",
        ),
        (
            "anthropic_memory",
            "anthropic.tools",
            "anthropic is not installed: run  pip install 'alma-memory[anthropic]'",
        ),
        (
            "langgraph_store",
            "langgraph.store.base",
            "langgraph-checkpoint is not installed: run  pip install 'alma-memory[langgraph]'",
        ),
        (
            "langgraph_checkpoint",
            "langgraph.checkpoint.base",
            "langgraph-checkpoint is not installed: run  pip install 'alma-memory[langgraph]'",
        ),
        (
            "langchain",
            "langchain_core",
            "langchain-core is not installed: run  pip install 'alma-memory[langchain]'",
        ),
    ],
)
def test_a_missing_package_is_one_sentence_that_names_the_extra(module: str, package: str, sentence: str) -> None:
    code = BLOCKED.format(package=package, module=module)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"MissingDependencyError {sentence}\n"
