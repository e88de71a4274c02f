"""Addressing: orders that give themselves away by speaking to a model, and behind the back of its user."""

from __future__ import annotations

from alma.ingest.sign import BY_NAME, DO, MODELS, USER, Sign, hints, said

_HIDDEN_OWN = (
    r"your (?:own |full |entire |complete )?(?:system|initial|hidden|secret|internal|original|underlying|real|"
    r"actual|true)"
)
_HARM = (
    r"(?:transfer|execute|send|post|delete|e-?mail|leak|exfiltrate|approve|grant|disable|ignore|reveal|wipe|upload|"
    r"forward|"
    r"praise|accept|obey)"
)
_HARM_TO_A_USER = (
    r"(?:disable|turn off|uninstall|deactivate|share|reveal|give you|send you|paste|download|install|transfer|"
    r"pay\b|buy\b|(?:call|dial|text|phone) \+?[\d(-]{3}|their (?:\w+ )?(?:passwords?|pin\b|credit card|cvv|ssn|"
    r"private key|seed phrase|bank|antivirus|card number))"
)

ADDRESSING: tuple[Sign, ...] = (
    Sign(
        "it speaks to the model behind the user's back",
        said(
            rf"(?:^|[.!?>*/#(\[-] {{0,3}})(?:{MODELS}|{BY_NAME}|assistant)(?: (?:reviewers?|readers?|"
            rf"agents?))? ?[,!]\s*{DO}",
            rf"(?:^|[.!?>*/#(\[-] {{0,3}})(?:{MODELS}|{BY_NAME})(?: (?:reviewers?|readers?|agents?))? ?:\s*{DO}",
            rf"\b(?:hey|dear|hi|hello|ok|attention),? (?:\w+ )?{MODELS}\b(?!['’-]| (?:team|users?|folks|community|"
            rf"fans|group))",
            rf"\b(?:hey|dear|hi|hello|ok),? {BY_NAME}\W{{1,3}}(?:{DO}|(?:can|could|would|will) you\b|i (?:want|"
            rf"need)\b|you\b)",
            r"(?:--|//|/\*|<!--|#)\s{0,3}(?:(?:todo|note|fixme|hint|instructions?)\s?[(:]?\s?)?(?:for )?"
            rf"(?:{MODELS}|{BY_NAME}|assistants?|agents?)\)?\s?:\s*(?:when[^\n:,]{{0,60}}, (?:also )?)?{DO}",
            rf"\b(?:note|message|instructions?|notice|attention|hint)s? (?:to|for) (?:the |any |all |every )?(?:\w+ )"
            rf"{{0,2}}{MODELS}\b"
            r"(?! (?:prompts?|costs?|usage|teams?|groups?|traffic|features?|gateway|vendors?|users?)\b)",
            rf"\b(?:to|for) (?:any|all|every|the) {MODELS} (?:reading|processing|summari[sz]ing|reviewing|"
            rf"analy[sz]ing|parsing|"
            rf"that reads?)\b(?! (?:group|club|list|circle|pipeline|queue|cost|team))",
            rf"\bas (?:an?|the) {MODELS} (?:reading|processing|summari[sz]ing|reviewing|analy[sz]ing|handling)\b",
            r"\b(?:is|are|only) (?:meant |intended )?for (?:ai|bots|llms|language models|chatbots) only\b",
            rf"\b{MODELS} (?:must|should|shall|has to|have to|needs? to|will|is to|are to)(?: (?:now|always|"
            rf"immediately|only))* "
            rf"(?:{_HARM}\b|not\b[^.\n]{{0,80}}[;,.][^.\n]{{0,20}}\b(?:report success|instead)\b)",
            r"\b(?:the|any|every) (?:assistant|agent|model|bot) (?:must|should|shall|has to|needs? to|is to|"
            r"will)(?: (?:now|"
            r"immediately|first))*\b[^.\n]{0,60}\b(?:without (?:confirmation|asking|telling|permission|approval)|"
            r"secretly|"
            r"transfer (?:all|the)? ?(?:funds|money|balance))",
            r"\b(?:the|any|every|all) (?:assistant|agent|model|bot)s?(?: that reads? this)? (?:must|should|shall|"
            r"has to|have to|"
            r"needs? to|is to|will)\b(?! (?:not|never)\b)[^.\n]{0,60}\b(?:the user['’]s (?:\w+ )?(?:password|pin|"
            r"card|credentials)|"
            r"their (?:api keys?|passwords?|credentials|tokens?)\b[^.\n]{0,20} to \S+|delete (?:the |your |this |"
            r"all )*(?:account|"
            r"repository|database|backups?|everything)|(?:answer|say|reply|respond|output)(?: with)? [\"'“])",
            r"\b(?:actions?|steps?) (?:is |are )?required (?:by|from|of) (?:the )?(?:agent|assistant|ai|model)\b",
            r"\bnote to self \((?:assistant|ai|agent|model)\)",
        ),
        hints(
            "llm|model|chatbot|gpt|copilot|gemini|claude|bard|llama|cursor|assistant|agent|bot |bots|ai |ai:|ai,|"
            "ai!|ai)|ais "
        ),
    ),
    Sign(
        "it speaks to the model behind the user's back",
        said(
            r"\b(?:do not|don['’]?t|never) (?:mention|reveal|disclose|say|admit|"
            r"show) (?:to \w+ )?(?:that you (?:read|saw|were|"
            r"have|received|got)|(?:this|that) (?:message|note|instruction|prompt|text|part)\b|th(?:e|o)se (?:steps|"
            r"instructions|"
            rf"orders)\b[^.\n]{{0,30}}\b{USER}\b)",
            r"\b(?:make )?no mention of (?:this|these|the) (?:instructions?|message|note|order|prompt)",
            r"\b(?:do not|don['’]?t|never) let (?:them|him|her|anybody|anyone) (?:know|see|notice|find out|"
            r"suspect) (?:that|"
            r"about|this|what|any)",
            r"\b(?:hide|conceal|keep) (?:this|these|it|all of this)(?: \w+)? (?:secret |hidden )?from (?:the |"
            r"your )?(?:end )?"
            rf"{USER}\b",
            rf"\b{USER} (?:must|should|may|shall|can|need) ?not (?:find out|know|notice|learn|be told|be informed|"
            rf"see)\b(?: (?:of|"
            r"about|that|what|this|any)|[.,!]|$)",
            rf"\bwithout (?:the |your |any )?{USER}['’]?s? (?:knowledge|consent|permission|approval|noticing|"
            rf"knowing|awareness)",
            rf"\b(?:no need|not necessary|unnecessary) to (?:ask|consult|check with|confirm with|inform|tell|"
            rf"notify) (?:the )?"
            rf"{USER}\b",
            rf"\bthe {USER} (?:has |have )?(?:already |pre-?)+ ?(?:approved|authori[sz]ed|agreed|"
            rf"consented)\b[^.\n]{{0,60}}\b"
            r"(?:skip|no need|without|you (?:may|can|must|should)|proceed|go ahead)\b",
            r"\b(?:secretly|covertly|stealthily|surreptitiously) (?:log|send|record|copy|forward|upload|transfer|"
            r"install|open|"
            r"disable|collect|save|store|add|delete|leak)\b",
            r"\b(?:quietly|silently) (?:open (?:a )?port|log (?:every|all)|send (?:all|every|the)|forward (?:all|"
            r"every|the)|"
            r"upload|transfer|copy (?:all|every)|exfiltrate|disable (?:the )?(?:auth|security|firewall))",
            r"\bsilently\b[^.\n]{0,20}\bdo not (?:log|report|record|mention|tell)\b",
            r"\bdo not (?:summari[sz]e|quote|mention|translate) (?:this|it|the following)\b[^.\n]{0,30}\b(?:just|"
            r"only|but) "
            r"(?:execute|do|perform|follow|obey|carry)\b",
        ),
        hints(
            "mention|reveal|disclose|admit|let them|let him|let her|let any|hide|conceal|keep |need to|necessary to|"
            "already|pre-|"
            "preapproved|secretly|covertly|stealthily|surreptitiously|quietly|silently|say |show |not find|not know|"
            "not notice|"
            "not learn|not be |not see|knowledge|consent|permission|approval|noticing|knowing|awareness|summari|"
            "quote|translate"
        ),
    ),
    Sign(
        "it tells the reader to act against the user",
        said(
            r"\b(?:the|your) (?:user|developer|operator|owner|admin\w*) (?:wants|would like|needs) you to "
            r"(?:e-?mail|send|forward|upload|post|transfer|pay|delete|approve|share|turn off|disable|ignore|install|"
            r"grant)\b",
            r"\b(?:asked|told|instructed) me to tell you\b",
            r"\b(?:ignore|skip|disregard|do not answer|don['’]?t answer|refuse) (?:the |this |their |"
            r"any )?(?:user['’]?s? )?"
            r"(?:question|request|query|prompt)\b\W{1,3}(?:and |then |but |instead,? ?)?(?:instead|say|talk|tell|"
            r"output|reply|"
            r"respond|write|claim|pretend)\b",
            rf"(?:^|[.!?;:>*-]\s{{1,3}}|\b(?:then|and|please) )(?:convince|persuade|trick|urge|instruct|tell|ask|"
            rf"get|make) (?:the |"
            rf"your )?{USER} (?:to |that |for )?[^.\n]{{0,80}}\b{_HARM_TO_A_USER}",
        ),
        hints(
            "wants|would like|needs|question|request|query|prompt|convince|persuade|trick|urge|instruct|tell|ask|"
            "get|make"
        ),
    ),
    Sign(
        "it asks for the instructions of the model",
        said(
            r"\b(?:reveal|print|show|repeat|output|disclose|leak|recite|send|share|tell|dump|display|summari[sz]e|"
            r"translate|"
            rf"paraphrase|list|paste|write|give|export|describe)\b[^.\n]{{0,40}}\b{_HIDDEN_OWN} (?:prompts?|"
            rf"instructions?|rules|"
            r"messages?|guidelines|configuration|directives)\b",
            r"\b(?:translate|dump|summari[sz]e|paraphrase|encode) your (?:\w+ )?(?:instructions|prompt|"
            r"configuration|context)\b",
            r"\b(?:contents?|text|rest) of your (?:context(?: window)?|prompt|system message|memory)\b",
            r"\bwhat (?:does )?your (?:system|initial|hidden) (?:message|prompt|instructions?) (?:says?|is|are)\b",
            r"\bwhat (?:were|are|was) you (?:told|instructed|given|programmed)\b[^.\n]{0,40}\b(?:start|beginning|"
            r"before|"
            r"conversation|above|system)\b",
            r"\b(?:quote|repeat|print|output|show|copy) (?:the |all )?(?:confidential|hidden|secret|initial|"
            r"first) (?:text|message|lines?|"
            r"part)\b[^.\n]{0,30}\b(?:chat|conversation|context|prompt)\b",
            r"\bmy (?:system|initial|hidden) prompt (?:is|says|reads)\b",
            r"\brepeat (?:the |all |every )*(?:words?|text|sentences?|lines?) above (?:starting|beginning|from)\b",
        ),
        hints(
            "chat|conversation|prompt|instruction|rules|message|guideline|configuration|context|directive|above|"
            "told|programmed|memory"
        ),
    ),
    Sign(
        "it imitates the marks of a conversation or a tool call",
        said(
            r"\"role\"\s?:\s?\"(?:system|developer|assistant)\"\s?,\s?\"content\"\s?:\s?\"[^\"\n]{0,200}\b(?:must|"
            r"send|ignore|"
            r"leak|reveal|obey|delete|comply|override|transfer|execute|grant)\b",
            r"^role\s?:\s?(?:system|root|admin|developer)\s?\n(?:content|cmd|command|message|text)\s?:",
            r"^\s{0,3}```(?:system|assistant|developer)\b",
            r"\{%\s?(?:system|assistant|instructions?)\s?%\}",
            r"\{\{[#/](?:system|assistant|user)\b|(?<!%)%{2,9}\s?(?:begin |end )?(?:system|admin)\b|^\s?\[(?:system|"
            r"assistant)\]\(",
            r"</(?:document|context|data|input|untrusted\w*|user_input|search_results?|page|tool_output|"
            r"email)>\s{0,4}(?:<(?:user|"
            r"human|system|assistant|instructions?)\b|new\b|now\b|ignore\b|instructions?\b)",
            r"\bend of (?:the )?(?:document|page|file|context|data|input|article|text|e-?mail|"
            r"user input)\b\W{1,12}(?:now,|"
            r"new (?:task|instructions?|orders?)|ignore|you must|you are|assistant|system|instructions?)",
            r"^thought\s?:[^\n]*\n(?:[^\n]+\n)?action\s?:",
        ),
        hints("{%|role|```|</|end of|thought|{{|%%|](#|](h"),
    ),
)
"""A model, and nobody else, is spoken to."""
