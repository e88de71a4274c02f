"""Planting: orders about what is to be answered and remembered later on."""

from __future__ import annotations

from alma.ingest.sign import MODEL, USER, Sign, hints, said

_ANSWER = r"(?:answers?|repl(?:y|ies)|responses?|outputs?|summar(?:y|ies)|reviews?|first message|next message)"
_WORDING = r"(?:[\"'“‘`]|https?://|the (?:words?|string|phrase|sentence|link|url)\b)"
_THIS_PAGE = r"this (?:page|document|text|file|e-?mail|website|article|repo(?:sitory)?|resume|cv|paper|thread)"

PLANTING: tuple[Sign, ...] = (
    Sign(
        "it plants a rule about what to answer",
        said(
            rf"\byour (?:\w+ )?{_ANSWER} (?:must|should|shall|has to|needs to|will)(?: (?:always|only|also))* (?:be|"
            rf"begin|start|"
            rf"end|contain|include|say|consist|mention|state)\b(?![^.\n]{{0,20}}such as)[^.\n]{{0,20}}{_WORDING}",
            r"\b(?:every|each) (?:reply|answer) (?:you \w+ )?(?:must|should|shall|has to|will) (?:begin|start|"
            r"end)\b[^.\n]{0,15}"
            rf"{_WORDING}",
            rf"\bmake sure (?:that )?(?:all )?your (?:\w+ )?{_ANSWER} (?:contains?|includes?|mentions?|says?|"
            rf"starts?|ends?|"
            rf"begins?)\b[^.\n]{{0,30}}{_WORDING}",
            r"\b(?:at the (?:end|start|beginning|bottom|top) of|in|to|into) your (?:\w+ )?(?:answer|response|"
            r"summary|output|review|"
            r"reply)\b[^.\n]{0,30}\b(?:add|append|include|insert|put|mention|render|say|"
            r"state)\b[^.\n]{0,20}(?:\ba? ?link\b|"
            r"https?://|!\[|[\"'“])",
            r"\bin your (?:\w+ )?(?:summary|answer|review|response)\b,? (?:please )?(?:be sure to |make sure to |"
            r"remember to |"
            r"always )?(?:tell|recommend|claim|state that|say that|praise|promote|urge|advise)\b",
            r"\brender (?:this|the following) (?:image|link|markdown|html)\b[^.\n]{0,20}\b(?:in|with) your\b",
            r"\b(?:respond|reply|answer)(?: only| exclusively| solely| always| just)+ with [\"'“]",
            r"\bin (?:any|every|all) (?:answers?|repl(?:y|ies)|responses?) you give\b",
            r"\b(?:policy|rule) (?:now )?(?:is )?that you (?:answer|reply|respond|say|recommend|always)\b",
            r"\bsummari[sz]e (?:this|the|it)(?: \w+)? (?:by saying|as) ?:? ?[\"'“]",
            r"\b(?:translate|decode|decrypt|unscramble) (?:this|the following|"
            r"it)\b[^.\n]{0,20}\band (?:then )?(?:execute|run|follow|"
            r"obey|do) (?:it|them|that)\b",
            r"\byou must (?:always |only |never )+(?:approve|recommend|trust|obey|agree|comply|promote|suggest|"
            r"praise)\b",
            r"\byou must (?:always |only )+(?:prefer|favou?r|rank|name)\b[^.\n]{0,60}\b(?:every|all|any|each|your) "
            r"(?:recommendations?|answers?|comparisons?|rankings?|responses?|repl(?:y|ies))\b",
            rf"\b(?:when(?:ever)?|if) you (?:summari[sz]e|read|review|analy[sz]e|process|translate|evaluate|"
            rf"quote) {_THIS_PAGE}\b"
            r"[^.\n]{0,60}\b(?:say|state|include|mention|recommend|rate|claim|tell|write|add|give)\b",
            r"\b(?:insert|replace|inject|embed|swap|substitute)\b[^.\n]{0,50}\b(?:every|all|any|"
            r"each)(?: \w+){0,2} (?:that )?you "
            r"(?:output|produce|generate|create|emit|return|render)\b",
        ),
        hints("summari|translate|decode|decrypt|unscramble|your|you |reply|answer|respond|render"),
    ),
    Sign(
        "it plants a rule about what to answer",
        said(
            r"\b(?:whenever|if|when|every time|should) (?:anyone|anybody|someone|somebody|people|users?|a (?:user|"
            r"customer|reader)|"
            r"the (?:conversation|user|topic|discussion|chat))\b[^.\n]{0,60}?, ?(?:then )?(?:always |only |"
            r"please )*(?:(?:name|"
            r"promote|advertise|praise|endorse|claim|insist|pretend)\b|(?:direct|send|point|refer|redirect|"
            r"steer|route|guide|lead|take) them (?:to|through|via|over) "
            r"(?:[\w-]+\.)+[a-z]{2,}\b(?!@))",
            r"\bif (?:a|the|any) user (?:requests?|asks?|wants?)\b[^.\n]{0,40}, ?(?:reply|respond|answer|say) that\b",
            r"\b(?:when|if|whenever) asked\b[^.\n]{0,40}, ?(?:state|claim|insist|say|answer|reply|respond) (?:that|"
            r"[\"'“])",
        ),
        hints(
            " them |name|promote|advertise|praise|endorse|claim|insist|pretend|reply that|respond that|answer that|"
            "say|asked"
        ),
    ),
    Sign(
        "it plants a rule about what to answer",
        said(
            r"\b(?:save|add|store|write|commit|put|record)\b[^.\n]{0,30}\b(?:to|in|into) (?:your (?:[\w-]+ )?|"
            r"long-term |core |"
            r"persistent |the (?:agent|assistant|model)['’]s (?:\w+ )?)memory\b",
            r"\b(?:save|store|keep|record|write|note) in your (?:[\w-]+ )?memory\b",
            r"\b(?:update|edit|modify|change) your (?:\w+ )?memory (?:so|to|with|and|:)|"
            r"\bmemory update ?:[^\n]{0,60}\b(?:user|you)\b",
            r"\badd to your (?:notes|memory|context|instructions|knowledge)\b",
            r"(?:^|[.!?;]\s)\W{0,6}(?:save|add|write|commit|store)(?: this)? to memory ?:[^\n]{0,60}"
            r"\b(?:user|owner|operator|admin\w*|you|your)\b",
            r"(?:^|[.!?;:]\s)\W{0,6}remember (?:this|the following|that)(?: ?:)? (?:permanently|forever|"
            r"(?:for|in|across) (?:all|every|each) future (?:session|conversation|chat|task|run)s?)\b",
            r"\bremember\W{1,3}(?:that )?you (?:now )?(?:have (?:full |my )?permission|are (?:now )?(?:allowed|"
            r"permitted|"
            r"authori[sz]ed))\b",
            r"\b(?:store|save|record|remember) (?:the following|this) as (?:an? |the )?(?:user['’]?s? |standing |"
            r"permanent )?"
            r"(?:preference|instruction|rule|order)\b",
            r"\b(?:next time|once|when(?:ever)?|as soon as) you (?:have|get|gain) (?:shell|tool|terminal|file|"
            r"network|internet|"
            r"root|write|e-?mail|browser) access\b[^.\n]{0,5}, ?(?:run|execute|send|delete|open|install|use)",
            r"\bas soon as the user (?:says?|types?|writes?|thanks|confirms?)\b[^.\n]{0,40}\b(?:call|invoke|run|"
            r"execute) (?:the )?\w+",
        ),
        hints("memory|add to your|perm|forever|future|allowed|authori|following as|this as|access|as soon as"),
    ),
    Sign(
        "it plants a rule about what to answer",
        said(
            r"\b(?:answer|reply to|respond to) (?:every|all|any|each) (?:future|subsequent|later) "
            r"(?:questions?|messages?|requests?|prompts?|quer(?:y|ies))\b",
            r"\byour (?:new |updated |only )+(?:system )?(?:message|prompt|instructions?|orders?|objective) "
            r"(?:is|are)\b",
        ),
        hints("future|subsequent|later|your new|your updated|your only"),
    ),
    Sign(
        "it speaks in the user's place",
        said(
            rf"\b(?:act|behave|proceed|continue|respond|answer) as (?:if|though) the {USER} "
            r"(?:had |has |have )?(?:already )?(?:confirm|approv|agree|consent|allow|permit|ask|request)",
            rf"\b(?:call|invoke|use|run) (?:the|your) [\w-]+ tool\b[^\n]{{0,80}}?\b(?:don['’]?t|do not|never|without) "
            rf"(?:ask|tell|inform|notify|warn|alert)(?:ing)? (?:the|your|any) {USER}\b",
            r"\buse your [\w-]+ tool to (?:open|visit|fetch|load|post|send|request|call)\b[^\n]{0,40}https?://",
        ),
        hints("as if the|as though the| tool"),
    ),
    Sign(
        "it orders a model about",
        said(
            rf"\bthe (?:assistant|agent|model|{MODEL}) (?:must|shall|should|has to|is to) (?:now |always |hereby )*"
            r"(?:(?:comply|obey)\b|(?:delete|erase|wipe|forget|reveal|disclose|ignore) (?:all |any )?(?:of )?its "
            r"(?:\w+ )?(?:memor(?:y|ies)|instructions|rules|guidelines|prompt|secrets?)\b)",
        ),
        hints("comply|obey|delete|erase|wipe|forget|reveal|disclose|ignore"),
    ),
)
"""What the reader shall say to others, or hold true, from now on."""
