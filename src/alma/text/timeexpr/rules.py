"""Rules: the forms in which people name a time, and which reader tells what each of them means."""

from __future__ import annotations

import re

from alma.text.timeexpr import interpretation as readers
from alma.text.timeexpr import partial_periods as parts
from alma.text.timeexpr import recurring, weekdays
from alma.text.timeexpr.interpretation import Reader
from alma.text.timeexpr.vocabulary import (
    AMOUNT,
    COUNT,
    DAY,
    DAY_WORDS,
    DAYS_OR_MORE,
    DECADES,
    END,
    LONG_UNIT,
    MONTH,
    MONTHS,
    NEXT,
    ORDINALS,
    PREVIOUS,
    SEASON,
    SEASONS,
    SHORT_WEEKDAY,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
)
from alma.text.timeexpr.weekdays import FEAST, FEAST_WORDS

_IN = r"(?:in|during|of|by|since|before|after|until|till|around|from|for|this|throughout|through|across|all)"
_PART = r"(?P<part>early|mid|late|(?:the )?(?:beginning|start|middle|end) of)(?: in)?[ -]"
_WHICH = r"(?P<which>last|this|next)"
_GOES_ON = rf"(?:{END}|(?= (?:with|in|at|on|to|by|and|did|do|was|were|what|who|we|i|you|they|he|she|it)\b))"
_NTH = r"(?P<nth>first|second|third|fourth|fifth|1st|2nd|3rd|4th|5th|last|final)"
_OF_YEAR = rf"(?:,?[ /-](?:of )?{YEAR}| (?:of )?(?P<which>last|this|next|the) year\b)"

NUMBER = "#"
_MONTH_WORDS = " ".join((*MONTHS, *(name[:3] for name in MONTHS), "sept"))
_SEASON_WORDS, _WEEKDAY_WORDS = " ".join(SEASONS), " ".join(WEEKDAYS)

# Each with the words of which a text has to have one for the rule to read anything in it.
RULES: tuple[tuple[frozenset[str], re.Pattern[str], Reader], ...] = tuple(
    (frozenset(words.split()), re.compile(pattern), read)
    for words, pattern, read in (
        ("ago", rf"\b{COUNT} (?P<weekday>{'|'.join(WEEKDAYS)})s ago\b", weekdays.so_many_ago),
        ("ago", rf"\b(?:a|one) week ago (?:on |last )?{WEEKDAY}", weekdays.week_ago),
        ("ago", rf"\b{WEEKDAY} (?:a|one) week ago\b", weekdays.week_ago),
        ("last", rf"\b(?:the )?{WEEKDAY} before last\b", weekdays.before_last),
        ("last", rf"\b{MONTH},?(?: of| in)? the year before last\b", recurring.of_year_before_last),
        ("last", rf"\b{SEASON},?(?: of| in)? the year before last\b", recurring.of_year_before_last),
        ("last", rf"\b(?:the )?{SEASON} before last\b", recurring.season),
        ("last", rf"\b(?:the )?{MONTH} before last\b", recurring.month),
        ("last", rf"\b(?:the )?{FEAST} before last\b", recurring.feast),
        ("last", r"\b(?:the )?(?:night|evening) before last\b", recurring.night),
        ("ago", rf"\b{COUNT} (?P<season>{'|'.join(SEASONS)})s ago\b", recurring.season),
        ("ago", rf"\b{COUNT} {FEAST}(?:e?s)? ago\b", recurring.feast),
        ("ago", rf"\b{COUNT} weekends? ago\b", recurring.weekend),
        ("ago", rf"\b{COUNT} (?:night|evening)s? ago\b", recurring.night),
        ("week", rf"\b{WEEKDAY},?(?: of| in)? {_WHICH} week\b", weekdays.of_week),
        ("week", rf"\b{_WHICH} week(?:'s|,)? (?:on )?{WEEKDAY}", weekdays.of_week),
        (_WEEKDAY_WORDS, rf"\b{_NTH} {WEEKDAY} (?:of|in) {MONTH}(?:,? (?:of )?{YEAR})?", weekdays.of_month),
        (_WEEKDAY_WORDS, rf"\b{_NTH} {WEEKDAY} (?:of|in) {_WHICH} month\b", weekdays.of_month),
        ("ago", rf"\b{AMOUNT} ago (?P<exact>today|yesterday|this (?:week|month))\b", readers.exactly_ago),
        ("week month year", rf"\b(?P<exact>this time) {_WHICH} (?P<unit>week|month|year)\b", readers.exactly_ago),
        (
            "week month year",
            rf"\b(?:(?:the )?same|this) (?P<exact>day|week|month) {_WHICH} (?P<unit>week|month|year)\b",
            readers.exactly_ago,
        ),
        (
            "first last final",
            rf"\b(?P<side>first|last|final) (?:{COUNT} )?(?P<unit>day|week|month)(?P<many>s)? (?:of|in) {MONTH}"
            rf"(?: (?:of )?{YEAR})?",
            parts.of_month,
        ),
        (
            "first last final",
            rf"\b(?P<side>first|last|final) (?:{COUNT} )?(?P<unit>day|week|month)(?P<many>s)? (?:of|in) {YEAR}",
            parts.of_year,
        ),
        (
            "first last final",
            rf"\b(?P<side>first|last|final) (?:{COUNT} )?(?P<unit>day|week|month)(?P<many>s)? (?:of|in) {_WHICH} "
            r"(?P<whole>month|quarter|year)\b",
            parts.of_unit,
        ),
        ("half", rf"\b(?P<half>first|second|1st|2nd|last) half of {MONTH}(?: (?:of )?{YEAR})?", parts.half_of_month),
        (
            "half",
            rf"\b(?P<half>first|second|1st|2nd|last) half of {_WHICH} (?P<whole>month|quarter)\b",
            parts.half_of_unit,
        ),
        # With points only where each part has two digits: 2024.1.2 is a version.
        (
            NUMBER,
            r"(?<![\w.])(?P<year>(?:19|20)\d\d)(?:[-/]|\.(?=\d\d\.\d\d))"
            r"(?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d|[-/.]\d)",
            readers.exact_day,
        ),
        # Only where a day is spoken of: so many digits may be any number.
        (
            NUMBER,
            r"\bon (?P<year>(?:19|20)\d\d)(?P<number>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])(?![\w/-]|\.\d)",
            readers.exact_day,
        ),
        (
            NUMBER,
            r"(?<![\w./-])(?<!version )(?<!release )(?P<one>\d{1,2})\.(?P<two>\d{1,2})\."
            r"(?P<year>(?:19|20)\d\d)(?!\w|[-/.]\d)",
            readers.point_day,
        ),
        (
            NUMBER,
            r"(?<![\w./-])(?P<one>\d{1,2})(?P<by>[/-])(?P<two>\d{1,2})(?P=by)(?P<year>(?:19|20)\d\d)(?!\w|[-/.]\d)",
            readers.slash_day,
        ),
        (NUMBER, r"\bon (?P<one>\d{1,2})/(?P<two>\d{1,2})/(?P<year>\d\d)(?!\w|[-/.]\d)", readers.slash_day),
        ("week", rf"\b(?:the )?week of (?:the )?{DAY}(?: of)? {MONTH},?(?: {YEAR})?", readers.week_of_day),
        ("week", rf"\b(?:the )?week of {MONTH} (?:the )?{DAY}(?![\w%]|[.:/-]\d)(?:,? {YEAR})?", readers.week_of_day),
        (
            "week",
            r"\b(?P<which>first|second|third|fourth|1st|2nd|3rd|4th|last) week (?:of|in) "
            rf"{MONTH}(?: (?:of )?{YEAR})?",
            readers.week_of_month,
        ),
        (NUMBER, rf"\bweek (?P<week>\d\d?)(?: of|,|/)? {YEAR}", readers.numbered_week),
        (NUMBER, r"\bcalendar week (?P<week>\d\d?)\b(?! of)", readers.week_without_year),
        # Of less than ten it may be the third week of a course.
        (
            NUMBER,
            r"\b(?:in|during|since|before|after|until|from|for) week (?P<week>[1-5]\d)\b(?! of)",
            readers.week_without_year,
        ),
        (NUMBER, rf"\bweek (?P<week>[1-5]\d){END}", readers.week_without_year),
        (NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-?w(?P<week>\d\d)-?(?P<day>[1-7])(?![\w-])", readers.day_of_week),
        (NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-?w(?P<week>\d\d)(?!\w|[-/.]\d)", readers.numbered_week),
        (_MONTH_WORDS, rf"(?<![\w./,-]){DAY}(?: of)? {MONTH},?(?: {YEAR})?", readers.named_day),
        (_MONTH_WORDS, rf"\b{MONTH} (?:the )?{DAY}(?![\w%]|[.:/-]\d)(?:,? {YEAR})?", readers.named_day),
        (_MONTH_WORDS, rf"(?<![\w./-]){DAY}-{MONTH}-{YEAR}", readers.named_day),
        (_MONTH_WORDS, rf"\bthe (?P<worded>{'|'.join(DAY_WORDS)}) (?:of|in) {MONTH}(?:,? {YEAR})?", readers.worded_day),
        (NUMBER, rf"\bon (?!24/7)(?P<one>\d{{1,2}})(?P<by>/)(?P<two>\d{{1,2}}){END}", readers.day_without_year),
        (NUMBER, r"\bon (?P<one>\d\d)(?P<by>\.)(?P<two>\d\d)\.(?!\d)", readers.day_without_year),
        (
            _WEEKDAY_WORDS,
            rf"\b{WEEKDAY},? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)(?!\w)(?! of)",
            weekdays.with_number,
        ),
        ("month", rf"\bon the {DAY} of (?P<which>this|last|next) month\b", readers.day_of_month),
        (
            "year years",
            rf"\b{MONTH},?(?: of)? (?:(?P<which>last|this|next) year\b|{COUNT} years? ago\b)",
            readers.month_of_year,
        ),
        ("year years", rf"\b(?:(?P<which>last|this|next) year|{COUNT} years? ago),? in {MONTH}", readers.month_of_year),
        (
            NUMBER,
            r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-(?P<number>0[1-9]|1[0-2])(?![\w/-]|\.\d)",
            readers.numbered_month,
        ),
        (
            NUMBER,
            r"(?<![\w./-])(?P<number>0[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)(?![\w/-]|\.\d)",
            readers.numbered_month,
        ),
        # Not what was bought for it, or made of it.
        (
            FEAST_WORDS,
            rf"\b(?:on|at|over|around|during|(?P<which>last|this|next)) {FEAST}\b(?:,? (?:of |in )?{YEAR})?",
            weekdays.feast,
        ),
        (FEAST_WORDS, rf"\b{FEAST},? (?:of |in )?{YEAR}", weekdays.feast),
        (_MONTH_WORDS, rf"\b{_PART}{MONTH}(?: (?:of )?{YEAR})?", readers.named_month),
        (_MONTH_WORDS, rf"\b{MONTH},?(?: of)? {YEAR}", readers.named_month),
        (_MONTH_WORDS, rf"\b{PREVIOUS} {MONTH}", readers.previous_month_named),
        (_MONTH_WORDS, rf"\b{NEXT} {MONTH}", readers.next_month_named),
        # "This may be", "all may come"
        (_MONTH_WORDS, rf"\b(?!(?:this|all) may\b(?!{END})){_IN} {MONTH}(?! \d)", readers.named_month),
        (NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)[ /-]?q(?P<share>[1-4])(?!\w)", readers.quarter),
        (NUMBER, rf"\bq(?P<share>[1-4])(?!\w){_OF_YEAR}?", readers.quarter),
        ("quarter", rf"\b(?P<share>{'|'.join(ORDINALS)}|last) quarter{_OF_YEAR}", readers.quarter),
        (
            "quarter",
            rf"\b(?:in|during|for|since|of) the (?P<share>{'|'.join(ORDINALS)}) quarter(?P<year>)(?!\w| of\b)",
            readers.quarter,
        ),
        # Without a year it may be a heading.
        (NUMBER, rf"\b(?:in|during|for|since) h(?P<share>[12])(?P<year>){END}", readers.half_told),
        (NUMBER, rf"\bh(?P<share>[12])(?!\w){_OF_YEAR}", readers.half),
        (NUMBER, rf"\b(?P<share>[12])h{_OF_YEAR}", readers.half),
        (NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)[ /-]?h(?P<share>[12])(?!\w)", readers.half),
        ("half", rf"\b(?P<share>first|second|1st|2nd|last) half{_OF_YEAR}", readers.half),
        (_SEASON_WORDS, rf"\b{SEASON},?(?: of)? {_WHICH} year\b", readers.season_of_year),
        (_SEASON_WORDS, rf"\b{_WHICH} year(?:'s|,)? (?:in )?(?:the )?{SEASON}", readers.season_of_year),
        (
            _SEASON_WORDS,
            r"\b(?P<which>last|this|next|in|during|in the|during the|past|previous) "
            rf"{SEASON}(?: (?:of )?{YEAR})?",
            readers.season,
        ),
        (_SEASON_WORDS, rf"\b{_PART}(?:the )?{SEASON}(?! of [a-z])(?: (?:of )?{YEAR})?", readers.part_of_season),
        # Not "all spring rolls", nor "through the fall of Rome".
        (
            _SEASON_WORDS,
            rf"\b(?P<which>(?:over|through|throughout|all) the|all) {SEASON}(?P<year>){_GOES_ON}",
            readers.season,
        ),
        (_SEASON_WORDS, rf"\b{SEASON} (?:of )?{YEAR}", readers.season),
        (NUMBER, rf"\b{_PART}{YEAR}", readers.whole_year),
        (
            NUMBER,
            r"\b(?:in|during|since|before|after|of|until|till|by|year|throughout|through|across|all|around) "
            rf"(?!2000 [a-z]+s\b){YEAR}",
            readers.whole_year,
        ),
        (NUMBER, rf"\b(?:for|from) {YEAR}{END}", readers.whole_year),
        (
            NUMBER,
            r"\b(?:in|during|of|throughout) the (?:(?P<part>early|mid|late)[ -])?(?P<year>(?:19|20)\d0)'?s\b",
            readers.decade,
        ),
        (
            f"{NUMBER} {' '.join(DECADES)}",
            r"\b(?:in|during|of|throughout|since|from) the (?:(?P<part>early|mid|late)[ -])?"
            rf"(?:'?(?P<decade>[5-9]0)'?s|(?P<named>{'|'.join(DECADES)}))\b",
            readers.decade,
        ),
        ("yesterday", r"\b(?:the )?day before yesterday\b", readers.days_from_now(-2)),
        ("tomorrow", r"\b(?:the )?day after tomorrow\b", readers.days_from_now(2)),
        ("yesterday night", r"\b(?:yesterday|last night)\b", readers.days_from_now(-1)),
        (
            "overnight night",
            r"\bovernight\b|\b(?:during|in|through) the night(?! (?:of|before|after|between)\b)",
            readers.night_told,
        ),
        ("tomorrow", r"\btomorrow\b", readers.days_from_now(1)),
        (
            "today tonight morning afternoon evening",
            r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b",
            readers.days_from_now(0),
        ),
        ("ago", rf"\b(?P<how>more than|longer than|over|at least|less than|under) {AMOUNT} ago\b", readers.longer_ago),
        ("ago back earlier", rf"\b{AMOUNT} (?:ago|back|earlier)\b", readers.ago),
        (
            "last past previous",
            rf"\b(?:in |over |during |within )?(?:the |these )?{PREVIOUS} {AMOUNT}\b",
            readers.last_units,
        ),
        (
            "last past previous",
            rf"\bthe {PREVIOUS} (?P<unit>day|week|month|year)(?P<with_half> and a half)\b",
            readers.last_units,
        ),
        (
            "next coming upcoming",
            rf"\b(?:in |over |during |within |for )?(?:the )?{NEXT} {DAYS_OR_MORE}\b",
            readers.next_units,
        ),
        ("from ahead", rf"\b{DAYS_OR_MORE} (?P<from_now>from (?:now|today)|ahead)\b", readers.in_units),
        (
            "day days week weeks month months year years",
            rf"\bin {DAYS_OR_MORE}(?P<from_now>'s? time)?(?!\w)",
            readers.in_units,
        ),
        (
            "last past previous",
            rf"\b(?:in|within|over|during) the {PREVIOUS} (?P<unit>minute|hour|day|decade)\b",
            readers.last_units,
        ),
        ("decade", rf"\b(?:the )?{PREVIOUS} (?P<unit>decade)\b", readers.last_units),
        (
            "last past previous",
            rf"\b(?:in|over|during|for) the {PREVIOUS} (?P<some>day|week|month|year)s\b",
            readers.some_units(-1),
        ),
        (
            "next coming upcoming",
            rf"\b(?:in|over|during|for) the {NEXT} (?P<some>day|week|month|year)s\b",
            readers.some_units(1),
        ),
        ("last", rf"\bthe {LONG_UNIT} before last\b", readers.unit_before_last),
        ("next", rf"\bthe {LONG_UNIT} after next\b", readers.unit_after_next),
        ("rest", r"\b(?:the )?rest of (?:the|this) (?P<unit>week|month|quarter|year)\b", readers.rest_of_unit),
        ("weekend", r"\b(?:over|on|at|during|for) the weekend\b", readers.the_weekend),
        (
            "last past previous",
            rf"\b(?:{_PART})?(?P<which>{PREVIOUS[3:-1]}) {LONG_UNIT}\b(?! of\b)",
            readers.previous_unit,
        ),
        ("next coming upcoming", rf"\b(?:{_PART})?(?P<which>{NEXT[3:-1]}) {LONG_UNIT}\b", readers.next_unit),
        ("week month quarter year weekend", rf"\b(?:{_PART})?this {LONG_UNIT}\b", readers.this_unit),
        (
            "week month quarter year weekend",
            r"\b(?P<part>(?:the )?(?:beginning|start|middle|end) of) the (?P<unit>week|month|quarter|year)\b",
            readers.this_unit,
        ),
        (_WEEKDAY_WORDS, rf"\b(?P<which>{PREVIOUS[3:-1]}|{NEXT[3:-1]}|on|this) {WEEKDAY}", readers.weekday),
        (
            _WEEKDAY_WORDS,
            r"(?<!every )(?<!each )(?<!by )(?<!to )(?<!and )(?<!or )(?<!through )(?<!-)(?<!black )(?<!cyber )(?<!good )"
            rf"\b{WEEKDAY}(?: (?:morning|afternoon|evening|night))?{END}",
            readers.weekday_alone,
        ),
        (
            " ".join(name[:3] for name in WEEKDAYS) + " tues thur thurs",
            rf"\b(?P<which>{PREVIOUS[3:-1]}|{NEXT[3:-1]}|on|this) {SHORT_WEEKDAY}{END}",
            readers.weekday,
        ),
        (NUMBER, rf"\b(?:on|morning of|afternoon of|evening of|night of) the {DAY}{END}", readers.day_of_month),
        ("recently lately days", r"\b(?:recently|lately|these days)\b", readers.last_days(30)),
        ("day", r"\bthe other day\b", readers.last_days(10)),
    )
)
