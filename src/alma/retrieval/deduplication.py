"""Deduplication: a text is returned once, and its copies do not keep other memories from being found."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from alma.model.query import And, Compare, In, Missing, Or, Predicate
from alma.model.record import Record
from alma.retrieval.explain import DropReason
from alma.retrieval.reranking import Statement
from alma.retrieval.router import Target
from alma.retrieval.scoring import ScoredRecord
from alma.retrieval.tuning import TUNING
from alma.text.tokens import terms

# Two records with equal texts are still different if these fields differ.
_DISTINGUISHING = ("success",)
_BELOW_ZERO = re.compile(r"(?<![\w.])-\d+")
_JOINTS = re.compile(r"(?<=\w)[./:\\@](?=\w)")

DUPLICATE = "repetition"
"""The stage at which a memory is dropped that says the same as a better one."""


@dataclass(slots=True)
class Duplicates:
    """Texts with so many copies that too little else was read: one record of each, and one of each spelling."""

    originals: list[Record] = field(default_factory=list)
    spellings: list[Record] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.spellings)

    def add(self, other: Duplicates) -> None:
        self.originals += other.originals
        self.spellings += other.spellings


def deduplicated(
    best_first: Sequence[ScoredRecord], statements: Sequence[Statement], dropped: dict[str, DropReason]
) -> list[ScoredRecord]:
    """The records without those that say the same as a better one; exact copies are found whatever their rank."""
    compared = {each.scored.key: each for each in statements}
    kept: list[ScoredRecord] = []
    originals: dict[object, str] = {}
    by_voice: dict[str, list[Statement]] = defaultdict(list)
    for scored in best_first:
        exact = _exact(scored)
        own = compared.get(scored.key)
        others = by_voice[own.voice] if own is not None else []
        same = originals.get(exact)
        if same is None and own is not None:
            same = next((other.scored.key for other in others if say_the_same(own, other)), None)
        if same is not None:
            reason = DropReason(DUPLICATE, "it says the same as {}, which stands before it", (same,))
            dropped.setdefault(scored.key, reason)
            continue
        if exact is not None:
            originals[exact] = scored.key
        if own is not None:
            others.append(own)
        kept.append(scored)
    return kept


def say_the_same(one: Statement, other: Statement) -> bool:
    """Whether two texts have the same words in the same order, and the same signs.

    One word of a hundred may be a number, a name or a *not*.
    """
    if one.voice != other.voice or one.result != other.result or not one.terms or one.terms != other.terms:
        return False
    return _signs(one.text) == _signs(other.text) and terms(one.text) == terms(other.text)


def duplicates_of(scored: Sequence[ScoredRecord], dropped: dict[str, DropReason], most: int) -> Duplicates:
    """The texts with copies, if there are more than `most` copies."""
    reasons = {each.key: dropped.get(each.key) for each in scored}
    originals = {
        key: reason.facts[0] for key, reason in reasons.items() if reason is not None and reason.stage == DUPLICATE
    }
    if len(originals) <= most:
        return Duplicates()
    copied = set(originals.values())
    spellings = {each.record.text(): each.record for each in scored if each.key in originals.keys() | copied}
    return Duplicates([each.record for each in scored if each.key in copied], list(spellings.values()))


def without(targets: Sequence[Target], duplicates: Duplicates) -> list[Target]:
    """The same targets without the copies of these texts."""
    return [_without(target, duplicates) for target in targets]


def _without(target: Target, duplicates: Duplicates) -> Target:
    spellings = [each for each in duplicates.spellings if isinstance(each, target.cls)]
    if not spellings or not target.searched:
        return target
    originals = In(target.cls.spec.key, [each.key for each in duplicates.originals])
    others = And(*(Or(*_differences(each)) for each in spellings))
    return replace(target, where=And(target.where, Or(originals, others)), selective=True)


def _differences(record: Record) -> Iterator[Predicate]:
    """Predicates of which every record fulfils one that is not a copy of this one."""
    spec = record.spec
    for name in (*spec.text, *(name for name in _DISTINGUISHING if name in spec.by_name)):
        value = getattr(record, name)
        if value is None or value == "":
            yield Compare(name, "ne", "")
        else:
            yield Compare(name, "ne", value)
            yield Missing(name)


def _exact(scored: ScoredRecord) -> tuple[str, bool | None, str] | None:
    """What exact copies have in common; None for a text that is too long to be left out."""
    text = scored.record.text()
    if len(text) > TUNING.longest_statement:
        return None
    voice = getattr(scored.record, "title", "").partition("(")[0]
    return voice, getattr(scored.record, "success", None), text


def _signs(text: str) -> list[str]:
    """The signs that change a meaning: comparisons, currencies, arrows, emoji, negative numbers, joints of names."""
    signs = (sign for sign in text if unicodedata.category(sign) in ("Sc", "Sm", "So"))
    return [*signs, *_BELOW_ZERO.findall(text), *_JOINTS.findall(text)]
