"""Wishes in German, French, Spanish, Italian, Portuguese and Dutch: kept in the words in which they were said."""

from __future__ import annotations

from alma.extraction.wording import END, sentence

# What is said out of politeness, or to say nothing.
_PASSING = (
    r"(?!(?:nicht|nichts|es nicht)\b[^.]{0,20}\b(?:sagen|antworten)|ne (?:pas|rien) (?:répondre|dire|parler)|"
    r"no (?:opinar|decir|responder|hablar)|non (?:rispondere|dire|parlare)|não (?:responder|dizer|falar)|"
    r"(?:das|es|ça|cela|eso|esto|questo|quello|isso|dat)\b)"
)
# What somebody likes better, what is always or never to be done, and what holds from now on.
_PREFERRED = (
    rf"ich (?:bevorzuge|mag lieber|hätte lieber|arbeite am liebsten mit|benutze am liebsten) {_PASSING}.+?",
    rf"je préfère {_PASSING}.+?",
    rf"(?:yo )?prefiero {_PASSING}.+?",
    rf"(?:io )?preferisco {_PASSING}.+?",
    rf"(?:eu )?prefiro {_PASSING}.+?",
    r"ik (?:geef de voorkeur aan|heb liever) .+?",
)
_STANDING = (
    r"(?:bitte )?(?:verwende|benutze|nutze|nimm|schreibe?|antworte|gib|halte|zeige?) (?:\w+ )?(?:bitte )?"
    r"(?:immer|stets|nie|niemals|nur)\b.+?",
    r"bitte (?:immer|stets|nie|niemals) .+?",
    r"(?:s['’]il (?:te|vous) plaît,? |merci d['’e] ?)?(?:utilis(?:e|ez|er)|écri(?:s|vez|re)|répond(?:s|ez|re)|"
    r"ajout(?:e|ez|er)|format(?:e|ez|er)) (?:toujours|uniquement) .+?",
    r"n['’](?:utilis(?:e|ez)|écri(?:s|vez)|ajout(?:e|ez)) jamais .+?",
    r"(?:por favor,? )?(?:usa|use|utiliza|utilice|escribe|responde|responda|añade) siempre .+?",
    r"(?:por favor,? )?nunca (?:uses|use|utilices|escribas|respondas|añadas) .+?",
    r"(?:per favore,? )?(?:usa|scrivi|rispondi|aggiungi) (?:sempre|solo) .+?",
    r"(?:per favore,? )?non (?:usare|scrivere|rispondere|aggiungere) mai .+?",
    r"(?:por favor,? )?(?:usa|use|escreva|responda|adicione) sempre .+?",
    r"(?:alsjeblieft )?(?:gebruik|schrijf|antwoord|geef) (?:altijd|nooit|alleen) .+?",
)
_FROM_NOW_ON = (
    r"(?:ab (?:jetzt|sofort)|von nun an|künftig|dorénavant|désormais|à partir de maintenant|"
    r"a partir de (?:ahora|agora)|de ahora en adelante|d['’]ora in (?:poi|avanti)|daqui em diante|vanaf nu),? .+?"
)
_DISLIKED = (
    r"ich mag kein\w* .+?",
    r"je n['’]aime pas (?:les?|la|l['’]|que|quand|du|des) ?.+?",
    r"no me gustan? (?:las?|los|el|que) .+?",
    r"non mi piac(?:e|ciono) (?:il|la|i|gli|le|che|l['’]) ?.+?",
    r"não gosto d(?:e|os?|as?) .+?",
)

WISHES_ABROAD = tuple(
    (sentence(rf"^(?P<wish>{way}){END}"), confidence, "{}")
    for ways, confidence in ((_PREFERRED, 0.85), (_STANDING, 0.85), ((_FROM_NOW_ON,), 0.8), (_DISLIKED, 0.75))
    for way in ways
)
"""Patterns, how sure they are, and how what they find is written down."""
