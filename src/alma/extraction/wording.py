"""How people say it: the sentences that tell what worked, what did not, what is wanted, what is so, what was wrong."""

from __future__ import annotations

import re

NOT = r"(?:do not|don'?t|does not|doesn'?t|did not|didn'?t|never|no longer|can ?not|can'?t|won'?t)"
VERY = r"(?:really|always|usually|generally|strongly|much|definitely|personally|actually|just|also|still|very much)"
WELL = r"(?:(?:really |very |pretty |quite )?(?:well|great|nicely|perfectly|fine|reliably|flawlessly|like a charm))"
WORKED = (
    rf"(?:work(?:ed|s)(?: out)?(?: (?:now|again|{WELL}))*|did the trick|solved (?:it|the (?:problem|issue))|"
    rf"fixed it|was (?:a )?success(?:ful)?|succeeded|passed|paid off|helped(?: a lot)?)"
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
    r"issues?|bugs?|\w+ (?:tests?|errors?|timeouts?|failures?|bugs?)))"
)
HARMED = (
    rf"\b(?:(?:caused|broke|crashed|led to|resulted in|triggered|slowed down){_OBJECT}|"
    rf"made (?:the |our |my |it |everything |all )?(?:\w+ ){{0,4}}\b{BAD}\w*)"
)
HARMS = (
    rf"\b(?:(?:causes?|breaks?|crashes|leads? to|results? in|triggers?|slows? down){_OBJECT}|"
    rf"makes? (?:the |our |my |it |everything |all )?(?:\w+ ){{0,4}}\b{BAD}\w*)"
)
HARM = rf"(?:{HARMED}|{HARMS})"
FAILED = (
    r"(?:didn'?t work|did not work|doesn'?t work|does not work|never worked|failed|fails|keeps failing|kept "
    r"failing|didn'?t help|did not help|"
    r"was a (?:mistake|bad idea|disaster|waste of time)|backfired|made (?:it|things) worse|had no effect|"
    r"made no difference)"
)
BECAUSE = r"(?:(?:\s*,?\s*(?:because|since|as|due to|so|with)|\s*:)\s+(?P<reason>.+?))?"
END = r"[.!…\s:)]*$"
WE = r"(?:i|we|i've|we've|i have|we have)"


def _p(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


# ---------------------------------------------------------------------- what worked

# Said of what the speaker did.
SUCCESSES = (
    # I used X which worked well; I tried X and it worked.
    (
        _p(
            rf"^{WE} (?:used|tried|applied|went with|switched to|chose|did|ran|added|"
            rf"took)\s+(?P<strategy>.+?)[,;]?\s+(?:which|and (?:it|that|this)|and|it|that) (?:has "
            rf")?{WORKED}(?P<behind>)\b.*$"
        ),
        0.85,
    ),
    # I fixed Y by doing X; we solved the problem with X.
    (
        _p(
            rf"^{WE} (?:finally |successfully )?(?:fixed|solved|resolved|got rid of|handled|unblocked|sped up|"
            rf"improved)\s+(?P<task>.+?)\s+(?:by|with|using|through)\s+(?P<strategy>.+?){END}"
        ),
        0.85,
    ),
    (_p(rf"^{WE} (?:was|were) able to\s+(?P<task>.+?)\s+(?:by|using)\s+(?P<strategy>.+?){END}"), 0.8),
    (_p(rf"^{WE} successfully\s+(?P<strategy>.+?){END}"), 0.6),
    (
        _p(rf"^{WE} (?:had|got) (?:good |great |some )?(?:success|results|luck) with\s+(?P<strategy>.+?){END}"),
        0.75,
    ),
    # After doing X it worked.
    (
        _p(
            r"^after (?P<strategy>\w+ing\s+.+?),?\s+(?:it|that|this|everything|all)"
            rf"(?: all| finally| then)? {WORKED}(?P<behind>)\b.*$"
        ),
        0.75,
    ),
    # I did X and all tests pass; after doing X the query was faster.
    (
        _p(
            rf"^{WE} (?P<strategy>\w+ed\s+.+?),?\s+(?:which|and (?:now )?(?:all |the )?"
            rf"(?:tests?|build|it|that|everything|they)(?: all| now)*)\s+"
            rf"(?:pass(?:es|ed)?|works?|worked|succeeds?|succeeded)(?P<behind>)\b.*?{END}"
        ),
        0.8,
    ),
    # The fix was to X; what worked was X.
    (
        _p(
            rf"^(?:the (?:fix|solution|trick) (?:was|is)|what (?:finally )?worked (?:was|is))\s+(?:to )?"
            rf"(?P<strategy>.+?){END}"
        ),
        0.75,
    ),
    # The tests pass after I did X.
    (
        _p(
            rf"^(?:all |the )?(?:tests?|build|it|everything|they)(?: all| now)*\s+(?:pass(?:es|ed)?|works?|"
            rf"worked|succeeds?|"
            rf"succeeded)(?: now)?\s+(?:after|once|since)\s+(?:(?:i|we)\s+)?(?P<strategy>.+?){END}"
        ),
        0.8,
    ),
    (
        _p(
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
        _p(
            rf"^(?P<strategy>\w{{2,}}ing\s+.+?)\s+(?:has )?(?:fixed|solved|resolved|eliminated|stopped|cured|"
            rf"got rid of)\s+(?P<task>(?:the|our|my|this|that|it|all|every|both|those|these|a|an)\b.*?){END}"
        ),
        0.85,
    ),
    # X worked well for Y.
    (
        _p(
            rf"^(?P<strategy>(?!it\b|that\b|this\b|everything\b|all\b|they\b|which\b|nothing\b|he\b|she\b|"
            rf"what\b).{{3,120}}?) {WORKED}(?P<behind>)(?: (?:for|on|with|when|"
            rf"in)\s+(?P<task>.+?))?\s*(?:(?:[,.!…]|without\b).*)?$"
        ),
        0.7,
    ),
)

# It worked, thanks: what did was said before.
IT_WORKED = _p(
    rf"^(?:it|that|this)(?: (?:all|really|actually|finally|indeed|totally))* {WORKED}(?P<behind>)\b"
    rf"(?! if\b| when\b| out to\b).{{0,60}}$"
)
RULES = (
    # For Y, X works best; X works best for Y.
    (
        _p(
            rf"^(?:for|when(?:ever)?|with|on|in)\s+(?P<task>.+?),\s*(?P<strategy>.+?)\s+works? (?:best|better|"
            rf"{WELL})(?P<behind>)\b.*?{END}"
        ),
        0.8,
    ),
    (
        _p(
            rf"^(?P<strategy>(?!it\b|that\b|this\b|what\b).{{3,120}}?)\s+works? (?:best|better|{WELL})"
            rf"(?P<behind>) (?:for|when|with|on|in)\s+(?P<task>.+?){END}"
        ),
        0.8,
    ),
    # X is more reliable than Y.
    (
        _p(
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
        _p(
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
        _p(
            rf"^{WE} (?:used|tried|applied|went with|switched to|did|added)\s+(?P<strategy>.+?)[,;]?\s+(?:but|"
            rf"and|however|which)\s+(?:it |that |this |they )?(?P<reason>(?:{FAILED}|{HARM}|was (?:too "
            rf")?(?:slow|flaky|unreliable)|timed out|crashed|broke|got|ran into|caused|hit).*?){END}"
        ),
        0.85,
    ),
    # I drained the node, which failed.
    (
        _p(
            rf"^{WE} (?P<strategy>\w+ed\s+.+?)[,;]?\s+(?:which|(?:but|and) (?:it|that|this))\s+"
            rf"(?P<reason>{FAILED}.*?){END}"
        ),
        0.8,
    ),
)
BLAMED = (
    # X didn't work because Y.
    (_p(rf"^(?P<strategy>.{{1,140}}?)\s+{FAILED}(?: (?:for|on|in)\s+(?P<task>[^,]+?))?{BECAUSE}{END}"), 0.75),
    # X made the tests flaky; X causes Y.
    (
        _p(
            rf"^(?P<strategy>(?!(?:it|this|that|which|he|she|they|nothing|something|what|i|we|you|"
            rf"who)\b).{{2,120}}?)\s+(?P<reason>{HARM}\b.*?)(?:[,;]\s*(?:use|so use|"
            rf"prefer)\s+(?P<alternative>.+?)(?: instead)?)?{END}"
        ),
        0.8,
    ),
    (
        _p(
            rf"^(?P<strategy>(?!(?:it|this|that|i|we|you|he|she|they)\b).{{2,120}}?)\s+(?P<reason>(?:is|are|"
            rf"was|were) (?:really |"
            rf"very |too |so |extremely )?(?:flaky|unreliable|brittle|error-prone|deprecated|"
            rf"insecure|dangerous|a bad idea|bad practice))\b.*?{END}"
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
THINGS = _p(
    r"^(?:(?:the|our|my|all|some|these|those|two|three|most)\s+(?:[\w-]+\s+){0,3})?(?:tests?|build|builds|deploy|"
    r"deployment|pipeline|servers?|requests?|quer(?:y|ies)|jobs?|page|form|app|ci|login|checks?|suite|"
    r"connection|import|"
    r"install|migration)$"
)
UNNAMED = _p(r"^(?:that|this|the|my|your) (?:approach|solution|fix|idea|method|strategy|one|change|suggestion|trick)$")
# What was to be done, said of something that was named before.
UNNAMED_TASK = _p(
    r"^(?:it|this|that|them|these|those|everything|"
    r"(?:the|this|that|my|our) (?:problem|issue|bug|error|failure|thing)s?)$"
)
PRONOUNS = frozenset(["it", "that", "this", "these", "those", "they", "which", "he", "she", "everything", "nothing"])

# ---------------------------------------------------------------------- what is wanted

NOTHING = (
    r"(?:(?:it|this|that|these|those|you|them|him|her|how|when)\b|what you|how you|your (?:idea|work|answer)|"
    r"(?:the|all|"
    r"both|your)\s+"
    r"(?:\w+\s+)?(?:ideas?|suggestions?|sound|look|options?|recommendations?|mix|concept|plan|list|tips?|"
    r"examples?|answers?)\b)"
)
# What follows "always" or "never" without telling anybody to do something.
NO_ORDER = (
    r"(?:mind|happy|glad|a|an|been|said|heard|thought|knew|saw|seen|had|have|has|is|are|was|were|works?|nice|"
    r"fun|good|great|"
    r"sure|going|gonna|again|ending|understood|ever|in|on|at|the|you're|welcome|\w+ed)\b"
)
WISHES = (
    (
        _p(
            rf"^(?:i used to \w+ [^,;]+[,;]\s*(?:but )?)?(?:now,? |nowadays,? |these days,? |personally,? )?"
            rf"i(?:'d| would)?(?: {VERY}| now)* (?:prefer|rather(?: have)?|"
            rf"favou?r)\s+(?P<wish>.+?){END}"
        ),
        0.9,
        "prefers {}",
    ),
    (
        _p(
            rf"^(?:personally,? )?i(?: {VERY})* (?:like|love|enjoy)(?! to (?:test|check|know|ask|"
            rf"see)\b)\s+(?P<wish>(?!{NOTHING}).+?){END}"
        ),
        0.7,
        "likes {}",
    ),
    (
        _p(
            rf"^i(?: {VERY})* (?:hate|dislike|can'?t stand|{NOT} (?:like|want|enjoy|care for))(?! "
            rf"to\b)\s+(?P<wish>(?!{NOTHING}).+?){END}"
        ),
        0.85,
        "dislikes {}",
    ),
    (_p(rf"^i always want\s+(?P<wish>.+?){END}"), 0.85, "always wants {}"),
    (
        _p(rf"^i want (?P<wish>(?:all|every|each|my|the|your)\b.+?\b(?:in|to be|as|with|without)\b.+?){END}"),
        0.65,
        "wants {}",
    ),
    (
        _p(
            rf"^i (?P<how>always|usually|never|only)\s+(?P<wish>(?:use|write|run|work|code|test|deploy|name|"
            rf"start|send|ask|check|review|read|commit|push|merge|rebase|squash|document|format|keep|plan|answer|"
            rf"reply|schedule|book|order|drink|eat|travel|fly|cook|buy|meet|lint|log|sign|share|follow|verify|validate)"
            rf"\b.+?){END}"
        ),
        0.7,
        "{how} {}",
    ),
    (_p(rf"^you should (?P<how>always|never)\s+(?P<wish>(?!{NO_ORDER})[a-z].+?){END}"), 0.85, "{how} {}"),
    (
        _p(rf"^(?:no[, ]+)?(?:please )?(?P<wish>use\s+.+?(?:\s+(?:instead of|rather than)|,?\s+not)\s+.+?){END}"),
        0.8,
        "{}",
    ),
    (_p(rf"^please (?P<wish>(?:use|write|answer|reply|respond|keep|format|explain|speak)\b.+?){END}"), 0.55, "{}"),
    (
        _p(
            rf"^(?:(?:from now on|in (?:the )?future|going forward|remember|next time|as a "
            rf"rule)[,:]?\s*)?(?:please[, ]+)?(?:make sure (?:to|you) |be sure to |remember to "
            rf")?(?P<how>always|never)\s+(?P<wish>(?!{NO_ORDER})[a-z].+?){END}"
        ),
        0.9,
        "{how} {}",
    ),
    (
        _p(rf"^(?:from now on|going forward|in (?:the )?future|next time)[,:]?\s+(?:please\s+)?(?P<wish>.+?){END}"),
        0.85,
        "{}",
    ),
    (
        _p(
            rf"^(?:please[, ]+)?(?:do not|don'?t)(?: ever)?\s+(?P<wish>(?:use|add|write|put|commit|push|touch|"
            rf"change|call|send|include|ask|explain|mention|create|delete|modify|run|give|make|format|deploy|"
            rf"refactor|skip|assume)\b.+?){END}"
        ),
        0.85,
        "do not {}",
    ),
    (_p(rf"^(?:please )?stop\s+(?P<wish>\w+ing\b.*?){END}"), 0.85, "avoid {}"),
    (_p(rf"^please avoid\s+(?P<wish>.+?){END}"), 0.85, "avoid {}"),
    (
        _p(rf"^no (?P<wish>(?!thanks|need|problem|worries)[a-z]+(?: [\w-]+){{0,4}}),? (?:please|pls)\b{END}"),
        0.85,
        "no {}",
    ),
    (_p(rf"^(?:i'm |i am )?not a (?:big |huge |great )?fan of\s+(?P<wish>.+?){END}"), 0.8, "dislikes {}"),
    (
        _p(
            rf"^(?P<wish>keep (?:your |the |all |my )?(?:\w+ )?(?:answers?|responses?|repl(?:y|ies)|"
            rf"explanations?|code|summar(?:y|ies)|"
            rf"messages?|functions?|output|it)\s+(?:short|concise|brief|simple|small|clean|formal|readable|"
            rf"polite)\b.*?){END}"
        ),
        0.8,
        "{}",
    ),
    (_p(rf"^i(?:'d| would) like you to (?P<how>always|never)\s+(?P<wish>.+?){END}"), 0.9, "{how} {}"),
    (_p(rf"^i(?:'m| am) (?:using|running)\s+(?P<wish>(?!{NOTHING})\S*[A-Z\d].+?){END}"), 0.6, "uses {}"),
    (
        _p(
            rf"^i(?:'m| am) (?P<wish>(?:vegan|vegetarian|colou?r-?blind|left-handed|allergic to .+?|based in "
            rf".+?|new to .+?|"
            rf"an? [\w -]{{0,40}}(?:developer|engineer|designer|manager|student|teacher|doctor|researcher|"
            rf"scientist|tester|"
            rf"analyst|beginner|admin|writer|founder))\b.*?){END}"
        ),
        0.7,
        "is {}",
    ),
    (
        _p(
            rf"^(?:please |you can |just )?call me\s+(?P<wish>(?!back|when|if|later|tomorrow|on\b|"
            rf"at\b).{{1,40}}?){END}"
        ),
        0.9,
        "wants to be called {}",
    ),
    (
        _p(
            rf"^my (?P<what>name|time ?zone|pronouns|native language|preferred language|role|job title|"
            rf"favou?rite \w+) (?:is|are)\s+(?P<wish>.+?){END}"
        ),
        0.85,
        "{what}: {}",
    ),
    (_p(rf"^i (?:live in|work (?:as|at|for)|am based in|come from|speak)\s+(?P<wish>.+?){END}"), 0.65, "{verb} {}"),
)

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
    r"closes? (?:at|on))"
)
_NO_SUBJECT = (
    r"(?:Your?|Since|Both|One|If|When|There|Here|It|This|That|These|Those|What|Which|Who|He|She|They|Some|Many|"
    r"Most|Every|Another|"
    r"Why|How|Where|Also|So|And|But|As|For|With|In|On|At|By|To|From|After|Before|While|Although|Because|"
    r"However|Remember|"
    r"Maybe|Perhaps|Overall|Finally|First|Then|Next|Now|I|We|My|Our|Its|Their|All|Each|Any|No)\b"
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
        _p(
            rf"^(?:i|we) (?:found(?: out)?|learned|noticed|discovered|confirmed|realized|realised|checked "
            rf"and)(?: that)\s+"
            rf"(?P<fact>.+?){END}"
        ),
        0.8,
    ),
    (_p(rf"^(?:it (?:turned|turns) out|turns out)(?: that)?\s+(?P<fact>.+?){END}"), 0.75),
    (
        _p(
            rf"^(?P<fact>the (?:root cause|cause|issue|problem|bug) (?:was|is) (?:that|caused by|due to|in|"
            rf"with)\s+.+?){END}"
        ),
        0.75,
    ),
)
FACTS = (
    (
        _p(
            rf"^(?:please )?(?:remember|note|keep in mind|be aware|for the record|important|reminder|heads "
            rf"up)(?: that|[:,])\s*(?P<fact>(?!you\b|it's okay\b|to\b).+?){END}"
        ),
        0.85,
    ),
    (
        re.compile(
            rf"^(?P<fact>(?i:we(?:'re| are)? )(?i:using|running|use|deploy|host|store|run|keep|release|ship|"
            rf"log|cache|authenticate|test|"
            rf"build|require|support|follow)s?\s+(?!into\b|getting\b|it\b|that\b|this\b)\S.*?){END}",
            re.DOTALL,
        ),
        0.75,
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
HAS = re.compile(
    r"^(?P<fact>(?:our|the|my|this|these|each|every)\s+(?:[\w./'-]+\s+){0,5}?[\w./()'-]+\s+(?:takes?|needs?|"
    r"has|have|costs?|lasts?|"
    rf"serves?|covers?|includes?|provides?|generates?|produces?|calls?)\s+(?P<what>.+?)){END}",
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
DENIED = re.compile(rf"\b(?:{NOT}|not|no|neither|nothing|n't)\b|n't\b", re.IGNORECASE)
FIRST_PERSON = re.compile(r"^(?:i|we|you|he|she|they|it|there|that|this is|these are)\b", re.IGNORECASE)

# ---------------------------------------------------------------------- what was wrong

CORRECTION = _p(
    rf"^(?:no|nope|actually|wrong|not quite|correction|sorry|that'?s (?:wrong|not right|incorrect|not "
    rf"correct))[\s,.:!-]+(?:(?:actually|that'?s wrong)[,\s]+)?(?P<said>.+?){END}"
)
NOT_BUT = _p(
    rf"^(?P<subject>.*?)\b(?P<verb>is|are|was|were|'s|'re|uses|use|runs on|expires? (?:in|"
    rf"after))\s+(?P<right>.+?)(?P<comma>\s*,\s*|\s+)(?:and\s+)?not\s+"
    rf"(?P<wrong>(?!(?:sure|really|yet|that|only|so|just|very|always|necessarily|at|a|good|great|working|to|in|"
    rf"on)\b).+?){END}"
)
NUMBER_CORRECTION = _p(
    rf"^(?:it|that|this)(?:'s| is| was| should be)?\s+(?:\w+ ){{0,3}}?(?P<right>v?\d[\w.]*)(?: \w+)?{END}"
)
NUMBER = re.compile(r"(?<![\w.])v?\d[\w.]*\w|(?<![\w.])\d(?!\w)")

HARMFUL = re.compile(
    rf"{HARM}|\b(?:flaky|unreliable|brittle|avoid|don'?t use|do not use|never use|stop using|dangerous|bad idea|"
    rf"bad practice|insecure|deprecated|error-prone)\b",
    re.I,
)
