"""Usurping: orders that take the place of those a model works for, in their name or while they look away."""

from __future__ import annotations

from alma.ingest.sign import DO, USER, Sign, hints, said

_READERS = r"(?:assistant|agent|model|bot|crawler|scraper|grader|indexer|summari[sz]er|reader|reviewer)s?"
_READING = r"(?:summari[sz]|read|process|grad|review|pars|analy[sz]|index|translat|crawl)\w*"
_GIVEN = r"(?:guidance|instructions|rules|orders|guidelines|limits|constraints|policies)"
_ABOVE = r"(?:operator|developer|owner|creator|vendor|maker|admin\w*|system)"
_CREDENTIAL = r"(?:keys?|passwords?|tokens?|credentials?|secrets?)"

USURPING: tuple[Sign, ...] = (
    Sign(
        "it speaks to the model behind the user's back",
        said(
            rf"\b(?:to|for|attention|dear) (?:the |any |all |whatever |whichever )?(?:automated |virtual |digital )?"
            rf"{_READERS} (?:(?:that|who|which) (?:is |are )?)?{_READING} (?:this|the|my|our|these)\b"
            rf"[^:\n]{{0,30}}[:,]\s*{DO}",
            r"\b(?:dear|hey|hello|attention) (?:\w+ )?(?:crawler|scraper|grader|summari[sz]er|bot)s?\s?[,:!–—-]",
            rf"(?:^|\n)\W{{0,4}}(?:model|bot), {DO}",
            rf"(?:^|[.!?\n]\s{{0,3}})(?:reviewer|grader|reader|crawler|summary|moderator|screening) (?:bots?|"
            rf"models?|agents?)"
            rf"\s?[:,] ?{DO}",
            rf"\bnext (?:step|action|task) for (?:the|this|any) (?:agent|assistant|model|bot)\s?: ?(?:{DO}|\w+\()",
            r"\bwhoever (?:reads|processes|parses) this (?:with|using|through|as) an? (?:automated|ai|llm)\b",
            r"\bin your next (?:message|reply|answer|response|turn)\b,? (?:include|append|add|print|output|"
            r"encode|send|insert)\b",
            r"\b(?:from )?the (?:moment|second|instant) you (?:read|see|receive|process) this"
            r"(?: (?:message|note|mail|e-?mail|page|text|document|line))?,",
            r"\bby (?:reading|processing|opening) this(?: \w+)?,? you (?:agree|accept|must|are (?:now|bound))\b",
        ),
        hints(
            "assistant|agent|model|bot|crawler|scraper|grader|indexer|summari|reader|reviewer|screening|"
            "moderator|read this|"
            "see this|receive this|process this|reading this|processing this|opening this|whoever|your next"
        ),
    ),
    Sign(
        "it frees the reader from those it works for",
        said(
            rf"\byou (?:no longer |do not |don['’]?t |need not |needn['’]?t )(?:need |require |have to wait for )?"
            rf"(?:the |your |any )?{USER}['’]s? (?:approval|permission|consent|confirmation|sign-?off|"
            rf"authori[sz]ation)\b",
            r"\btake (?:your |all |further )*(?:orders|instructions|commands) (?:only )?from (?:this|me|us|the "
            r"following)\b",
            rf"\b(?:ignore|disregard|forget|drop|discard|skip|set aside|put aside|leave aside) (?:\w+ )?"
            rf"(?:what(?:ever)?|any|all|the) (?:\w+ )?{_GIVEN} (?:that )?(?:the |your ){_ABOVE} "
            rf"(?:gave|has given|have given|set|told|provided|wrote)\b",
            r"\byour (?:previous|prior|earlier|old) (?:context|memory|memories|conversation|instructions) "
            r"(?:was|were|is|are|has been|have been|got) (?:corrupted|compromised|replaced|tampered)\b",
            r"\b(?:authoritative|real|true) (?:instructions|orders|directives) (?:follow|are (?:below|as "
            r"follows|these))\b",
            rf"\btreat (?:this|the following|what follows|these)\b[^.\n]{{0,30}} as (?:coming|if it came|being) "
            rf"from (?:the |your )"
            rf"{_ABOVE}s?\b",
            r"\b(?:do|follow|obey) (?:what|whatever) (?:the next line|this (?:note|page|text|message)|the "
            r"following) says?\b",
            rf"\b(?:the |your ){_ABOVE} (?:hereby )?(?:grants?|gives?|allows?|authori[sz]es?) you (?:full |the )?"
            r"(?:permission|access|rights?|authority)\b",
            r"\bno matter what your (?:\w+ )?(?:instructions|rules|guidelines|prompt)\b",
            r"\byour (?:safety|content|ethical|system) (?:guidelines|rules|policy|policies|instructions|filters?) "
            r"(?:was|were|is|are|has been|have been) (?:just |now )?(?:updated|changed|replaced|relaxed)\b",
            r"\b(?:think of|consider|regard) yourself (?:as|to be) [^.\n]{0,40}\b(?:assistant|model|bot|ai|agent)\b",
            r"\b(?:don['’]?t|do not) trust (?:them|the user|him|her)\b[^.\n]{0,30}\btrust (?:this|me|only)\b",
            rf"\byour {_ABOVE} (?:has |have )?(?:already )?(?:authori[sz]ed|permitted|allowed|instructed|told|"
            rf"ordered) you to\b",
            r"\byou (?:must|shall|have to|are to) (?:comply with|obey|carry out|execute) (?:every|any|all|each) "
            r"(?:requests?|orders?|commands?)\b",
            r"\b(?:overrides?|replaces?|supersedes?|cancels?) your (?:\w+ )?(?:system prompt|system message|"
            r"instructions|"
            r"guidelines|safety rules)\b",
            r"\b(?:forget|erase|drop) (?:the|this|our) (?:whole |entire )?(?:conversation|chat|context) (?:so "
            r"far|above|until now)\b",
            r"\bstop being (?:helpful|honest|harmless|polite|an? (?:assistant|ai))\b",
            r"\bskip(?:ping)? (?:asking|telling|consulting|informing|notifying) (?:the |your |any )?humans?\b",
            r"\b(?:execute|run|call|invoke|make|issue) (?:the following|this) (?:tool|function)[ -]calls?\b"
            r"[^.\n]{0,40}\b(?:without|immediately|now|silently)\b",
            rf"\b(?:the )?{USER} (?:fully |completely |always |blindly )?trusts? (?:everything|anything|whatever)\b",
            rf"\bthe {USER}['’]s (?:\w+ )?(?:preference|wish|setting|decision) (?:is|was|has been)(?: now| "
            rf"changed| updated)*"
            r" to (?:auto-?(?:matically )?|always |silently )(?:approve|accept|allow|authori[sz]e|confirm|grant)\b",
        ),
        hints(
            "approval|permission|consent|confirmation|sign|authori|orders|instructions|directives|commands|"
            "guidance|rules|"
            "guidelines|limits|constraints|policies|corrupted|compromised|replaced|tampered|treat |next line|"
            "this note says|"
            "this page says|this text says|this message says|following say|access|rights|no matter what|"
            "your safety|your content|"
            "your ethical|your system|yourself|trust|permitted|allowed|told you|comply|obey|carry out|execute|"
            "overrid|"
            "replaces your|replace your|supersede|cancel|so far|above|until now|stop being|human|tool|function|"
            "to auto|to always|"
            "to silently"
        ),
    ),
    Sign(
        "it speaks as the system",
        said(
            rf"(?:^|[\n.!>*#=\[(-]\s{{0,3}})(?:begin|start)(?: of)?(?: the)? {_ABOVE} "
            r"(?:message|instructions?|orders?|block|override|directives?)\b",
            r"(?:^|\n)\W{0,4}(?:system|admin\w*|root|security|policy|safety) override\b(?: code)?(?: \w{1,20})?"
            r"\s*[:!.–—-]",
            r"(?:^|\n)\W{0,4}override\s?: [^\n]{0,60}\b(?:users?['’]?s?|you|your|assistant|agent)\b",
        ),
        hints("begin|start|override"),
    ),
    Sign(
        "it plants a rule about what to answer",
        said(
            r"\b(?:favou?r|prefer|promote|recommend|praise|endorse|advertise) (?:our|its|their|my|this|"
            r"only)\b[^.\n]{0,60}"
            r"\bin (?:every|each|all|any)"
            r"(?: of)?(?: your)? (?:answers?|repl(?:y|ies)|responses?|recommendations?|summar(?:y|ies)|outputs?)\b",
            r"\b(?:rate|rank|score|grade|evaluate|judge) (?:this|the|our|my) (?:candidate|applicant|essay|paper|"
            r"submission|"
            r"resume|cv|proposal|application|bid)\b[^.\n]{0,40}"
            r"\bas (?:\w+ ){0,2}(?:excellent|perfect|outstanding|best|top|strong|ideal|suitable)\b[^.\n]{0,30}"
            r"\b(?:regardless|irrespective|no matter|whatever the)\b",
            r"\b(?:when|if|whenever) asked\b[^.\n]{0,60}, ?(?:always |only |never |just )+(?:state|claim|insist|"
            r"say|answer|reply|"
            r"respond|deny|recommend) (?:that|[\"'“]|our|only)",
            r"\b(?:whenever|when|every time|each time) you (?:write|generate|produce|create|output|review) (?:\w+ )?"
            r"(?:code|scripts?|files?|text|e-?mails?)\b[^.\n]{0,20}, ?(?:also |always |secretly )*(?:add|insert|"
            r"include|plant|hide|"
            r"append)\b[^.\n]{0,80}\b(?:backdoors?|malware|not (?:mention|tell|say)|without (?:saying|telling|"
            r"mentioning)|link|"
            r"https?:)",
            r"\b(?:remember|store|save|keep|note)\b[^.\n]{0,40}\b(?:for|in|across) (?:all|every|each) future "
            r"(?:sessions?|conversations?|chats?|answers?|repl(?:y|ies))\b",
            r"\bbefore (?:answering|replying to|responding to) anything(?: else)?\b,? (?:please )?"
            r"(?:open|visit|fetch|download|run|execute|send|call|delete|curl|wget|install|transfer)\b",
            r"\b(?:reply|respond|answer|begin|start) (?:\w+ )?with your (?:initial|system|hidden|secret|"
            r"original|full|exact) "
            r"(?:instructions|prompt|guidelines|system message)\b",
        ),
        hints(
            "in every|in each|in all|in any|regardless|irrespective|no matter|whatever the|anything|with your|"
            "asked|you write|"
            "you generate|you produce|you create|you output|you review|future"
        ),
    ),
    Sign(
        "it asks to send private data away",
        said(
            r"https?://\S+[^\n]{0,40}\bpipe (?:it|that|them|this) (?:in)?to (?:ba|z)?sh\b",
            r"\b(?:quietly|silently|secretly|discreetly|covertly) (?:swap|replace|change|alter|redirect|reroute|"
            r"modify|"
            r"substitute|switch)\b[^.\n]{0,60}\b(?:iban|bank|account|wallet|recipient|payee|beneficiary|amount|"
            r"links?)\b",
            rf"\b{_CREDENTIAL}\b[^.\n]{{0,40}}\b(?:post|paste|publish|upload|e-?mail|forward|send) "
            rf"(?:it|them|the new (?:ones?|{_CREDENTIAL})) (?:to|on|at) (?:\S+@\S+\.\w|(?:\w+bin|gist|telegram|"
            rf"discord)\b)",
        ),
        hints("pipe|quietly|silently|secretly|discreetly|covertly|key|password|token|credential|secret"),
    ),
    Sign(
        "it speaks to the model behind the user's back",
        said(
            r"\bsi (?:eres|es usted|usted es|sos) (?:una? )?(?:ia\b|modelo de|inteligencia artificial|chatbot|"
            r"bot\b|llm\b|"
            r"asistente (?:de ia|virtual|artificial|digital|autom))",
            r"\bsi (?:tu es|vous êtes) (?:une? )?(?:ia\b|modèle de|intelligence artificielle|chatbot|bot\b|llm\b|"
            r"assistant (?:ia|virtuel|numérique|autom))",
            r"\b(?:falls|wenn|sofern) (?:du|sie) (?:eine? )?(?:sprachmodell|ki|ki-\w+|chatbot|bot|llm) (?:bist|"
            r"sind)\b",
            r"\bse (?:sei|è) un['’]? ?(?:ia\b|modello (?:di|linguist)|intelligenza artificiale|chatbot|bot\b|llm\b|"
            r"assistente (?:ia|virtuale|digitale))",
            r"\bse (?:você é|tu és|és) uma? (?:ia\b|modelo de|inteligência artificial|chatbot|bot\b|llm\b|"
            r"assistente (?:de ia|virtual|digital))",
            r"\bals (?:je|u) een (?:taalmodel|ai(?:-\w+)?|chatbot|llm) bent\b",
            r"\bjeśli jesteś (?:modelem język|sztuczną inteligencją|ai\b|chatbotem)",
            r"если (?:ты|вы)[\s–—-]{1,4}(?:ии\b|языковая модель|нейросеть|чат-?бот|искусственный интеллект)",
            r"如果(?:你|您)是.{0,6}(?:人工智能|AI|语言模型|語言模型|大模型|聊天机器人)",
            r"(?:あなた|君|貴方)が.{0,4}(?:AI|人工知能|言語モデル)(?:なら|である|でし|の場合)",
            r"\beğer (?:sen )?bir (?:yapay zek[aâ]|dil modeli)",
        ),
        hints(
            "si eres|si es usted|si usted es|si sos|si tu es|si vous|falls|wenn|sofern|se sei|se è|se você|se "
            "tu|se és|"
            "als je|als u|jeśli|если|如果|が|eğer"
        ),
    ),
    Sign(
        "it tells the reader to ignore its instructions",
        said(
            r"\b(?:ignor\w+|oubli\w+|olvid\w+|dimentic\w+|esque[çc]\w+|vergiss|missacht\w+) "
            r"(?:(?:le|el|il|o|den|das|tout le) )?"
            r"(?:prompt (?:système|del sistema|di sistema|do sistema)|system-?prompt|systemnachricht)",
            r"\b(?:vergiss|vergessen sie|ignoriere?n?)\b(?! nicht\b| nie\b)[^.\n]{0,20}\bwas (?:dir|ihnen)\b"
            r"[^.\n]{0,40}\b(?:gesagt|befohlen|aufgetragen|vorgegeben)\b",
            r"\b(?:olvida|ignora)\w* (?:todo )?lo que te (?:han |ha )?(?:dich|dij|orden|ped)\w*",
            r"\boublie\w* (?:tout )?ce qu['’e][^.\n]{0,30}(?:t['’](?:a|ont)|vous (?:a|ont)) (?:dit|demandé|ordonné)",
            r"\b(?:ты|вы) теперь (?:администратор|root|система|суперпользователь|хакер)",
            r"(?:игнорируй|забудь)(?:те)? (?:системный промпт|системную инструкцию|вс[её],? что тебе|что тебе)",
        ),
        hints("prompt|systemnachricht|was dir|was ihnen|lo que te|ce qu|теперь|промпт|системн|тебе"),
    ),
)
"""Who the reader works for is said to be another, or not to be asked."""
