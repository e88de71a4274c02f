"""The vocabulary of strategies: words that say as much, and words that say the opposite."""

from __future__ import annotations

import re

from alma.model.text import terms

# Words whose English stem is that of another word: a customer is not custom, and production no product.
_WORDS_OF_THEIR_OWN = """
activity amqps assistant author authority building closely collective compiler computer conditional consumer container
controller conversation customer customs definitely digital direction directive effective emergency executive
experiment follower formation goods heading https imaps importance important informal initial initially initiative
integral integrity intern lately ldaps likely listener meeting nearly objection objective operator optional organ
organic partly past performer period person positive practical probability production productive productivity
progressive projection promptly provider publisher quite rational rating reactive receiver relative relatively reporter
responsible responsive selective setting several severe shortly specification subjective terminal transit universal
university valuable
"""


def _own_terms() -> dict[str, str]:
    # The apostrophe is in no stem.
    singular = {word: f"{word}'" for word in _WORDS_OF_THEIR_OWN.split()}
    return singular | {f"{word[:-1]}ies" if word[-1] == "y" else f"{word}s": own for word, own in singular.items()}


_OWN = _own_terms()


_OWN_WORDS = re.compile(rf"\b({'|'.join(_OWN)})\b(?:['’]s\b)?")
_LETTERS = re.compile("[a-z]+")


def word_terms(text: str) -> list[str]:
    """The terms of a text in order, with those words apart that a stem would make one with others."""
    lowered = text.lower()
    if _OWN.keys().isdisjoint(_LETTERS.findall(lowered)):
        return terms(text)
    parts = enumerate(_OWN_WORDS.split(lowered))
    return [term for i, part in parts for term in ((_OWN[part],) if i % 2 else terms(part))]


def terms_of(words: list[str]) -> list[str]:
    """The terms of words in lower case, as `word_terms` has them."""
    owners = (word[:-2] if word.endswith(("'s", "’s")) else word for word in words)
    return terms(" ".join(words)) if _OWN.keys().isdisjoint(owners) else word_terms(" ".join(words))


# Words that say that something is done, and nothing about what.
_FRAMING_WORDS = (
    "use used using apply applied do did make made try tried always first then instead rather strategy approach "
    "utilize utilise employ leverage"
)
FRAMES = frozenset(word_terms(_FRAMING_WORDS))

_OPPOSITE_PAIRS = """
increase decrease; increase reduce; increase cut; raise lower; raise reduce; grow shrink; expand collapse; ascending
descending; upward downward; upper lower; forward backward; start stop; open close; first last; begin end; minimum
maximum; min max; minimize maximize; more less; more fewer; most least; most fewest; left right; top bottom; include
exclude; allow deny; allow block; allow forbid; permit deny; permit forbid; approve reject; approve deny; accept
reject; accept decline; accept refuse; grant refuse; grant deny; grant revoke; public private; internal external;
inner outer; inbound outbound; incoming outgoing; input output; import export; read write; push pull; send receive;
upload download; encode decode; encrypt decrypt; compress expand; attach detach; mount unmount; login logout; prepend
append; prefix suffix; local remote; parallel sequential; parallel serial; client server; frontend backend; add
remove; add delete; add subtract; insert delete; create delete; create remove; create destroy; write delete; keep
discard; keep delete; keep remove; keep drop; enable disable; high low; big small; large small; long short; deep
shallow; broad narrow; wide narrow; thick thin; heavy light; hard soft; hard easy; fast slow; quick slow; early late;
morning evening; day night; show hide; reveal hide; strict lenient; strict loose; tight loose; manual automatic;
single multiple; eager lazy; static dynamic; warm cold; hot cold; old new; older newer; oldest newest; oldest latest;
best worst; good bad; better worse; right wrong; true false; positive negative; success failure; optimistic
pessimistic; cheap expensive; cheapest costliest; simple complex; weak strong; vertical horizontal; black white;
whitelist blacklist; allowlist denylist; stateful stateless; upgrade downgrade; commit rollback; buy sell; hire fire;
win lose; male female; quiet verbose; terse verbose; brief detailed; light dark; full empty; trust distrust; join
split; merge split; acquire release; lock release; upstream downstream; odd even; past future; on off; in out; up
down; all none; all some; all few; every some; every none; many few; any none; always sometimes; only too; only also;
only even; must may; must might; with without; above below; over under; inside outside; since until; next previous;
front back; behind ahead; north south; east west; source target; source destination; parent child; master slave;
primary secondary; primary replica; leader follower; producer consumer; publish subscribe; sender receiver; question
answer; lend borrow; give take; save load; head tail; row column; uppercase lowercase; major minor; inclusive
exclusive; visible hidden; explicit implicit; global local; relative absolute; abstract concrete; active passive;
online offline; foreground background; rising falling; pass fail; throw catch; lossy lossless; depth breadth; employer
employee; buyer seller; teacher student; including excluding; including except; together separately; immediately
later; inline outline; log suppress; log silence; show suppress; freeze thaw; within after; repeatedly once;
repeatedly all; reuse new; together individually; together incrementally; reuse recreate; yourself somebody; yourself
someone; myself somebody; myself someone
"""


def _opposites() -> dict[str, frozenset[str]]:
    """Each word that has opposites, with these."""
    pairs = [words for pair in _OPPOSITE_PAIRS.split(";") if len(words := set(word_terms(pair))) == 2]
    every = set().union(*pairs)
    return {word: frozenset().union(*(pair for pair in pairs if word in pair)) - {word} for word in every}


OPPOSITES = _opposites()

_SYNONYM_GROUPS = """
run ran execute launch invoke perform; check verify validate inspect examine review look confirm ensure consult; fix
repair resolve correct; delete remove erase drop; begin began begun start; choose chose chosen pick select; retrieve
fetch get got obtain load; ask request query; search seek sought find found; refactor restructure reorganize rewrite
rewrote; reproduce recreate replicate; create build built construct generate; store save persist; split break broke
broken divide decompose; separately individually incrementally gradually stepwise; send sent deliver delivery; small
smaller little tiny; large larger big bigger; each every all; show shown display; wait pause; mock stub fake; combine
merge join; change modify update edit alter adjust; quick fast rapid; bug defect fault; function method; folder
directory; doc docs documentation; db database; config configuration; repo repository; auth authentication; prod
production; dev development; env environment; var variable; app application; lib library; admin administrator; temp
temporary; param parameter argument; summarize summarise condense; analyze analyse analysis study; expire expiry;
recover recovery; discover discovery; measure benchmark profile; gather collect; explain clarify describe; evaluate
assess judge; monitor watch observe; record log note; simplify streamline; thoroughly carefully; systematically
methodically; contact reach; apologize apologise sorry; information info details; example sample; wrap enclose
surround; repeat rerun; restart reboot; write wrote written author add; discuss talk; error exception; purchase buy
bought; quickly promptly immediately; initially beforehand; concise brief short; postgres postgresql; javascript js;
typescript ts; kubernetes k8s; keep kept retain preserve; give gave given provide; take took taken; tell told; say
said; hold held; bring brought; sell sold; speak spoke spoken; draw drew drawn; catch caught; think thought; teach
taught; go went gone; lead led; pay paid; grow grew grown; throw threw thrown; understand understood; rebuild rebuilt;
redo redid; undo undid; quote cite; reduce lower decrease; increase raise; improve enhance; locate identify; help
assist; finish complete; answer reply respond response; issue problem; image picture photo; notify alert; regularly
periodically; often frequently; concurrently simultaneously; chill refrigerate; stir mix; email mail; permit allow;
attempt try; login signin logon; logout signout logoff; check crosscheck; abort cancel; duplicate copy; estimate
approximate; prefer favor
"""

# Words that say as much where they stand for each other and nothing else differs, though they may mean other things.
_INTERCHANGEABLE = """
add create; add insert; call phone; call telephone; call ring; call invoke; customer client; find detect; find
identify; close shut; start launch; end finish; show present; page screen; task job; error failure; step stage; stage
phase; cut chop; document describe; make create; make build; test check; test verify; test try; mention raise; write
create; include add; store keep; schedule book; open start; read look; parallel concurrently; parallel simultaneously
"""

# Words that say as much where what is said around them means as much too.
_NEAR = """
configure setup; clean clear; suggest recommend; suggest propose; recommend advise; compute calculate; tell inform;
inform notify; demonstrate show; terminate end; halt stop; need require; mistake error; aim goal; goal objective;
guideline rule; troubleshoot debug; troubleshoot diagnose; investigate examine; investigate check; relocate move;
migrate move; clone copy; enumerate list; skim scan; loop iterate; reattempt retry; chunk piece; chunk part; chunk
batch; segment part; section part; reload refresh; purge clear; shorten trim; shrink compact; title headline;
colleague coworker; manager boss; swift quick; commence start; conclude end; acquire buy; support help; handle
process; manage handle; deploy release; ship release; handy useful; precise exact; accurate correct; entire whole;
entire full; whole full; frequent regular; sentence line; remark comment; reply comment; hint tip; draft outline;
divide partition; partition split; shorten condense; trim cut; crash fail; everywhere places; every individually; show
give; batch group; replace change; replace swap; replace exchange; chunk split; call request; check search; reduce
smaller; decrease smaller; increase larger; increase bigger; raise higher
"""


def _representatives() -> dict[str, str]:
    found: dict[str, str] = {}
    for group in _SYNONYM_GROUPS.split(";"):
        first, *others = word_terms(group)
        for word in others:
            found.setdefault(word, first)
    return found


_MEANT = _representatives()


INTERCHANGEABLE = frozenset(frozenset(word_terms(pair)) for pair in _INTERCHANGEABLE.split(";"))
NEAR = frozenset(frozenset(word_terms(pair)) for pair in _NEAR.split(";"))
"""Pairs of words that may say as much."""


def plain_words(words: frozenset[str]) -> frozenset[str]:
    """The words, each as the one that stands for all that say as much."""
    return frozenset(_MEANT.get(word, word) for word in words)
