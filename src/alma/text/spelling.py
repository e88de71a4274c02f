"""American spelling of British words, so that both count as one."""

from __future__ import annotations

import re
from functools import lru_cache

_BRITISH = re.compile(
    r"\b([a-z]{3,}(?:al|an|ar|as|at|en|er|gn|il|im|in|it|og|ol|on|or|tom|ur))is(e|es|ed|er|ing|ations?)\b",
    re.IGNORECASE,
)
_OUR = re.compile(
    r"\b(arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rum|sav|vap)our(?=s|ed|ing|ful|ite|able|al|hood|\b)",
    re.IGNORECASE,
)
_DOUBLED = re.compile(
    r"\b(cancel|channel|fuel|label|level|model|signal|total|travel|tunnel)l(?=ed|ing|er)", re.IGNORECASE
)
_OTHER_SPELLINGS = {
    "centre": "center", "centres": "centers", "centred": "centered", "metre": "meter", "metres": "meters",
    "litre": "liter", "litres": "liters", "fibre": "fiber", "theatre": "theater", "catalogue": "catalog",
    "catalogues": "catalogs", "dialogue": "dialog", "dialogues": "dialogs", "analogue": "analog", "licence": "license",
    "licences": "licenses", "defence": "defense", "offence": "offense", "practise": "practice",
    "programme": "program", "programmes": "programs", "grey": "gray", "judgement": "judgment", "artefact": "artifact",
    "artefacts": "artifacts", "analyse": "analyze", "analysed": "analyzed", "analysing": "analyzing",
    "sceptical": "skeptical", "acknowledgement": "acknowledgment", "aeroplane": "airplane", "aeroplanes": "airplanes",
    "aluminium": "aluminum", "cheque": "check", "cheques": "checks", "cosy": "cozy", "draught": "draft",
    "draughts": "drafts", "enrol": "enroll", "enrols": "enrolls", "enrolment": "enrollment", "fibres": "fibers",
    "fulfil": "fulfill", "fulfils": "fulfills", "fulfilment": "fulfillment", "instalment": "installment",
    "instalments": "installments", "jewellery": "jewelry", "kerb": "curb", "kerbs": "curbs",
    "manoeuvre": "maneuver", "manoeuvres": "maneuvers", "mould": "mold", "moulds": "molds", "plough": "plow",
    "ploughs": "plows", "pretence": "pretense", "skilful": "skillful", "sulphur": "sulfur", "theatres": "theaters",
    "tyre": "tire", "tyres": "tires", "yoghurt": "yogurt", "yoghurts": "yogurts",
}  # fmt: skip
# Kilometre, haemoglobin, anaesthetic, paediatric, diarrhoea, paralyse.
_PARTS = (
    (re.compile(r"(?<=[a-z]{3})(met|lit)re(?=s?$)", re.IGNORECASE), r"\1er"),
    (re.compile(r"(?:(?<=h)a(?=em)|(?<=an)a(?=es|em)|(?<=p)a(?=ed))", re.IGNORECASE), ""),
    (re.compile(r"(?<=rh)o(?=ea)", re.IGNORECASE), ""),
    (re.compile(r"(?<=[a-z]{3}ly)s(?=e[sd]?$|ing$)", re.IGNORECASE), "z"),
)
_WORDS = re.compile("[A-Za-z]{4,}")
_CACHE_SIZE = 20_000


def american(text: str) -> str:
    """The text in American spelling."""
    return _WORDS.sub(lambda match: american_word(match.group()), text)


@lru_cache(maxsize=_CACHE_SIZE)
def american_word(word: str) -> str:
    """The word in American spelling."""
    known = _OTHER_SPELLINGS.get(word.lower())
    if known:
        return known
    for part, american_part in _PARTS:
        word = part.sub(american_part, word)
    return _DOUBLED.sub(r"\1", _OUR.sub(r"\1or", _BRITISH.sub(r"\1iz\2", word)))
