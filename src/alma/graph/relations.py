"""Find relationships between entities by rules about the words between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alma.graph import mentions
from alma.graph.mentions import WORDS, Mention, pattern

_MAX_FILLERS = 4
_MAX_CONTEXT = 300
_MAX_PREPOSITION = 12


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship between two entities, stated by the text from `start` to `end`."""

    source: Mention
    target: Mention
    relation_type: str
    confidence: float
    start: int
    end: int
    role: str | None = None


def relations(text: str, mentions: Sequence[Mention]) -> list[Relation]:
    """The relationships that the rules find, in order; questions, negations and possibilities are left out."""
    found: list[Relation] = []
    for start, end in _sentences(text):
        inside = [mention for mention in mentions if start <= mention.start and mention.end <= end]
        if len(inside) > 1 and not text[start:end].rstrip().endswith("?"):
            found += _Sentence(text, start, end, inside).read()
    return found


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in pattern("sentence_end").finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def sentence_around(text: str, start: int, end: int) -> str:
    """The sentence around a place of the text, cut at some distance."""
    near = max(0, start - _MAX_CONTEXT), min(len(text), end + _MAX_CONTEXT)
    before = max((match.end() for match in pattern("sentence_end").finditer(text, near[0], start)), default=near[0])
    behind = pattern("sentence_end").search(text, end, near[1])
    return text[before : behind.start() if behind else near[1]].strip()


class _Sentence:
    """Reads one sentence from left to right and keeps track of its subjects."""

    def __init__(self, text: str, start: int, end: int, mentions: Sequence[Mention]) -> None:
        self._text = text
        self._end = end
        self._mentions = mentions
        self._lead = text[start : mentions[0].start]
        # After a verb or preposition the first name is not the subject.
        is_object = pattern("verb_before").search(text, start, mentions[0].start) or pattern(
            "preposition_before"
        ).search(self._lead)
        self._subjects = [] if is_object else [mentions[0]]
        self._verb: tuple[str, float, bool] | None = None
        # The part of the next words that belongs to a clause that was read already.
        self._already_read = ""
        # Whether the previous name was a place or time.
        self._after_place = False
        # Whether the sentence is inside a relative clause about the subject: Ana, who leads it, …
        self._in_relative_clause = False
        # The object of a verb such as assign, the relation and its confidence.
        self._transferred: tuple[Mention, str, float] | None = None
        self._found: list[Relation] = []

    def read(self) -> list[Relation]:
        if pattern("hypothetical").search(self._lead):
            return []
        for before, mention in zip(self._mentions, self._mentions[1:], strict=False):
            gap = self._text[before.end : mention.start]
            words = " ".join(pattern("amount_of_money").sub(" ", gap).split()).strip("()\"“”'’` ")
            if pattern("hypothetical").search(words):
                # "Asked whether Anna approved it" does not state that she did.
                break
            already_read, self._already_read = self._already_read, ""
            self._step(before, mention, pattern("noun_after").sub("", words.removeprefix(already_read).lstrip()))
        return self._found

    def _step(self, before: Mention, mention: Mention, gap: str) -> None:
        if gap in (",", "") and before is self._mentions[0] and (role := pattern("role_before").search(self._lead)):
            self._add(mention, before, "works_at", 0.8, False, pattern("article").sub("", role[1].strip()))
            self._restart(mention)
        elif pattern("conjunction").fullmatch(gap):
            self._join(mention)
        elif pattern("has_manager").fullmatch(gap):
            self._add(mention, before, "manages", 0.85, False)
            self._restart(mention)
        elif pattern("manages").fullmatch(gap):
            self._add(before, mention, "manages", 0.85, False)
            self._restart(mention)
        elif not pattern("excluded").fullmatch(gap):
            self._continue(before, mention, gap)

    def _continue(self, before: Mention, mention: Mention, gap: str) -> None:
        if pattern("not_stated").search(gap) or pattern("new_clause").fullmatch(gap):
            self._restart(mention)
        elif any(read(before, mention, gap) for read in (self._recipient, self._attach, self._relative_clause)):
            return
        elif self._state(self._subjects, mention, _clause(gap)):
            self._set_verb(_clause(gap))
            self._after_place = False
        elif (on := pattern("same_subject").fullmatch(gap)) and self._state(self._subjects, mention, on["clause"]):
            self._set_verb(on["clause"])
        elif pattern("relative_object").fullmatch(gap) and self._relative_object(before, mention):
            return
        elif (self._verb is not None and pattern("place_or_time").fullmatch(gap)) or (
            self._in_relative_clause and pattern("clause_place_or_time").fullmatch(gap)
        ):
            self._after_place = True
        else:
            self._restart(mention)

    def _join(self, mention: Mention) -> None:
        """Add another subject before the verb, or another object after it."""
        if self._after_place or (self._verb is not None and self._starts_clause(mention)):
            self._restart(mention)
            return
        if self._transferred is not None:
            thing, relation_type, confidence = self._transferred
            self._add(thing, mention, relation_type, confidence * 0.95, False)
            return
        if self._verb is None:
            self._subjects.append(mention)
            return
        relation_type, confidence, passive = self._verb
        for subject in self._subjects:
            self._add(subject, mention, relation_type, confidence * 0.95, passive)

    def _starts_clause(self, mention: Mention) -> bool:
        """Whether a verb follows, so that a new clause begins: …, and Bob approved it."""
        following = self._following(mention)
        return pattern("verb").match(following) is not None or pattern("auxiliary").match(following) is not None

    def _following(self, mention: Mention) -> str:
        """The words after a name, up to the next name."""
        following = [other.start for other in self._mentions if other.start >= mention.end]
        return self._text[mention.end : min([self._end, *following])].strip()

    def _restart(self, mention: Mention) -> None:
        # A name after a preposition is not a subject.
        is_subject = (
            pattern("preposition_before").search(self._text[max(0, mention.start - _MAX_PREPOSITION) : mention.start])
            is None
        )
        self._subjects = [mention] if is_subject else []
        self._verb, self._after_place, self._in_relative_clause = None, False, False
        self._transferred = None

    def _attach(self, before: Mention, mention: Mention, gap: str) -> bool:
        """Alice from Acme, Bob (engineer at Acme), a PR by Bob: the name before stays the subject."""
        if pattern("made_by").fullmatch(gap) and before in self._subjects and before.entity_type != mentions.PERSON:
            self._add(mention, before, "created", 0.75, False)
            return True
        if before.entity_type != mentions.PERSON or mention.entity_type not in (
            mentions.ORGANIZATION,
            mentions.CONCEPT,
        ):
            return False
        confidence = 0.85 if mention.entity_type == mentions.ORGANIZATION else 0.5
        if pattern("affiliation").fullmatch(gap):
            if mention.name.split()[0].casefold() in WORDS["places"]:
                return True
            self._add(before, mention, "works_at", confidence, False)
            return True
        role = pattern("in_role").fullmatch(gap)
        if role and pattern("role_name").search(role[1]) and not pattern("role_action").search(role[1]):
            self._add(before, mention, "works_at", confidence, False, pattern("article").sub("", role[1].strip()))
            return True
        return False

    def _relative_clause(self, before: Mention, mention: Mention, gap: str) -> bool:
        """Ana, who leads it: a relative clause about the name before, which stays the subject."""
        who = pattern("relative_subject").match(gap)
        if who is None or not self._state([before], mention, gap[who.end() :]):
            return False
        self._in_relative_clause = self._subjects == [before]
        return True

    def _state(self, subjects: Sequence[Mention], mention: Mention, gap: str) -> bool:
        read = _read_verb(gap, subjects) if subjects else None
        if read is None:
            return False
        relation_type, confidence, passive = read
        for subject in subjects:
            self._add(subject, mention, relation_type, confidence, passive)
        return True

    def _set_verb(self, clause: str) -> None:
        self._verb, self._transferred = _read_verb(clause, self._subjects), None

    def _recipient(self, before: Mention, mention: Mention, gap: str) -> bool:
        """Trent assigned the issue to Victor: the verb also relates the issue and Victor."""
        if self._verb is None or mention.entity_type != mentions.PERSON or not pattern("recipient").fullmatch(gap):
            return False
        relation_type, confidence, passive = self._verb
        if passive or relation_type not in WORDS["transfer_verbs"]:
            return False
        self._transferred = (before, f"{relation_type}_to", confidence * 0.95)
        self._add(before, mention, self._transferred[1], self._transferred[2], False)
        return True

    def _relative_object(self, before: Mention, mention: Mention) -> bool:
        """The PR that Bob submitted: the object comes before the subject."""
        tail = self._following(mention)
        verb = pattern("verb").match(tail) if before.entity_type != mentions.DATE else None
        if verb is None or pattern("not_stated").search(tail) or pattern("object_pronoun").match(verb["rest"]):
            return False
        self._add(mention, before, _relation_of(verb["verb"]), 0.8, False)
        goes_on = pattern("verb").match(verb["rest"].strip()) is not None
        # In "the PR that Bob submitted was merged by Eve", the PR is the subject of "merged".
        self._already_read = tail[: verb.start("rest")] if goes_on else ""
        self._subjects, self._verb = [before if goes_on else mention], None
        return True

    def _is_place(self, mention: Mention) -> bool:
        return mention.entity_type == mentions.CONCEPT and mention.name.split()[0].casefold() in WORDS["places"]

    def _add(
        self, source: Mention, target: Mention, kind: str, confidence: float, passive: bool, role: str | None = None
    ) -> None:
        if passive:
            source, target = target, source
        if (source.name.casefold(), source.entity_type) == (target.name.casefold(), target.entity_type):
            return
        if self._is_place(source) and kind not in WORDS["place_relations"]:
            return
        sure = round(confidence * min(1.0, (source.confidence + target.confidence) / 1.6), 3)
        start, end = min(source.start, target.start), max(source.end, target.end)
        self._found.append(Relation(source, target, kind, min(sure, 0.95), start, end, role))


def _read_verb(gap: str, subjects: Sequence[Mention]) -> tuple[str, float, bool] | None:
    """The relation that the words between state, its confidence, and whether it is passive."""
    passive = pattern("passive").fullmatch(gap)
    if passive and pattern("verb").fullmatch(passive[1]):
        return _relation_of(passive[1]), 0.85, True
    verb = pattern("verb").match(gap)
    if verb is None or not pattern("filler").fullmatch(verb["rest"]):
        return None
    word, fillers = verb["verb"], verb["rest"].split()
    known = word in mentions.VERBS
    if len(fillers) > _MAX_FILLERS or (
        not known and subjects[0].entity_type not in (mentions.PERSON, mentions.ORGANIZATION)
    ):
        return None
    if WORDS["skipped_words"].intersection(fillers) or (not known and WORDS["directions"].intersection(fillers)):
        # In "moved from Berlin", Berlin is not the object.
        return None
    if word in mentions.BASE_FORMS and len(subjects) == 1:
        return None
    return _relation_of(word), (0.9 if known else 0.6) - 0.08 * len([w for w in fillers if len(w) > 3]), False


def _clause(gap: str) -> str:
    """The words without conjunctions and appositions in front."""
    return pattern("apposition").sub("", pattern("linking_words").sub("", gap))


def _relation_of(verb: str) -> str:
    return mentions.VERBS.get(verb, verb)
