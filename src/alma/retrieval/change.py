"""Change: what tells that something is no longer as it was, and what asks how it was."""

from __future__ import annotations

import re
from functools import lru_cache

from alma.model.text import terms
from alma.retrieval.spoken import looks_back

_CHANGED = re.compile(
    r"\b(?:now|nowadays|these days|no longer|any ?more|instead|from now on|as of|effective|since|"
    r"became|become|becomes|grew|shrank|left|quit|retired|resigned|took over|taken over|went to|gone to|"
    r"handed (?:over|off|on)|rewritten|rebuilt|ported|"
    r"new|(?:mov|chang|replac|rais|increas|decreas|reduc|doubl|halv|renam|migrat|relocat|rescheduled?|updat|upgrad|"
    r"downgrad|postpon|cancell?|switch|lower|extend|shorten|transferr|promot|deprecat|clos|dropp?|stopp|start|convert|"
    r"swapp|expand|revers|deactivat|discontinu|join|succeed|correct|slipp|delay|deferr|shift|reassign|revis|adjust|"
    r"trimm|slash|rebrand)ed)\b",
    re.IGNORECASE,
)
# In the past tense: what is kept in the old shed is asked of now. And who counts, wants to know of all.
_FORMER = re.compile(
    r"(?=.*\b(?:did|was|were|had)\b)"
    r"(?=.*\b(?:before|previous|previously|former|formerly|the old|used to|back then|at first)\b)"
    r"(?!.*\b(?:current|currently|now|how (?:many|much|long|often)|(?:conversation|chat|discussion|talk)s?)\b)",
    re.IGNORECASE | re.DOTALL,
)
# "Where does Anna live?", "Which version do we run in production?": the verb says what is asked of a thing.
# In small letters, and no bed or shed: neither Fred nor where a thing is, says what is done.
_PARTICIPLE = (
    r"(?-i:(?!\w*eed\b|shed\b|bed\b|red\b)[a-z]+ed|said|told|made|left|found|sent|met|bought|built|held|kept|lost|paid|"
    r"spent|taught|thought|set|cut|put|run|written|driven|given|taken|known|shown|worn|drawn|hung|led|sold|spoken|grown)"
)
_WITH = r"(?:with|from|in|on|at|for|to|by|of|about|like|under|into|as)\b"
_AUXILIARY = r"(?:is|are|was|were|has|have|had|do|does|did|can|could|will|would|should|must)\b"
_VERBS = (
    re.compile(rf"\b(?:do|does|did) (?:[\w'-]+ ){{1,5}}(?!{_WITH})(?P<verb>[a-z]+)(?: {_WITH})?\W*$", re.IGNORECASE),
    re.compile(r"\b(?:do|does|did) (?:i|we|you|they|he|she|it) (?P<verb>[a-z]+)\b", re.IGNORECASE),
    re.compile(rf"\b(?:is|are) (?:[\w'-]+ ){{1,6}}(?P<verb>{_PARTICIPLE})(?: {_WITH})?\W*$", re.IGNORECASE),
    re.compile(r"^\W*who is (?:in )?(?P<verb>responsible|charge) (?:for|of)\b", re.IGNORECASE),
    re.compile(rf"^\W*who (?!{_AUXILIARY})(?P<verb>[a-z]+s) \w", re.IGNORECASE),
    re.compile(rf"^\W*(?:which|what) \w+ (?!{_AUXILIARY})(?P<verb>[a-z]+[^\Ws]s) (?!{_AUXILIARY})\w", re.IGNORECASE),
)
_WILL_BE = re.compile(
    r"\b(?:will|shall|won['’]t|going to|\w+['’]ll|upcoming|tomorrow|in (?:the )?future|next \w+)\b", re.IGNORECASE
)
# "Where are orders stored?", "What is it made of?" ask how it is.
_PASSIVE = re.compile(rf"\b(?:is|are|am|being|gets?)(?P<between>(?: [\w'-]+){{0,5}}) {_PARTICIPLE}\b", re.IGNORECASE)
READ = 500
"""How much of a text is looked at: in a longer one a word of change is one of many."""


def tells_change(text: str) -> bool:
    """Whether a text says that something is not as it was before."""
    return _CHANGED.search(text[:READ]) is not None


@lru_cache(maxsize=16)
def asks_for_former(question: str) -> bool:
    """Whether a question wants to know how things were before they changed."""
    return _FORMER.match(question[:READ]) is not None


@lru_cache(maxsize=16)
def asks_what_will_be(question: str) -> bool:
    """Whether it is asked how things will be, not how they are."""
    return _WILL_BE.search(question[:READ]) is not None


@lru_cache(maxsize=16)
def asks_what_happened(question: str) -> bool:
    """Whether a question speaks of the past: what was done once is not undone by what was done later."""
    return looks_back(_PASSIVE.sub(r"is\g<between>", question[:READ]).lower())


@lru_cache(maxsize=16)
def asked_verbs(question: str) -> frozenset[str]:
    """The terms of a question that say what is asked of its subject, as far as its form tells."""
    found = (verb.search(question[:READ]) for verb in _VERBS)
    return frozenset(term for match in found if match is not None for term in terms(match["verb"]))
