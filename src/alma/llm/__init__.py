"""Language models: the port and its providers, imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.llm.anthropic import AnthropicModel as AnthropicModel
    from alma.llm.azure import AzureOpenAIModel as AzureOpenAIModel
    from alma.llm.base import Completion as Completion
    from alma.llm.base import LanguageModel as LanguageModel
    from alma.llm.base import Message as Message
    from alma.llm.ollama import OllamaModel as OllamaModel
    from alma.llm.openai import OpenAIModel as OpenAIModel
    from alma.llm.scripted import ScriptedModel as ScriptedModel
    from alma.llm.structured import complete_json as complete_json

_HOME_OF = {
    "LanguageModel": "alma.llm.base",
    "Message": "alma.llm.base",
    "Completion": "alma.llm.base",
    "complete_json": "alma.llm.structured",
    "OpenAIModel": "alma.llm.openai",
    "AzureOpenAIModel": "alma.llm.azure",
    "AnthropicModel": "alma.llm.anthropic",
    "OllamaModel": "alma.llm.ollama",
    "ScriptedModel": "alma.llm.scripted",
    "create_language_model": "alma.bootstrap.providers",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
