"""Detect the language of a short text by its function words.

All words are without accents, as terms are. Names have articles as well (Los Angeles, Van der Berg), so that only words
that no English question has tell a language by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_TELLTALE = {
    "german": """
        wie wer wo wann warum wieso weshalb wohin woher wem wen wessen welche welcher welches welchen welchem ist sind
        wird werden wurde wurden haben habe hatte hatten kann konnen konnte muss mussen soll sollen sollte mochte nicht
        und oder aber auch ich wir unser unsere unserem unseren unserer mein meine meinen euer uns mir dich mich ihm
        fur uber zwischen dem eine einen einem einer
    """,
    "spanish": """
        que cuando cuanto cuanta cuantos cuantas cual cuales quien quienes donde adonde porque esta estan estamos
        tiene tienen tenemos hay fue fueron puede podemos pueden hacemos hizo nuestro nuestra nuestros nuestras usted
        ellos ella una unos unas pero tambien desde hasta sobre
    """,
    "french": """
        quel quelle quels quelles quand combien pourquoi qui quoi sont avons etes ont avez fait peut peuvent doit faut
        nous vous ils elles notre nos votre cette ces dans avec mais une aux chez
    """,
    "italian": """
        che chi quando quanto quanta quanti quante quale quali dove perche sono siamo abbiamo hanno puo possono deve
        nostro nostra nostri nostre della delle degli dello nella nelle alla anche una questo questa sul sulla
    """,
    "portuguese": """
        que quando quanto quanta quantos quantas qual quais quem onde porque esta estao estamos tem temos foi foram
        pode podem nosso nossa nossos nossas voce eles elas uma umas mas tambem desde ate sobre nao pelo pela
    """,
    "dutch": """
        hoe wie waar wanneer waarom waarheen welke hoeveel wordt worden werd heeft hebben heb kan kunnen moet moeten
        zijn niet maar ook ik wij ons onze mijn jouw uw voor met naar een het
    """,
}
_OTHERS = {
    "german": """
        der die das des den ein eines was wo war waren hat habt du er sie es ihr ihre ihren sein seine seinen seiner in
        im an am auf aus bei beim mit nach von vom vor zu zum zur um als wenn dass ob denn da so man sich doch noch nur
        schon sehr mehr viel viele hier dort diese dieser dieses kein keine keinen durch gegen ohne unter bis
    """,
    "spanish": """
        el la los las lo un de del al a en y o u e con sin por para como es son era ser se su sus mi mis tu tus me te le
        les nos si no ni ya muy mas menos este estos estas eso esa ese entre ha han he
    """,
    "french": """
        le la les l un de des du d et ou a au en y est c ce s se sa son ses n ne pas plus que qu on il elle je j tu me m
        te t mon ma mes ton ta tes leur leurs lui sur sous pour par sans comment si tres etre ete etait eu
    """,
    "italian": """
        il lo la i gli le l un uno di del dei da dal dalla a al ai in nel con su per tra fra e o ma se come non piu si
        mi ti ci vi cosa era ha ho hai suo sua mio mia tuo tua
    """,
    "portuguese": """
        o a os as um de do da dos das em no na nos nas ao aos por para com sem e ou se como ser era eu ele ela seu sua
        meu minha teu tua este isso mais menos muito ja
    """,
    "dutch": """
        de den der des van te ten ter in op aan bij uit over onder om als dat die dit deze wat is was waren er hij zij
        je we hun haar zo dan nog al en of geen meer veel
    """,
}
_ALL = {language: frozenset(f"{words} {_OTHERS[language]}".split()) for language, words in _TELLTALE.items()}
_ENOUGH = 3
_ANYWHERE = frozenset().union(*_ALL.values())
_TELLING = {language: frozenset(words.split()) for language, words in _TELLTALE.items()}


def function_words_of(words: Sequence[str], english: frozenset[str], *, accented: bool) -> frozenset[str]:
    """The function words of the detected language; none where that is English or unknown.

    A language is told by one of its own words, by three that others may have as well, or by any where letters have
    accents; and if English ones are fewer.
    """
    least = len([word for word in words if word in english])
    # A quick check for English texts.
    if len([word for word in words if word in _ANYWHERE]) <= least:
        return frozenset()
    said = Counter(words)
    chosen: frozenset[str] = frozenset()
    for language, known in _ALL.items():
        having = known & said.keys()
        found = sum(said[word] for word in having)
        if found > least and (accented or len(having) >= _ENOUGH or not _TELLING[language].isdisjoint(having)):
            least, chosen = found, known
    return chosen


def only_english(words: Sequence[str], english: frozenset[str]) -> bool:
    """Whether a function word is English only."""
    return any(word in english and word not in _ANYWHERE for word in words)
