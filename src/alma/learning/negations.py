"""Negations: the words that turn what is said around, in English and in other common languages."""

from __future__ import annotations

import re
from typing import NamedTuple

from alma.learning.vocabulary import word_terms

_NEGATING_WORDS = """
never not no non nor dont didnt doesnt isnt arent wasnt werent hasnt havent hadnt cannot cant couldnt wont wouldnt
shouldnt mustnt neednt avoid avoided avoiding without stop stopped stopping skip skipped skipping refrain refraining
hardly rarely seldom unless except excluding disable disabled disabling forbid forbidden forbidding prohibit prohibited
prohibiting prevent prevented preventing disallow disallowed omit omitted omitting suppress suppressed suppressing forgo
abstain ban banned banning neither nothing nobody nowhere none
"""
WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
NEGATIONS = frozenset(_NEGATING_WORDS.split())
NEGATION_TERMS = frozenset(word_terms(" ".join(NEGATIONS)))
_NEGATING_SIGNS = re.compile("[❌🚫⛔👎✗✘✖🙅¬]|(?<![\\w!])!(?=[a-z(])")

# In these languages several words of negation in one sentence mostly negate once: никогда не, non … mai, nigdy nie.
_FOREIGN_WORDS = """
nicht kein keine keinen keinem keiner keines nie niemals vermeiden vermeide
jamais aucun aucune évite éviter évitez nunca jamás ningún ninguna ninguno evita evitar evite nessun nessuno
nessuna evitare não nenhum nenhuma niet geen nooit vermijd inte aldrig ikke aldri ingen
nigdy żaden unikaj nikdy не нет никогда ні ніколи немає избегать избегай değil asla sakın hayır
không đừng chưa tidak jangan bukan δεν δε μην μη όχι ποτέ älä nem soha niciodată
"""
# Never without is with: what is not there is told by a word of its own, beside the one that negates the sentence.
_WITHOUT_WORDS = "ohne senza zonder utan uten uden без tanpa χωρίς ilman nélkül fără"
_WITHOUT = frozenset(_WITHOUT_WORDS.split())
_WITHOUT_UNLESS_ENGLISH = frozenset(("sans", "sin", "sem", "bez"))
# So many of their words are words of English too that they count only in a text that has none of its function words.
_FOREIGN_UNLESS_ENGLISH = "pas mai ne nie ni nu ei ej ani yok"
_FOREIGN = frozenset(_FOREIGN_WORDS.split())
_AMBIGUOUS = frozenset(_FOREIGN_UNLESS_ENGLISH.split())
_ENGLISH_WORDS = "the and to with from when use using this that it be are if by"
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
# The others are words of those languages as well: non usare mai, no usar nunca.
_ENGLISH_ALONE = NEGATIONS - {"no", "non", "nor", "ban"}
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
# Scripts that write negation inside their words; what only looks like one is taken out before.
_NOT_NEGATING = re.compile(
    "なければなら(?:ない|ず|ません)|なくては(?:ならない|いけない)|ないといけない|少ない|危ない|"
    "不同|不断|不僅|不仅|不但|不管|不论|非常|未来|未來|无论|無論|别名|特别|特別|级别|識別|识别|区别|类别|分别|끊임없|상관없"
)
_WRITTEN_IN = re.compile(
    "[不没沒别勿无無未]|禁止|避免|避け|な(?:い|し|く|かった)|ません|ずに|せず|"
    "않|없|못|금지|마세요|마십시오|지 ?(?:마|말)|(?<!\\S)안(?!\\S)|안 ?(?:함|하|됨|되|돼|씀|쓰|한)|"
    "(?<!\\S)(?:لا|لم|لن|ليس|ليست|بدون|دون|عدم|تجنب|לא|אל|בלי|אין|नहीं|मत|न|ना|बिना|না|नको)(?!\\S)|ไม่|อย่า|ห้าม|"
    "(?:mayın|meyin|mıyor|miyor|muyor|müyor)\\b"
)
# Where another thing begins to be said, which is negated or not by itself.
_CLAUSE_ENDS = re.compile(r"[,;:\n]|[.!?](?=\s|$)|\b(?:and|but|then|so|or|nor)\b", re.IGNORECASE)
_ALTERNATIVES = frozenset(("or", "nor"))
# These tell under which conditions the other is done: never, unless.
_CONDITION = re.compile(r"\s*(?:unless|except|excluding|without)\b", re.IGNORECASE)


class Clause(NamedTuple):
    """A part of a text that says one thing, and whether it says not to do it."""

    text: str
    is_negated: bool


def negations(text: str, words: list[str]) -> int:
    """How often a text, whose words these are, turns around what it says."""
    said = [word.replace("'", "").replace("’", "") if not word.isalpha() else word for word in words]
    signs = len(_NEGATING_SIGNS.findall(text))
    is_english = not _ENGLISH.isdisjoint(said)
    missing = sum(word in _WITHOUT or (word in _WITHOUT_UNLESS_ENGLISH and not is_english) for word in said)
    negated = _negates_in_another_language(text, said, is_english)
    if missing or negated:
        return missing + negated + sum(word in _ENGLISH_ALONE for word in said) + signs
    return sum(word in NEGATIONS for word in said) + signs


def clauses(text: str) -> list[Clause]:
    """What a text says, one thing after the other."""
    found: list[Clause] = []
    for link, part in _parts(text):
        words = WORDS.findall(part.lower())
        if not words:
            continue
        is_negated = negations(part, words) % 2 == 1
        # Don't cache or retry is neither to cache nor to retry.
        carried = link in _ALTERNATIVES and bool(found) and found[-1].is_negated
        found.append(Clause(part, is_negated or carried))
    return found


def _parts(text: str) -> list[tuple[str, str]]:
    """The clauses of a text, each with what links it to the one before."""
    ends = list(_CLAUSE_ENDS.finditer(text))
    starts = [0, *(end.end() for end in ends)]
    links = ["", *(end.group().lower() for end in ends)]
    parts: list[tuple[str, str]] = []
    for link, start, stop in zip(links, starts, [*(end.start() for end in ends), len(text)], strict=True):
        part = text[start:stop]
        follows_condition = len(parts) == 1 and _CONDITION.match(parts[0][1])
        if parts and (_CONDITION.match(part) or follows_condition):
            parts[-1] = (parts[-1][0], f"{parts[-1][1]} {part}")
        else:
            parts.append((link, part))
    return parts


def _negates_in_another_language(text: str, words: list[str], is_english: bool) -> bool:
    if not _FOREIGN.isdisjoint(words) or not (is_english or _AMBIGUOUS.isdisjoint(words)):
        return True
    return _NON_ASCII.search(text) is not None and _WRITTEN_IN.search(_NOT_NEGATING.sub("", text.lower())) is not None
