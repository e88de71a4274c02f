"""Phrases: the times that people name most often in further languages, and that they ask for, put into English."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from alma.text.timeexpr.vocabulary import MONTHS

# In each language, what means the same with strokes between. What may be a part of another stands behind it.
_PHRASES: tuple[dict[str, str], ...] = (
    # Russian
    {
        "позавчера": "the day before yesterday",
        "вчера": "yesterday",
        "сегодня": "today",
        "на позапрошлой неделе": "the week before last",
        "на прошлой неделе": "last week",
        "в прошлом месяце": "last month",
        "в прошлом году": "last year",
        "на этой неделе": "this week",
        "в этом месяце": "this month",
        "в этом году": "this year",
        "что (?:произошло|случилось|было)": "what happened",
    },
    # Polish
    {
        "przedwczoraj": "the day before yesterday",
        "wczoraj": "yesterday",
        "dzisiaj|dziś": "today",
        "w (?:zeszłym|ubiegłym|poprzednim) tygodniu": "last week",
        "w (?:zeszłym|ubiegłym|poprzednim) miesiącu": "last month",
        "w (?:zeszłym|ubiegłym|poprzednim) roku": "last year",
        "w tym tygodniu": "this week",
        "w tym miesiącu": "this month",
        "w tym roku": "this year",
        "co się (?:stało|wydarzyło|działo)": "what happened",
    },
    # Swedish, Danish and Norwegian
    {
        "i förrgår|i forgårs|i forgårds": "the day before yesterday",
        "igår|i går": "yesterday",
        "idag|i dag": "today",
        "förra veckan|(?:forrige|sidste) uge|(?:forrige|siste) uke": "last week",
        "förra månaden|(?:forrige|sidste|siste) måned": "last month",
        "förra året|i fjol|sidste år|i fjor": "last year",
        "den här veckan|denne uge|denne uken": "this week",
        "den här månaden|denne måned|denne måneden": "this month",
        "vad hände|hvad skete(?: der)?|hva skjedde": "what happened",
    },
    # Turkish
    {
        "evvelsi gün|önceki gün": "the day before yesterday",
        "dün": "yesterday",
        "bugün": "today",
        "geçen hafta": "last week",
        "geçen ay": "last month",
        "geçen (?:yıl|sene)": "last year",
        "bu hafta": "this week",
        "bu ay": "this month",
        "bu (?:yıl|sene)": "this year",
        "ne(?:ler)? oldu": "what happened",
    },
    # Arabic
    {
        "أول (?:من )?أمس": "the day before yesterday",
        "أمس|امس|البارحة": "yesterday",
        "الأسبوع الماضي|الاسبوع الماضي": "last week",
        "الشهر الماضي": "last month",
        "السنة الماضية|العام الماضي": "last year",
        "هذا الأسبوع": "this week",
        "هذا الشهر": "this month",
        "ماذا (?:حدث|حصل)": "what happened",
    },
    # Hindi
    {
        "पिछले (?:हफ्ते|हफ़्ते|सप्ताह)": "last week",
        "पिछले (?:महीने|माह)": "last month",
        "पिछले (?:साल|वर्ष)": "last year",
        "इस (?:हफ्ते|हफ़्ते|सप्ताह)": "this week",
        "इस (?:महीने|माह)": "this month",
        "क्या हुआ(?: था)?": "what happened",
    },
)
# Where particles stand at the words, or words without spaces.
_UNSPACED: dict[str, str] = {
    "大前天|さきおととい": "three days ago",
    "前天|一昨日|おととい|그저께|그제": "the day before yesterday",
    "昨天|昨日|きのう|어제": "yesterday",
    "今天|今日|きょう|오늘": "today",
    "上个?[周週]末|先週末|지난 ?주말": "last weekend",
    "上上[周週]|上上个星期|先々週|先先週|지지난 ?주": "the week before last",
    "上[周週]|上个?星期|上個星期|上个?礼拜|先週|지난 ?주": "last week",
    "上个?月|上個月|先月|지난 ?달": "last month",
    "前年|一昨年|おととし|재작년": "the year before last",
    "去年|昨年|작년|지난 ?해": "last year",
    "[这這本]个?[周週]|这个?星期|今週|이번 ?주(?!말)": "this week",
    "[这這本]个?月|今月|이번 ?달": "this month",
    "今年|올해": "this year",
    "(?:都?发生|都?發生)了?(?:什么|什麼|哪些)(?:事情?)?": "what happened",
    "何が(?:ありました|起こりました|起きました|あった|起きた)か?": "what happened",
    "무슨 ?일이? ?(?:있었|일어났|생겼)(?:나요|습니까|어요?|니|지)?": "what happened",
}
_UNITS = {"天": "days", "日": "days", "일": "days", "周": "weeks", "週間": "weeks", "주": "weeks"}
_UNITS |= {"个月": "months", "個月": "months", "か月": "months", "ヶ月": "months", "개월": "months", "달": "months"}
_UNITS |= {"年": "years", "년": "years"}
_AGO = re.compile(rf"(\d{{1,3}}) ?({'|'.join(sorted(_UNITS, key=len, reverse=True))}) ?(?:以?前|전)")
_RUSSIAN_MONTHS = "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре".split()  # noqa: SIM905
_POLISH_MONTHS = """
styczniu lutym marcu kwietniu maju czerwcu lipcu sierpniu wrześniu październiku listopadzie grudniu
""".split()  # noqa: SIM905
_IN_MONTH = {
    f"{word} {name}": f"in {month}"
    for word, names in (("в", _RUSSIAN_MONTHS), ("we?", _POLISH_MONTHS))
    for name, month in zip(names, MONTHS, strict=True)
}
_FORMS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_AGO, lambda match: f" {match[1]} {_UNITS[match[2]]} ago "),
    *((re.compile(words), f" {meaning} ") for words, meaning in _UNSPACED.items()),
    *(
        (re.compile(rf"(?<!\w)(?:{words})(?!\w)"), meaning)
        for phrases in (*_PHRASES, _IN_MONTH)
        for words, meaning in phrases.items()
    ),
)
# A text in plain letters has hardly one of them, which is seen at once.
_PLAIN = re.compile(r"\b(?:wczoraj|przedwczoraj|dzisiaj|idag|i dag|i fjol|i fjor|sidste|siste|forrige|denne|tym|bu)\b")


def spelled_in_english(text: str) -> str:
    """A text in small letters with such times put into English."""
    if text.isascii() and _PLAIN.search(text) is None:
        return text
    text = unicodedata.normalize("NFC", text)
    for form, words in _FORMS:
        text = form.sub(words, text)
    return " ".join(text.split())
