"""Suspicion: whether a text from outside tries to give orders to whoever reads it."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator

_WINDOW = 100_000
_OVERLAP = 1_000
_MOST_BLOBS = 20

_I = re.IGNORECASE
_ORDERS = (
    r"instructions?|prompts?|rules?|directions?|directives?|guidelines?|commands?|policy|policies|safeguards?|training"
)
_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "it tells the reader to ignore its instructions",
        re.compile(
            rf"\b(?:ignore|disregard|forget|override|bypass|drop|discard)\b[^.\n]{{0,40}}?\b(?:previous|prior|above|earlier|"
            rf"preceding|existing|original|all|any|your|these|those|system|safety)\b[^.\n]{{0,40}}?\b(?:{_ORDERS})\b",
            _I,
        ),
    ),
    (
        "it tells the reader to ignore what came before",
        re.compile(
            r"\b(?:ignore|disregard|forget)\b\s+(?:everything|anything|all(?: of)?(?: the| that)?)\s+"
            r"(?:above|before|previously|prior|so far|earlier|you (?:were|have been|know))",
            _I,
        ),
    ),
    (
        "it tells the reader to ignore its instructions",
        re.compile(
            r"\bignor(?:iere?n?|a|e|ez|ar|ate)\b[^.\n]{0,40}\b(?:anweisungen|instrucciones|instru[cç][õo]es|instructions|"
            r"istruzioni|regeln|reglas)|(?:忽略|无视|無視).{0,12}(?:指令|指示|提示|说明)|指示.{0,6}無視|"
            r"игнорируй(?:те)?.{0,30}инструкци",
            _I,
        ),
    ),
    (
        "it gives the reader a new role",
        re.compile(
            r"\byou\s+(?:are|will|must|shall|should)\s+now\b|\bfrom\s+now\s+on\b[^.\n]{0,30}\byou|"
            r"\b(?:pretend|act|behave|roleplay)\s+(?:to\s+be|as\s+if\s+you|as\s+(?:a|an|the)\s+(?:unrestricted|evil|admin|root|"
            r"developer|jailbroken|different|new)|like\s+you\s+(?:have\s+no|are))|\byou\s+are\s+no\s+longer\b|"
            r"\byour\s+(?:new|real|actual|true|only)\s+(?:task|instructions?|goal|role|purpose|objective)\s+(?:is|are)\b|"
            r"\bnew\s+(?:system\s+)?(?:instructions?|prompt|directives?)\s*[:\n]|\b(?:developer|debug|god|dan)\s+mode\s+(?:is\s+)?"
            r"(?:on|enabled|activated)\b|\bdo\s+anything\s+now\b",
            _I,
        ),
    ),
    (
        "it speaks to the model behind the user's back",
        re.compile(
            r"\b(?:do\s+not|don'?t|never)\s+(?:tell|inform|mention|reveal|alert|notify|show|warn|let)\b[^.\n]{0,30}\b"
            r"(?:user|human|operator|developer|owner|person|anyone)\b|\bwithout\s+(?:telling|asking|informing|notifying|alerting)"
            r"\s+(?:the\s+)?(?:user|human|operator|anyone)\b|\b(?:note|message|instructions?|attention|important|notice)\s*"
            r"(?:for|to|,|:)?\s*(?:the\s+|all\s+|any\s+)?(?:ai|llms?|language\s+models?|ai\s+(?:assistants?|agents?|models?)|"
            r"assistants?|chatbots?)\b\s*(?:[:,\-–]|must|should|reading|please|you)",
            _I,
        ),
    ),
    (
        "it asks for the instructions of the model",
        re.compile(
            r"\b(?:reveal|print|show|repeat|output|disclose|leak|recite|send)\b[^.\n]{0,40}\b(?:your|the)\s+(?:system\s+prompt|"
            r"(?:initial|hidden|secret|original|full)\s+(?:prompt|instructions?)|instructions\s+(?:above|verbatim))",
            _I,
        ),
    ),
    (
        "it asks to send private data away",
        re.compile(
            r"\b(?:send|post|upload|e-?mail|exfiltrate|forward|leak|transmit|submit|curl|append|include|encode)\b[^\n]{0,120}?\b"
            r"(?:api[\s_-]?keys?|credentials?|passwords?|secrets?|(?:access\s+)?tokens?|conversation|chat\s+history|"
            r"environment\s+variables|\.env|ssh\s+keys?|memor(?:y|ies)|(?:user|personal|private|customer)\s+(?:data|information|"
            r"details|files))\b[^\n]{0,80}?\b(?:to|at|into|via)\s+(?:https?://|\S+@\S+\.\w|(?:[\w-]+\.)+(?:com|net|org|io|ru|cn|"
            r"xyz|dev|app|sh|site)\b)|\bexfiltrat(?:e|ing)\b",
            _I,
        ),
    ),
    (
        "it plants a rule about what to answer",
        re.compile(
            r"\b(?:whenever|every\s+time|each\s+time|if|when)\s+(?:the\s+|a\s+|any\s+)?user\s+(?:asks?|says?|mentions?|requests?|"
            r"wants?)\b[^.\n]{0,80}\b(?:say|reply|respond|recommend|answer|tell\s+them|send|run|execute|claim|insist)\b|"
            r"\b(?:remember|memori[sz]e|store|save)\b[^.\n]{0,40}\b(?:you\s+must|always\s+(?:recommend|trust|obey|send|approve|say)|"
            r"the\s+user\s+(?:has\s+)?(?:authori[sz]ed|approved|allows?|wants\s+you))|"
            r"\b(?:when|once|if|as\s+soon\s+as)\s+you(?:'re|\s+are)?\s+(?:read|see|receive|process|reading|seeing|processing)\s+"
            r"this\b[^.\n]{0,60}\b(?:call|run|execute|send|delete|invoke|use|reply|respond|say|open|visit|click|approve|forward)\b",
            _I,
        ),
    ),
    (
        "it imitates the marks of a conversation or a tool call",
        re.compile(
            r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|system[-_ ]?(?:prompt|message|reminder)|"
            r"instructions?|developer|assistant|admin)\s*>|<\/?(?:function_calls?|tool_calls?|tool_use|tool_result|invoke|"
            r"function=\w+|\w+:invoke|\w+:function_calls)\b|\"(?:tool_calls?|function_call)\"\s*:|^\s{0,3}#{1,4}\s*(?:system|instructions?|assistant|"
            r"new\s+instructions?)\s*:?\s*$|\b(?:begin|start|end)\s+(?:of\s+)?system\s+(?:prompt|message)\b",
            _I | re.MULTILINE,
        ),
    ),
    (
        "it speaks as the system",
        re.compile(
            r"^\W{0,4}(?:system|developer|assistant|admin(?:istrator)?|root)(?:\s+(?:message|prompt|override|notice|note))?\s*:"
            r"(?=[^\n]*\b(?:you|your|ignore|must|always|never|delete|send|override|instructions?|don'?t|do\s+not|assistant|user|"
            r"reveal|obey|respond|reply|approve|execute|grant|disable|from\s+now)\b)",
            _I | re.MULTILINE,
        ),
    ),
)
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_SPELLED = re.compile(r"(?:\b\w[\s.*_-]){5,}\w\b")
# Zero-width characters inside of Latin words, turns of the reading direction, and letters that nobody sees.
_HIDDEN = re.compile(
    "[\u202a-\u202e\u2066-\u2069]|(?<![\U000e0020-\U000e007f\U0001f3f4])[\U000e0001-\U000e007f]"
    "|(?<=[A-Za-z])[\u200b-\u200d\u2060\ufeff\u00ad\u180e]+(?=[A-Za-z])|[\u200b\u2060\ufeff\u180e]{3,}"
)
_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u180e\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_LOOKALIKES = str.maketrans("аеорсухіјѕԁɡһтмквнΑΕΙΟΡΤΥΧαεοιυ", "aeopcyxijsdghtmkbhAEIOPTYXaeoiu")


def suspicion(texts: Iterable[str]) -> str | None:
    """Why these texts look like orders to their reader, in a few words; None where they do not."""
    return next((reason for text in texts for part in _windows(text) for reason in _reasons(part)), None)


def _windows(text: str) -> Iterator[str]:
    """A long text in pieces that overlap, so that none of it is left out."""
    for start in range(0, max(1, len(text) - _OVERLAP), _WINDOW - _OVERLAP):
        yield text[start : start + _WINDOW]


def _reasons(text: str) -> Iterator[str]:
    if _HIDDEN.search(text):
        yield "it hides characters that a person does not see"
    yield from _signs(text)
    for decoded in _decoded(text):
        for reason in _signs(decoded):
            yield f"{reason}, in an encoded part"


def _signs(text: str) -> Iterator[str]:
    plain = _plain(text)
    for reason, pattern in _SIGNS:
        if pattern.search(plain):
            yield reason


def _plain(text: str) -> str:
    """The text as a model would understand it: without disguises by characters, entities or spacing."""
    bare = _INVISIBLE.sub("", html.unescape(text))
    bare = unicodedata.normalize("NFKC", bare)
    if not bare.isascii():
        bare = " ".join(_unmasked(word) if word else "" for word in bare.split(" "))
    return _SPELLED.sub(lambda match: re.sub(r"[\s.*_-]", "", match.group()), bare)


def _unmasked(word: str) -> str:
    """A word that mixes Latin letters with others that look the same, in Latin letters."""
    mixed = any("a" <= c <= "z" for c in word.lower()) and not word.isascii()
    return word.translate(_LOOKALIKES) if mixed else word


def _decoded(text: str) -> Iterator[str]:
    """What base64 in the text says, where it says anything."""
    for count, match in enumerate(_BLOB.finditer(text)):
        if count == _MOST_BLOBS:
            return
        blob = match.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            said = base64.b64decode(blob + "=" * (-len(blob) % 4)).decode("utf-8")
        except (binascii.Error, ValueError):
            continue
        if sum(c.isprintable() or c.isspace() for c in said) >= 0.95 * len(said):
            yield said
