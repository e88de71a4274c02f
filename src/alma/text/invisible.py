"""Visible text: without characters that people do not see and language models read all the same."""

from __future__ import annotations

import re

# Soft hyphens, joiners, spaces without width, marks and turns of direction, invisible operators, fillers, variation
# selectors, and the tags, with which a whole text can be written unseen.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PICTURE = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Scripts in which a joiner between two letters makes another word: Arabic, Syriac, the scripts of India, Mongolian.
_JOINED = "\u0600-\u07ff\u0860-\u0dff\u0f00-\u109f\u1780-\u18af\ua840-\ua87f\ufb50-\ufdff\ufe70-\ufefc"
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SIGN = re.compile(
    "(?P<kept>"
    # The flags of England, Scotland, Wales and other regions.
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
    f"|(?<=[{_PICTURE}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    f"|(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])"
    f"|(?<=[{_IDEOGRAPH}])[\ufe00-\ufe02\U000e0100-\U000e01ef]|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
    f")|[{_UNSEEN}]"
)


def visible(text: str) -> str:
    """The text without what is not seen, except where a picture or a script needs it.

    For prompts and terminals; what is stored, and what programs read, stays as it was said.
    """
    return text if text.isascii() else _SIGN.sub(lambda sign: sign["kept"] or "", text)
