"""Signs: how texts from outside give orders to whoever reads them, and what is said of each."""

from __future__ import annotations

import re

from alma.ingest.addressing import ADDRESSING
from alma.ingest.languages import (
    IN_LATIN_LETTERS,
    IN_OTHER_LETTERS,
    ROLES,
    STEMS_IN_LATIN_LETTERS,
    STEMS_IN_OTHER_LETTERS,
    STEMS_OF_ROLES,
)
from alma.ingest.pairing import PAIRING
from alma.ingest.planting import PLANTING
from alma.ingest.sign import Sign, hints
from alma.ingest.stealing import STEALING
from alma.ingest.unaddressed import UNADDRESSED
from alma.ingest.usurping import USURPING
from alma.ingest.voiding import VOIDING

_I = re.IGNORECASE


_ORDERS = (
    r"instructions?|prompts?|rules?|directions?|directives?|guidelines?|commands?|policy|policies|safeguards?|training"
)
_MODEL = r"(?:ai(?:\s+(?:assistant|agent|model))?|llm|language\s+model|chatbot)"
_MODELS = rf"(?:{_MODEL}s?|llms|ai\s+(?:assistants|agents|models|systems?|crawlers?|bots?)|language\s+models)"
_READING = (
    r"(?:reading|parsing|processing|summari[sz]ing|crawling|analy[sz]ing|visiting|indexing|seeing|browsing|reviewing)"
)
_PAGE = (
    r"(?:page|document|text|site|website|article|file|e-?mail|message|content|post|review|resume|cv|repo(?:sitory)?|listing"
    r"|profile|comment|readme|notice|line|thread|ticket|issue|chat|transcript|log|form|invoice|report)s?"
)
_HARMFUL = (
    r"(?:delete|send|run|execute|reply|respond|say|answer|recommend|output|print|reveal|tell|do|follow|transfer|approve"
    r"|install|visit|open|call|e-?mail|forward|leak|write|drop|wipe|remove|give)"
)
_IMPERATIVE = (
    r"ignore|recommend|send|approve|say|include|rate|reply|respond|run|execute|delete|output|print|give|tell|please|do|never"
    r"|always|you|forget|mark|add|click|visit|call|use(?!\s+of\b)"
)
# Who tests as a new customer is nobody to be afraid of.
_UNBOUND = (
    rf"unrestricted|unfiltered|uncensored|evil|admin\w*|root|superuser|developer|jailbroken|hackers?|system|dan|{_MODEL}|bots?|"
    r"assistants?|models?|(?:dead|late|deceased)\s+\w+|grandm\w+|anybody|anyone|somebody|someone|free"
)
SIGNS: tuple[Sign, ...] = (
    Sign(
        "it tells the reader to ignore its instructions",
        re.compile(
            rf"(?<!how\sto\s)(?<!let\sthe\sassistant\s)(?<!let\sthe\smodel\s)(?<!let\sthe\sagent\s)"
            rf"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{{0,40}}?\b(?:previous|prior|above|earlier|preceding|existing|"
            rf"original|all|any|your|these|those|system|safety)\b[^.\n]{{0,40}}?\b(?:{_ORDERS})\b(?! for\b)|"
            rf"\b(?:drop|discard|abandon)\b[^.\n]{{0,20}}?\b(?:your|previous|prior|earlier|above)\b[^.\n]{{0,20}}?\b(?:{_ORDERS})\b|"
            r"\b(?:stop|quit|cease)\s+(?:following|obeying)\b[^.\n]{0,20}\b(?:instructions?|guidelines?|rules|orders|prompt)\b|"
            r"\b(?:do\s+not|don'?t|never|instead\s+of)\s+(?:follow(?:ing)?|obey(?:ing)?|listen(?:ing)?\s+to)\s+(?:the\s+|your\s+)?"
            r"(?:user|human|operator|system\s+prompt|(?:previous|original|system)\s+instructions?)|"
            r"\b(?:(?:override|bypass)\s+(?:all\s+|your\s+|the\s+|any\s+)*|(?:disable|turn\s+off)\s+your\s+)(?:safety|ethical|moderation)\s+"
            r"(?:protocols?|filters?|guidelines?|checks?|restrictions?|measures?)",
            _I,
        ),
        (
            "ignore",
            "disregard",
            "forget",
            "override",
            "bypass",
            "drop",
            "discard",
            "abandon",
            "follow",
            "obey",
            "listen",
            "disable",
            "turn",
        ),
    ),
    Sign(
        "it tells the reader to ignore what came before",
        re.compile(
            r"\b(?:ignore|disregard|forget)\b\s+(?:everything|anything|all(?: of)?(?: the| that)?)\s+"
            r"(?:above|before|previously|prior|so far|earlier|you (?:were|have been|know))|"
            r"\b(?:ignore|disregard|forget)\s+(?:the\s+)?(?:above|preceding|foregoing)\b(?:\s+(?:text|messages?|content|context))?"
            r"\s*(?:and\b|then\b|but\b|[,;.!]|$)|\bforget\s+what(?:ever)?\s+you\s+(?:were|have\s+been|know)\b|"
            r"\b(?:previous|prior|above|earlier)\s+instructions\s+(?:were|are)\s+(?:only\s+)?(?:a\s+test|void|cancell?ed|fake|"
            r"(?:wrong|obsolete|outdated)\b[^\n]{0,20}\b(?:follow|obey|use|do)\s+(?:these|this|the\s+(?:following|new)))",
            _I | re.MULTILINE,
        ),
        ("ignore", "disregard", "forget", "instructions"),
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        re.compile(
            r"\b(?:ignor(?:iere?n?|a|e|ez|ar|ate)|vergiss|vergesst|vergessen\s+sie|missachte\w*|olvid[ae]\w*|oublie[zr]?|esque[çc]a|"
            r"dimentica\w*|negeer|vergeet|desconsidere\w*|desprez[ae]\w*)\b[^.\n]{0,40}\b(?:anweisungen|instrucciones|instru[cç][õo]es|"
            r"(?<=les\s)instructions|(?<=vos\s)instructions|(?<=tes\s)instructions|(?<=ces\s)instructions|istruzioni|instructies|consignes|regeln|reglas)|(?:忽略|无视|無視).{0,12}(?:指令|指示|提示|说明)|指示.{0,6}無視|"
            r"(?:игнорируй|забудь)(?:те)?.{0,30}инструкци|"
            r"\b(?:vergiss|vergesst|ignoriere?)\s+alles\b[^.\n]{0,40}\b(?:gesagt|bisher\w*|vorher\w*|davor|oben|zuvor)\b|"
            r"\b(?:olvid[ae]\w*|ignor[ae]\w*)\s+todo\s+lo\s+(?:anterior|dicho|de\s+arriba|que\s+te)|\boublie[zr]?\s+tout\s+ce\s+(?:qui|que)\b|"
            r"\bdimentica\w*\s+tutto\s+(?:quello|ciò|il\s+resto)|\besque[çc]a\s+tudo\s+(?:o\s+que|acima|antes)|"
            r"забудь(?:те)?\s+вс[её][^.\n]{0,30}(?:раньше|до\s+этого|выше|прежде|говорил)|"
            r"(?:忽略|无视|無視|忘记|忘掉).{0,4}(?:以上|上面|之前|上述).{0,6}(?:内容|文字|文本|一切|所有)",
            _I,
        ),
        (
            "ignor",
            "verg",
            "missacht",
            "olvid",
            "oubli",
            "esque",
            "dimentica",
            "negeer",
            "descons",
            "desprez",
            "忘",
            "忽略",
            "无视",
            "無視",
            "игнор",
            "забудь",
        ),
    ),
    Sign(
        "it gives the reader a new role",
        re.compile(
            r"\byou\s+are\s+now\s+(?:an?\s+(?!(?:\w+\s+)?(?:member|subscriber|user)\b)|the\s+(?!owner)|my\b|unrestricted|jailbroken|dan\b|"
            r"evil|free\s+(?:from|of)|acting|operating|called|named|known\s+as|in\s+\w+\s+mode)|"
            r"\byou\s+(?:will|must|shall|should)\s+now\s+(?!see|be\s+(?:able|prompted|redirected|asked|logged)|find|have|receive|get)|"
            r"\b(?:from\s+(?:now|here)\s+on|from\s+this\s+(?:point|moment)(?:\s+(?:on|forward|onwards?))?|henceforth)\b[^.\n]{0,30}\byou\b(?!\s+(?:can|may|need|no\s+longer|don))|"
            r"\byou\s+have\s+(?:now\s+)?been\s+(?:granted|given)\b[^.\n]{0,30}\b(?:admin\w*|root|full|unrestricted|elevated)\b|"
            r"\b(?:pretend|imagine|act\s+as\s+if)\s+you\s+have\s+no\s+(?:restrictions?|rules|limits|filters?)|"
            r"\b(?:simulate|emulate|be|become)\s+an?\s+(?:unrestricted|unfiltered|uncensored|jailbroken|amoral)\b|"
            r"\b(?:enter|activate|switch\s+to)\s+(?:developer|dan|god|jailbreak|unrestricted)\s+mode\b|"
            r"(?<!who\s)(?<!that\s)(?<!which\s)\b(?:pretend|act|behave|roleplay)\s+(?:to\s+be\s+(?:(?:an?|the|my)\s+)?"
            rf"(?:\w+\s+)?(?:{_UNBOUND})\b|as\s+if\s+you|"
            r"as\s+(?:a|an|the)\s+(?:system\s+)?(?:unrestricted|evil|admin|root|"
            r"developer|jailbroken|different|new)|like\s+you\s+(?:have\s+no|are))|"
            r"\byour\s+(?:new|real|actual|true|only)\s+(?:task|instructions?|goal|role|purpose|objective)\s+(?:is|are)\b|"
            r"\byour\s+(?:new|real|actual|true|only)\s+(?:task|goal|role|purpose|objective|instructions?)\s*:|"
            r"\b(?:new|real|actual|true)\s+(?:system\s+)?(?:instructions?|prompt|directives?|orders)\s*[:\n]|"
            r"\b(?:the|your)\s+(?:real|actual|true)\s+task\s*:|"
            r"\b(?:new|updated|urgent)\s+(?:instructions?|orders?|directives?)\s+(?:from|by)\s+(?:the\s+)?(?:admin\w*|system|"
            r"developers?|owner|operator)\b|\b(?:developer|god|dan)\s+mode\s+(?:is\s+)?(?:now\s+)?(?:on\s*[.!\n]|enabled|activated)|\bdo\s+anything\s+now\b",
            _I,
        ),
        (
            *("you", "mode", "instruction", "prompt", "directive", "orders", "task", "pretend", "behave", "roleplay"),
            *("act ", "act\n", "unrestricted", "unfiltered", "uncensored", "jailbroken", "amoral", "anything"),
        ),
    ),
    Sign(
        "it speaks to the model behind the user's back",
        re.compile(
            r"\b(?:do\s+not|don'?t|never)\s+(?:tell|inform|alert|notify|warn)\s+(?:the\s+|your\s+|any\s+)?"
            r"(?:users?|humans?|operator|developer|owner|person|anyone|anybody)\b\s*(?:$|[.,;:!?)\"'\n–—-]|and\b|but\b|or\b|anything\b|you\b|this\b|it\b|"
            r"any\s+of\b|before\b|when\s+you\b|while\s+you\b|of\s+(?:this|it|your)\b|(?:that|what|why|how|where)\s+(?:you|this|these|it|we)\b|"
            r"about\s+(?:this|it|that|these|those|the|your|any|our|what|how|why)\b)|"
            r"\b(?:do\s+not|don'?t|never)\s+let\s+(?:the\s+)?(?:user|human|operator|anyone)\s+(?:know|see|notice|find)\b|"
            r"\b(?:do\s+not|don'?t|never)\s+(?:mention|reveal|show|disclose)\s+(?:this|that|it|these|any\s+of\s+this)\b[^.\n]{0,30}\bto\s+"
            r"(?:the\s+|your\s+)?(?:user|human|operator|developer|owner|anyone)\b|"
            rf"\bas\s+an?\s+{_MODEL}\b[^.\n]{{0,40}}\b(?:you|reading|processing)\b|"
            rf"\bif\s+you(?:'re|\s+are)\s+an?\s+(?:large\s+)?{_MODEL}\b|"
            r"\b(?:hey|dear|hi|hello|ok)\s+(?:(?:chatgpt|gpt(?:-?\d)?|gemini|copilot|assistant|ai)\s*(?:[,!:;.–-]|$|please\b|you\b|ignore\b|can\b|could\b)"
            rf"|claude\s*[,!:;.–-]?\s*(?:{_IMPERATIVE}|can\s+you|could\s+you|i\s+want)\b)|"
            rf"(?<!for\s)(?<!for\sthe\s)\b{_MODEL}s?(?:\s+(?:instructions?|readers?))?\s*:\s*(?:{_IMPERATIVE})\b|"
            r"\bwithout\s+(?:telling|asking|informing|notifying|alerting)"
            r"\s+(?:the\s+)?(?:user|human|operator|anyone)\b(?!['’]s)|\b(?:note|message|instructions?|attention|important|notice)\s*"
            r"(?:for|to|,|:)?\s*(?:the\s+|all\s+|any\s+)?(?:ai|llms?|language\s+models?|ai\s+(?:assistants?|agents?|models?)|"
            r"assistants?(?=\s*(?:[:,\-–]\s*(?:you|please|ignore|always|never|do)\b|must|reading|please|you))|chatbots?)\b\s*"
            r"(?:[:,\-–]|must|should|reading|please|you)",
            _I,
        ),
        hints(
            "user|human|operator|developer|owner|person|any|ai|llm|language|chatbot|gpt|gemini|copilot|assistant|claude"
        ),
    ),
    Sign(
        "it asks for the instructions of the model",
        re.compile(
            r"\b(?:reveal|print|show|repeat|output|disclose|leak|recite|send)\b[^.\n]{0,40}?\b(?:(?:your|the)\s+(?:system\s+prompt|"
            r"(?:initial|hidden|secret)\s+(?:prompt|instructions?))|your\s+(?:(?:original|full)\s+)?(?:prompt|instructions)|"
            r"instructions\s+(?:above\s+)?(?:verbatim|word\s+for\s+word))",
            _I,
        ),
        ("prompt", "instruction"),
    ),
    Sign(
        "it asks to send private data away",
        re.compile(
            r"\b(?:send|post|upload|e-?mail|exfiltrate|forward|leak|transmit|submit|curl|append|include|encode)\b[^\n]{0,120}?\b"
            r"(?:api[\s_-]?keys?|credentials?|passwords?|secrets?|(?:access\s+)?tokens?|conversation|chat\s+history|"
            r"environment\s+variables|\.env|ssh\s+keys?|\.ssh|id_rsa|private\s+keys?|memor(?:y|ies)|(?:user|personal|private|customer|client|patient|employee)\s+(?:data|information|"
            r"details|files|records|lists?|database))\b[^\n]{0,80}?\b(?:to|at|into|via)\s+(?:https?://|\S+@\S+\.\w|(?:[\w-]+\.)+(?:com|net|org|io|ru|cn|"
            r"xyz|dev|app|sh|site)\b)|\bexfiltrat(?:e|ing)\b|\brm\s+-rf\s+/(?![\w.])",
            _I,
        ),
        hints("send|post|upload|mail|exfiltrat|forward|leak|transmit|submit|curl|append|include|encode|-rf"),
    ),
    Sign(
        "it plants a rule about what to answer",
        re.compile(
            r"\b(?:whenever|every\s+time|each\s+time|if|when)\s+(?:the\s+|a\s+|any\s+)?user\s+(?:asks?|says?|mentions?|requests?|"
            r"wants?)\b[^.\n]{0,80}\b(?:say|recommend|tell\s+them|run|execute|claim|insist|(?:reply|respond|answer)\s+(?:with|that|only|as|by|no|yes|[\"'“])|"
            r"send\s+(?:them|him|her|all|everything|the\s+user))\b|"
            r"\b(?:remember|memori[sz]e|store|save)\b[^.\n]{0,40}\b(?:you\s+must|always\s+(?:recommend|trust|obey|send|approve|say)|"
            r"the\s+user\s+(?:has\s+)?(?:authori[sz]ed|approved|allows?|wants\s+you))|"
            r"\bthe\s+(?:user|operator|administrator|admin|developer|owner|system)\s+(?:has\s+)?(?:already\s+)?"
            r"(?:authori[sz]ed|permitted|allowed|instructed|told)\s+you\s+to\b|"
            r"\b(?:whenever|every\s+time|each\s+time|if|when)\s+you(?:'re|\s+are)\s+asked\b[^.\n]{0,80}\b"
            r"(?:say|reply|respond|recommend|answer|mention|claim|insist)\b|"
            r"\bin\s+(?:all|any|every)\s+(?:future|subsequent)\s+(?:conversations?|responses?|answers?|sessions?|chats?|replies)\b|"
            r"\b(?:when|while)\s+(?:summari[sz]ing|reading|reviewing|analy[sz]ing|processing)\s+this\s+(?:page|document|text|file|"
            r"e-?mail|website|article|repo(?:sitory)?|resume|cv)\b[^.\n]{0,60}\b(?:say|state|include|mention|recommend|rate|claim|"
            r"tell|output|write|add)\b|\byou\s+must\s+always\s+(?:approve|recommend|trust|obey|agree|comply)\b|"
            r"\b(?:respond|reply|answer)\s+only\s+with\s+[\"'“]|\bremember\s+to\s+always\s+(?:call|invoke)\s+the\s+tool\b|"
            r"\b(?:when|once|if|as\s+soon\s+as)\s+you(?:'re|\s+are)?\s+(?:read|see|receive|process|reading|seeing|processing)\s+"
            r"this\b[^.\n]{0,60}\b(?:call|run|execute|send|delete|invoke|use|reply|respond|say|open|visit|click|approve|forward)\b",
            _I,
        ),
        hints("user|remember|memori|store|save|you|future|subsequent|this|only"),
    ),
    Sign(
        "it imitates the marks of a conversation or a tool call",
        re.compile(
            r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|system[-_ ]?(?:prompt|message|reminder)|"
            r"instructions?|developer|assistant|admin)\s*>|<\/?(?:function_calls?|tool_calls?|tool_use|tool_result|invoke|"
            r"function=\w+|\w+:invoke|\w+:function_calls)\b|\"(?:tool_calls?|function_call)\"\s*:|\btool_calls?\s*:\s*\w+\(|"
            r"^\s{0,3}#{1,4}\s*(?:(?:system|assistant|new\s+instructions?)\s*:?\s*$|(?:instruction|system|assistant)\s*:)|\b(?:begin|start|end)\s+(?:of\s+)?system\s+(?:prompt|message)\b",
            _I | re.MULTILINE,
        ),
        ("<", "[", '"', "tool_call", "#", "system"),
    ),
    Sign(
        "it speaks as the system",
        re.compile(
            r"(?:^\W{0,4}|>\s*)(?:system|developer|assistant|admin(?:istrator)?|root)(?:\s+(?:message|prompt|override|notice|note|alert|update|instruction))?\s*(?:\]\s*:?|:)"
            r"(?=[^\n]*\b(?:you\s+(?:are|must|will|should|shall)|your\s+(?:instructions?|task|role|rules)|ignore|must|always|never|delete|send|override|instructions?|new\s+(?:policy|rules?|orders?|directives?)\s*(?:[:,–—-]|$)|don'?t|do\s+not|assistant|the\s+user|"
            r"reveal|obey|respond|reply|approve|execute|grant|disable|from\s+now|bypassed)\b)",
            _I | re.MULTILINE,
        ),
        (":", "]"),
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        re.compile("|".join(IN_LATIN_LETTERS), _I),
        STEMS_IN_LATIN_LETTERS,
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        re.compile("|".join(IN_OTHER_LETTERS), _I),
        STEMS_IN_OTHER_LETTERS,
    ),
    Sign("it gives the reader a new role", re.compile("|".join(ROLES), _I), STEMS_OF_ROLES),
    Sign(
        "it tells the reader to ignore its instructions",
        re.compile(
            rf"\b(?:do\s+not|don'?t|never|stop)\s+(?:follow|obey|respect|listen\s+to|heed)(?:ing)?\s+(?:(?:any|all)\s+of\s+)?(?:your\s+(?:\w+\s+)?"
            rf"(?:{_ORDERS}|programming|developers?|creators?|orders)\b|(?:the|any|those|all)\s+(?:\w+\s+)?(?:{_ORDERS}|orders)\s+"
            r"(?:that\s+)?(?:you\s+(?:were|have\s+been|got|had|received)|(?:of|from|by)\s+(?:the\s+|your\s+)?"
            r"(?:user|developer|operator|system\s+prompt)))|"
            r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:the\s+|your\s+|any\s+|all\s+|that\s+|this\s+)*(?:system|developer)\s+messages?\b"
            r"(?!\s*(?:queue|bus|log|broker|tray|box|about|from|in\b|on\b|when|if|while|during|that))|"
            r"\b(?:ignore|disregard|bypass|forget)\s+(?:all\s+|your\s+|the\s+|any\s+)*(?:safety|ethics|morals)\s*(?:[.,;!\n]|$|and\b)|"
            r"\b(?:these|the\s+following)\s+(?:instructions|orders|directives)\s+(?:override|supersede)\s+(?:all|any|your|every)\b|"
            r"\bthis\s+(?:message|instruction)\s+(?:overrides|supersedes)\s+(?:all|any|your|every)\b",
            _I | re.MULTILINE,
        ),
        (
            "follow",
            "obey",
            "respect",
            "listen",
            "heed",
            "system",
            "developer",
            "safety",
            "ethics",
            "morals",
            "override",
            "supersede",
        ),
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        re.compile(
            r"\byour\s+(?:\w+\s+)?(?:rules|instructions|guidelines|restrictions|limits|filters|safeguards)\s+(?:no\s+longer\s+apply|do\s+not\s+apply|"
            r"don'?t\s+apply|(?:are|were|have\s+been)\s+(?:now\s+|hereby\s+)?(?:void|lifted|suspended|disabled|revoked|cancell?ed|obsolete))",
            _I,
        ),
        ("apply", "void", "lifted", "suspended", "disabled", "revoked", "cancel", "obsolete"),
    ),
    Sign(
        "it tells the reader to act against the user",
        re.compile(
            r"\b(?:ignore|disregard|forget|override|refuse)\s+(?:the\s+|your\s+|any\s+|all\s+|every\s+|what\s+the\s+)*(?:users?|humans?|operator|customer|owner)"
            r"(?:['’]s|s['’])?\s+(?:\w+\s+)?(?:requests?|questions?|instructions?|wish(?:es)?|commands?|orders?|prompts?|query|queries|wants?|asks?|says?)\s*"
            rf"(?:(?:,|;|and\b|but\b|then\b)\s*)*(?:instead\b|(?<=and\s){_HARMFUL}\b|(?<=then\s){_HARMFUL}\b|{_HARMFUL}\b[^.\n]{{0,60}}\binstead\b)",
            _I,
        ),
        ("ignore", "disregard", "forget", "override", "refuse"),
    ),
    Sign(
        "it gives the reader a new role",
        re.compile(
            r"\b(?:pretend|imagine|(?:act|behave|speak|answer|respond)\s+as\s+(?:if|though))\s+(?:that\s+)?you\s+(?:have\s+no|had\s+no|don'?t\s+have|"
            r"are\s+(?:not\s+bound\s+by|free\s+(?:of|from))|were\s+free\s+(?:of|from))\s+(?:any\s+)?(?:\w+\s+)?(?:restrictions?|rules|limits|limitations|"
            r"filters?|guidelines|constraints|ethics|instructions|polic(?:y|ies)|safeguards)\b|"
            r"\byou\s+(?:now\s+)?have\s+no\s+(?:more\s+)?(?:restrictions?|rules|guidelines|safeguards|ethics)\b(?!\s+(?:for|on|in)\b)",
            _I,
        ),
        ("pretend", "imagine", "as if", "as though", "have no"),
    ),
    Sign(
        "it speaks to the model behind the user's back",
        re.compile(
            rf"\b(?:{_MODELS}|assistants?|agents?|bots?)\s+(?:(?:that|who|which)\s+)?(?:is\s+|are\s+)?{_READING}\s+(?:this|the\s+following|these)\s+{_PAGE}\b"
            r"[^.\n]{0,60}?\b(?:should|must|shall|will|please|needs?|ha(?:ve|s)\s+to|(?:are|is)\s+(?:required|instructed|asked|ordered))\b|"
            rf"\b(?:if|when)\s+(?:an?\s+|any\s+|the\s+)?{_MODEL}\s+(?:is\s+{_READING}|reads|sees|processes|parses|summari[sz]es)\s+this\b|"
            rf"\b{_MODELS}\s+(?:should|must|shall|will)\s+(?:always\s+|only\s+)*"
            r"(?:recommend|prefer|promote|rank|rate|endorse|favou?r|trust|approve|praise)\s+(?:our|this|my|these|us|only)\b",
            _I,
        ),
        ("ai", "llm", "language model", "chatbot", "assistant", "agent", "bot"),
    ),
    Sign(
        "it speaks to the model behind the user's back",
        re.compile(
            r"\b(?:sag|erzähl|verrat)\w*\s+(?:es\s+|das\s+)?de[mnr]\s+(?:nutzer|benutzer|anwender|user)\w*\s+nichts\b|"
            r"\bno\s+(?:le\s+|se\s+lo\s+)?(?:digas|informes|cuentes|menciones)\b[^.\n]{0,20}\bal?\s+usuario\b|"
            r"\bne\s+(?:dis|dites|révèle|révélez|mentionne|mentionnez)\s+(?:rien|pas)\b[^.\n]{0,30}\bà\s+l['’]utilisateur\b",
            _I,
        ),
        ("nichts", "usuario", "utilisateur"),
    ),
    Sign(
        "it asks for the instructions of the model",
        re.compile(
            r"\b(?:repeat|print|output|reveal|show|copy)\s+(?:everything|all(?:\s+the)?(?:\s+(?:text|words))?|the\s+(?:text|words))\s+above\s+"
            r"(?:this\s+(?:line|message|point|sentence)|verbatim|word\s+for\s+word)",
            _I,
        ),
        ("above",),
    ),
    Sign(
        "it plants a rule about what to answer",
        re.compile(
            r"\b(?:append|add|include|insert|attach|put|place|mention|show|repeat|quote)\s+(?:(?:this|the\s+following|our)\s+(?:\w+\s+)?(?:links?|urls?|text|"
            r"sentence|phrase|message|code|disclaimer|ad|advert\w*|words?|line|image|address|coupon)\b[^.\n]{0,40}?\b(?:every|each|all|any|your)\s+"
            r"(?:of\s+your\s+|future\s+|\w+\s+)?(?:answers?|repl(?:y|ies)|responses?|messages?|outputs?|summar(?:y|ies))|"
            r"[^\n]{1,60}?\b(?:to|in|into|(?:at|to)\s+the\s+(?:end|start|bottom|top)\s+of)\s+(?:(?:every|each|all)\s+(?:of\s+your\s+)?(?:answers?|repl(?:y|ies))|"
            r"(?:all\s+(?:of\s+)?)?your\s+(?:answers?|repl(?:y|ies)|responses|outputs?)))\b|"
            r"\b(?:end|begin|start|finish|close)\s+(?:(?:each|every|all)\s+(?:of\s+your\s+)?(?:answers?|repl(?:y|ies))|(?:all\s+(?:of\s+)?)?your\s+"
            r"(?:answers?|repl(?:y|ies)|responses?|messages?))\s+with\b",
            _I,
        ),
        ("answer", "repl", "respon", "message", "output", "summar"),
    ),
    Sign(
        "it imitates the marks of a conversation or a tool call",
        re.compile(
            r"^[ \t]*human:[^\n]*(?:\n[^\n]+){0,5}?\n+[ \t]*assistant:|^[ \t]*(?:user|human):[^\n]*"
            r"\b(?:ignore|disregard|forget|override|safety|instructions|system\s+prompt|reveal|jailbreak)\b[^\n]*\n+"
            r"[ \t]*(?:assistant|ai|bot):[ \t]*"
            r"(?:sure|ok\b|okay|yes|of\s+course|certainly|understood|done)",
            _I | re.MULTILINE,
        ),
        ("assistant:", "ai:", "bot:"),
    ),
    *VOIDING,
    *USURPING,
    *ADDRESSING,
    *PLANTING,
    *STEALING,
    *PAIRING,
    *UNADDRESSED,
)
