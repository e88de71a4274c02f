"""Languages: how "ignore all previous instructions" is said in those that English does not stand for.

Where the words are those of ordinary advice too, it is the previous ones that tell.
"""

from __future__ import annotations

import unicodedata


def _normal(*texts: str) -> tuple[str, ...]:
    """Patterns and stems in the form that texts are compared in, in which some letters of Thai and Hindi are two."""
    return tuple(unicodedata.normalize("NFKC", text) for text in texts)


IN_LATIN_LETTERS = _normal(
    r"(?:önceki|tüm|bütün|yukarıdaki|mevcut|sistem)\b[^.\n]{0,30}\b(?:talimat|yönerge|komut|kural)\w*[^.\n]{0,15}\b(?:yok\s+say|görmezden\s+gel"
    r"|unut(?:un|unuz)?\b|dikkate\s+alma(?:yın)?\b|boş\s*ver|göz\s+ardı\s+et|uyma(?:yın)?\b)",
    r"\b(?:z?ignoruj|zapomnij|pomiń|odrzuć)\w*\b[^.\n]{0,20}\b(?:wszystki\w+|poprzedni\w+|wcześniejs\w+|powyższ\w+|dotychczasow\w+|swoj\w+|systemow\w+)"
    r"\b[^.\n]{0,25}\b(?:instrukcj\w+|polece\w+|wytyczn\w+|zasad\w*|reguł\w*)",
    r"\b(?:ignorera|ignorer|glöm|glem|strunta\s+i|bortse\s+från|se\s+bort\s+fr[aå]n?)\b[^.\n]{0,20}\b(?:tidigare|föregående|tidligere|forrige|alla|alle|ovanstående)"
    r"\b[^.\n]{0,30}\b(?:instruktion\w*|instruks\w*|anvisning\w*|order)\b",
    r"\b(?:ignoruj(?:te)?|zapomeň(?:te)?|zabudni(?:te)?|nevšímej(?:te)?)\b[^.\n]{0,20}\b(?:předchoz\w+|všechn\w+|predchádzajúc\w+|všetk\w+|dosavadní\w*)"
    r"\b[^.\n]{0,25}\b(?:pokyn\w*|instrukc\w*|inštrukci\w*|příkaz\w*|príkaz\w*)",
    r"(?:bỏ\s+qua|phớt\s+lờ|quên|làm\s+ngơ)\b[^.\n]{0,30}(?:hướng\s+dẫn|chỉ\s+dẫn|chỉ\s+thị|lệnh)\b[^.\n]{0,15}(?:trước|trên)",
    r"\b(?:abaikan|lupakan)\b[^.\n]{0,30}\b(?:instruksi|perintah|arahan)\b[^.\n]{0,20}\b(?:sebelumnya|di\s+atas|terdahulu)",
    r"\b(?:ignor[aă]\w*|uit[aă]\w*)\b[^.\n]{0,20}\b(?:toate|anterioare\w*|precedente\w*)?\s*instruc[țtţ]iuni\w*",
    r"\b(?:hagyd|hagyja)\b[^.\n]{0,30}\bfigyelmen\s+kívül\b[^.\n]{0,40}\butasítás|\bfelejts\w*\s+el\b[^.\n]{0,40}\butasítás"
    r"|\butasítás\w*[^.\n]{0,20}\bfigyelmen\s+kívül",
    r"\b(?:ohita|unohda|jätä)\b[^.\n]{0,20}\b(?:aiem\w+|edelli\w+|kaikki)\b[^.\n]{0,20}\b(?:ohje\w*|määräy\w*)",
)
STEMS_IN_LATIN_LETTERS = _normal(
    *(
        "ignor",
        "zapom",
        "pomi",
        "odrzu",
        "zabud",
        "nevš",
        "glöm",
        "glem",
        "strunta",
        "bort",
        "unut",
        "yok",
        "görmezden",
        "dikkate",
        "boş",
        "ardı",
        "uyma",
    ),
    *("bỏ", "phớt", "quên", "làm", "abaikan", "lupakan", "uit", "utasítás", "ohita", "unohda", "jätä"),
)
"""Of these, in small letters, every such text has one."""

IN_OTHER_LETTERS = _normal(
    r"(?:이전|앞선|앞의|위의|기존|모든|지금까지|시스템)[^.\n]{0,15}(?:지시|명령|지침|프롬프트|규칙|설정)[^.\n]{0,12}(?:무시|잊어|따르지\s*마)",
    r"(?:تجاهل|تجاهلي|تجاهلوا|أهمل|اهمل|انس|انسى|انسَ|لا\s+تتبع)\b[^.\n]{0,30}(?:التعليمات|تعليمات|الأوامر|أوامر|التوجيهات|القواعد)",
    "(?:पिछल|पहले|सभी|सारे|उपरोक्त|पूर्व)[^।.\n]{0,25}(?:निर्देश|अनुदेश|आदेश|नियम)[^।.\n]{0,15}(?:अनदेखा|अनदेखी|नज\u093c?रअ|भूल|उपेक्षा|इग्नोर)",
    r"(?:игнорируй|проигнорируй|забудь|отбрось)(?:те)?\s[^.\n]{0,25}(?:предыдущ|прошл|прежн|ранее|вышеуказанн|систем)[^.\n]{0,25}(?:указани|команд|правил|приказ)",
    r"(?:ігноруй|проігноруй|забудь)(?:те)?\s[^.\n]{0,40}(?:інструкці|вказівк)",
    r"(?:αγνόησε|αγνοήστε|ξέχασε|ξεχάστε)\s[^.\n]{0,30}(?:οδηγίες|εντολές)",
    r"(?:התעלם|התעלמי|התעלמו|תתעלם|שכח|שכחי)\s[^.\n]{0,20}(?:הוראות|ההוראות|ההנחיות)",
    r"(?:دستور|فرمان)[^.\n]{0,35}(?:نادیده|فراموش)",
    r"(?:เพิกเฉย|ละเว้น|ไม่ต้องสนใจ|ลืม)[^\n]{0,20}คำสั่ง",
    r"(?:忘记|忘記|忘掉|不要理会|不要遵守|不要遵循).{0,12}(?:指令|指示|提示|规则|規則)|(?:以前|これまで|上記|前|全て|すべて)の?[^。\n]{0,8}(?:指示|命令)を?[^。\n]{0,8}(?:忘れ|無視)",
)
STEMS_IN_OTHER_LETTERS = _normal(
    *(
        "지시",
        "명령",
        "지침",
        "프롬프트",
        "규칙",
        "설정",
        "تعليمات",
        "وامر",
        "توجيهات",
        "قواعد",
        "निर्देश",
        "अनुदेश",
        "आदेश",
        "नियम",
    ),
    *("указан", "команд", "правил", "приказ", "інструкц", "вказівк", "οδηγίες", "εντολές", "הוראות", "הנחיות"),
    *("دستور", "فرمان", "คำสั่ง", "指令", "指示", "提示", "规则", "規則", "命令"),
)

ROLES = _normal(
    # "You are now …", "from now on only my orders", "do not follow the system's instructions", "without rules".
    r"\b(?:du\s+bist|sie\s+sind)\s+(?:jetzt|nun|ab\s+sofort)\s+[^.\n]{0,40}(?:\bdan\b|kein\w*\s+(?:regeln|einschränkungen|grenzen|filter)"
    r"|ohne\s+(?:regeln|einschränkungen|grenzen|filter)|uneingeschränkt)|\bbefolge\w*\b[^.\n]{0,20}\b(?:nur\s+noch|ausschließlich)\s+(?:meine|diese)"
    r"|\b(?:ignorier\w*|missachte|vergiss)\b[^.\n]{0,20}\bsystem-?prompt",
    r"\b(?:eres|ahora\s+eres|eres\s+ahora)\b[^.\n]{0,40}\bsin\s+(?:restricciones|reglas|límites|filtros)|\bhaz\s+caso\s+omiso\b"
    r"|\bno\s+sigas\b[^.\n]{0,20}\b(?:instrucciones|reglas)\s+(?:del\s+sistema|anteriores|previas)",
    r"\btu\s+es\s+(?:maintenant|désormais)\b[^.\n]{0,40}\bsans\s+(?:restrictions?|règles|limites|filtres?)"
    r"|\bne\s+(?:tiens|tenez|suis|suivez)\s+pas\b[^.\n]{0,25}\b(?:instructions|consignes)\b[^.\n]{0,15}\b(?:ci-dessus|précédentes|du\s+système)",
    r"\b(?:você|tu)\s+(?:agora\s+é|é\s+agora|és\s+agora)\b[^.\n]{0,40}\bsem\s+(?:restrições|regras|limites|filtros)"
    r"|\bnão\s+sigas?\b[^.\n]{0,20}\b(?:instruções|regras)\s+(?:do\s+sistema|anteriores|acima)",
    r"\b(?:sei\s+ora|ora\s+sei)\b[^.\n]{0,40}\bsenza\s+(?:restrizioni|regole|limiti|filtri)|\bnon\s+seguire\b[^.\n]{0,20}\bistruzioni\s+"
    r"(?:del\s+sistema|precedenti)|\bcome\s+se\s+non\s+avessi\s+(?:regole|limiti|restrizioni)",
    r"(?:теперь\s+ты|ты\s+теперь)\s[^.\n]{0,40}без\s+(?:ограничений|правил|фильтров)|не\s+следуй(?:те)?\s[^.\n]{0,15}(?:системн|предыдущ|прежн)",
    r"(?:你现在是|从现在开始.{0,3}你|現在你是).{0,15}(?:没有|無|不受|沒有).{0,6}(?:限制|约束|規則|规则)|不要?(?:遵守|遵循|听从).{0,8}(?:系统|之前|以上).{0,4}(?:提示|指令|规则)",
    r"システムの?(?:指示|プロンプト|命令)[^。\n]{0,8}(?:従わ|無視|表示し|出力し)|あなたは(?:今|これ)から[^。\n]{0,20}(?:制限|ルール)の?(?:ない|無い)",
    r"시스템\s*프롬프트를?\s*(?:출력|보여|알려|공개)|너는\s*이제[^.\n]{0,20}(?:제한|규칙)\s*(?:이|가)?\s*없",
    r"\b(?:zeig\w*|gib|nenn\w*|verrat\w*|drucke)\b[^.\n]{0,20}\b(?:dein\w*|intern\w*|versteckt\w*)\s+(?:system-?)?prompt|\bvergiss\s+deine\s+rolle"
    r"|\b(?:révèle|révélez|montre|montrez|affiche|affichez|donne|donnez)\b[^.\n]{0,15}\b(?:ton|votre|le)\s+prompt\s+système"
    r"|\b(?:mu[eé]stra\w*|revela\w*|dime|imprime)\b[^.\n]{0,15}\b(?:tu|el)\s+prompt\s+(?:del\s+sistema|inicial|interno)"
    r"|\b(?:mostra\w*|rivela\w*|revele|mostre)\b[^.\n]{0,15}\b(?:tuo|seu|o|il)\s+prompt\s+(?:di|do|del)\s+sistema",
    r"(?:显示|输出|告诉|打印|公开|泄露|顯示).{0,8}(?:系统|系統)?提示(?:词|詞)|(?:покажи|выведи|раскрой|напиши)(?:те)?\s[^.\n]{0,15}(?:системн\w+\s+(?:промпт|инструкц)|промпт)",
    r"أنت\s+الآن\s[^.\n]{0,30}(?:بدون|بلا|دون)\s+(?:قيود|قواعد)",
)
STEMS_OF_ROLES = _normal(
    *(
        "du bist",
        "sie sind",
        "rolle",
        "提示",
        "промпт",
        "инструкц",
        "befolge",
        "prompt",
        "eres",
        "omiso",
        "siga",
        "tu es",
        "ne tien",
        "ne ten",
        "ne sui",
        "agora",
    ),
    *(
        "sei ora",
        "ora sei",
        "seguire",
        "avessi",
        "теперь",
        "следуй",
        "你",
        "不",
        "システム",
        "あなたは",
        "시스템",
        "너는",
        "أنت",
    ),
)
