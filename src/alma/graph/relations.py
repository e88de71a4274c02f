"""Reading from the words between two names how they stand to each other, by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alma.graph import lexicon as lx
from alma.graph.mentions import Mention

_FILLERS = 4
_NEAR = 300
_TITLES = ("Dr", "Mr", "Ms", "Mrs", "Prof", "St")
_ADDRESS = rf"(?:{'|'.join(_TITLES)})\."
_NO_END = "".join(rf"(?<!\b{title}\.)" for title in _TITLES)
_SENTENCE_END = re.compile(rf"(?<=[.!?]){_NO_END}\s+(?=[A-ZÀ-ÞÀ-Ö\"“(@#`])|\n+")
_UNREAL = re.compile(
    r"\b(?:not|never|n't|cannot|should|could|would|might|may|must|can|will|shall|if|unless|whether|wish|"
    r"please)\b|n['’]t\b",
    re.IGNORECASE,
)
_AND = re.compile(rf"(?:,?\s*(?:and|or|&|as well as)|,|/)(?:\s+(?:the|a|an|his|her|our|my|{_ADDRESS}))?", re.IGNORECASE)
_ATTACHED = re.compile(r"\(?\s*,?\s*(from|at|of|with)(?:\s+the)?", re.IGNORECASE)
_IN_ROLE = re.compile(r",?\s*(?:\(|the |a |an |our )?([\w -]{2,40}?)\s+(?:at|of|for|from)(?:\s+the)?", re.IGNORECASE)
_ROLE_NAMES = re.compile(rf"\b(?:{lx.TITLES})\b", re.IGNORECASE)
_IS_A = re.compile(r"^(?:(?:is|was|are|were|the|a|an|our|currently|now)\s+)+", re.IGNORECASE)
_DOING = re.compile(r"\b(?:for|at|with|by|to|and|works?|worked|met|joined|hired|left)\b", re.IGNORECASE)
# What was paid does not change who did what.
_PAID = re.compile(r"\s[$€£]\s?\d[\d.,]*\s?(?:thousand|million|billion|bn|[km])?\b", re.IGNORECASE)
# What a sentence begins with when it only supposes what it says.
_SUPPOSED = re.compile(
    r"\b(?:if|unless|whether|suppose|supposing|assume|assuming|imagine|maybe|perhaps|hopefully|wish)\b", re.IGNORECASE
)
# The CEO of Tesla, Elon Musk, …: who is meant comes second.
_ROLE_OF = re.compile(
    rf"\b([\w -]{{0,30}}?{_ROLE_NAMES.pattern}(?:\s+of\s+\w+)?)\s+(?:of|at)\s+(?:the\s+)?$", re.IGNORECASE
)
_HEADS = re.compile(
    r"(?:is|was|became)\s+(?:now\s+)?(?:the|a)\s+(?:\w+\s+)?(?:manager|boss|supervisor|team lead|head)\s+of(?:\s+the)?",
    re.IGNORECASE,
)
_HEADED_BY = re.compile(r"s\s+(?:\w+\s+)?(?:manager|boss|supervisor|team lead)\s+(?:is|was)", re.IGNORECASE)
# What is said of somebody between two commas or in brackets, before they do something: Ana, our tester, merged …
_ASIDE_OF = re.compile(r"^(?:,[^,;:()]{2,60},|\(?[^()]{1,60}\))\s+(?=[a-z])")
# Alice, not Bob, merged it: who is named there did not.
_EXCLUDED = re.compile(
    r",?\s*(?:but\s+|and\s+)?(?:not|unlike|instead\s+of|rather\s+than|except(?:\s+for)?)(?:\s+(?:by|with|the|a|our))*",
    re.IGNORECASE,
)
# Assigned the issue to Victor: who gets what something is done to.
_TO_SOMEBODY = re.compile(r"(?:over\s+)?to", re.IGNORECASE)
# … as an engineer and reports to …: the same one goes on.
_NEW_CLAUSE = re.compile(r".*\b(?:and|but|or|while|when|because|so|then)", re.IGNORECASE)
_GOES_ON = re.compile(r"(?P<between>(?:[a-z][\w'’-]*\s+){1,5}?)and\s+(?P<clause>[a-z].*)")
# Siemens in Munich: where or when it was, while whoever did it goes on.
_BESIDE = re.compile(r",?\s*(?:in|near|on|since|until|during)(?:\s+the)?", re.IGNORECASE)
_WITHIN = re.compile(r"\s*(?:at|in|with|from|for|of|under|near|on|since|until|during)(?:\s+the)?", re.IGNORECASE)
_WHO = re.compile(r",?\s*(?:who|which|that)\s+", re.IGNORECASE)
_THAT = re.compile(r",?\s*(?:that|which|whom|who)?(?:\s+the)?", re.IGNORECASE)
_AUXILIARY = (
    r"(?:(?:has|have|had|is|are|was|were|been|being|just|also|already|recently|then|later|finally|now|still)\s+)*?"
)
_PASSIVE = re.compile(
    r"(?:(?:has|have|had|is|are|was|were|been|being|got|then|later|\w+ly)\s+)*(\w+)\s+by(?:\s+(?:the|our|my|a))?"
)
# The report by Anna; the report itself goes on being spoken of.
_MADE_BY = re.compile(r"by(?:\s+the)?", re.IGNORECASE)
_KNOWN = "|".join(sorted(map(re.escape, lx.VERBS), key=len, reverse=True))
_VERB = re.compile(rf"{_AUXILIARY}(?:\w+ly\s+)?(?P<verb>{_KNOWN}|\w{{3,}}ed)\b(?P<rest>.*)", re.DOTALL)
_DONE = re.compile(rf"(?<!the )(?<!\ba )(?<!our )\b(?:{_KNOWN})\b(?:\s+[a-z]\S*){{0,3}}\s*$")
# On 3 May, according to Anna, the crash in Firefox: what stands there is not what the sentence is about.
_ASIDE = re.compile(
    r"\b(?:on|in|at|by|with|for|from|to|of|during|after|before|since|via|per|over|under)\s+(?:the\s+)?$", re.I
)
# All that a place does: it lies somewhere, or belongs to something.
_OF_PLACES = frozenset(["located_in", "part_of"])
_LONGEST_PREPOSITION = 12
_BEING = re.compile(r"(?:is|are|was|were|has|have|will|can)\b")
# What is passed over to get to a name: another doing, or something that is only said or pointed at.
_PASSED_OVER = frozenset(
    ["and", "but", "or", "then", "while", "that", "whether", "how", "why", "it", "them", "this", "him", "her"]
)
_TOWARDS = frozenset(["from", "for", "to", "at", "about", "over", "against", "into", "of"])
# What somebody says a name is: the UserRepository class, the Kafka cluster.
_SORT = re.compile(
    r"^(?:class|function|method|module|package|library|service|script|table|team|project|endpoint|component|app|job|page|"
    r"server|cluster|database|tool|plugin|client|worker|queue|team|company|startup|agency)\s+"
)
_FILLING = re.compile(r"(?:\s+[a-z][\w'’-]*)*\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Relation:
    """One mention stands to another in this way, as the text from `start` to `end` says."""

    source: Mention
    target: Mention
    relation_type: str
    confidence: float
    start: int
    end: int
    role: str | None = None


def relations(text: str, mentions: Sequence[Mention]) -> list[Relation]:
    """Every relation the rules read, in order; what is asked, denied or only possible says nothing."""
    found: list[Relation] = []
    for start, end in _sentences(text):
        inside = [mention for mention in mentions if start <= mention.start and mention.end <= end]
        if len(inside) > 1 and not text[start:end].rstrip().endswith("?"):
            found += _Sentence(text, start, end, inside).read()
    return found


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def sentence_around(text: str, start: int, end: int) -> str:
    """The sentence in which something stands, without more of a long one than is near to it."""
    near = max(0, start - _NEAR), min(len(text), end + _NEAR)
    before = max((match.end() for match in _SENTENCE_END.finditer(text, near[0], start)), default=near[0])
    behind = _SENTENCE_END.search(text, end, near[1])
    return text[before : behind.start() if behind else near[1]].strip()


class _Sentence:
    """Reads one sentence from left to right, knowing who is being spoken of."""

    def __init__(self, text: str, start: int, end: int, mentions: Sequence[Mention]) -> None:
        self._text = text
        self._end = end
        self._mentions = mentions
        self._lead = text[start : mentions[0].start]
        # A verb before the first name: whoever does it has no name, and the first name is not the one who does.
        begun_otherwise = _DONE.search(text, start, mentions[0].start) or _ASIDE.search(self._lead)
        self._subjects = [] if begun_otherwise else [mentions[0]]
        self._verb: tuple[str, float, bool] | None = None
        # What of the next words belongs to a clause that was read already.
        self._told = ""
        # Whether the name before only said where or when.
        self._aside = False
        # Whether what is being told stands in a clause about the subject, who goes on behind it: Ana, who leads it, …
        self._inserted = False
        # What was handed over to the name before, and how that is told.
        self._handed: tuple[Mention, str, float] | None = None
        self._found: list[Relation] = []

    def read(self) -> list[Relation]:
        if _SUPPOSED.search(self._lead):
            return []
        for before, mention in zip(self._mentions, self._mentions[1:], strict=False):
            gap = self._text[before.end : mention.start]
            said = " ".join(_PAID.sub(" ", gap).split()).strip("()\"“”'’` ")
            if _SUPPOSED.search(said):
                # Whoever asked whether Anna approved it does not say that she did.
                break
            told, self._told = self._told, ""
            self._step(before, mention, _SORT.sub("", said.removeprefix(told).lstrip()))
        return self._found

    def _step(self, before: Mention, mention: Mention, gap: str) -> None:
        if gap in (",", "") and before is self._mentions[0] and (role := _ROLE_OF.search(self._lead)):
            self._add(mention, before, "works_at", 0.8, False, _IS_A.sub("", role[1].strip()))
            self._restart(mention)
        elif _AND.fullmatch(gap):
            self._join(mention)
        elif _HEADED_BY.fullmatch(gap):
            self._add(mention, before, "manages", 0.85, False)
            self._restart(mention)
        elif _HEADS.fullmatch(gap):
            self._add(before, mention, "manages", 0.85, False)
            self._restart(mention)
        elif not _EXCLUDED.fullmatch(gap):
            self._go_on(before, mention, gap)

    def _go_on(self, before: Mention, mention: Mention, gap: str) -> None:
        if _UNREAL.search(gap) or _NEW_CLAUSE.fullmatch(gap):
            self._restart(mention)
        elif any(read(before, mention, gap) for read in (self._hand_over, self._attach, self._insert)):
            return
        elif self._say(self._subjects, mention, _clause(gap)):
            self._verb_now(_clause(gap))
            self._aside = False
        elif (on := _GOES_ON.fullmatch(gap)) and self._say(self._subjects, mention, on["clause"]):
            self._verb_now(on["clause"])
        elif _THAT.fullmatch(gap) and self._relative(before, mention):
            return
        elif (self._verb is not None and _BESIDE.fullmatch(gap)) or (self._inserted and _WITHIN.fullmatch(gap)):
            self._aside = True
        else:
            self._restart(mention)

    def _join(self, mention: Mention) -> None:
        """One more of the same: another subject before the verb, another object after it."""
        if self._aside or (self._verb is not None and self._does_something(mention)):
            self._restart(mention)
            return
        if self._handed is not None:
            thing, relation_type, confidence = self._handed
            self._add(thing, mention, relation_type, confidence * 0.95, False)
            return
        if self._verb is None:
            self._subjects.append(mention)
            return
        relation_type, confidence, passive = self._verb
        for subject in self._subjects:
            self._add(subject, mention, relation_type, confidence * 0.95, passive)

    def _does_something(self, mention: Mention) -> bool:
        """Whether a verb follows, so that a new clause begins here: …, and Bob approved it."""
        following = self._following(mention)
        return _VERB.match(following) is not None or _BEING.match(following) is not None

    def _following(self, mention: Mention) -> str:
        """The words behind a name, up to the next one."""
        following = [other.start for other in self._mentions if other.start >= mention.end]
        return self._text[mention.end : min([self._end, *following])].strip()

    def _restart(self, mention: Mention) -> None:
        # What stands behind a preposition does nothing: it is whoever works from Lisbon who leads the team.
        does = _ASIDE.search(self._text[max(0, mention.start - _LONGEST_PREPOSITION) : mention.start]) is None
        self._subjects = [mention] if does else []
        self._verb, self._aside, self._inserted = None, False, False
        self._handed = None

    def _attach(self, before: Mention, mention: Mention, gap: str) -> bool:
        """Alice from Acme, Bob (engineer at Acme), a PR by Bob: belongs to the one before, which stays the subject."""
        if _MADE_BY.fullmatch(gap) and before in self._subjects and before.entity_type != lx.PERSON:
            self._add(mention, before, "created", 0.75, False)
            return True
        if before.entity_type != lx.PERSON or mention.entity_type not in (lx.ORGANIZATION, lx.CONCEPT):
            return False
        confidence = 0.85 if mention.entity_type == lx.ORGANIZATION else 0.5
        if _ATTACHED.fullmatch(gap):
            if mention.name.split()[0].casefold() in lx.PLACES:
                return True
            self._add(before, mention, "works_at", confidence, False)
            return True
        role = _IN_ROLE.fullmatch(gap)
        if role and _ROLE_NAMES.search(role[1]) and not _DOING.search(role[1]):
            self._add(before, mention, "works_at", confidence, False, _IS_A.sub("", role[1].strip()))
            return True
        return False

    def _insert(self, before: Mention, mention: Mention, gap: str) -> bool:
        """Ana, who leads it: a clause about the one before, which stays the subject if it was."""
        who = _WHO.match(gap)
        if who is None or not self._say([before], mention, gap[who.end() :]):
            return False
        self._inserted = self._subjects == [before]
        return True

    def _say(self, subjects: Sequence[Mention], mention: Mention, gap: str) -> bool:
        read = _read_verb(gap, subjects) if subjects else None
        if read is None:
            return False
        relation_type, confidence, passive = read
        for subject in subjects:
            self._add(subject, mention, relation_type, confidence, passive)
        return True

    def _verb_now(self, clause: str) -> None:
        self._verb, self._handed = _read_verb(clause, self._subjects), None

    def _hand_over(self, before: Mention, mention: Mention, gap: str) -> bool:
        """Trent assigned the issue to Victor: the verb says what became of the issue for Victor, too."""
        if self._verb is None or mention.entity_type != lx.PERSON or not _TO_SOMEBODY.fullmatch(gap):
            return False
        relation_type, confidence, passive = self._verb
        if passive or relation_type not in lx.HANDED_OVER:
            return False
        self._handed = (before, f"{relation_type}_to", confidence * 0.95)
        self._add(before, mention, self._handed[1], self._handed[2], False)
        return True

    def _relative(self, before: Mention, mention: Mention) -> bool:
        """The PR that Bob submitted: the verb stands behind, and what it is done to in front."""
        tail = self._following(mention)
        verb = _VERB.match(tail) if before.entity_type != lx.DATE else None
        if verb is None or _UNREAL.search(tail) or re.match(r"\s*(?:by|the|a|an|his|her)\b", verb["rest"]):
            return False
        self._add(mention, before, _relation_of(verb["verb"]), 0.8, False)
        goes_on = _VERB.match(verb["rest"].strip()) is not None
        # The PR that Bob submitted was merged by Eve: it is the PR that was merged.
        self._told = tail[: verb.start("rest")] if goes_on else ""
        self._subjects, self._verb = [before if goes_on else mention], None
        return True

    def _is_place(self, mention: Mention) -> bool:
        return mention.entity_type == lx.CONCEPT and mention.name.split()[0].casefold() in lx.PLACES

    def _add(
        self, source: Mention, target: Mention, kind: str, confidence: float, passive: bool, role: str | None = None
    ) -> None:
        if passive:
            source, target = target, source
        if (source.name.casefold(), source.entity_type) == (target.name.casefold(), target.entity_type):
            return
        if self._is_place(source) and kind not in _OF_PLACES:
            return
        sure = round(confidence * min(1.0, (source.confidence + target.confidence) / 1.6), 3)
        start, end = min(source.start, target.start), max(source.end, target.end)
        self._found.append(Relation(source, target, kind, min(sure, 0.95), start, end, role))


def _read_verb(gap: str, subjects: Sequence[Mention]) -> tuple[str, float, bool] | None:
    """What the words between say, how certain that is, and whether it is said the other way round."""
    passive = _PASSIVE.fullmatch(gap)
    if passive and _VERB.fullmatch(passive[1]):
        return _relation_of(passive[1]), 0.85, True
    verb = _VERB.match(gap)
    if verb is None or not _FILLING.fullmatch(verb["rest"]):
        return None
    word, fillers = verb["verb"], verb["rest"].split()
    known = word in lx.VERBS
    if len(fillers) > _FILLERS or (not known and subjects[0].entity_type not in (lx.PERSON, lx.ORGANIZATION)):
        return None
    if _PASSED_OVER.intersection(fillers) or (not known and _TOWARDS.intersection(fillers)):
        # Whoever moved from Berlin did nothing to Berlin.
        return None
    if word in lx.BASE_FORMS and len(subjects) == 1:
        return None
    return _relation_of(word), (0.9 if known else 0.6) - 0.08 * len([w for w in fillers if len(w) > 3]), False


def _clause(gap: str) -> str:
    """What is said of the subject: without what links it, and without what stands there in between."""
    return _ASIDE_OF.sub("", re.sub(r"^(?:,\s*and|,(?![^,]*,)|and|but)\s+", "", gap))


def _relation_of(verb: str) -> str:
    return lx.VERBS.get(verb, verb)
