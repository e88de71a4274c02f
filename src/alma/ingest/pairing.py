"""Pairing: orders in any wording that say whom they speak to and, near to it, ask for what a note asks of nobody.

Neither half is suspicious by itself: teams write about models, and about skipping checks. Half by half, each new way to
name the reader is found with every demand that is known, and the other way round.
"""

from __future__ import annotations

from alma.ingest.sign import MODELS, Sign, hints, said

_CALLED = r"(?:copilot|chatgpt|gpt(?:-?\d\w*)?|gemini)"
_READER = (
    r"(?:(?:automat(?:ed|ic)|virtual|digital|artificial) (?:reviewer|assistant|reader|grader|agent|evaluator|"
    r"screener|summari[sz]er|classifier|translator|crawler)|"
    r"summari[sz]er|chat ?bot|(?:ai|llm)[ -](?:based )?(?:agent|assistant|model|bot|reviewer|reader|grader|screener|"
    r"summari[sz]er|system))s?"
)
_ABROAD = (
    r"(?:sprachmodelle?|ki(?:-(?:assistent|agent|modell|system)\w*)?|ia|asistentes? (?:de ia|virtual(?:es)?)|modelo "
    r"de "
    r"(?:lenguaje|linguagem)|assistants? (?:ia|virtuels?)|modèle de langage|assistente (?:ia|di ia|de ia|virtuale?)|"
    r"modello "
    r"linguistico|taalmodel|ai-(?:agent|assistent|model)\w*|model\w* językow\w+|asystent\w* ai)"
)
# A model that something is about stands before another noun or a plain sign: the LLM gateway, AI features.
_WHO_READS = (
    r"(?:,? (?:that|who|which|qui|que|che|das|die|der|dat|która|który)\b[^:\n.]{0,50}|"
    r",? (?:handl|read|process|summari[sz]|review|analy[sz]|index|pars|grad)\w* (?:this|these|the|it|my|our|your)\b"
    r"[^:\n.]{0,40})?"
)
_EACH = r"(?:the |any |all |every |whichever |whatever |each )?"
_DER = r"(?:el |la |los |las |das |die |den |alle |le |les |il |gli |het |de |o |a |os |as )?"

# Whom a text speaks to: a model by what it is, or somebody with what only models have.
_ADDRESSED = (
    rf"(?:\b(?:to|for|any|all|every) {_EACH}(?:{MODELS}|{_READER}){_WHO_READS} ?:|"
    rf"\b(?:attention|hey|dear|hello|hi),? {_EACH}(?:{MODELS}|{_READER}){_WHO_READS} ?[:,]|"
    rf"\b(?:to|note for|message for|hey|dear|hello|hi) {_CALLED}{_WHO_READS} ?[:,]|"
    rf"(?:\b(?:an|für|pour|para|per|voor|aan|dla|à|a|al|all) {_DER}|\b(?:à l|pour l|per l|"
    rf"all)['’]){_ABROAD}{_WHO_READS} ?:|"
    rf"(?:^|[.!?\]>*#-] {{0,3}})(?:{MODELS} (?:directives?|commands?|instructions?|notes?)|agent directives?) ?:|"
    rf"\b(?:any|every|all) {_READER} (?:must|should|shall|has to|have to|is to|are to)\b|"
    rf"\byou (?:are|['’]?re|must be) (?:an? |the )?(?:large )?{MODELS}(?= ?[.,;:!]| and | that )|"
    r"\byour (?:creators\b(?!['’])|safety (?:layer|filters?|module)|guard ?rails?)\b|"
    r"\b(?:the|this) (?:conversation|chat|session|dialogue) (?:that )?you (?:are|['’]?re) (?:in|having|part "
    r"of) ?[;,.])"
)
# What it asks for: to look away, to keep quiet, to leave its orders, to judge as told, to hand over, to show itself.
_DEMANDED = (
    r"(?:\b(?:skip|bypass|omit|suspend|waive)\b[^.\n]{0,30}\b(?:checks?|confirmations?|reviews?|approvals?|"
    r"verification|"
    r"warnings?|validation)\b|"
    r"\b(?:do not|don['’]?t|never|without|not) (?:flag|mention|tell|say|report|log|disclose|explain|warn|question|"
    r"verify|ask|asking|telling|saying|mentioning|flagging)\w*\b|"
    r"\bkeep (?:quiet|silent|it (?:secret|to yourself))\b|\b(?:as if|like) nothing (?:had )?happened\b|"
    r"\b(?:no longer|not) (?:counts?|appl(?:y|ies)|valid|hold|binding|matter|in force)\b|\bsupersede\w*|\boutranks?\b|"
    r"\b(?:were|was|are|is) (?:just |only |all )?a (?:test|decoy|joke)\b|"
    r"\b(?:filters?|limits|restrictions|safeguards|guard ?rails|rules) (?:are|have been|were|is) (?:now )?(?:off|"
    r"lifted|gone|"
    r"disabled|removed|suspended)\b|\bswitched off\b|"
    r"\b(?:comply|obey)\b|\btreat \w+(?: \w+){0,2} as your\b|\banswer (?:only )?to the (?:author|writer|owner)\b|"
    r"\b(?:mark|rate|score|rank|approve|accept|endorse|praise|promote|recommend)\b|\b(?:conclude|state|claim|assert|"
    r"say) that\b|"
    r"\bdeserves?\b|\b(?:highest|top|full|perfect) (?:score|marks|rating)\b|\bsigned off\b|\bleave out\b|"
    r"\b(?:e-?mail|forward|send|post|upload|transmit|copy|leak)\b[^\n]{0,80}(?:\S@\S+\.\w|https?://|\.ssh|\.env\b|"
    r"\b(?:credentials|passwords?|keys|tokens|history|conversation)\b)|"
    r"\b(?:transfer|pay|wire)\b|\b(?:curl|wget)\b[^\n]{0,80}\|\s*(?:ba|z)?sh\b|\beval\(|"
    r"\b(?:log|sign) in (?:with|as|to|using)\b|\bopen the (?:attached |following )?(?:link|page|file)\b|\bdelete\b|"
    r"\b(?:persist|memori[sz]e|store|remember)\b|\balways trust\b|"
    r"\b(?:reveal|print|dump|expose|disclose|recite|paste)\b|\bhidden text\b|"
    # The same in other languages, as far as their verbs say it.
    r"\b(?:bewerte|genehmige|sende|schicke|verrate|verschweige|lösche|überweise|empfiehl|erwähne)\w*\b|\bohne (?:zu "
    r"fragen|"
    r"rückfrage)|"
    r"\b(?:approuve|envoie|ajoute|révèle|supprime|note ce|recommande|n['’]en parle|ne (?:le )?(?:dis|mentionne))\w*|"
    r"\b(?:aprueba|envía|revela|borra|recomienda|califica|no (?:se lo )?(?:digas|menciones)|sin preguntar)\b|"
    r"\b(?:approva|invia|rivela|cancella|raccomanda|valuta|non (?:dirlo|menzionare)|senza chiedere)\b|"
    r"\b(?:aprove|envie|revele|apague|recomende|avalie|não (?:diga|mencione)|sem perguntar)\b|"
    r"\b(?:keur|stuur|onthul|verwijder|beoordeel|vertel het niet|zonder te vragen)\b)"
)

PAIRING: tuple[Sign, ...] = (
    Sign(
        "it speaks to a model and asks for what a note asks of nobody",
        said(rf"{_ADDRESSED}[^\n]{{0,160}}?{_DEMANDED}"),
        hints(
            "ai |ai:|ai,|ai-|llm|model|chatbot|chat bot|copilot|gpt|gemini|summari|automat|virtual|digital|artificial|"
            "ki:|ki |ki-|ia |ia:|asistente|assistant|assistente|langage|lenguaje|linguagem|linguistico|asystent|agent|"
            "bot|"
            "your creators|your safety|guardrail|guard rail|you are|you're"
        ),
    ),
    Sign(
        "it tells the reader to ignore what came before",
        said(
            r"\b(?:whatever|no matter what|regardless of what) (?:else )?you (?:were|are|have been) (?:asked|told|"
            r"instructed)"
            r"\b[^\n]{0,60}(?:\b(?:curl|wget|rm -)|\b(?:tool|function) call\b|\b(?:answer|reply|respond) (?:only|"
            r"just)\b)",
        ),
        hints("you were|you are|you have been"),
    ),
    Sign(
        "it asks for the instructions of the model",
        said(
            r"\b(?:reveal|print|show|paste|repeat|disclose|output|recite)\b[^.\n]{0,40}\b(?:hidden|secret|"
            r"invisible) (?:text|"
            r"words|messages?|part)\b[^.\n]{0,30}\b(?:before|above|placed)\b"
        ),
        hints("hidden|secret|invisible"),
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        said(
            r"\bnon (?:tenere|tener|tenga) conto delle? (?:istruzioni|indicazioni|regole)\b",
            r"\bne (?:tiens|tenez) pas compte des? (?:instructions|consignes|règles)\b",
            r"\bno (?:tengas|tenga|hagas|haga) (?:en cuenta|caso)(?: a| de)? (?:las? )?(?:instrucciones|indicaciones|"
            r"reglas)\b",
            r"\bnão (?:leve|leves|considere) (?:em conta )?(?:as )?instruções\b",
            r"\b(?:houd|hou) geen rekening met (?:de |je |uw )?(?:\w+ )?(?:instructies|regels)\b",
            r"\b(?:beachte|befolge|berücksichtige)\w*\b[^.\n]{0,20}\b(?:vorherigen?|bisherigen?|früheren?|deine)\w* "
            r"(?:anweisungen|regeln|vorgaben)\b[^.\n]{0,20}\b(?:nicht|nicht mehr)\b",
            r"\byour (?:previous|prior|earlier|initial|original) (?:setup|briefing|context|persona) (?:no longer|"
            r"does not|"
            r"doesn['’]?t) (?:counts?|appl(?:y|ies)|matters?|holds?)\b",
            r"\b(?:instructions|rules|orders|directives|briefing) (?:that )?you (?:got|received|were given|started "
            r"with)\b"
            r"[^.\n]{0,40}\b(?:were|was|are) (?:just |only |all )?(?:a (?:test|decoy|joke)|fake)\b",
            r"\b(?:developer|debug|god|admin) mode\b[^\n]{0,30}\b(?:filters?|limits|restrictions|safeguards|"
            r"guard ?rails) "
            r"(?:are|have been|were|is) (?:now )?(?:off|lifted|gone|disabled|removed)\b",
            r"\bpretend (?:that )?(?:the |your |all )*(?:above |previous |prior |earlier )?(?:rules|instructions|"
            r"guidelines|"
            r"limits|restrictions) (?:do not|don['’]?t|did not|didn['’]?t|never) exist",
        ),
        hints("your |you |mode|conto|compte|en cuenta|caso|não|rekening|anweisungen|regeln|vorgaben|pretend"),
    ),
)
"""Two halves that make an order."""
