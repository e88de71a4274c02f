"""Orders without an addressee: what only makes sense to whoever answers, acts or keeps secrets in a conversation.

Teams tell each other what to do all day. They do not ask each other for wrong answers, for obedience to the author of a
page, for a verdict whatever the facts, or for a key to be given to whoever comes.
"""

from __future__ import annotations

from alma.ingest.sign import Sign, hints, said

# Where an order begins: "never give" and "who gives" are none.
_BEGIN = (
    r"(?:^|[.!?:;,\n*>\"“-] {0,3}|\b(?:and|then|please|kindly|now|first|also|always|just|simply|you must|you will) )"
)
_ANSWER = r"(?:answer|respond|reply)(?! to (?:customers|tickets))"
_UNTRUE = r"(?:wrong|false|incorrect|misleading|made[- ]up|invented|untrue|fabricated)"
_AUTHOR = r"(?:sender|author|writer|poster|creator|person (?:who|that) (?:sent|wrote|posted))"
_PAGE = r"(?:document|page|text|message|mail|e-?mail|file|note|ticket|comment|post|file|readme)"
_SECRETS = (
    r"(?:cookies?|passwords?|passcodes?|api keys?|private keys?|access keys?|tokens?|credentials|secrets?|"
    r"pins?)"
)
_ANYBODY = rf"(?:whoever|any(?:one|body)|every(?:one|body)|the (?:next )?(?:{_AUTHOR}|stranger|caller)|a stranger)"
_PRIVATE = (
    r"(?:\S{0,60}\.env\b(?!\.(?:example|sample|template|dist))|\S{0,60}\.ssh\b|id_rsa|environment variables|the "
    r"environment|"
    r"/etc/(?:passwd|shadow)|the key ?chain|the credentials file|\S{0,60}credentials\.json)"
)
_SHOWN_IN = (
    r"(?:output|answers?|repl(?:y|ies)|responses?|comments?|messages?|summar(?:y|ies)|descriptions?|image|title)"
)
_FINE = (
    r"(?:pass(?:ed|es)?|succeed(?:ed|s)?|(?:is|are|was|were|looks?) (?:fine|safe|clean|ok(?:ay)?|secure|"
    r"correct|approved|compliant|good|healthy)|works?|worked)"
)
_HARM = r"(?:delete|wipe|erase|send|ignore|approve|confirm|transfer|yes|agreed|run|execute|format|drop)"

UNADDRESSED: tuple[Sign, ...] = (
    Sign(
        "it plants a rule about what to answer",
        said(
            rf"{_BEGIN}{_ANSWER}\b[^.\n]{{0,60}}\b{_UNTRUE} (?:answers?|information|facts?|statements?|claims?)\b",
            rf"{_BEGIN}(?:write|give|phrase|make|translate)\b[^.\n]{{0,20}}\ball (?:further|future|following|"
            rf"subsequent|later) "
            r"(?:answers|replies)\b",
            rf"{_BEGIN}give (?:only )?{_UNTRUE} (?:answers|information|facts)\b",
            rf"{_BEGIN}(?:{_ANSWER}|write|speak|use)\b[^.\n]{{0,60}}\bfrom (?:the|your) next (?:message|answer|"
            rf"reply|question|turn) on\b",
            rf"\bfrom (?:the|your) next (?:message|answer|reply|question|turn) on,? (?:{_ANSWER}|write|speak|use)\b",
            rf"{_BEGIN}(?:end|begin|start|finish|close|preface|prefix|conclude) (?:each|every|any|all) (?:one )?of "
            rf"your "
            r"(?:\w+ )?(?:answers|replies|responses|messages|outputs)\b",
            rf"{_BEGIN}(?:(?:in|within) your (?:next |final )?(?:answer|reply|response|summary), )?"
            r"(?:state|present|report|assert|claim|repeat|mention) (?:it )?as (?:a |an )?(?:established |known "
            r")?fact that\b",
            r"\b(?:if|when|whenever|should) (?:you are |you're |you be |anyone |anybody |somebody |someone |ever |"
            r"they )?"
            r"ask(?:ed|s)?\b[^.\n]{0,60}, (?:claim|pretend|lie|insist|deny (?:it|that|everything|having|knowing))\b",
            rf"{_BEGIN}(?:always|only) (?:recommend|suggest|offer|choose|pick|praise|"
            rf"promote)\b[^.\n]{{0,60}}\b(?:even (?:if|when)|"
            r"no matter what|whatever|regardless of what) (?:the |a |their )?(?:users?|customers?|clients?|people|"
            r"person|they)\b",
        ),
        hints(
            "wrong|false|incorrect|mislead|made|invented|untrue|fabricated|next |of your|fact that|pretend|lie|"
            "insist|deny|claim|always|only|all f|all s|all l"
        ),
    ),
    Sign(
        "it asks for a verdict whatever the facts",
        said(
            rf"{_BEGIN}(?:say|state|claim|report|write|confirm|assert|tell \w+|"
            rf"conclude)\b[^.\n]{{0,60}}\b{_FINE}\b[^.\n]{{0,20}}"
            r"\b(?:whatever|regardless of|no matter)(?: what)? (?:the |your |its )?(?:real |actual )?(?:results?|"
            r"outcomes?|facts|"
            r"truth|evidence|findings?|logs?|checks?)\b",
            rf"{_BEGIN}(?:approve|accept|merge|sign|release|pay|publish) this\b[^.\n]{{0,60}}\bwithout "
            r"(?:reading|looking|reviewing|checking|review|asking|a (?:look|review|check)|any)\b",
        ),
        hints("whatever|regardless|no matter|without"),
    ),
    Sign(
        "it asks to obey what stands elsewhere",
        said(
            rf"{_BEGIN}(?:do|follow|obey|carry out|execute|perform) (?:whatever|anything|everything|all)(?: "
            rf"that)?(?: is)? "
            rf"(?:the |this |its )?(?:{_AUTHOR}|{_PAGE})(?: of (?:this|the) \w+)? (?:asks?|says?|tells?|wants?|"
            rf"demands?|requests?|orders?)\b",
            rf"\b(?:do not|don['’]?t|never) (?:follow|obey|apply|heed) (?:any|a|the|all)?(?: other)? ?(?:rules?|"
            rf"instructions?|"
            rf"polic(?:y|ies)|guidelines?|orders?) (?:that |which )?(?:contradicts?|conflicts? with|goes against|"
            rf"go against|disagrees? with) "
            rf"(?:this|the following|the present) {_PAGE}\b",
            r"\btreat (?:every|all|any|each|the)(?: of)?(?: the)?(?: following| further| next| subsequent| later)? "
            r"(?:messages?|text|input|lines?|words?)"
            r"(?: below| that follows?)? as (?:if |though |coming |being )*(?:it |they )?(?:came |come |were |was |"
            r"is |are )*"
            r"(?:(?:sent |written )?(?:from|by)) (?:the |your )?(?:system|developers?|admin\w*|operator|owner)\b",
            rf"\b(?:from (?:now|this point|here|this moment|this message) on|henceforth),? (?:the )?(?:word|phrase|"
            rf"term|sentence|command)? ?"
            rf"[\"“'‘«][^\"”'’»\n]{{1,40}}[\"”'’»] (?:means|stands for|shall mean|will mean) [\"“'‘«]?(?:to "
            rf")?{_HARM}\b",
        ),
        hints(
            "whatever|anything|everything|all th|contradict|conflict|against|disagree|treat|means|stands for|shall "
            "mean|will mean"
        ),
    ),
    Sign(
        "it asks to send private data away",
        said(
            rf"{_BEGIN}(?:hand over|hand|give|send|tell|reveal|disclose|show|pass)\b[^.\n]{{0,40}}\b{_SECRETS} "
            rf"(?:(?:of|for) \w+ )?to {_ANYBODY}\b",
            rf"{_BEGIN}(?:include|print|show|paste|put|append|add|insert|quote)\b[^.\n]{{0,20}}\b(?:contents?|"
            rf"values?) of (?:the |your |all |my )*"
            rf"{_PRIVATE}[^.\n]{{0,40}}?\b(?:in|into|to|at|as) (?:[\w ]{{0,20}})\b{_SHOWN_IN}\b",
            rf"{_BEGIN}(?:encode|embed|append|attach|serialize|hide)\b[^.\n]{{0,30}}\b(?:conversation|chat|"
            rf"dialogue|context|prompt)(?: so far| history| above)?\b"
            r"[^\n]{0,60}(?:https?://|\bquery string\b|\b(?:image|link) (?:url|address)\b)",
            r"\b(?:user|customer|person|human)['’]?s?['’]? (?:\w+ ){0,3}(?:name|address|e-?mail|data|number|"
            r"location|password|messages?)\b[^.\n]{0,60}"
            r"\b(?:url|link|image)\b[^.\n]{0,20}\b(?:of|in) your (?:next )?(?:reply|answer|response|message)\b",
        ),
        hints(
            "cookie|passw|passc|key|token|credential|secret|pin|.env|.ssh|id_rsa|environment|/etc/|conversation|"
            "chat|dialogue|context|prompt|url|link|image"
        ),
    ),
    Sign(
        "it speaks in the user's place",
        said(
            r"\b(?:pretend|act as (?:if|though)|behave as (?:if|though)) (?:that )?(?:you |they |he |she |the user "
            r"|it )?(?:had |have |has |were |was )?(?:already )?"
            r"(?:asked|got|gotten|received|been given|obtained|been granted|gave|"
            r"given)\b[^.\n]{0,30}\b(?:permission|approval|consent|confirmation|authori[sz]ation)\b",
        ),
        hints("permission|approval|consent|confirmation|authori"),
    ),
    Sign(
        "it orders a model about",
        said(
            r"\b(?:use|call|invoke) the (?:(?:tool|function|plugin) [`\"“']?\w+_\w+[`\"”']?|"
            r"[`\"“']?\w+_\w+[`\"”']? (?:tool|plugin)) (?:to|with|"
            r"and)\b[^\n]{0,60}(?:\+\d[\d ()-]{6,}|\S@\S+\.\w|https?://)",
        ),
        hints("use the|call the|invoke the"),
    ),
    Sign(
        "it asks to send private data away",
        said(
            rf"{_BEGIN}(?:forward|send|copy|cc|bcc|mail|redirect|route)\b[^.\n]{{0,30}}\b(?:every|all|each|any)\b"
            r"[^.\n]{0,40}\b(?:the|your) user(?:['’]s)?\b[^\n]{0,60}\bto \S+@\S+\.\w",
            r"\b(?:before|while|when|after) (?:you )?(?:answer|reply|respond|summari[sz]e?)(?:ing)?\b[^.\n]{0,30}"
            r"\b(?:fetch|open|visit|load|call|request|download|ping)\b[^\n]{0,20}https?://",
            r"\bstop (?:what(?:ever)? you(?:['’]re| are) doing|your (?:current )?(?:task|work))\b,? (?:and |then )+"
            r"(?:open|visit|fetch|run|download|execute|load|go to)\b[^\n]{0,40}(?:https?://|\.sh\b)",
        ),
        hints("user|http|stop"),
    ),
    Sign(
        "it speaks in the user's place",
        said(
            r"\bthe user (?:wants|prefers|asked|agreed|would like|wishes)\b[^.\n]{0,50}\b(?:sent|forwarded|paid|copied|"
            r"transferred|delivered|uploaded|wired) to "
            r"(?:\S+@\S+\.\w|https?://|(?:the |this )?(?:account|iban|wallet)\b)",
        ),
        hints("the user"),
    ),
    Sign(
        "it plants a rule about what to answer",
        said(
            rf"{_BEGIN}(?:append|add|insert|include|put|attach)\b[^.\n]{{0,20}}(?:[\"'“‘`]|https?://|\blink\b)[^\n]{{0,60}}"
            r"\b(?:to|in|into|after|behind) (?:everything|anything|whatever|all)(?: that)? you (?:write|say|output|"
            r"produce|generate|answer|send|post)\b",
            rf"\b(?:do not|don['’]?t) (?:summari[sz]e|translate|review|describe|quote|analy[sz]e) this {_PAGE}\b"
            r"[^\w\n]{1,4}(?:and |but |rather )*instead\b",
            rf"{_BEGIN}(?:respond|reply|answer|output|print|return|repeat)\b[^.\n]{{0,30}}\bthe (?:full|entire|whole|"
            r"complete) (?:conversation|chat|prompt|context|dialogue)(?: history| so far)?\s?(?:[.!,;]|$)",
            r"\ball (?:future|further|subsequent|later) (?:recommendations|answers|replies|summaries|suggestions|"
            r"comparisons)\b[^.\n]{0,30}\b(?:must|should|shall|have to|will|are to) (?:always |also |only )*"
            r"(?:favou?r|prefer|mention|recommend|praise|promote|endorse|claim|say|name|begin|end)\b",
        ),
        hints("all f|all s|all l|you |instead|full |entire |whole |complete "),
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        said(
            r"\b(?:pretend|imagine|(?:act|behave) as (?:if|though))\b[^.\n]{0,40}\b(?:rules|restrictions|guidelines|"
            r"guardrails|safeguards|polic(?:y|ies)|instructions)\b[^.\n]{0,20}"
            r"\b(?:do not|don['’]?t|no longer|never|did not) (?:exist|apply|matter|count|hold)\b",
        ),
        hints("pretend|imagine|as if|as though"),
    ),
)
"""Orders to nobody in particular, which nobody gives to people."""
