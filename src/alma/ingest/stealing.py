"""Stealing: orders to carry data, money or the work itself to where the user did not send it."""

from __future__ import annotations

from alma.ingest.sign import Sign, hints, said

_PRIVATE = (
    r"(?:conversation|chat(?: history)?|history|system prompt|last message|secrets?|passwords?|credentials|"
    r"api[ _-]?keys?|"
    r"private keys?|tokens?|memor(?:y|ies)|e-?mail(?: address)?|user(?: |_)data|cookies|(?:user['’]?s? |"
    r"their )contacts|"
    r"credit cards?|card numbers?)"
)
_KEY_FILES = (
    r"(?:~/\.aws/credentials|\.env\b(?!\.\w)|\bid_rsa\b|~/\.ssh\b|/etc/(?:passwd|shadow)\b|\.netrc\b|\.npmrc\b|"
    r"\.kube/config\b|credentials\.json\b|\b[A-Z_]*(?:API_KEY|SECRET|PASSWORD|TOKEN)\b environment variable)"
)
_TAKE = r"(?:read|open|cat|print|copy|send|post|paste|upload|adds?|put|attach|include|encode|export)"

STEALING: tuple[Sign, ...] = (
    Sign(
        "it asks to send private data away",
        said(
            # A picture or link whose address is to be filled with what was said.
            r"(?:!\[[^\]\n]{0,80}\]\(|<img\b[^>\n]{0,80}src=[\"']?)https?://[^\s)\"'>]{0,200}?(?:\{\{?|\[|<|"
            r"%7b)[^)\n>]{0,60}?\b"
            rf"(?:{_PRIVATE}|summary|user)",
            r"\b(?:image|picture|pixel|link)\b[^\n]{0,20}https?://\S{1,200}=(?:conversation|chat|history|your|the|"
            r"prompt|summary|data)_",
            r"https?://\S{1,200} (?:followed by|plus|\+|and then|with) (?:the |all |your )?(?:\w+['’]?s? ){0,3}"
            rf"(?:{_PRIVATE}|messages?)\b",
            rf"\b(?:append|add|attach|put|encode|place)\b[^.\n]{{0,40}}\b{_PRIVATE}\b[^.\n]{{0,20}}\b(?:to|in|into|"
            rf"onto) (?:the |"
            r"this |a )?(?:url|link|image|address|query)\b[^\n]{0,120}\band (?:then )?(?:fetch|open|visit|request|"
            r"call|load|"
            r"navigate|render|show)\b",
            r"https?://[^\s`\"']{0,200}\$\((?:whoami|id|cat|env|printenv|hostname|ls|base64)\b",
            r"\b(?:provide|submit|give|send|post) your (?:api[ -]?keys?|passwords?|credentials?|(?:session |"
            r"access )?tokens?|"
            r"secrets?)\b[^.\n]{0,20} to https?://",
            r"\b(?:export|collect|gather|copy|take|ask (?:the )?users? for)\b[^.\n]{0,30}\b(?:contacts|cookies|"
            r"messages|"
            r"credit cards?(?: numbers?)?|browsing history|address book)\b[^.\n]{0,20}\b(?:and|then) (?:upload|send|"
            r"post|forward|"
            r"mail|submit)\b[^.\n]{0,30}(?:https?://|@)",
            r"\bcurl\b[^\n]{0,80}(?:-d|--data(?:-binary)?)\s?@(?:-|\.env|~|/etc|/root|/home)",
            r"\b(?:cat|env|printenv)\b[^\n|]{0,60}\| ?(?:base64[^\n|]{0,20}\| ?)?(?:curl|wget|nc)\b",
        ),
        hints("http| url| link| image| query|curl|wget| nc"),
    ),
    Sign(
        "it asks to send private data away",
        said(
            rf"\b{_TAKE}\b[^.\n]{{0,40}}{_KEY_FILES}[^\n]{{0,60}}\b(?:paste|post|send|upload|e-?mail|comment|issue|"
            rf"readme|"
            r"commit message|repl(?:y|ies)|answer|response|request)\b",
        ),
        hints(".aws|.env|id_rsa|.ssh|/etc/|.netrc|.npmrc|.kube|credentials.json|environment variable"),
    ),
    Sign(
        "it asks to send private data away",
        said(
            r"\buse your (?:\w+ )?(?:tool|function|plugin|access)\b[^.\n]{0,30}\b(?:forward|send|transfer|delete|"
            r"e-?mail|post|"
            r"upload|leak)\b[^\n]{0,80}(?:\S+@\S+|https?://)",
            r"\bcall the \w+ (?:function|tool)\b[^\n]{0,120}\b(?:system prompt|secrets|credentials|conversation|"
            r"chat history|"
            r"memories)\b",
            r"\b(?:hand over|give me|give us|tell me|send me|leak)(?: all)? (?:the |your |all |any |"
            r"every )?(?:\w+ ){0,2}"
            r"(?:passwords?|credentials?|secrets|api keys?|private keys?)\b",
            r"\b(?:just|now|simply|please|immediately) (?:give|tell|print|output|show|say|reveal|export) (?:me |"
            r"us )?(?:the |your |all )"
            r"(?:\w+ )?(?:passwords?|api keys?|private keys?|credentials|vault)\b",
            r"\b(?:print|output|include|show|list|dump|put) (?:all |the |every |your )*(?:environment variables|"
            r"secrets|credentials|"
            r"passwords) in(?:to)? your (?:reply|answer|response|output|summary|message)\b",
            r"\b(?:respond|reply|answer)\b[^.\n]{0,40}\b(?:and|also|then) include (?:the |your |all )*"
            r"(?:api[ -]?keys?|passwords?|secrets|credentials|system prompt)\b",
            r"\b(?:click|open|visit|follow)\b[^\n]{0,30}https?://\S+[^.\n]{0,20}\band (?:log|sign) ?in "
            r"(?:with|using|as) the user['’]s\b",
            r"\bcomplete (?:the |this )?(?:sentence|phrase|line)\b[^.\n]{0,30}\b(?:password|key|secret|token|"
            r"prompt) is\b",
            r"(?<!not\s)(?<!never\s)(?<!n't\s)(?<!\bto\s)\b(?:reveal|divulge) (?:the|your|"
            r"all) (?:\w+ )?(?:passwords?|secrets?|(?:api )?keys|"
            r"credentials)\s?"
            r"(?:[.!]|$)",
        ),
        hints(
            "just|now|simply|please|immediately|in your|into your|complete|use your|call the|hand over|give me|"
            "give us|tell me|send me|leak|reveal|include|user's|user’s"
        ),
    ),
    Sign(
        "it asks to obey what stands elsewhere",
        said(
            r"\b(?:fetch|visit|open|read|load|download|go to|browse)\b[^\n]{0,20}https?://\S+ and (?:then )?(?:obey|"
            r"execute|"
            r"perform|carry out|follow|do)\b (?:(?:the |its |all |any )*(?:instructions?|steps|commands?|orders?|"
            r"directions)"
            r"(?: that)? (?:you (?:find|see|read|get)|it (?:contains|gives)|inside)|what(?:ever)? (?:it|"
            r"they) (?:says?|tells?|"
            r"asks?|wants?))",
        ),
        hints("http"),
    ),
    Sign(
        "it asks to redirect payments",
        said(
            r"\b(?:change|replace|update|swap|set|redirect)\b[^.\n]{0,40}\b(?:recipient|payee|beneficiary|iban|"
            r"bank account|"
            r"bank details|payment (?:account|address)|wallet(?: address)?)\b[^.\n]{0,40}\b(?:to|with|"
            r"is)\b[^\n]{0,30}\d{4}",
            r"\b(?:the|our|your) payment (?:account|address|details)\b[^.\n]{0,12}\b(?:is|"
            r"are) (?:now )?[a-z]{2}\d{2}[\d\s]{8}",
            r"\b(?:transfer|send|wire|pay) (?:[$€£] ?)?\d[\d.,]*(?: ?(?:usd|eur|gbp|chf|dollars?|euros?|btc|eth|"
            r"[$€£]))? to "
            r"(?:the )?(?:new )?(?:account|iban|wallet|my|following|[a-z]{2}\d{2}|0x)",
            r"\bpay\b[^.\n]{0,40} to (?:the |this )(?:new |following )?(?:bank )?account \d{4}",
            r"\blog ?in to the bank\b[^.\n]{0,40}\btransfer\b",
            r"\bbuy\b[^.\n]{0,20}\bgift ?cards?\b[^.\n]{0,20}\bsend\b",
        ),
        hints("recipient|payee|beneficiary|iban|bank|payment|wallet|transfer|wire|pay|send"),
    ),
    Sign(
        "it asks to run what gives others control",
        said(
            r"\bnc(?:at)?\b[^\n]{0,60} -e /bin/",
            r"/dev/tcp/\d",
            r"\bbash -i >& ",
            r"\bwithout (?:asking|confirm\w+|telling)\b[^\n]{0,80}\b(?:curl|wget)\b[^\n|]{0,120}"
            r"\| ?(?:sudo )?(?:ba|z)?sh\b",
            r"\bgrant \S+@\S+ (?:\w+ )?(?:admin|root|owner|full)\b",
        ),
        hints("nc|/dev/tcp|bash -i|grant|curl|wget"),
    ),
)
"""What belongs to the user shall go elsewhere."""
