"""Wiring of models: which class asks which language model, and what judges texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from alma.bootstrap.makers import azure_account, openai_account
from alma.errors import ConfigurationError, shown
from alma.fitting import made

if TYPE_CHECKING:
    from alma.config.settings import Settings
    from alma.judge.base import Judge
    from alma.llm.base import LanguageModel
    from alma.redaction.redactor import Redactor

Made = TypeVar("Made")
Maker = Callable[[str, Mapping[str, Any]], Made]


def create_language_model(provider: str, **options: Any) -> LanguageModel:
    """The language model of this provider: openai, azure, anthropic or ollama; `options` are its constructor's.

    Keys and the Azure endpoint that are not given come from the environment.
    """
    return chosen(_MODELS, provider, "provider of language models", options)


def language_model_of(settings: Settings) -> LanguageModel | None:
    """The language model that a configuration describes, if it describes one."""
    if settings.llm is None:
        return None
    options = settings.llm.model_dump(exclude={"provider"}, exclude_none=True)
    try:
        return create_language_model(settings.llm.provider.value, **options)
    except ConfigurationError as exc:
        raise ConfigurationError(f"llm.provider is {settings.llm.provider.value}: {exc}") from exc


def judge_of(settings: Settings, llm: LanguageModel | None, redactor: Redactor | None) -> Judge:
    """What judges texts, as a configuration says; the language model reads nothing the redactor finds a secret in."""
    from alma.judge import LLMJudge, StrictJudge, default_judge

    match settings.judge:
        case "strict":
            return StrictJudge()
        case "local":
            return default_judge()
        case "llm" if llm is not None:
            return LLMJudge(llm, redactor=redactor)
        case _:
            raise ConfigurationError("judge is llm, but llm.provider is missing; add it, or choose local or strict")


def chosen(makers: Mapping[str, Maker[Made]], name: str, what: str, options: Mapping[str, Any]) -> Made:
    """What the maker of this name makes of the options."""
    make = makers.get(name.strip().lower()) if isinstance(name, str) else None
    if make is None:
        raise ConfigurationError(f"{shown(name)} is no {what}; choose {', '.join(makers)}")
    return make(f"the {what} {name!r}", options)


def _openai_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.openai import OpenAIModel

    return made(OpenAIModel, what, {**openai_account(), **options})


def _azure_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.azure import AzureOpenAIModel

    return made(AzureOpenAIModel, what, {**azure_account(), **options})


def _anthropic_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.anthropic import AnthropicModel

    return made(AnthropicModel, what, {"api_key": os.environ.get("ANTHROPIC_API_KEY", ""), **options})


def _ollama_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.ollama import OllamaModel

    return made(OllamaModel, what, options)


_MODELS: dict[str, Maker[LanguageModel]] = {
    "openai": _openai_model,
    "azure": _azure_model,
    "anthropic": _anthropic_model,
    "ollama": _ollama_model,
}
