"""How people say what they want: the sentences, how sure each is, and how it is written down."""

from __future__ import annotations

from alma.extraction.wording import END, NOT, VERY, sentence

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
# Verbs of what an agent can be told to do.
ORDER = (
    r"(?:use|write|give|answer|reply|respond|show|send|keep|format|include|add|put|ask|run|check|explain|start|begin|"
    r"end|"
    r"sign|avoid|skip|make|mention|name|list|cite|quote|sort|capitali[sz]e|uppercase|lowercase|indent|comment|"
    r"document|test|"
    r"lint|translate|round|convert|summari[sz]e|tell|remind|warn|stick|prefer|leave|remove|wrap|prefix|label|number|"
    r"link|"
    r"confirm|propose|suggest|offer|mark|highlight|attach|copy|cc|use)"
)
WISHES = (
    (
        sentence(
            rf"^(?:i used to \w+ [^,;]+[,;]\s*(?:but )?)?(?:now,? |nowadays,? |these days,? |personally,? )?"
            rf"i(?:'d| would)?(?: {VERY}| now)* (?:prefer|rather(?: have)?|"
            rf"favou?r)\s+(?P<wish>.+?){END}"
        ),
        0.9,
        "prefers {}",
    ),
    (
        sentence(
            rf"^(?:personally,? )?i(?: {VERY})* (?:like|love|enjoy)(?! to (?:test|check|know|ask|"
            rf"see)\b)\s+(?P<wish>(?!{NOTHING}).+?){END}"
        ),
        0.7,
        "likes {}",
    ),
    (
        sentence(
            rf"^i(?: {VERY})* (?:hate|dislike|can'?t stand|{NOT} (?:like|want|enjoy|care for))(?! "
            rf"to\b)\s+(?P<wish>(?!{NOTHING}).+?){END}"
        ),
        0.85,
        "dislikes {}",
    ),
    # Use X from now on; Y over Z, always.
    (
        sentence(
            rf"^(?:please |i(?:'d| would) like |i want )*"
            rf"(?P<wish>(?!(?:i|i'm|i've|i'll|we|we're|you|he|she|they|it|there|this|that|my|our)\b).*?\b(?:use|"
            rf"write|give|answers?|reply|replies|respond|show|send|"
            rf"keep|format|include|add|put|call|ask|run|check|explain|start|end|sign|avoid|skip|make|speak|over|"
            rf"mention)\b.*?),? "
            rf"(?:(?:from (?:now|here)|from (?:this|that) (?:point|moment))(?: on(?:wards?)?)?|going forward|in "
            rf"(?:the )?future|"
            rf"every (?:single )?time|by default|always){END}"
        ),
        0.85,
        "{}",
    ),
    # Whenever you do X, do Y.
    (
        sentence(
            rf"^(?P<wish>(?:when(?:ever)?|every time|each time) you (?!(?:run|click|open|start|press|see|have|"
            rf"get|are|can|finish|feel|want)\b)[^,]+, "
            rf"(?:please |also |always |never |first |do not |don'?t )*{ORDER}\b.+?){END}"
        ),
        0.8,
        "{}",
    ),
    (
        sentence(
            rf"^it(?:'s| is) important (?:to me |for me )?that you (?P<wish>(?!note\b|remember\b|have\b|are\b|"
            rf"feel\b).+?){END}"
        ),
        0.75,
        "{}",
    ),
    (
        sentence(
            rf"^(?P<wish>(?:(?:less|fewer) [a-z][\w -]{{2,40}}?|(?:shorter|longer|simpler|clearer) \w+)),? (?:please|"
            rf"pls)\b{END}"
        ),
        0.8,
        "{}",
    ),
    (sentence(rf"^(?:please[, ]+)?(?:do not|don'?t) ever\s+(?P<wish>(?!mind\b)[a-z]+ .+?){END}"), 0.85, "never {}"),
    (sentence(rf"^i always want\s+(?P<wish>.+?){END}"), 0.85, "always wants {}"),
    (
        sentence(rf"^i want (?P<wish>(?:all|every|each|my|the|your)\b.+?\b(?:in|to be|as|with|without)\b.+?){END}"),
        0.65,
        "wants {}",
    ),
    (
        sentence(
            rf"^i (?P<how>always|usually|never|only)\s+(?P<wish>(?:use|write|run|work|code|test|deploy|name|"
            rf"start|send|ask|check|review|read|commit|push|merge|rebase|squash|document|format|keep|plan|answer|"
            rf"reply|schedule|book|order|drink|eat|travel|fly|cook|buy|meet|lint|log|sign|share|follow|verify|validate)"
            rf"\b.+?){END}"
        ),
        0.7,
        "{how} {}",
    ),
    (
        sentence(
            rf"^i (?P<how>don'?t|do not) (?P<wish>(?:eat|drink|smoke|drive|fly|speak|take|travel|work)\b.+?){END}"
        ),
        0.75,
        "{how} {}",
    ),
    (sentence(rf"^you should (?P<how>always|never)\s+(?P<wish>(?!{NO_ORDER})[a-z].+?){END}"), 0.85, "{how} {}"),
    (
        sentence(rf"^(?:no[, ]+)?(?:please )?(?P<wish>use\s+.+?(?:\s+(?:instead of|rather than)|,?\s+not)\s+.+?){END}"),
        0.8,
        "{}",
    ),
    (
        sentence(rf"^please (?P<wish>(?:use|write|answer|reply|respond|keep|format|explain|speak)\b.+?){END}"),
        0.55,
        "{}",
    ),
    (
        sentence(
            rf"^(?:(?:from now on|in (?:the )?future|going forward|remember|next time|as a "
            rf"rule)[,:]?\s*)?(?:please[, ]+)?(?:make sure (?:to|you) |be sure to |remember to "
            rf")?(?P<how>always|never)\s+(?P<wish>(?!{NO_ORDER})[a-z].+?){END}"
        ),
        0.9,
        "{how} {}",
    ),
    (
        sentence(
            rf"^(?:from now on|going forward|in (?:the )?future|next time)[,:]?\s+(?:please\s+)?(?P<wish>.+?){END}"
        ),
        0.85,
        "{}",
    ),
    (
        sentence(
            rf"^(?:please[, ]+)?(?:do not|don'?t)(?: ever)?\s+(?P<wish>(?:use|add|write|put|commit|push|touch|"
            rf"change|call|send|include|ask|explain|mention|create|delete|modify|run|give|make|format|deploy|"
            rf"refactor|skip|assume)\b.+?){END}"
        ),
        0.85,
        "do not {}",
    ),
    (sentence(rf"^(?:please )?stop\s+(?P<wish>\w+ing\b.*?){END}"), 0.85, "avoid {}"),
    (sentence(rf"^please avoid\s+(?P<wish>.+?){END}"), 0.85, "avoid {}"),
    (
        sentence(
            rf"^no (?P<wish>(?!thanks|need|problem|worries)[a-z]+(?: [\w-]+){{0,4}}),? (?:please|pls)\b(?:,.*)?{END}"
        ),
        0.85,
        "no {}",
    ),
    (sentence(rf"^(?:i'm |i am )?not a (?:big |huge |great )?fan of\s+(?P<wish>.+?){END}"), 0.8, "dislikes {}"),
    (
        sentence(
            rf"^(?P<wish>keep (?:your |the |all |my )?(?:\w+ )?(?:answers?|responses?|repl(?:y|ies)|"
            rf"explanations?|code|summar(?:y|ies)|"
            rf"messages?|functions?|output|it|(?:\w+ )?names)\s+(?:short|concise|brief|simple|small|clean|formal|"
            rf"readable|"
            rf"polite|in\b|(?:under|below|within) \d+)\b.*?){END}"
        ),
        0.8,
        "{}",
    ),
    (sentence(rf"^i(?:'d| would) like you to (?P<how>always|never)\s+(?P<wish>.+?){END}"), 0.9, "{how} {}"),
    (sentence(rf"^i(?:'m| am) (?:using|running)\s+(?P<wish>(?!{NOTHING})\S*[A-Z\d].+?){END}"), 0.6, "uses {}"),
    (
        sentence(
            rf"^i(?:'m| am) (?P<wish>(?:(?:an? )?(?:vegan|vegetarian)|colou?r-?blind|left-handed|allergic to .+?|"
            rf"based in .+?|new to .+?|"
            rf"an? [\w -]{{0,40}}(?:developer|engineer|designer|manager|student|teacher|doctor|researcher|"
            rf"scientist|tester|"
            rf"analyst|beginner|admin|writer|founder|nurse|lawyer|chef|pilot|accountant|consultant|journalist|"
            rf"musician|freelancer|artist))\b.*?){END}"
        ),
        0.7,
        "is {}",
    ),
    (
        sentence(
            rf"^(?:please |you can |just )?call me\s+(?P<wish>(?!back|when|if|later|tomorrow|on\b|"
            rf"at\b).{{1,40}}?){END}"
        ),
        0.9,
        "wants to be called {}",
    ),
    (
        sentence(
            rf"^my (?P<what>name|time ?zone|pronouns|native language|preferred language|role|job title|"
            rf"favou?rite \w+) (?:is|are)\s+(?P<wish>.+?){END}"
        ),
        0.85,
        "{what}: {}",
    ),
    (sentence(rf"^(?:actually,? )?i(?:'ve| have)? (?:just |recently )?(?P<wish>moved to\s+[A-Z].+?){END}"), 0.65, "{}"),
    (
        sentence(
            rf"^i (?:live in|work (?:as|at|for|in(?=\s+(?:the )?(?-i:[A-Z])))|am based in|come from|speak)\s+"
            rf"(?P<wish>.+?){END}"
        ),
        0.65,
        "{verb} {}",
    ),
)
