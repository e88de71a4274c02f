"""Facts without secrets, before they are compared with what is stored, learned or told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alma.extraction.facts import ExtractedFact, Refusal
from alma.redaction.redactor import Redactor, masking

TEXTS = ("content", "task", "strategy", "reason", "alternative", "category", "corrects", "supersedes")
"""What a fact says, beside the words it was read from."""


def clean_fact(fact: ExtractedFact, redactor: Redactor | None) -> ExtractedFact:
    """The fact with every secret masked, and what was masked; where its evidence stands is as it was."""
    if redactor is None:
        return fact
    told = {name: redactor.redact(text, name) for name in TEXTS if (text := getattr(fact, name))}
    quoted = redactor.redact(fact.evidence.text)
    found = {**told, "evidence": quoted}
    now = (f"{name}: {each.kind}" for name, clean in found.items() for each in clean.findings)
    masked = dict.fromkeys((*fact.masked, *now))
    if not masked:
        return fact
    changes: dict[str, Any] = {name: clean.text for name, clean in told.items()}
    return replace(fact, evidence=replace(fact.evidence, text=quoted.text), masked=tuple(masked), **changes)


def clean_refusal(refusal: Refusal, redactor: Redactor | None) -> Refusal:
    """The refusal with every secret masked."""
    mask = masking(redactor)
    return Refusal(mask(refusal.proposal), mask(refusal.reason))
