"""Taking back: what a speaker corrects a moment later, and what somebody else says did not work after all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from alma.extraction import wording as say
from alma.extraction.facts import USERS, ExtractedFact
from alma.extraction.statements import Statement, reread

# What stands first when somebody takes back what they have just said.
_SCRATCH = (
    r"(?:(?:no,? )?wait(?:,? no)?(?=\s*[,.!…–—-]|,? (?:i mean|it'?s|that'?s|make)|$)|scratch (?:that|this)|strike that|"
    r"never ?mind(?: that)?|correction|i meant?(?! it\b| that\b| really\b)|my (?:mistake|bad)|oops|whoops|hold on|"
    r"hang on|forget (?:that|it|what i said)|ignore that|let me correct (?:that|myself)|make (?:that|it)|or rather|"
    r"(?:just |only )?(?:kidding|joking)|jk|sorry,? (?:i meant?|no|it'?s|that'?s|make (?:that|it))|"
    r"actually,? (?:no|make (?:that|it))|no,? (?:i meant?|sorry|actually|make (?:that|it))"
    r"|(?:sorry,? )?(?:i|that|this) (?:(?:mixed|messed|got|had|said) (?:that|it|this|them) "
    r"(?:up|wrong|backwards|confused|mixed up)|was wrong|misspoke))"
)
_INSTEAD = r"(?:(?:no|i meant?|sorry|it'?s|it is|make it)\b[\s,:]*)*"
_TAKEN_BACK = re.compile(rf"^(?:{_SCRATCH}\b[\s,:.!…–—-]*)+{_INSTEAD}(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
# Weaker ones, which only count right behind what they take back.
_AT_ONCE = re.compile(
    r"^(?:(?:no|nope)(?=\s*[,.!…–—-])|not any ?more|actually(?=,? (?:it|that)\b))[\s,:.!…–—-]*(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_MIDWAY = re.compile(
    rf"(?:\s*[,;:(–—]|\s-|…|(?<!\.)\.{{2,}}+|\s)\s*(?:{_SCRATCH}|(?:(?<=[,–—-] )|(?<=\())(?:no|sorry)(?=,))"
    rf"[\s,:.!…–—-]+{_INSTEAD}(?P<rest>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
# The number that was meant, with what stands beside it: it runs on port 6432, because …
_VALUE = re.compile(
    r"^(?:(?:it|that|this|they|there)(?:'?s|'re| is| was| are| should be)?\s+|to\s+)?(?P<beside>(?:[\w-]+ ){0,4}?)"
    rf"(?P<value>{say.NUMBER.pattern})(?:[ -]?(?P<unit>[a-z]+|%))?"
    r"(?:,?\s+(?:because|since|as|due to|now|instead|these days)\b.*)?[\s.!)]*$",
    re.IGNORECASE | re.DOTALL,
)
_SMALL_WORDS = "a an the on at in to of is only now actually really just about still"
_SAYS_NOTHING = frozenset(_SMALL_WORDS.split())
_MEASURE = r"(?:(?:milli)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|percent|%|[kmgt]i?b|ms|s|h|min)"
_MEASURED = re.compile(rf"{_MEASURE}$", re.IGNORECASE)
# A name that does not begin the sentence.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w.+#-]*\w(?: [A-Z][\w.+#-]*\w)*")
_URL = re.compile(r"https?://\S+")

_MOST_WORDS_OF_A_NAME = 4

# How it is said that something did not work after all.
_NO = re.compile(
    r"^(?:no|nope|nah)\b"
    r"(?![ ,]*(?:problem|worries|need|thanks|thank|more|further|doubt|questions?|one|issues?|errors?)\b)"
    r"|^(?:wrong|incorrect|false|not (?:really|quite|true|at all|yet|exactly|for me)|unfortunately|sadly|"
    r"i (?:disagree|doubt)|that'?s (?:wrong|not|incorrect|false|untrue)|actually,? (?:no|it|that))\b",
    re.IGNORECASE,
)
_DID_NOT = re.compile(
    rf"{say.FAILED}|{say.HARMED}"
    r"|\bstill (?:fail\w*|broken|crash\w*|not|see|seeing|get|getting|hang\w*|red|slow|the same|there)\b"
    r"|\bsame (?:error|problem|issue|result)\b"
    r"|\b(?:did|does|do|is|was|has|have|are)(?:n'?t| not) (?:really |actually )?"
    r"(?:work|help|fix|solve|change|pass|hold|fixed|working|solved|passing|better)\w*"
    r"|\b(?:it|that|this|which|everything|(?:now )?(?:the|our|my|your) \w+)\s+"
    r"(?:just |also |now |actually |only |has |have |then |later )*"
    r"(?:broke|breaks?|crash\w*|fail\w*|hangs?|hung|lost|corrupted|deleted|"
    r"(?:is|got|made \w+|are|was) (?:worse|broken|down|failing))\b"
    r"|\b(?:revert|undo|roll back|rolled back|undid|reverted)\b",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"^\W*(?:but|however|unfortunately|sadly|then|later|afterwards|still|although|it|that|this|which)\b", re.IGNORECASE
)
_PRAISE = re.compile(
    r"^\W*(?:great|thanks|thank you|perfect|yes|yep|yeah|good|awesome|nice|cool|excellent|works|it works|it worked)\b",
    re.IGNORECASE,
)
_OF_IT = re.compile(
    r"^(?:(?:no|nope|nah|unfortunately|sadly|actually|well|but|hmm)[\s,.!]+)*"
    r"(?:it|that|this|which|your \w+|the (?:fix|change))\b"
    rf".*?(?P<reason>{say.FAILED}.*|{say.HARMED}.*|\b(?:broke|crashed|failed|lost|corrupted)\b.*)$",
    re.IGNORECASE | re.DOTALL,
)


def second_thought(statement: Statement, said: Sequence[Statement]) -> tuple[Statement | None, Statement | None]:
    """What a statement says once its speaker has changed their mind, and the earlier one that they take back with it.

    A number in the place of a number is what was meant. Anything else is read as it stands; the wrong half never is.
    """
    before = _own_last(statement, said)
    taken = None if before is None else _TAKEN_BACK.match(statement.plain)
    if taken is None and before is not None and before.evidence.message == statement.evidence.message:
        taken = _AT_ONCE.match(statement.plain)
    if taken is not None and before is not None:
        return _meant(before.plain, taken["rest"], statement), before
    midway = _MIDWAY.search(statement.plain)
    if midway is None or midway.start() == 0:
        return statement, None
    return _meant(statement.plain[: midway.start()], midway["rest"], statement), None


def denied_claims(
    statement: Statement, said: Sequence[Statement], facts: Sequence[ExtractedFact]
) -> list[ExtractedFact]:
    """The successes an assistant told of right before, if this says that they were none."""
    number = statement.evidence.message
    earlier = (s.evidence.message for s in reversed(said) if s.by_user and s.evidence.message < number)
    since = next(earlier, -1)
    lately = takewhile(lambda fact: fact.evidence.message > since, reversed(facts))
    claims = [fact for fact in lately if fact.success and fact.evidence.role not in USERS][::-1]
    return claims if claims and _denies(statement, said) else []


def failure_of(claim: ExtractedFact, statement: Statement) -> str | None:
    """Why what was claimed to have worked did not, if the statement says it of that."""
    told = None if statement.asked else _OF_IT.match(statement.plain)
    return None if told is None or not claim.strategy else told["reason"].strip(" .!")


def _own_last(statement: Statement, said: Sequence[Statement]) -> Statement | None:
    """What the same speaker said last."""
    return next((s for s in reversed(said) if s.by_user == statement.by_user), None)


def number_meant(wrong: str, rest: str) -> tuple[str, str] | None:
    """What was said with the number in it that is meant, and the number that was wrong, if this says a number.

    What stands beside the number stands in what it corrects as well: it's fine at 5 pm does not correct 3 servers.
    """
    value, numbers = _VALUE.match(rest), say.NUMBER.findall(wrong)
    if value is None or len(numbers) != 1:
        return None
    told = set(re.findall(r"[\w-]+", wrong.lower()))
    meant, unit = value["value"].rstrip("."), value["unit"] or ""
    if not set(value["beside"].lower().split()) <= told | _SAYS_NOTHING:
        return None
    old = re.escape(numbers[0])
    if unit and unit.lower() not in told:
        if not _MEASURED.match(unit) or not re.search(rf"{old}[ -]?{_MEASURE}\b", wrong, re.IGNORECASE):
            return None
        old, meant = rf"{old}[ -]?{_MEASURE}\b", f"{meant} {unit}"
    return re.sub(old, lambda _: meant, wrong.rstrip(" .…"), count=1, flags=re.IGNORECASE), numbers[0]


def _meant(wrong: str, rest: str, statement: Statement) -> Statement | None:
    number = number_meant(wrong, rest)
    if number is not None:
        return reread(number[0], statement)
    if _VALUE.match(rest) or not re.search(r"\w", rest):
        return None
    if len(rest.split()) <= _MOST_WORDS_OF_A_NAME and not say.CLAUSE.search(_URL.sub("", rest)):
        told, names = say.COPULA.match(wrong), [*_NAME.finditer(wrong)]
        if told is not None:
            return reread(wrong[: told.start("what")] + rest, statement)
        if len(names) == 1 and rest[:1].isupper():
            return reread(wrong[: names[0].start()] + rest.rstrip(" .!") + wrong[names[0].end() :], statement)
    return reread(rest, statement)


def _denies(statement: Statement, said: Sequence[Statement]) -> bool:
    """Whether it says no to what was told before; of an assistant, only where it turns against itself."""
    whole = statement.evidence.text.replace("’", "'")
    if not statement.by_user:
        return _TURN.match(whole) is not None and _DID_NOT.search(statement.plain) is not None
    turn = [*takewhile(lambda s: s.evidence.message == statement.evidence.message, reversed(said))]
    begun = turn[-1].evidence.text if turn else whole
    if _PRAISE.match(begun) and not re.search(r"\b(?:but|however|though|still)\b", whole, re.IGNORECASE):
        return False
    return _NO.match(statement.plain) is not None or _DID_NOT.search(statement.plain) is not None
