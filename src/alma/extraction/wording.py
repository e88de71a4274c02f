"""How people say it: the sentences that tell what worked, what did not, what is so, what was wrong."""

from __future__ import annotations

import re

NOT = r"(?:do not|don'?t|does not|doesn'?t|did not|didn'?t|never|no longer|can ?not|can'?t|won'?t)"
VERY = r"(?:really|always|usually|generally|strongly|much|definitely|personally|actually|just|also|still|very much)"
WELL = r"(?:(?:really |very |pretty |quite )?(?:well|great|nicely|perfectly|fine|reliably|flawlessly|like a charm))"
# What becomes of a problem that is solved, and what solves it.
ENDED = r"(?:fixed|solved|resolved|cured|eliminated|stopped|ended|got rid of|took care of|sped up|unblocked)"
PROBLEM = r"(?:it|this|that|them|everything|(?:the|our|my|all|every|both|these|those|a|an)\b[^,.;!]*)"
WORKED = (
    rf"(?:work(?:ed|s)(?! (?:together|hard|closely|late|overtime|there)\b)(?: out)?(?: (?:now|again|{WELL}))*|did "
    rf"(?:it|the (?:trick|job))|made (?:all )?the difference|"
    rf"{ENDED} (?:it|this|that|the (?:problem|issue|error|bug))|was (?:a )?success(?:ful)?|succeeded|passed|"
    rf"went through|paid off|helped(?: a lot)?|"
    rf"(?:completed|finished|ran) (?:successfully|cleanly|without (?:any |an )?(?:errors?|problems?|issues?)))"
)
# What made things better, as far as that can be told without knowing them: less of what nobody wants, or stable.
LESSENED = (
    r"(?:(?:cut|reduced|halved|shortened|lowered|brought down)(?P<task>(?: [\w-]+){0,4} (?:times?|latency|duration|"
    r"delays?|costs?|size|memory|usage|errors?|failures?|flakiness|load|runtime|noise))\b|made (?P<steady>(?:the|our|"
    r"my|it|them|all|both|every)\b(?: [\w-]+){0,4}?) (?:stable|green|pass|work|faster|quicker|reliable|deterministic)"
    r"(?=\s*(?:[.,;!…)]|$)|\s+(?:again|now)\b))"
)
LESSENED_PLAINLY = re.sub(r"\?P<\w+>", "?:", LESSENED)
GONE = (
    r"(?:pass(?:es|ed)?|work(?:s|ed)?(?! (?:together|hard|closely|late|overtime|there)\b)|succeeds?|succeeded|went "
    r"(?:through|away)|(?:have |has )?disappeared|stopped|"
    r"(?:is|are|was|were) (?:all )?(?:gone|fixed|solved|resolved|green|stable))"
)
# What somebody did, as opposed to wanted, saw or thought.
DID = (
    r"(?!(?:need|want|wonder|hop|expect|lik|lov|notic|reali[sz]|believ|assum|suppos|decid|plann|watch|look|ask|check|"
    r"verifi|review|call|happen|start|agre|appreciat|enjoy|prefer|learn|discover|confirm|found|receiv|miss)ed\b)"
    r"(?:[a-z-]{2,}ed|ran|set|put|cut|took|made|did|wrote|built|chose|gave|went|sent|split|kept|left|held|rebuilt|"
    r"rewrote|reset|shut|swept|brought|drew|hid|let|spun|threw|wound|undid|redid|overrode|froze|bound|fed|tore)\b"
)
# What makes of "it worked" that it did not, or not quite.
LIMITED = re.compile(
    r"\b(?:but|however|although|though|until|till|at first|initially|temporarily|for a (?:while|bit|moment)|"
    r"partial(?:ly)?|partly|in theory|in principle|on paper|supposedly|allegedly|sort of|kind of|nobody|no one|"
    r"barely|hardly|scarcely|almost|nearly|(?:seemed|appeared|claims?|claimed|pretend\w*) to)\b"
    r"|\band (?:then |also |now |later |promptly )*"
    r"(?:broke|breaks|crashe[sd]|lost|corrupted|deleted|failed|fails|caused)\b",
    re.IGNORECASE,
)
SPOILED = re.compile(
    r"\b(?:only|once(?=\s*(?:[,.!;]|$|and\b|then\b))|sometimes|somewhat|mostly|less|worse|worst|bad(?:ly)?|poor(?:ly)?|"
    r"terribl[ey]|horribl[ey]|awful(?:ly)?|miserabl[ey]|half|few|none|nowhere|so-so|slightly|marginally|"
    r"a (?:little|bit)|fail\w*|crash\w*|broke|breaks?|broken|lost|loses?|corrupt\w*|delete[sd]?|regress\w*|"
    r"hangs?|hung|leak(?:s|ed)|revert\w*|roll\w* back|wrong\w*|damage[sd]?|complain\w*|unfortunately|sadly|"
    r"intermittent\w*|occasional\w*|"
    r"for (?:an?|one|two|a few|\d+) (?:seconds?|minutes?|hours?|days?)|"
    r"rare(?:ly)?|unreliabl[ey]|inconsistent\w*|unless|except|yet|never|not)\b|n't\b",
    re.IGNORECASE,
)
# What stands behind "worked" at once and is no praise: oddly, suspiciously …, of which nobody has a list.
UNPRAISED = re.compile(
    r"^\s+(?!(?:really|perfectly|nicely|reliably|flawlessly|beautifully|smoothly|consistently|immediately|instantly|"
    r"brilliantly|wonderfully|amazingly|fantastically|surprisingly|incredibly|extremely|exactly|finally|directly|"
    r"successfully|correctly|properly|cleanly|quickly|locally|fully|completely|entirely|especially|particularly|"
    r"actually|only|early|daily|excellently|superbly|admirably|splendidly|effectively|efficiently|seamlessly)\b)"
    r"(?:\w+ly|ok(?:ay)?-?ish)\b",
    re.IGNORECASE,
)
# That something bad did not happen spoils nothing.
WITHOUT = re.compile(
    r"\b(?:without|no(?: more)?|zero|never) (?:any |a |single |further )*[\w-]+(?: [\w-]+)?", re.IGNORECASE
)
SHARE = re.compile(
    r"\b(\d+|one|two|three|a few|some|none|half) (?:out )?of (?:the |my |our )?(\d+|\w+)\b", re.IGNORECASE
)
BAD = (
    r"(?:flaky|unstable|unreliable|slow|slower|brittle|fail|hang|crash|time ?out|worse|impossible|leak|break|freeze|"
    r"inconsistent|confusing|deadlock)"
)
_OBJECT = (
    r"(?= (?:the|our|my|all|every|everything|it|its|a|an|more|too|timeouts?|errors?|crashes|failures?|flak\w+|"
    r"problems?|"
    r"issues?|bugs?|regressions?|duplicates?|leaks?|outages?|downtime|complaints|data loss|false \w+|\w+ (?:tests?|"
    r"errors?|timeouts?|failures?|bugs?)))"
)
# What comes of something, which is bad only if it is called so.
_HARM_DONE = (
    r"(?= (?:[\w-]+ ){0,4}?(?:time-?outs?|errors?|crash\w*|fail\w*|flak\w+|problems?|issues?|bugs?|regressions?|"
    r"duplicates?|"
    r"leaks?|outages?|downtime|complaints|loss(?:es)?|deadlocks?|delays?|conflicts?|false \w+|confusion|hang\w*|"
    r"slow\w*|broken|"
    r"corrupt\w*|race conditions?|worse)\b)"
)
HARMED = (
    rf"\b(?:(?:caused|broke|crashed|slowed down)(?:{_OBJECT}|{_HARM_DONE})|(?:led to|resulted in|"
    rf"triggered){_HARM_DONE}|"
    rf"made (?:the |our |my |it |everything |all )?(?:\w+ ){{0,4}}\b{BAD}\w*)"
)
HARMS = (
    rf"\b(?:(?:causes?|breaks?|crashes|slows? down)(?:{_OBJECT}|{_HARM_DONE})|(?:leads? to|results? in|"
    rf"triggers?){_HARM_DONE}|"
    rf"makes? (?:the |our |my |it |everything |all )?(?:\w+ ){{0,4}}\b{BAD}\w*)"
)
HARM = rf"(?:{HARMED}|{HARMS})"
FAILED = (
    r"(?:(?:didn'?t|did not|doesn'?t|does not|never)(?: really| actually| even)? "
    r"(?:work(?:ed)?|help(?:ed)?|(?:fix(?:ed)?|solved?|resolved?|change[d]?|improved?) (?:it|this|that|a thing|"
    r"anything|"
    r"the \w+))|failed|fails|keeps failing|kept failing|did (?:nothing|not do anything)|"
    r"(?:was|is|turned out to be|proved to be) (?:an? )?(?:\w+ )?"
    r"(?:mistake|(?:bad|terrible|horrible|awful|poor) idea|disaster|waste of time|dead end|useless|pointless|no "
    r"(?:use|help))|"
    r"backfired|made (?:it|things|everything) worse|had no effect|"
    r"(?:made|makes) no difference)"
)
# What becomes of something that does not get to its end.
STOPPED = (
    r"(?:ran out of|exceeded|hung|froze|stalled|deadlocked|threw|raised (?:an?|the)\b|"
    r"returned (?:an? |the )?(?:\w+ )?(?:errors?|[45]\d\d)\b|(?:was|were|got) (?:\w+ly )?(?:rejected|refused|blocked|"
    r"denied|intercepted|killed|throttled|truncated|cancell?ed|aborted|rate[- ]limited))"
)
BECAUSE = (
    r"(?:(?:\s*,?\s*(?:because|since|as|due to|so|with)|\s*:|,(?= (?:it|they|which|still|the|"
    r"same)\b))\s+(?P<reason>.+?))?"
)
END = r"[.!…\s:)]*$"
# Of what was tried, a part or a thing that went wrong: half of the tests, the second page.
SOME = (
    r"(?:the|our|my|all|half|most|some|several|many|two|three|four|five|\d+)(?: of (?:the|our|my|them))? "
    r"?(?:[\w-]+ ){0,2}?"
)
WE = r"(?:i|we|i've|we've|i have|we have)"


def sentence(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


# ---------------------------------------------------------------------- what worked

# Said of what the speaker did.
SUCCESSES = (
    # I used X which worked well; I tried X and it worked.
    (
        sentence(
            rf"^{WE} (?:used|tried|applied|went with|switched to|chose|did|ran|added|"
            rf"took)\s+(?P<strategy>.+?)[,;]?\s+(?:which|and (?:it|that|this)|and|it|that) (?:has "
            rf")?{WORKED}(?P<behind>)\b.*$"
        ),
        0.85,
    ),
    # I fixed Y by doing X; we solved the problem with X.
    (
        sentence(
            rf"^{WE} (?:finally |successfully )?(?:fixed|solved|resolved|got rid of|handled|unblocked|sped up|"
            rf"improved)\s+(?P<task>.+?)\s+(?:by|with|using|through)\s+(?P<strategy>.+?){END}"
        ),
        0.85,
    ),
    # Fixed by doing X.
    (
        sentence(
            rf"^(?:fixed|solved|resolved|unblocked)(?: (?:it|this|that|them))?\s+(?:by|with|using|through)\s+"
            rf"(?P<strategy>.+?){END}"
        ),
        0.8,
    ),
    (sentence(rf"^{WE} (?:was|were) able to\s+(?P<task>.+?)\s+(?:by|using)\s+(?P<strategy>.+?){END}"), 0.8),
    (sentence(rf"^{WE} successfully\s+(?P<strategy>.+?){END}"), 0.6),
    (
        sentence(rf"^{WE} (?:had|got) (?:good |great |some )?(?:success|results|luck) with\s+(?P<strategy>.+?){END}"),
        0.75,
    ),
    # After doing X it worked.
    (
        sentence(
            r"^after (?P<strategy>\w+ing\s+.+?),?\s+(?:it|that|this|everything|all)"
            rf"(?: all| finally| then)? {WORKED}(?P<behind>)\b.*$"
        ),
        0.75,
    ),
    # I did X and all tests pass; I did X, which solved it.
    (
        sentence(
            rf"^{WE}(?: then| also| just| finally| simply)* (?P<strategy>{DID}\s+.+?),?\s+"
            rf"(?:which|(?:and|so) (?:now )?(?!(?:i|he|she|we|you|who)\b)(?:(?:all|the|both|my|our|every) "
            rf")?(?:[\w-]+ )?(?:it|that|this|they|"
            rf"everything|"
            rf"\w+?s?)(?: all| now| finally)*)\s+(?:has |have )?"
            rf"(?:{WORKED}|{GONE}|{ENDED} (?:the|our|my|all|both|those) [\w-]+)"
            rf"(?P<behind>)\b.*?{END}"
        ),
        0.8,
    ),
    # The fix was to X; what worked was X.
    (
        sentence(
            rf"^(?:the (?:fix|solution|trick) (?:was|is)|what (?:finally )?worked (?:was|is))\s+(?:to )?"
            rf"(?P<strategy>.+?){END}"
        ),
        0.75,
    ),
    # The tests pass after I did X.
    (
        sentence(
            rf"^(?:all |the )?(?:tests?|build|it|everything|they)(?: all| now)*\s+(?:pass(?:es|ed)?|works?|"
            rf"worked|succeeds?|"
            rf"succeeded)(?: now)?\s+(?:after|once|since)\s+(?:(?:i|we)\s+)?(?P<strategy>.+?){END}"
        ),
        0.8,
    ),
    (
        sentence(
            rf"^after (?P<strategy>\w+ing\s+.+?),?\s+(?P<task>(?:the|our|my|all|everything|it)\b.*?)\s+"
            rf"(?:was|is|are|were|became|got|runs?|ran) (?:\S+ )?(?:faster|fixed|stable|green|fine|better|"
            rf"resolved|gone)\b.*?{END}"
        ),
        0.75,
    ),
)
# Said of a strategy that is the subject of the sentence.
PRAISED = (
    # Switching to X fixed Y.
    (
        sentence(
            rf"^(?P<strategy>\w{{2,}}ing\s+.+?)\s+(?:has |finally |also )*{ENDED}\s+"
            rf"(?P<task>(?:the|our|my|this|that|it|all|every|both|those|these|a|an)\b.*?){END}"
        ),
        0.85,
    ),
    # Preloading X cut the load time from 4 s to 1.2 s; doing X made the test stable.
    (sentence(rf"^(?P<strategy>\w{{2,}}ing\s+.+?)\s+(?:has |finally |also )*{LESSENED}.*?{END}"), 0.8),
    # Doing X kept us below Y and worked well.
    (
        sentence(
            rf"^(?P<strategy>\w{{2,}}ing\s+[^,.;]+?)\s+(?:{DID})\s+(?:us|it|them|the|our|all)\b[^,.;]{{0,60}}? and "
            rf"{WORKED}(?P<behind>){END}"
        ),
        0.7,
    ),
    # X worked well for Y.
    (
        sentence(
            rf"^(?P<strategy>(?!it\b|that\b|this\b|everything\b|all\b|they\b|which\b|nothing\b|he\b|she\b|"
            rf"what\b).{{3,120}}?) {WORKED}(?P<behind>)(?: (?:for|on|with|when|"
            rf"in)\s+(?P<task>.+?))?\s*(?:(?:[,.!…]|without\b).*)?$"
        ),
        0.7,
    ),
)

# It worked, thanks; the tests pass now: what did was said before.
_SURELY = r"(?:(?:all|really|actually|finally|indeed|totally|now|again) )*"
IT_WORKED = sentence(
    rf"^(?:(?:it|that|this) {_SURELY}{WORKED}|{_SURELY}(?:worked|works|fixed|solved|resolved)(?= (?:now|again|for me|"
    rf"{WELL})|"
    rf"\W*$|[,.!]+ (?:thank|cheers|ty\b))|(?:(?:all|the|both|my|our) )*(?:\d+ )?(?:[\w-]+ ){{0,2}}?"
    rf"(?:tests?|build|suite|ci|pipeline|checks?|deployment|deploy) {_SURELY}(?:pass(?:es|ed)?|(?:is|are|went|"
    rf"turned) green"
    rf"|works?|worked|succeeds?|succeeded))(?P<behind>)\b"
    rf"(?! if\b| when\b| out to\b| on (?:main|master)\b|[^.]*\b(?:before|yesterday|earlier|last \w+)\b).{{0,60}}$"
)
# Did not help: what did not was said before.
IT_FAILED = sentence(
    rf"^(?:(?:no|nope|nah|hmm|sorry)[\s,.!]+)?(?:(?:i )?tried (?:it|that|this),? (?:but |and )?)?"
    rf"(?:(?:it|that|this) )?(?:still )?(?P<reason>{FAILED}|no "
    rf"luck|no (?:change|difference|effect)\b|(?:the )?same (?:error|problem|issue|result|thing)\b|"
    rf"(?<=still )(?:broken|failing|not working)\b|"
    rf"(?:now )?(?:nothing works|everything (?:broke|is (?:broken|down))))(?:\W.{{0,80}})?$"
)
RULES = (
    # For Y, X works best; X works best for Y.
    (
        sentence(
            rf"^(?:for|when(?:ever)?|with|on|in)\s+(?P<task>.+?),\s*(?P<strategy>.+?)\s+works? (?:best|better|"
            rf"{WELL})(?P<behind>)\b.*?{END}"
        ),
        0.8,
    ),
    (
        sentence(
            rf"^(?P<strategy>(?!it\b|that\b|this\b|what\b).{{3,120}}?)\s+works? (?:best|better|{WELL})"
            rf"(?P<behind>) (?:for|when|with|on|in)\s+(?P<task>.+?){END}"
        ),
        0.8,
    ),
    # X is more reliable than Y.
    (
        sentence(
            rf"^(?P<strategy>(?!it\b|that\b|this\b|what\b|which\b).{{3,120}}?)\s+(?:is|are|was|were) (?:much |"
            rf"far |way |a lot )?"
            rf"(?:more (?:reliable|robust|stable|readable|efficient)|better|faster|safer|easier|simpler) than\s+"
            rf"(?P<worse>.+?){END}"
        ),
        0.65,
    ),
)

# ---------------------------------------------------------------------- what did not

FAILURES = (
    # Don't use X, it causes Y; avoid X because Y; use Z instead.
    (
        sentence(
            rf"^(?:please )?(?:{NOT} (?:ever )?(?:use|do|rely on|call|add|put)|avoid(?: using)?|stop "
            rf"using)\s+(?P<strategy>.+?)(?:\s*[,;:–-]+\s*|\s+)(?:because|since|as|it|that|this|"
            rf"they)\s+(?P<reason>(?:it |they )?.*(?:{HARM}|flaky|slow|fail|break|crash|unreliable|broke|"
            rf"deprecated|insecure|dangerous|wrong|bad).*?)(?:[,;.]?\s*(?:use|prefer|"
            rf"try)\s+(?P<alternative>.+?)(?: instead)?)?{END}"
        ),
        0.85,
    ),
    # I tried X but it failed because Y.
    (
        sentence(
            rf"^{WE} (?:used|tried|applied|went with|switched to|did)\s+(?P<strategy>.+?)[,;]?\s+(?:but|"
            rf"and|however|which)\s+(?:it |that |this |they )?(?P<reason>(?:{SOME})?(?:{FAILED}|{HARM}|"
            rf"(?:was|is|were) (?:still |too |way too )(?!fine|good|great|ok)\w+|"
            rf"(?:was|were) (?:slow|flaky|unreliable)|{STOPPED}|timed out|crashed|broke|got|"
            rf"ran into|caused|hit).*?){END}"
        ),
        0.85,
    ),
    # I drained the node, which failed.
    (
        sentence(
            rf"^{WE}(?: then| also| just| finally| simply)* (?P<strategy>{DID}\s+.+?)[,;]?\s+"
            rf"(?:which|(?:but|and) (?:now )?(?:it|that|this|they|everything|(?:the|our|my|all) [\w-]+))\s+"
            rf"(?P<reason>(?:{FAILED}|{HARM}|{STOPPED}|timed out|crashed|broke\b|"
            rf"(?:is|are|was|were) (?:now )?(?:still \w+|down|broken|failing|worse)|"
            rf"still (?:fail|crash|break|hang)\w*).*?){END}"
        ),
        0.8,
    ),
)
BLAMED = (
    # X didn't work because Y.
    (
        sentence(
            rf"^(?P<strategy>.{{1,140}}?)\s+(?:had )?{FAILED}(?: (?:for|on|in)\s+(?P<task>[^,]+?))?{BECAUSE}{END}"
        ),
        0.75,
    ),
    # X made the tests flaky; X causes Y.
    (
        sentence(
            rf"^(?P<strategy>(?!(?:it|this|that|which|he|she|they|nothing|something|what|i|we|you|"
            rf"who)\b).{{2,120}}?)\s+(?P<reason>{HARM}\b.*?)(?:[,;]\s*(?:use|so use|"
            rf"prefer)\s+(?P<alternative>.+?)(?: instead)?)?{END}"
        ),
        0.8,
    ),
    (
        sentence(
            rf"^(?P<strategy>(?!(?:i|we|you|he|she|they|(?:it|this|that) (?:is|"
            rf"was))\b).{{2,120}}?)\s+(?P<reason>(?:is|are|"
            rf"was|were) (?:(?:really |very |too |so |extremely |way too |far too )?(?:flaky|unreliable|brittle|"
            rf"error-prone|"
            rf"deprecated|insecure|dangerous|a bad idea|bad practice)|(?:way|far|much) too (?:slow|big|expensive|"
            rf"complicated)))"
            rf"\b.*?{END}"
        ),
        0.6,
    ),
)
# What says too much to be the name of a strategy.
CLAUSE = re.compile(
    r"[:;*]|\b(?:i|i'm|i've|i'd|you|you're|he|she|they|we|we've|which|who|that|what|it|it's|its|can|could|may|"
    r"might|must|will|would|should|"
    r"is|are|was|were|has|have|had)\b|^(?:since|although|with|for|however|remember|be|keep|let|back|if|when|"
    r"while|but|and|so|as|then|also)"
    r"\b|\b(?:a|an|the|of|with|to|in|on|and)$",
    re.IGNORECASE,
)
# What fails without being what was tried.
THINGS = sentence(
    r"^(?:(?:the|our|my|all|some|these|those|two|three|most)\s+(?:[\w-]+\s+){0,3})?(?:tests?|build|builds|deploy|"
    r"deployment|pipeline|servers?|requests?|quer(?:y|ies)|jobs?|page|form|app|ci|login|checks?|suite|"
    r"connection|import|"
    r"install|migration)$"
)
# What somebody complains of that was not tried, but is there: the login fails, the VPN does not work.
SYMPTOM = re.compile(r"\b(?:fails|keeps failing|doesn'?t work|does not work)\b", re.IGNORECASE)
_SUGGESTED = r"(?:approach|solution|fix|idea|method|strategy|one|change|suggestion|trick|option|way)"
UNNAMED = sentence(rf"^(?:that|this|the|my|your) {_SUGGESTED}$")
# Of several things that were said, which one is not to be told from here.
ONE_OF_SEVERAL = sentence(
    rf"^(?:the |my |your )?(?:(?:first|second|third|last|other|former|latter|\d\w\w)(?: {_SUGGESTED})?|"
    rf"{_SUGGESTED} (?:\d+|[a-d]|one|two|three))$"
)
# What was to be done, said of something that was named before, or no task at all, but when it was and for whom.
UNNAMED_TASK = sentence(
    r"^(?:it|this|that|them|these|those|everything|me|us|now|good|once|the end|the whole|"
    r"(?:(?:the|my|our) )?(?:very )?(?:first|second|third|\w+th|last|next|\d+\w*) (?:try|attempt|go|time|run|shot)|"
    r"(?:the|this|that|my|our) (?:problem|issue|bug|error|failure|thing)s?)$"
)
PRONOUNS = frozenset(["it", "that", "this", "these", "those", "they", "which", "he", "she", "everything", "nothing"])

# ---------------------------------------------------------------------- what is so

STRONG = (
    r"(?:uses?|requires?|expires?|runs? on|lives? (?:in|at|on)|listens? on|depends? on|supports?|returns?|"
    r"accepts?|expects?|"
    r"defaults? to|stores?|is (?:stored|located|hosted|deployed|written|built|defined|configured|based|called|"
    r"managed|owned|"
    r"maintained|cached|served|limited|protected|versioned|behind|exposed)|are (?:stored|located|hosted|"
    r"deployed|written|"
    r"built|defined|configured|called|cached|limited|encrypted|signed)|has a (?:limit|timeout|rate limit)|connects? to|"
    r"belongs? to|contains?|sends?|consists? of|allows?|handles?|validates?|redirects? to|starts? (?:at|on)|"
    r"(?:closes?|opens?) (?:at|on)|owns|leads(?! to)|maintains|reports? to|"
    r"(?:(?:has|have) (?:been )?|was |were )?(?:moved|switched|migrated|renamed|upgraded|downgraded|raised|lowered|"
    r"increased|reduced|"
    r"changed|set) to|(?:logs?|writes?|reads?|points?|talks?|go(?:es)?|publish(?:es)?|syncs?|streams?|forwards?|"
    r"starts?) "
    r"(?:to|from|through|via|into|in)(?= \S*[A-Z\d/_]))"
)
_NO_SUBJECT = (
    r"(?:Your?|Since|Both|One|If|When|There|Here|It|This|That|These|Those|What|Which|Who|He|She|They|Some|Many|"
    r"Most|Every|Another|"
    r"Why|How|Where|Also|So|And|But|As|For|With|In|On|At|By|To|From|After|Before|While|Although|Because|"
    r"However|Remember|"
    r"Maybe|Perhaps|Actually|Honestly|Overall|Finally|First|Then|Next|Now|I|We|My|Our|Its|Their|All|Each|Any|No)\b"
)
SUBJECT = (
    rf"(?:(?:our|the|my|this|these|all|each|every)\s+(?:[\w./'-]+\s+){{0,5}}?[\w./()'-]+|"
    rf"(?!{_NO_SUBJECT})[A-Z][\w.-]*(?:\s+[\w.-]+){{0,3}}?|"
    r"[a-z]+_[\w]+(?:\(\))?|[\w.]+\(\))"
)
CONCRETE = re.compile(
    r"\d|https?://|`|_\w|/\w|\b[A-Z][a-z]+[A-Z]|\b[A-Z]{2,}\b|\b[A-Z][a-z]+|\b[\w-]+\.(?:com|org|io|dev|py|js|"
    r"ts|yaml)\b"
)
FOUND_OUT = (
    (
        sentence(
            rf"^(?:i|we) (?:found(?: out)?|learned|noticed|discovered|confirmed|realized|realised|checked "
            rf"and)(?: that)\s+"
            rf"(?P<fact>.+?){END}"
        ),
        0.8,
    ),
    (
        sentence(
            rf"^(?:i|we) (?:checked|looked at|looked into|read|opened|inspected) [^:]{{1,60}}:\s*(?P<fact>.+?){END}"
        ),
        0.75,
    ),
    (sentence(rf"^(?:it (?:turned|turns) out|turns out)(?: that)?\s+(?P<fact>.+?){END}"), 0.75),
    (
        sentence(
            rf"^(?P<fact>the (?:root cause|cause|issue|problem|bug) (?:was|is) (?:an?|that|caused by|due to|in|"
            rf"with)\s+.+?){END}"
        ),
        0.75,
    ),
)
FACTS = (
    (
        sentence(
            rf"^(?:please )?(?:remember|note|keep in mind|be aware|for the record|important|reminder|heads "
            rf"up)(?: that|[:,])\s*(?P<fact>(?!you\b|it's okay\b|to\b).+?){END}"
        ),
        0.85,
    ),
    (
        re.compile(
            rf"^(?P<fact>(?i:we(?:'re| are| only| always| mostly| also| still)? )(?i:using|running|use|"
            rf"deploy|host|"
            rf"store|run|keep|release|ship|"
            rf"log|cache|authenticate|test|"
            rf"build|require|support|follow)s?\s+(?!into\b|getting\b|it\b|that\b|this\b)\S.*?){END}",
            re.DOTALL,
        ),
        0.75,
    ),
    (re.compile(rf"^(?P<fact>(?i:we (?:stay on|stick (?:to|with)|are on)) [A-Z][\w.-]*.*?){END}", re.DOTALL), 0.75),
    # We close the books on the 5th of each month; we usually eat at 7pm; we switched to pnpm.
    (
        sentence(
            rf"^(?P<fact>we (?:(?:usually|always|normally|typically|only) )?(?!(?:had|met|went|were|was|did|got|saw|"
            rf"will|"
            rf"may|can|need|want|hope|plan)\b)(?!\w+ed\b)[a-z]+ .*?\b(?:(?:every|each) (?:\w+day|day|morning|evening|"
            rf"week|"
            rf"month|quarter|year|sprint|release)|on (?:\w+days|the \d+\w*)\b).*?){END}"
        ),
        0.7,
    ),
    (
        sentence(
            rf"^(?P<fact>we (?:usually|always|normally|typically) (?!\w+ed\b)[a-z]+ .*?\b(?:at|around|by) \d.*?){END}"
        ),
        0.7,
    ),
    (
        sentence(
            rf"^(?P<fact>we(?:'ve| have)? (?:just |recently )?(?:moved|switched|migrated|upgraded) (?:from .+? )?to "
            rf".+?){END}"
        ),
        0.65,
    ),
    (
        re.compile(
            rf"^(?P<fact>(?i:(?:our|the|my|this|these|all|each|"
            rf"every))\s+(?:[\w./'-]+\s+){{0,5}}?[\w./()'-]+\s+(?:{STRONG})\b.+?){END}",
            re.DOTALL | re.IGNORECASE,
        ),
        0.8,
    ),
    (re.compile(rf"^(?P<fact>{SUBJECT}\s+(?:{STRONG})\b.+?){END}", re.DOTALL), 0.75),
    (
        re.compile(
            rf"^(?P<fact>{SUBJECT}\s+(?:is|are) (?:required|mandatory|forbidden|deprecated|encrypted|immutable|"
            rf"read-only))\b.*?{END}",
            re.DOTALL,
        ),
        0.75,
    ),
)
# What is true of those who live with somebody: it is a matter of that person, and no knowledge about a system.
FAMILY = sentence(
    r"^(?P<fact>my (?:(?:older|younger|little|big|oldest|youngest|ex) )?(?:wife|husband|partner|spouse|girlfriend|"
    r"boyfriend|"
    r"fianc[eé]e?|son|daughter|child|kids?|children|baby|twins|mother|father|mom|mum|dad|parents?|brother|sister|"
    r"siblings?|"
    r"grand\w+|uncle|aunt|cousin|nephew|niece|roommate|flatmate|dog|cat|pet|horse|rabbit|parrot|hamster)s?"
    r"(?:,? [A-Z][\w-]+,?)? (?:is|are|has|have|turns?|loves?|likes?|hates?|prefers?|works?|lives?|goes|go|eats?|"
    r"drinks?|"
    rf"speaks?|plays?|{NOT}|can|needs?|studies|attends|weighs) (?P<what>.+?)){END}"
)
HAS = re.compile(
    r"^(?P<fact>(?:our|the|my|this|these|each|every)\s+(?:[\w./'-]+\s+){0,5}?[\w./()'-]+\s+(?:takes?|needs?|"
    r"has|have|costs?|lasts?|"
    rf"serves?|covers?|runs?|weighs?|measures?|holds?|includes?|provides?|generates?|produces?|"
    rf"calls?)\s+(?P<what>.+?)){END}",
    re.IGNORECASE | re.DOTALL,
)
COPULA = re.compile(
    rf"^(?P<fact>(?:(?i:our|the|my|this|these)\s+(?:[\w./'-]+\s+){{0,5}}?[\w./()'-]+|"
    rf"(?!{_NO_SUBJECT})[A-Z][\w.'-]*(?:\s+[\w.'-]+){{0,3}}?)\s+(?:is|are)\s+(?P<what>.+?)){END}",
    re.DOTALL,
)
# What may be told of by somebody who only looked at it: parts of a system, with something that can be checked.
_PARTS = (
    r"(?:service|server|database|db|api|app|application|system|module|pipeline|backend|frontend|library|"
    r"component|endpoint|"
    r"cluster|queue|worker|job|repo|repository|project|table|schema|config|configuration|test suite|timeout|"
    r"port|token|key|"
    r"branch|bucket|cache|code|tests?|build|website|site|team|company)s?\b"
)
PART = re.compile(rf"^(?:the|our|your|this)\s+(?:[\w./'-]+\s+){{0,4}}?{_PARTS}", re.IGNORECASE)
PERSONAL = re.compile(rf"^my\s+(?!(?:[\w./'-]+\s+){{0,3}}?{_PARTS})", re.IGNORECASE)
CHECKABLE = re.compile(r"\d|https?://|`|\w_\w|/\w|\b[A-Z][a-z]+[A-Z]|\b[A-Z]{2,}\b")
CODE = re.compile(r"\w\(\)|`|\w_\w|[a-z][A-Z]")
ADVICE = re.compile(r"\byou(?:r|rs|rself|'re|'ll|'ve|'d)?\b|\*\*|^#", re.IGNORECASE)
SMALL_TALK = re.compile(
    r"^(?:the|my|our|this) (?:\w+ )?(?:meeting|call|lunch|dinner|weather|weekend|time|train|day|problem|"
    r"question|answer|point|error)\b",
    re.I,
)
PASSING = re.compile(
    r"\b(?:now|today|currently|right now|at the moment|running|done|ready|failing|passing|broken|down|up|green|"
    r"red|fine|good|great|nice|welcome|here|working|not)\b",
    re.I,
)
# What somebody is for a while, or is called for the sake of it.
FEELING = re.compile(
    r"^(?:(?:is|are|have|has) )?(?:so|such|like)\b|\b(?:excited|happy|sad|sick|tired|busy|asleep|awake|at home|away|"
    r"okay|ok|proud|amazing|"
    r"awesome|cute|adorable|sweet|inspiring|the best|coming|going)\b",
    re.IGNORECASE,
)
DENIED = re.compile(rf"\b(?:{NOT}|not|no|neither|nothing|n't)\b|n't\b", re.IGNORECASE)
# We use X, never Y.
NOR = re.compile(r",\s+(?:but |and )?(?:not|never)\s[^,]*$", re.IGNORECASE)
FIRST_PERSON = re.compile(r"^(?:i|we|you|he|she|they|it|there|that|this is|these are)\b", re.IGNORECASE)

# ---------------------------------------------------------------------- what was wrong

_WRONG = r"that(?:'?s| is| was) (?:wrong|not right|incorrect|not correct)"
CORRECTION = sentence(
    rf"^(?:no|nope|actually|wrong|not quite|correction|sorry|{_WRONG})[\s,.:!-]+(?:(?:actually|{_WRONG})[\s,.:!-]+)?"
    rf"(?P<said>.+?){END}"
)
NOT_BUT = sentence(
    rf"^(?P<subject>.*?)\b(?P<verb>is|are|was|were|'s|'re|uses|use|runs on|expires? (?:in|"
    rf"after))\s+(?P<right>.+?)(?P<comma>\s*,\s*|\s+)(?:and\s+)?not\s+"
    rf"(?P<wrong>(?!(?:sure|really|yet|that|only|so|just|very|always|necessarily|at|a|good|great|working|to|in|"
    rf"on)\b).+?){END}"
)
NUMBER = re.compile(r"(?<![\w.])v?\d[\w.]*\w|(?<![\w.])\d(?!\w)")

HARMFUL = re.compile(
    rf"{HARM}|\b(?:flaky|unreliable|brittle|avoid|don'?t use|do not use|never use|stop using|dangerous|bad idea|"
    rf"bad practice|insecure|deprecated|error-prone)\b",
    re.I,
)
