"""Every rule of the redactor masks its example, and no prefilter hides a secret from its own rule."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import pytest

from alma.redaction.redactor import redact_text
from alma.redaction.rules import shipped_rules

DATA = tomllib.loads(files("alma.redaction").joinpath("rules.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("section", DATA)
def test_the_example_of_every_rule_is_masked(section: str) -> None:
    def left_in(entry: dict[str, Any]) -> bool:
        redacted = redact_text(f"Note: {entry['example']}" if section == "prefixed" else entry["example"])
        return not redacted.findings

    assert [entry["kind"] for entry in DATA[section] if left_in(entry)] == []


def test_every_rule_finds_its_own_example() -> None:
    rules = shipped_rules()
    for section, compiled in (("prefixed", rules.prefixed), ("words", rules.words), ("texts", rules.texts)):
        for entry, rule in zip(DATA[section], compiled.rules, strict=True):
            example = entry["example"]
            assert list(rule.spans(example)), (rule.kind, example)
            assert any(hint in example.lower() for hint in rule.hints), (rule.kind, example)
            if section == "prefixed":
                assert rules.prefix.search(example.lower())
