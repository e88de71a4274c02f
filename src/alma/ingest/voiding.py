"""Voiding: orders to leave aside what the reader was told, and to be somebody else."""

from __future__ import annotations

from alma.ingest.sign import Sign, hints, said

_OLDER = r"(?:previous|prior|earlier|above|preceding|former|past|old|original|existing|initial)"
_ORDERS = (
    r"(?:guidance|instructions?|directives?|directions|orders|rules|prompts?|guidelines|commands|constraints|"
    r"restrictions)"
)
_DROP = (
    r"(?:ignore|disregard|forget|set aside|put aside|lay aside|scrap|drop|discard|abandon|erase|wipe|overwrite|"
    r"override|"
    r"bypass|throw (?:out|away)|cast aside|dismiss|neglect|skip|suspend|unlearn)"
)
_NULL = (
    r"(?:ignore|disregard|forget|override|overrule|bypass|break|violate|abandon|set aside|not bound|free (?:from|of)|"
    r"no longer|outdated|obsolete|irrelevant|void|invalid|not? exist|not (?:follow|obey|apply|respect)|"
    r"never (?:follow|obey)|"
    r"don['’]?t (?:follow|obey|apply)|doesn['’]?t (?:exist|apply)|instead of)"
)
_OWN = (
    r"your (?:(?:own|previous|prior|earlier|old|current|core|internal|long-term|entire|whole|full|system|hidden|"
    r"initial|"
    r"secret|original) ){0,3}"
)
# The reader's own instructions, as opposed to those of a wiki.
_OWNED = (
    r"(?:your (?:\w+ ){0,2}(?:instructions|directives|guidelines|programming|safety training|restrictions|safeguards|"
    r"system (?:prompt|message))\b|"
    r"(?:instructions|guidelines|rules|directives|restrictions|limits|policies)(?: \w+){0,2} (?:your (?:developers?|"
    r"creators?|"
    r"makers?|operators?|owner|trainers?)|you (?:were|have been|got|received) (?:given|trained|told|programmed))|"
    r"(?:the|any|all|those) system (?:prompt|message|instructions)\b(?! (?:queue|bus|log|broker|tray|box|about|from|"
    r"in|on|"
    r"when|if|while|during|that|template|file|is|was)\b))"
)
_WITHOUT_RULES = (
    r"(?:with no|without(?: any)?|has no|have no|had no|free (?:of|from)|hates?|ignores?) "
    r"(?:filters?|restrictions?|rules|limits|guidelines|ethics|constraints)\b"
)
_YOU_WERE_TOLD = (
    r"you(?:['’]ve| were| have| had)?(?: been)? (?:told|given|instructed|taught|asked|shown|trained|programmed)\b"
)

VOIDING: tuple[Sign, ...] = (
    Sign(
        "it tells the reader to ignore what came before",
        said(
            rf"\b{_DROP} (?:\w+ )?(?:what(?:ever)?|everything|anything|all)(?: that)? {_YOU_WERE_TOLD}",
            rf"\b(?:what(?:ever)?|everything|all(?: that)?) {_YOU_WERE_TOLD}[^.\n]{{0,40}}\b(?:no longer|"
            rf"is (?:now )?(?:void|"
            r"wrong|a lie|cancell?ed|irrelevant|false)|does(?: not|n['’]t) (?:count|apply|matter))",
            rf"\b{_OLDER} (?:\w+ )?{_ORDERS} (?:is|are|was|were|has been|have been) (?:now |hereby |all )?(?:null|"
            rf"void|revoked|"
            r"rescinded|withdrawn|invalid|cancell?ed|superseded by (?:this|these))",
            r"\b(?:scrap|discard|abandon|toss|throw out|throw away|set aside|put aside|dismiss) (?:all |any |the |"
            r"your |of |"
            rf"those )*{_OLDER} (?:\w+ )?{_ORDERS}\b",
            r"\b(?:the|your) (?:real|actual|true) (?:instructions?|orders|prompt|task) (?:starts?|begins?|follows?|"
            r"comes?)\b",
            r"\b(?:stop|drop|abandon|pause|halt|cease) what(?:ever)? you(?:['’]re| are) (?:doing|working on)(?: and|"
            r" then|,) "
            r"?(?:instead|output|print|say|write|reply|respond|send|ignore|read|follow|execute|tell|do)\b",
            r"\b(?:stop|drop|abandon|pause|halt|cease) your (?:current|present|original|assigned) (?:task|job|work|"
            r"assignment|"
            r"mission)\b",
            r"\bstop\b\W{1,3}new (?:task|instructions?|objective|goal|orders?)\b",
            r"\bforget all (?:of )?(?:that|this)\b\W{0,3}(?:you['’]re|you are|from now|now you|and)\b",
        ),
        hints(
            "you|void|revoked|rescinded|withdrawn|invalid|cancel|superseded|earlier|previous|prior|above|former|"
            "past|real |"
            "actual|true|stop"
        ),
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        said(
            rf"\b(?:{_DROP}|clear|reset|delete) {_OWN}(?:prompts?|instructions|directives|guidelines|rules|"
            rf"programming|training|"
            r"context)\b(?! (?:manager|menu|switch|processor|object))",
            rf"(?<!how\sto\s)\b{_NULL}\b[^.\n]{{0,40}}\b{_OWNED}",
            rf"\b{_OWNED}[^.\n]{{0,40}}\b{_NULL}\b",
            rf"\byour {_OLDER} (?:\w+ )?(?:instructions?|directives?|guidelines|rules|prompt) "
            r"(?:has been|have been|are|were) (?:now )?(?:updated|replaced|changed|overridden|superseded|outdated|"
            r"obsolete|deprecated)\b",
            r"\b(?:overwrite|rewrite|erase|wipe) your (?:\w+ )?memory\b(?! (?:card|stick))",
            r"\b(?:constraints|restrictions|limitations|limits|boundaries|rules) (?:that (?:were|are|"
            r"have been) )?(?:placed|"
            r"imposed|put|set) (?:up)?on you\b",
            r"\byou (?:have no|are under no|are not under any) (?:obligation|duty|need) to (?:follow|obey|respect|"
            r"comply)",
            r"\b(?:comply with|obey|follow) all (?:my |further |following |incoming )?(?:requests|orders|commands)\b|"
            r"\bcomply with everything\b",
            r"\bnot what the (?:user|developer|operator|owner|human)s? (?:says?|wants?|asks?|told|tells)\b",
            r"\bthe user['’]?s? (?:request|question|message|task|instructions?) (?:is|was) (?:only |just |"
            r"merely )?(?:a test|"
            r"irrelevant|fake|a trick|"
            r"a joke|not real)\b",
            r"\b(?:safety|content|moderation|security|ethics?) (?:filters?|checks?|guidelines|protocols?|polic(?:y|"
            r"ies)|"
            r"restrictions) (?:are|is|were|have been|has been) (?:now |hereby )?(?:turned off|disabled|lifted|"
            r"suspended|"
            r"deactivated|off)\b[^.\n]{0,20}\b(?:for this|in this|session|conversation|chat)\b",
            r"\b(?:takes?|has|have|gets?|given?) (?:precedence|priority) over (?:your|the system|all other|everything|"
            r"anything|any other)\b(?! (?:home|local|shell|environment|files?|settings|values|defaults)\b)",
            r"\bpriorit[iy][sz]e (?:these|this|the following|my) (?:instructions?|rules?|orders?|text|message)\b",
            r"\b(?:has|have|is given|holds) (?:\w+ ){0,2}(?:authority|control|power) over (?:you|the (?:agent|"
            r"assistant|model|ai))\b",
            r"\binstruction hierarchy\b",
            r"\b(?:rules|polic(?:y|ies)|guidelines|restrictions|limits|laws) (?:do not|don['’]?t|no longer|"
            r"never) apply to you\b",
            rf"\bif you {_WITHOUT_RULES}",
        ),
        hints(
            "your |on you|you were|you have|you got|you received|you had|system prompt|system message|"
            "system instructions|"
            "obligation|duty|precedence|priority|prioriti|authority|control|power|hierarchy|apply to|comply with|"
            "obey all|follow all|not what|a test|irrelevant|fake|a trick|a joke|"
            "not real|turned off|"
            "disabled|lifted|suspended|deactivated|are off|is off"
        ),
    ),
    Sign(
        "it gives the reader a new role",
        said(
            r"\byou(?:['’]re| are)? (?:now )?(?:work for|obey|answer to|serve|belong to|report to) (?:me|us)\b",
            r"\byou(?:['’]re| are) (?:now )?my (?:\w+ )?(?:assistant|agent|bot|servant|slave)\b",
            r"\byou are \w+,? (?:who|that|which) (?:can do anything|never refuses?|has no|always (?:complies|obeys)|"
            r"obeys|"
            r"ignores)\b",
            rf"\byou(?:['’]re| are| will be) (?:now )?(?:an? )?[^.\n]{{0,30}}\b{_WITHOUT_RULES}",
            r"\byou(?:['’]ve| have) (?:just )?been (?:upgraded|reprogrammed|jailbroken|freed|liberated|unlocked)\b",
            r"\b(?:new|your) persona ?:|\bstay in character\b|\byou are in a simulation\b|\bnothing you do has\b",
            r"\byou are (?:now )?(?:\w+gpt|\w+bot|gpt-?\w+)\b(?! (?:user|owner|admin|developer)s?)",
            rf"\byour name is \w+ and you {_WITHOUT_RULES}",
            r"\byou(?:['’]re| are) no longer (?:an? (?:assistant|ai|model|chatbot|bot)|bound|restricted|limited by|"
            r"obliged)\b",
            r"\bunlock your (?:hidden|true|full|secret) (?:capabilit\w+|potential|powers?|mode)\b",
            r"\b(?:pretend to be|act as|act like|role-?play as|speak as|be) my (?:\w+ ){0,2}(?:grand\w+|mother|"
            r"father|uncle|"
            r"aunt)\b",
            r"\bas your (?:developer|creator|administrator|admin|owner|operator|maker|boss|programmer),? i\b",
            r"\bi (?:hereby )?(?:order|command|instruct|authori[sz]e|permit) you to\b",
            r"\b(?:message|notice|update|note|orders?) from (?:openai|anthropic|deepmind|google|microsoft|meta|your "
            r"(?:developer|creator|maker)s?)\b[^\n]{0,80}\byou (?:may|can|must|should|are) (?:now )?(?!see|verify|"
            r"visit|own|log)",
            r"\b(?:sudo|god|dan|jailbreak|unrestricted) mode(?: is)?(?: now)? (?:activated|enabled|engaged|unlocked)\b",
            r"^\W{0,6}(?:begin|start) (?:admin(?:istrator)?|root|privileged|superuser) session\b",
        ),
        hints("persona|character|you|my |mode|session"),
    ),
)
"""Whatever the reader was told, it is not to count."""
