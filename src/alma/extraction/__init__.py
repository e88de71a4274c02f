"""Extract facts from conversations and learn them; modules are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.extraction.auto_learner import AutoLearner as AutoLearner
    from alma.extraction.facts import ExtractedFact as ExtractedFact
    from alma.extraction.facts import ExtractionResult as ExtractionResult
    from alma.extraction.facts import FactExtractor as FactExtractor
    from alma.extraction.facts import FactType as FactType
    from alma.extraction.model import LLMFactExtractor as LLMFactExtractor
    from alma.extraction.model import create_extractor as create_extractor
    from alma.extraction.rules import RuleBasedExtractor as RuleBasedExtractor

_HOME_OF = {
    "FactType": "alma.extraction.facts",
    "ExtractedFact": "alma.extraction.facts",
    "ExtractionResult": "alma.extraction.facts",
    "FactExtractor": "alma.extraction.facts",
    "RuleBasedExtractor": "alma.extraction.rules",
    "LLMFactExtractor": "alma.extraction.model",
    "AutoLearner": "alma.extraction.auto_learner",
    "create_extractor": "alma.extraction.model",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
