"""Wordings: one word for what can be said in several, before texts are compared."""

from __future__ import annotations

import re

from alma.learning.spelling import counted, spelled

# What can only be read cannot be written, whatever stands on the other side of the hyphen.
_ONE_WORD = re.compile(r"\b(\w+)-(only|write)\b", re.IGNORECASE)
# Turn the flag off, but not: turn the page on the left.
_TURNED = r"\b(?:turn|switch)(?:ed|es|s|ing)? ((?:(?!off\b|on\b)[\w'-]+ ){1,5})"
_NO_OBJECT = r"\b(?=$|[.,;:!?)]| (?:and|or|for|when|if|before|after|while|during|until|unless|once|again|first|then)\b)"
# Where somebody begins to judge; from wrong to right is no judgement.
_IT_IS = r"(?:\b(?:it|that)(?:['’]s| is| was| would be| seems) |(?:^|(?<=[.;!?] )))"
_GOOD = r"(?:an? )?(?:good|great) (?:idea|practice|habit)"
_BAD = (
    r"(?:an? )?(?:(?:very|really|usually) )?(?:bad (?:idea|practice|habit)|mistake|waste of time|wrong|harmful|"
    r"dangerous|unwise|pointless|useless|counterproductive|discouraged)"
)
_IS = r"(?:is|was|are|were)"
# A judgement of all that is said, and not of what it is done to: fix the label that is wrong.
_WHOLE = r"^((?:(?!\b(?:when|if|where|that|which|who|unless|because|until|while|as)\b)[^.,;:!?])+) "
_SAID_IN_ONE_WORD = (
    (re.compile(r"\b(?:turn|switch)(?:ed|es|s|ing)? off\b", re.IGNORECASE), "disable"),
    (re.compile(r"\b(?:turn|switch)(?:ed|es|s|ing)? on\b", re.IGNORECASE), "enable"),
    (re.compile(rf"{_TURNED}off{_NO_OBJECT}", re.IGNORECASE), r"disable \1"),
    (re.compile(rf"{_TURNED}on{_NO_OBJECT}", re.IGNORECASE), r"enable \1"),
    (re.compile(r"\b(?:try|tries|tried|trying) again\b", re.IGNORECASE), "retry"),
    (re.compile(r"\b(?:look|looked|looking) for\b", re.IGNORECASE), "search for"),
    (re.compile(r"\b(?:in all places|in every place)\b", re.IGNORECASE), "everywhere"),
    (re.compile(r"\b(everything|everyone|all|anything) but\b", re.IGNORECASE), r"\1 except"),
    (re.compile(r"\bnothing (?:but|except|other than)\b", re.IGNORECASE), "only"),
    (re.compile(r"\btogether with\b", re.IGNORECASE), "with"),
    (re.compile(r"\b((?:all|everything|both)\b[^,.;]{0,30}?) at once\b", re.IGNORECASE), r"\1 together"),
    (re.compile(r"\ba single\b", re.IGNORECASE), "one"),
    (re.compile(r"\bback(?:ed|ing|s)? up\b", re.IGNORECASE), "backup"),
    (re.compile(r"\b(few|zero|one|multi)[- ]shot\b", re.IGNORECASE), r"\1shot"),
    (re.compile(r"\bregular expressions?\b", re.IGNORECASE), "regex"),
    (re.compile(r"\bpull requests?\b", re.IGNORECASE), "pr"),
    (re.compile(r"\b(?:make|makes|made|making|be) (?:sure|certain)\b", re.IGNORECASE), "ensure"),
    (re.compile(r"\bset(?:s|ting)? up\b", re.IGNORECASE), "configure"),
    # After each row is again and again, after all rows once.
    (re.compile(r"\bafter (?:each|every)\b(?: single)?", re.IGNORECASE), "after repeatedly"),
    (re.compile(r"\b(?:fewer) than\b", re.IGNORECASE), "less than"),
    # What is a bad idea is not to be done, and a good one is only praised.
    (re.compile(rf"{_IT_IS}{_GOOD}(?: to\b|:)", re.IGNORECASE), ""),
    (re.compile(rf"{_IT_IS}{_BAD}(?: to\b|:)", re.IGNORECASE), "not"),
    (re.compile(rf"{_WHOLE}{_IS} {_GOOD}[.!]*$", re.IGNORECASE), r"\1"),
    (re.compile(rf"{_WHOLE}{_IS} {_BAD}[.!]*$", re.IGNORECASE), r"not \1"),
    # Whoever declines to answer does not answer, and who quits caching does not cache.
    (re.compile(r"\b(?:quit|quits|quitting|ceas\w+|discontinu\w+|g[ai]ve up)\s+(?=\w+ing\b)", re.IGNORECASE), "not "),
    (
        re.compile(
            r"\b(?:refus|declin|neglect|fail|forget|ceas|omit)(?:e|es|ed|s|ing|ting|ted)?\s+to\b", re.IGNORECASE
        ),
        "not",
    ),
)
# Without one of these words there is nothing of that, which is quickly seen.
_FIRST_WORDS = """
off on up shot once single regular pull sure certain quit quits quitting ceasing discontinue discontinued idea
practice habit mistake waste wrong harmful dangerous unwise pointless useless counterproductive discouraged again for
place places but nothing together fewer each every refuse refuses refused refusing decline declines declined declining
neglect neglects neglected fail fails failed failing forget forgets forgetting cease ceases ceased omit omits omitted
omitting
"""
_SAID_IN_SEVERAL = frozenset(_FIRST_WORDS.split())
_LETTERS = re.compile("[a-z]+")


def worded(text: str) -> str:
    """The text in one spelling, with one word for what can be said in several."""
    plain = counted(spelled(text))
    if "-" in plain:
        plain = _ONE_WORD.sub(r"\1\2", plain)
    if not _SAID_IN_SEVERAL.isdisjoint(_LETTERS.findall(plain.lower())):
        for pattern, word in _SAID_IN_ONE_WORD:
            plain = pattern.sub(word, plain)
    return plain
