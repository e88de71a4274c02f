"""Choosing what finds facts: the rules, or a language model with the rules behind it."""

from __future__ import annotations

from typing import Any

from alma.bootstrap.providers import create_language_model
from alma.errors import ConfigurationError, shown
from alma.extraction.facts import FactExtractor
from alma.extraction.model import LLMFactExtractor
from alma.extraction.rules import RuleBasedExtractor
from alma.judge.base import Judge
from alma.llm.base import LanguageModel

_PROVIDERS = ("openai", "azure", "anthropic", "ollama")
_CHOICES = ("auto", "rules", "llm", *_PROVIDERS)


def create_extractor(
    provider: str = "auto", llm: LanguageModel | None = None, judge: Judge | None = None, **options: Any
) -> FactExtractor:
    """The extractor with this name.

    * `rules`: no model.
    * `llm`: the given `llm`; if it does not answer, the rules do.
    * `openai`, `azure`, `anthropic`, `ollama`: the model of that provider; `options` are its constructor's.
    * `auto`: the given `llm` if there is one, else the rules.

    What they propose is taken if the `judge`, by default that of this process, finds that the conversation says it.
    """
    chosen = provider.strip().lower() if isinstance(provider, str) else provider
    if chosen not in _CHOICES:
        raise ConfigurationError(f"{shown(provider)} is no extractor; choose {', '.join(_CHOICES)}")
    if chosen in _PROVIDERS:
        llm = create_language_model(chosen, **options)
    elif options:
        raise ConfigurationError(f"the extractor {provider!r} has no option {', '.join(options)}")
    if chosen == "llm" and llm is None:
        raise ConfigurationError("the extractor 'llm' needs a language model: give llm=create_language_model(…)")
    if llm is None or chosen == "rules":
        return RuleBasedExtractor(judge)
    return LLMFactExtractor(llm, fallback=RuleBasedExtractor(judge), judge=judge)
