"""Tongues: times as people name them in German, French, Spanish, Italian, Portuguese and Dutch, put into English."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from alma.text.timeexpr.vocabulary import MONTHS, WEEKDAYS
from alma.text.tokens import STOP_WORDS

Form = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]
_UNITS = ("day", "week", "month", "quarter", "year", "weekend", "spring", "summer", "autumn", "winter")
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905 - as people count


@dataclass(frozen=True)
class Tongue:
    """The words of a language, with strokes between those that mean the same and "_" for a blank inside of one.

    `units`, `numbers`, `months` and `weekdays` stand in the order of the English ones, `words` beside what they mean.
    "Ago" stands `before` or `behind` a number of units, `last`, `this` and `next` on either side of a unit. Those
    are patterns. Nothing has accents.
    """

    units: str
    numbers: str
    months: str
    weekdays: str
    words: dict[str, str]
    before: str = ""
    behind: str = ""
    last: str = ""
    this: str = ""
    next: str = ""
    before_last: str = ""
    within: str = ""
    on: str = ""
    since: str = ""
    of: str = ""


_GERMAN = Tongue(
    units=(
        "tag|tage|tagen woche|wochen monat|monate|monaten quartal|quartale|quartalen jahr|jahre|jahren "
        "wochenende fruhling sommer herbst winter"
    ),
    numbers="ein|eine|einem|einer|einen zwei drei vier funf|fuenf sechs sieben acht neun zehn elf zwolf|zwoelf",
    months="januar|janner februar marz|maerz april mai juni juli august september oktober november dezember",
    weekdays="montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
    words={
        "heute (?:morgen|fruh)": "this morning",
        "heute abend": "this evening",
        "gestern abend": "yesterday evening",
        "vorgestern": "the day before yesterday",
        "gestern": "yesterday",
        "heute": "today",
        "ubermorgen": "the day after tomorrow",
        "an weihnachten|uber weihnachten|zu weihnachten": "over christmas",
        "an ostern|uber ostern|zu ostern": "over easter",
        "seit ostern": "since easter",
        "seit weihnachten": "since christmas",
    },
    before="vor",
    last="(?:letzte|vorige|vergangene)[nrsm]?",
    this="(?:diese|aktuelle)[nrsm]?",
    next="(?:nachste|kommende)[nrsm]?",
    before_last="vorletzte[nrsm]?",
    within="im",
    on="am",
    since="seit",
)
_FRENCH = Tongue(
    units=(
        "jour|jours semaine|semaines mois trimestre|trimestres an|ans|annee|annees week-end|weekend printemps "
        "ete automne hiver"
    ),
    numbers="un|une deux trois quatre cinq six sept huit neuf dix onze douze",
    months="janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
    words={
        "ce matin": "this morning",
        "ce soir": "this evening",
        "hier soir": "yesterday evening",
        "avant-hier": "the day before yesterday",
        "hier": "yesterday",
        "aujourd'hui": "today",
        "apres-demain": "the day after tomorrow",
        "a noel": "over christmas",
        "a paques": "over easter",
        "depuis paques": "since easter",
        "depuis noel": "since christmas",
    },
    before="il y a",
    last="(?:derni(?:ere|er)s?|passee?s?)",
    this="(?:cette|cet?)",
    next="prochaine?s?",
    before_last="avant-derni(?:ere|er)",
    within="en|au mois de",
    on="le",
    since="depuis",
)
_SPANISH = Tongue(
    units=(
        "dia|dias semana|semanas mes|meses trimestre|trimestres ano|anos fin_de_semana primavera verano otono invierno"
    ),
    numbers="un|una|uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    months="enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
    weekdays="lunes martes miercoles jueves viernes sabado domingo",
    words={
        "esta manana": "this morning",
        "esta noche": "this evening",
        "anteayer|antes de ayer": "the day before yesterday",
        "ayer": "yesterday",
        "anoche": "yesterday evening",
        "pasado manana": "the day after tomorrow",
        "hoy": "today",
        "en navidad": "over christmas",
        "desde navidad": "since christmas",
    },
    before="hace",
    last="(?:pasad[oa]s?|ultim[oa]s?)",
    this="est[ea]",
    next="(?:proxim[oa]s?|que viene)",
    before_last="(?:antepasad[oa]|penultim[oa])",
    within="en",
    on="el",
    since="desde",
    of="de",
)
_ITALIAN = Tongue(
    units=(
        "giorno|giorni settimana|settimane mese|mesi trimestre|trimestri anno|anni fine_settimana|weekend "
        "primavera estate autunno inverno"
    ),
    numbers="un|una|uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    months="gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    weekdays="lunedi martedi mercoledi giovedi venerdi sabato domenica",
    words={
        "stamattina|questa mattina": "this morning",
        "ieri sera": "yesterday evening",
        "l'altro ieri": "the day before yesterday",
        "ieri": "yesterday",
        "oggi": "today",
        "dopodomani": "the day after tomorrow",
        "a natale": "over christmas",
        "da natale": "since christmas",
    },
    behind="fa",
    last="(?:scors[oa]|passat[oa]|ultim[oa])",
    this="quest[oa]",
    next="prossim[oa]",
    before_last="penultim[oa]",
    within="in|nel mese di|a",
    on="il|l'",
    since="da",
)
_PORTUGUESE = Tongue(
    units=(
        "dia|dias semana|semanas mes|meses trimestre|trimestres ano|anos fim_de_semana primavera verao outono inverno"
    ),
    numbers="um|uma dois|duas tres quatro cinco seis sete oito nove dez onze doze",
    months="janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
    weekdays=(
        "segunda|segunda-feira terca|terca-feira quarta|quarta-feira quinta|quinta-feira sexta|sexta-feira "
        "sabado domingo"
    ),
    words={
        "hoje de manha": "this morning",
        "ontem a noite": "yesterday evening",
        "anteontem": "the day before yesterday",
        "ontem": "yesterday",
        "hoje": "today",
        "depois de amanha": "the day after tomorrow",
        "no natal": "over christmas",
        "desde o natal": "since christmas",
    },
    before="ha",
    last="(?:passad[oa]s?|ultim[oa]s?)",
    this="est[ea]",
    next="(?:proxim[oa]s?|que vem)",
    before_last="(?:retrasad[oa]|penultim[oa])",
    within="em",
    on="no dia|na|no|em",
    since="desde",
    of="de",
)
_DUTCH = Tongue(
    units=(
        "dag|dagen week|weken maand|maanden kwartaal|kwartalen jaar|jaren weekend lente|voorjaar zomer herfst winter"
    ),
    numbers="een twee drie vier vijf zes zeven acht negen tien elf twaalf",
    months="januari februari maart april mei juni juli augustus september oktober november december",
    weekdays="maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    words={
        "vanmorgen|vanochtend": "this morning",
        "gisteravond": "yesterday evening",
        "eergisteren": "the day before yesterday",
        "gisteren": "yesterday",
        "vandaag": "today",
        "overmorgen": "the day after tomorrow",
        "met kerst": "over christmas",
        "sinds kerst": "since christmas",
    },
    behind="geleden",
    last="(?:vorige?|afgelopen)",
    this="(?:deze|dit)",
    next="(?:volgende?|komende?)",
    before_last="(?:eer|voor)vorige?",
    within="in",
    on="op",
    since="sinds",
)
_YEAR = r"(?:19|20)\d\d"


class _Words:
    """Words of a language with what each means in English."""

    def __init__(self, spellings: str, meanings: Sequence[str]) -> None:
        self._meaning_of = {
            each.replace("_", " "): meaning
            for alike, meaning in zip(spellings.split(), meanings, strict=True)
            for each in alike.split("|")
        }
        # The longest first, so that none is taken for the beginning of another.
        self.pattern = "|".join(sorted(self._meaning_of, key=len, reverse=True))

    def __getitem__(self, word: str) -> str:
        """What a word means; a number in digits is itself."""
        return self._meaning_of.get(word, word)


def _forms(tongue: Tongue) -> Iterator[Form]:
    units, numbers = _Words(tongue.units, _UNITS), _Words(tongue.numbers, _NUMBERS)
    months, weekdays = _Words(tongue.months, MONTHS), _Words(tongue.weekdays, WEEKDAYS)
    count = rf"(?P<count>\d{{1,3}}|{numbers.pattern}) (?P<unit>{units.pattern})"
    month, year = rf"(?P<month>{months.pattern})", rf"(?: (?:{tongue.of or 'de'} )?(?P<year>{_YEAR}))"

    def so_many(match: re.Match[str]) -> str:
        return f"{numbers[match['count']]} {units[match['unit']]}s"

    def unit_or_day(match: re.Match[str]) -> str:
        return weekdays[match["day"]] if match["day"] else units[match["unit"]]

    def beside(word: str) -> Callable[[re.Match[str]], str]:
        return lambda match: f"{word} {unit_or_day(match)}"

    def month_of(match: re.Match[str]) -> str:
        return f"{months[match['month']]} {match['year'] or ''}".strip()

    for words, meaning in tongue.words.items():
        yield re.compile(rf"\b(?:{words})\b"), meaning
    ago = rf"{tongue.before} {count}" if tongue.before else rf"{count} {tongue.behind}"
    yield re.compile(rf"\b{ago}\b"), lambda match: f"{so_many(match)} ago"
    yield re.compile(rf"\b{tongue.last} {count}\b"), lambda match: f"the last {so_many(match)}"
    which = rf"(?:(?P<day>{weekdays.pattern})|(?P<unit>{units.pattern}))"
    for form in (rf"{tongue.before_last} {which}", rf"{which} {tongue.before_last}"):
        yield re.compile(rf"\b{form}\b"), lambda match: f"the {unit_or_day(match)} before last"
    for words, meaning in ((tongue.last, "last"), (tongue.this, "this"), (tongue.next, "next")):
        for form in (rf"{words} {which}", rf"{which} {words}"):
            yield re.compile(rf"\b{form}\b"), beside(meaning)
    date = rf"(?:(?:{tongue.on}) )?(?P<date>\d{{1,2}})\.? (?:{tongue.of or 'de'} )?{month}{year}?"
    # Several months have the same name in English, and behind a stroke stands the last of some days.
    yield re.compile(rf"(?<![-\u2013\u2014])\b{date}\b"), lambda match: f"on {match['date']} {month_of(match)}"
    yield (
        re.compile(rf"\b(?:{tongue.since}) (?:{tongue.on} )?{month}{year}?\b"),
        lambda match: f"since {month_of(match)}",
    )
    yield re.compile(rf"\b(?:{tongue.within}) {month}{year}?\b"), lambda match: f"in {month_of(match)}"
    day = rf"(?P<day>{weekdays.pattern})"
    yield re.compile(rf"\b(?:{tongue.since}) (?:{tongue.on} )?{day}\b"), lambda match: f"since {weekdays[match['day']]}"
    yield re.compile(rf"\b(?:{tongue.on}) {day}\b"), lambda match: f"on {weekdays[match['day']]}"
    yield re.compile(rf"\b(?:{tongue.since}) (?=(?:last|this|yesterday|the day) )"), "since "


_TONGUES = (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)
_FORMS = tuple(form for tongue in _TONGUES for form in _forms(tongue))
_TOKEN = re.compile(r"[a-z]+")
# Every time has one of these, and hardly an English text has, which is seen at once.
_TELLING = frozenset(
    token
    for tongue in _TONGUES
    for spelling in (tongue.units, tongue.months, tongue.weekdays, tongue.before, tongue.behind, *tongue.words)
    for token in _TOKEN.findall(spelling)
).difference(STOP_WORDS)


def in_english(text: str) -> str:
    """A text in small letters with the times that it names in one of these languages put into English."""
    plain = text if text.isascii() else _without_accents(text)
    if _TELLING.isdisjoint(_TOKEN.findall(plain)):
        return text
    for form, words in _FORMS:
        plain = form.sub(words, plain)
    return plain


def _without_accents(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))
