"""News: what a text says has come to an end, and what it says is another one now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from alma.model.text import STOP_WORDS, terms
from alma.retrieval.change import READ
from alma.retrieval.naming import DETERMINERS, DIGIT, WORD
from alma.retrieval.spoken import MONTHS, WEEKDAYS
from alma.retrieval.states import changed_states

_CLAUSE = re.compile(r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)[.!?](?= |$)|[;:\n]|, (?=and |but |so )|,(?= )")

# What is named behind these is over: "we replaced Jenkins", "switched from Zoom", "no longer vegetarian".
_ENDS = re.compile(
    r"\b(?:replaced|replacing|dropped|ditched|abandoned|sold|gave away|threw (?:away|out)|cancelled|canceled|"
    r"stop(?:ped)? \w+ing|gave up(?: on)?|given up|got rid of|quit|"
    r"(?:switched|moved|migrated|changed|went|upgraded|converted)(?: away| over)? (?:from|off)|away from|"
    r"instead of|in place of|no longer|broke up with|divorced|decommissioned|phased out|turned off|shut down|"
    r"switched off|said goodbye to|retired|deprecated)\b",
    re.IGNORECASE,
)
# Of what is kept in numbers these may be but the ones at hand: "gave away the leeks" says nothing of a soup of leeks.
_GIVEN_AWAY = re.compile(
    r"\b(?:sold|gave away|threw (?:away|out)|got rid of|returned|lost) "
    r"(?:all )?(?:the|these|those|some|my|our|his|her|their) (?:\w+ )?([a-z]+[^\Ws]s)\b"
)
# What is named behind these is over for whoever did it: what was read is no longer being read, but still a book.
_DONE = re.compile(
    r"\b(?:finished|completed|mastered|returned|lost|removed|passed|handed in|left(?-i:(?= [A-Z])))\b", re.IGNORECASE
)
# Who left for Paris will be back, what closed early opens again, and who left a note or closed the door did something.
_FOR_A_WHILE = "for(?! good)|to|at|by|early|late|today|home|work|behind|the (?:office|house|room|meeting|party)"
_GOES_ON = rf"(?! (?:{_FOR_A_WHILE}|an?|his|her|my|our|its|their|me|us|some|it|two|\d+)\b)"
# What is named before these is over: "Priya left", "MySQL is switched off", "Luigi's closed down".
_ENDED = re.compile(
    rf"\b(?:(?:has |have |had |just ){{0,4}}(?:left{_GOES_ON}|quit(?! \w+ing\b)|died|"
    r"(?:resigned|retired)(?! from the\b)|"
    rf"closed(?: down)?{_GOES_ON}(?! the\b)|shut down(?! (?:the|an?|its|their)\b)|"
    r"broke up|split up|went (?:bankrupt|out of business)|was let go)|"
    r"(?:is|are|was|were|has been|have been|got|gets|will be) (?:now |being |finally )*"
    r"(?:replaced|cancelled|canceled|dropped|discontinued|deprecated|sold|closed|removed|retired|decommissioned|"
    r"(?:switched|turned) off|shut down|fired|abandoned|gone|over(?! the\b)|history|no more|phased out|superseded)|"
    r"no longer (?:exists?|works?|available|valid|applies|apply|there|with us|in use))\b",
    re.IGNORECASE,
)
_CHANGED = (
    r"(?:moved|changed|switched|relocated|transferred|migrated|upgraded|downgraded|promoted|raised|increased|decreased|"
    r"reduced|lowered|extended|shortened|prolonged|postponed|rescheduled|renamed|converted|expanded|reverted|"
    r"rolled back|pushed|brought forward|doubled|cut|bumped|went (?:up|down)|went over|rose|fell|dropped|grew|"
    r"handed(?: over| off| on)?|reassigned|slipped|slid|delayed|deferred|shifted|swapped|trimmed|slashed|revised|"
    r"adjusted|rebranded)"
)
_BESIDE_VERBS = frozenset(("has", "have", "had", "was", "were", "is", "are", "been", "being", "got", "just", "now"))
_BESIDE_VERBS |= {"recently", "finally", "will", "be", "all", "also", "already"}
_WHERE_TO = r"(?: (?:away|back|over|up|down|on|out))? (?:to|into|by|from|until|till)\b"
# "The backup was moved to four", "customer upgraded to Enterprise": what stands before it is not as it was.
_BECAME = re.compile(rf"\b{_CHANGED}{_WHERE_TO}", re.IGNORECASE)
# "We raised the limit to 500": what stands behind it is not as it was.
_MADE = re.compile(
    rf"\b{_CHANGED} (?P<what>(?:the |my |our |your |his |her |their |its )?(?:[\w'’-]+ ){{1,4}}?)(?:to|into|from|by)\b",
    re.IGNORECASE,
)
# "My new dentist is …", "a new account manager, Luis"
_NEW = re.compile(
    r"\bnew (?P<what>[\w'’-]+(?: [\w'’-]+){0,2}?)(?= ?(?:$|(?:is|are|was|will|called|named|of|for|at|in|to)\b))",
    re.IGNORECASE,
)
# "Orders now live in …", "stand-up starts at ten now", "since May our office is …"
_FROM = (
    rf"(?:from (?:now|today|tomorrow|this \w+|next \w+|\w+day|{'|'.join(MONTHS)})(?: on(?:wards?)?)?|"
    r"(?:as of|starting|effective|since) (?:the )?(?:this |next |last )?\w+|nowadays|these days|now)"
)
_SINCE = re.compile(rf"(?:^|\b){_FROM}\b,?", re.IGNORECASE)
_OWNER = re.compile(r"(?<![\w-])([\w-]++)['’]s (?!(?:got|been|now|no|not|moved|left|gone)\b)")
# Whose it is by now, tells nothing of whose it was: "it is the task of Kwame's team".
_BY_NOW = re.compile(r"\b(?:is|are|was|were|be|been|became|now)\b.* (?:of|by|to|with|from|at|in|under) (?:the |our )?$")
_BELONGING = re.compile(r"(?<![\w-])[\w-]++['’]s ([\w-]++)(?: has| have| just)*+\s*+$", re.IGNORECASE)
# Which one was given up: hangar 5 is not hangar 2.
_NUMBERED = re.compile(r"^ (?:the |our |my |his |her |their |its )?[A-Za-z]\w* (\d+)\b")
# What it was done to: sessions that were moved from Redis say nothing of what else is there.
_DONE_TO = re.compile(r"(?<![\w-])([\w-]++)(?: (?:was|were|is|are|got|has been|have been))(?: now| finally| \w+ly)*$")
# Who did it, where that is somebody by name.
_DOER = re.compile(
    r"(?:^|\s)(?!(?:I|We|They|He|She|It|You)\b)([A-Z][a-z]+)(?: has| have| had| just| finally| recently)*$"
)
_INTO = re.compile(r"\b(?:to|into) ((?:[\w'’.-]+ ?){1,3})")


@dataclass(frozen=True, slots=True)
class News:
    """The terms of what has ended, of what somebody has given up, and of what is another one now.

    `alone` are those of the latter that nothing says which one they are: "the deadline", not "the poster deadline".
    `since` are the subjects of what is so from some day on. `states` are what is another one for the speaker: where
    one lives, where one works. `owners` are whose the changed things are said to be, `into` is what they became.
    `actors` are those of somebody who gave something up, of what was taken away, its kind or its number: Leo's
    sister is not Leo. `which` says which one of several has ended. `doers` are the names of people who gave
    something up, `few` the things that somebody gave away and that others of their kind may be left of.
    `belongings` are what is said to be somebody's.
    """

    ended: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    since: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    into: frozenset[str] = frozenset()
    actors: frozenset[str] = frozenset()
    which: frozenset[str] = frozenset()
    doers: frozenset[str] = frozenset()
    few: frozenset[str] = frozenset()
    belongings: tuple[frozenset[str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ended or self.given_up or self.changed or self.since or self.states)


NOTHING_NEW = News()
# Most texts have none of these, which is seen at once.
_TELLING = frozenset(
    terms(
        """
        moved changed switched relocated transferred migrated upgraded downgraded promoted raised increased decreased
        reduced lowered extended shortened prolonged postponed rescheduled renamed converted expanded reverted rolled
        pushed brought doubled cut bumped went rose fell dropped grew new now nowadays today tomorrow since starting
        effective days home started joined replaced replacing ditched abandoned sold cancelled canceled finished
        completed mastered stop stopped gave given rid quit away instead place longer broke divorced decommissioned
        phased turned shut goodbye removed returned lost passed handed retired deprecated left resigned died closed
        split let discontinued fired gone over history superseded reassigned slipped slid delayed deferred shifted
        swapped trimmed slashed revised adjusted rebranded
        """
        + " ".join((*WEEKDAYS, *MONTHS))
    )
)


def may_tell_news(words: frozenset[str]) -> bool:
    """Whether a text of these terms may say that something is no longer as it was."""
    return not _TELLING.isdisjoint(words)


def news_of(text: str, words: frozenset[str]) -> News:
    """What a text of these terms says is no longer as it was."""
    text = text[:READ]
    return _read(text) if may_tell_news(words) or " as of " in text.lower() else NOTHING_NEW


@lru_cache(maxsize=2_048)
def _read(text: str) -> News:
    ended: set[str] = set()
    given_up: set[str] = set()
    actors: set[str] = set()
    which: set[str] = set()
    changed: set[str] = set()
    alone: set[str] = set()
    since: set[str] = set()
    doers: set[str] = set()
    few: set[str] = set()
    for clause in filter(None, map(str.strip, _CLAUSE.split(text))):
        for match in _ENDS.finditer(clause):
            given_up.update(_named_behind(clause[match.end() :]))
            actors.update(_NUMBERED.findall(clause[match.end() :])[:1])
            actors.update(_terms_of(_kind_behind(clause[match.end() :]) if match[0].lower() != "no longer" else ()))
            before = clause[: match.start()].rstrip()
            actors.update(_terms_of((*_BELONGING.findall(before), *_DONE_TO.findall(before))))
            doers.update(_terms_of(_DOER.findall(before)))
        few.update(_terms_of(_GIVEN_AWAY.findall(clause)))
        for match in _DONE.finditer(clause):
            ended.update(_named_behind(clause[match.end() :]))
        for match in _ENDED.finditer(clause):
            named = _named_before(clause[: match.start()])
            ended.update(_terms_of(named))
            # Of what has a number, neither the number nor the rest is enough.
            telling = named if any(map(DIGIT.search, named)) else filter(str.islower, named[:-1])
            which.update(_terms_of(telling))
        for told, heads in ((_changing(clause), changed), (_holding_since(clause), since)):
            for head, is_alone in map(_head, told):
                heads |= head
                alone |= head if is_alone else frozenset()
    whose = [owner for owner in _OWNER.finditer(text) if _BY_NOW.search(text[: owner.start()]) is None]
    return News(
        ended=frozenset(ended),
        given_up=frozenset(given_up),
        changed=frozenset(changed),
        alone=frozenset(alone),
        since=frozenset(since),
        states=frozenset(changed_states(text)),
        owners=frozenset(_terms_of(owner[1] for owner in whose)),
        into=frozenset(_terms_of(_INTO.findall(text))),
        actors=frozenset(actors),
        which=frozenset(which),
        doers=frozenset(doers),
        few=frozenset(few),
        belongings=tuple(_belonging(text[owner.end() :]) for owner in whose),
    )


def owners_in(text: str) -> frozenset[str]:
    """The terms of those whose something is said to be."""
    return frozenset(_terms_of(_OWNER.findall(text[:READ]))) if "'s " in text or "’s " in text else frozenset()


def _terms_of(words: Iterable[str]) -> Iterator[str]:
    return (term for word in words for term in terms(word))


def _changing(clause: str) -> Iterator[list[str]]:
    """The words that name what is another one now, for each that a clause tells of."""
    for match in _BECAME.finditer(clause):
        words = WORD.findall(clause[: match.start()])
        while words and words[-1].lower() in _BESIDE_VERBS:
            words.pop()
        yield words[-4:]
    for form in (_MADE, _NEW):
        for match in form.finditer(clause):
            yield WORD.findall(match["what"])


def _holding_since(clause: str) -> Iterator[list[str]]:
    """The words that name what is said to be so from some day on."""
    since = _SINCE.search(clause)
    if since is not None:
        before, behind = clause[: since.start()], clause[since.end() :]
        yield _subject(before if before.strip() else behind)


_AUXILIARIES = """
is are was were be been has have had will should can must do does did gets got goes go comes come takes take live lives
runs run starts start stands sits costs cost begins ends leaves belongs uses use needs stays works
"""
_VERBS = frozenset(_AUXILIARIES.split())


def _subject(text: str) -> list[str]:
    """The words before the verb of a clause."""
    words: list[str] = []
    for word in WORD.findall(text)[:6]:
        if word.lower() in _VERBS:
            return words
        words.append(word)
    # "The bakery on Elm Street" is not any bakery.
    return words[: 3 if words[2:] and words[2].lower() in _PLACING else 2]


def _head(words: list[str]) -> tuple[frozenset[str], bool]:
    """The terms of the last word that names something, and whether no other word says which one it is."""
    naming = [word for word in words if word.lower() not in STOP_WORDS]
    if not naming:
        return frozenset(), False
    others = [word for word in words[: words.index(naming[-1])] if word.lower() not in DETERMINERS]
    return frozenset(terms(naming[-1])), not others and words[-1].lower() not in _PLACING


_JOINING = "with by to for and or because since after in on at from as when but into until"
_BREAKS = frozenset(_JOINING.split())
_ANY = frozenset(("a", "an", "some", "another", "one"))
# What tells neither what something is nor which one.
_UNTELLING = STOP_WORDS | {"old", "previous", "former", "whole", "entire"}
_PLACING = frozenset(("in", "on", "at", "of", "for", "with", "from", "by", "to", "near", "behind"))


def _named_behind(text: str) -> Iterator[str]:
    """The terms of what is named next, as far as it is something known: not of a book that somebody finished."""
    for place, word in enumerate(WORD.findall(text)[:5]):
        if word.lower() in _BREAKS or (place == 0 and word.lower() in _ANY):
            return
        # Whose it is, goes on, and so does what has the same number.
        if word.lower() not in STOP_WORDS and not word.isdigit() and not word.endswith(("'s", "’s")):
            yield from terms(word)


def _kind_behind(text: str) -> list[str]:
    """Which kind of a thing is named next: who stopped selling *rye* bread has other bread. *The* bread is no kind."""
    words = list(takewhile(lambda word: word.lower() not in _BREAKS, WORD.findall(text)[:5]))
    if any(word.lower() in DETERMINERS for word in words):
        return []
    telling = [word for word in words if word.lower() not in _UNTELLING and not word.lower().endswith("ing")]
    return [word for word in telling[:-1] if word.islower()]


def _belonging(text: str) -> frozenset[str]:
    """The terms of what is named next, up to what is told of it."""
    found: list[str] = []
    for word in WORD.findall(text)[:4]:
        if word.lower() in STOP_WORDS or (found and may_tell_news(frozenset(terms(word)))):
            break
        found += terms(word)
    return frozenset(found)


def _named_before(text: str) -> list[str]:
    """The words that name what a clause is about: of "the projector in room Berlin", the projector."""
    words = WORD.findall(text)[-6:]
    until = next((place for place, word in enumerate(words) if word.lower() in _PLACING), len(words))
    return [word for word in words[:until] if word.lower() not in _UNTELLING]
