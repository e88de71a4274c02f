"""Language models: the port and its providers, imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.llm.anthropic import AnthropicModel as AnthropicModel
    from alma.llm.base import Completion as Completion
    from alma.llm.base import LanguageModel as LanguageModel
    from alma.llm.base import Message as Message
    from alma.llm.base import ScriptedModel as ScriptedModel
    from alma.llm.base import complete_json as complete_json
    from alma.llm.ollama import OllamaModel as OllamaModel
    from alma.llm.openai import AzureOpenAIModel as AzureOpenAIModel
    from alma.llm.openai import GroqModel as GroqModel
    from alma.llm.openai import OpenAIModel as OpenAIModel

_HOME_OF = {
    "LanguageModel": "alma.llm.base",
    "Message": "alma.llm.base",
    "Completion": "alma.llm.base",
    "complete_json": "alma.llm.base",
    "OpenAIModel": "alma.llm.openai",
    "AzureOpenAIModel": "alma.llm.openai",
    "AnthropicModel": "alma.llm.anthropic",
    "GroqModel": "alma.llm.openai",
    "OllamaModel": "alma.llm.ollama",
    "ScriptedModel": "alma.llm.base",
    "create_language_model": "alma.bootstrap.providers",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
