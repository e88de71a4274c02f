"""What secrets look like: keys by their shape, and values that stand behind the name of a secret."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MARK = "[redacted:"
"""How every replacement begins."""

Accept = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Span:
    """Where in a text a secret stands, and of which kind it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape of secrets; `hint` is what a text must contain, in one of its forms, for the pattern to be worth trying.

    The secret is the group of that name, or the whole match; `accept` has the last word on it.
    """

    kind: str
    hint: str | tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Accept = lambda _: True

    @property
    def hints(self) -> tuple[str, ...]:
        """The forms of the hint, in small letters."""
        return (self.hint,) if isinstance(self.hint, str) else self.hint

    def spans(self, text: str) -> Iterator[Span]:
        """Where secrets of this shape stand in a text."""
        group: str | int = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(text):
            if match[group] and not match[group].startswith(MARK) and self.accept(match[group]):
                yield Span(match.start(group), match.end(group), self.kind)


def looks_random(value: str) -> bool:
    """Whether a word is no word: it mixes digits and letters, or cases in its middle."""
    has_digit = any(c.isdigit() for c in value)
    has_letter = any(c.isalpha() for c in value)
    mixed_case = any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)
    return (has_digit and has_letter) or mixed_case or (has_digit and len(value) >= 16)


def _like_a_key(body_after: int) -> Accept:
    """Digits, or one long run of letters and digits, behind a prefix that ordinary words may have too."""

    def accept(value: str) -> bool:
        body = value[body_after:]
        return sum(c.isdigit() for c in body) >= 3 or re.search(r"[A-Za-z0-9]{16}", body) is not None

    return accept


def is_basic(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_card(value: str) -> bool:
    digits = [int(c) for c in value if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) if i % 2 else d for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def _mixed(value: str) -> bool:
    return all((any(c.isdigit() for c in value), any(c.isupper() for c in value), any(c.islower() for c in value)))


def is_placeholder(value: str) -> bool:
    """Whether this stands for a value and is none: ${VAR}, <password>, {{ token }}, ****, a format, or our own mark."""
    return _PLACEHOLDER.match(value) is not None


_PLACEHOLDER = re.compile(
    r"""\$\{.*|\$[A-Za-z_]\w*$|<[^>]*>?$|\{.*|%\(?\w*\)?[sdr]?$|[*•.x…X_-]+$|\[redacted:.*|@.*|"?$|'?$""", re.DOTALL
)


def shape(
    kind: str, hint: str | tuple[str, ...], pattern: str, accept: Accept = lambda _: True, flags: int = 0
) -> Rule:
    """A rule from the text of its pattern."""
    return Rule(kind, hint, re.compile(pattern, flags), accept)


_END = r"(?![A-Za-z0-9])"
_START = r"(?<![A-Za-z0-9])"
_AWS_KEYS = ("akia", "asia", "abia", "acca", "aroa", "aida")
_FIRST_OF_A_CARD = tuple("23456")
SHORTEST_KEY = 16

KEYS: tuple[Rule, ...] = (
    shape("age_key", "age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    shape("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    shape("openai_key", "sk-", r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{16,}"),
    shape("stripe_key", "k_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    shape("stripe_key", "whsec_", _START + r"whsec_[A-Za-z0-9+/=]{16,}"),
    shape("aws_access_key", _AWS_KEYS, r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}" + _END),
    shape("github_token", "gh", r"gh[pousr]_[A-Za-z0-9]{16,}"),
    shape("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{16,}"),
    shape("gitlab_token", "gl", _START + r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[A-Za-z0-9_.-]{16,}"),
    shape("slack_token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    shape("slack_token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{10,}"),
    shape("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/+-]{20,})"),
    shape("discord_webhook", "/api/webhooks/", r"/api/webhooks/\d+/(?P<secret>[\w-]{20,})"),
    shape("discord_token", ".", _START + r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,}", _mixed),
    shape("google_key", "aiza", r"AIza[0-9A-Za-z_-]{30,}"),
    shape("google_token", "ya29.", r"ya29\.[0-9A-Za-z_-]{20,}"),
    shape("google_secret", "gocspx-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    shape("azure_key", "==", r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}=="),
    shape("azure_secret", "q~", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    shape("azure_sas", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,})", flags=re.IGNORECASE),
    shape("docker_token", "dckr_", _START + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    shape("npm_token", "npm_", _START + r"npm_[A-Za-z0-9]{20,}"),
    shape("pypi_token", "pypi-", _START + r"pypi-[A-Za-z0-9_-]{20,}", _mixed),
    shape("huggingface_token", "hf_", _START + r"hf_[A-Za-z0-9]{16,}"),
    shape("twilio_key", "sk", _START + r"SK[0-9a-f]{32}" + _END),
    shape("sendgrid_key", "sg.", _START + r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    shape("mailgun_key", "key-", _START + r"key-[0-9a-f]{32}" + _END),
    shape("telegram_token", ":aa", _START + r"\d{8,10}:AA[\w-]{30,}"),
    shape("digitalocean_token", "_v1_", _START + r"do[opr]_v1_[0-9a-f]{40,}"),
    shape("databricks_token", "dapi", _START + r"dapi[0-9a-f]{32}"),
    shape("shopify_token", "shp", _START + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    shape("groq_key", "gsk_", _START + r"gsk_[A-Za-z0-9]{20,}"),
    shape("perplexity_key", "pplx-", _START + r"pplx-[A-Za-z0-9]{20,}"),
    shape("xai_key", "xai-", _START + r"xai-[A-Za-z0-9]{40,}"),
    shape("replicate_token", "r8_", _START + r"r8_[A-Za-z0-9]{20,}"),
    shape("linear_key", "lin_api_", r"lin_api_[A-Za-z0-9]{20,}"),
    shape("notion_token", "ntn_", _START + r"ntn_[A-Za-z0-9]{20,}"),
    shape("vault_token", "hv", _START + r"hv[sbr]\.[\w-]{20,}"),
    shape("doppler_token", "dp.", _START + r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:\w+\.)?[A-Za-z0-9]{30,}"),
    shape("newrelic_key", "nrak-", r"NRAK-[A-Z0-9]{20,}"),
    shape("sentry_token", "sntry", r"sntry[su]_[A-Za-z0-9_=+/-]{20,}"),
    shape("atlassian_token", "atatt3", r"ATATT3[\w=-]{20,}"),
    shape("supabase_key", "sb", _START + r"sb(?:p|_secret)_[A-Za-z0-9_-]{20,}"),
    shape("google_token", "1//0", r"(?<![\w/])1//0[\w-]{30,}"),
    shape("square_token", "sq0", _START + r"sq0[a-z]{3}-[\w-]{22,}"),
    shape("facebook_token", "eaa", _START + r"EAA[A-Za-z0-9]{24,}", _mixed),
    shape("rubygems_key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
    shape("figma_token", "fig", _START + r"fig(?:d|o[rh]?)_[\w-]{24,}"),
    shape("hubspot_token", "pat-", _START + r"pat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    shape("postman_key", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{30,}"),
    shape("grafana_token", "gl", _START + r"gl(?:sa|c)_[A-Za-z0-9_=+/]{24,}"),
    shape("grafana_token", "eyjrijoi", r"eyJrIjoi[A-Za-z0-9+/=_-]{20,}"),
    shape("tailscale_key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    shape("dropbox_token", "sl.", _START + r"sl\.[A-Za-z0-9][\w-]{39,}", _mixed),
    shape("mailchimp_key", "-us", _START + r"[0-9a-f]{32}-us\d{1,2}" + _END),
    shape("nvidia_key", "nvapi-", r"nvapi-[\w-]{24,}"),
    shape("notion_token", "secret_", _START + r"secret_[A-Za-z0-9]{40,}"),
    shape("brevo_key", "xkeysib-", r"xkeysib-[0-9a-f]{40,}-[A-Za-z0-9]{8,}"),
    shape("posthog_key", "ph", _START + r"ph[xr]_[A-Za-z0-9]{32,}"),
    shape("dynatrace_token", "dt0", _START + r"dt0[a-z]\d\d\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    shape("alibaba_key", "ltai", _START + r"LTAI[A-Za-z0-9]{12,24}" + _END, _mixed),
    shape("tavily_key", "tvly-", r"tvly-[\w-]{20,}"),
    shape("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{8,}"),
    shape("pinecone_key", "pcsk_", r"pcsk_[A-Za-z0-9]{4,}_[A-Za-z0-9]{20,}"),
    shape("planetscale_token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{20,}"),
    shape("circleci_token", "cci", r"CCI(?:PAT|PRJ)_[\w-]{20,}"),
    shape("flyio_token", "fm", r"fm[12][ar]?_[A-Za-z0-9+/=_,-]{40,}"),
    shape("sourcegraph_token", "sgp_", _START + r"sgp_[A-Za-z0-9_]{36,}"),
    shape("bitbucket_token", "at", _START + r"AT(?:BB|CTT3)[\w=-]{24,}", _mixed),
    shape("artifactory_key", "akcp", _START + r"AKCp[A-Za-z0-9]{40,}"),
    shape("amazon_token", "amzn.mws.", r"amzn\.mws\.[0-9a-f-]{36}"),
    shape("resend_key", "re_", _START + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    shape("password_hash", "$", r"\$(?:2[abxy]|[156y]|apr1|argon2(?:id?|d))\$[^\s:\"',;]{20,}"),
    shape("password_hash", "ssha", r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{24,}={0,2}"),
    shape("signature", "signature=", r"\bSignature=(?P<secret>[0-9a-fA-F]{64})" + _END, flags=re.IGNORECASE),
    shape("jwt", "eyj", _START + r"eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*){1,3}"),
)
"""Keys that are one word of at least `SHORTEST_KEY` signs."""

SHAPES: tuple[Rule, ...] = (
    shape(
        "private_key",
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,-]*)",
    ),
    shape("openai_key", "sk-", _START + r"sk-[A-Za-z0-9][A-Za-z0-9_-]{9,}", _like_a_key(3)),
    shape(
        "aws_secret_key",
        ("akia", "asia", "aws", "secret"),
        r"(?:(?:AKIA|ASIA)[A-Z0-9]{16}|\b[Aa][Ww][Ss]\b|[Ss]ecret)[\s\S]{0,120}?(?<![A-Za-z0-9/+=])"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _mixed,
    ),
    shape("putty_key", "private-lines", r"Private-Lines: \d+\s+(?P<secret>[A-Za-z0-9+/=\s]{16,}?)(?=\s*Private-|\Z)"),
    shape(
        "session_cookie",
        ("sessid", "jsessionid", "connect.sid"),
        r"\b(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid)=(?P<secret>[^\s;,\"'&]{8,})",
        flags=re.IGNORECASE,
    ),
    shape("key", "key=", r"(?<![\w.-])key=(?P<secret>[A-Za-z0-9_-]{20,})(?![\w./-])", _mixed),
    shape(
        "authorization",
        "authorization",
        r"""authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|digest|apikey)\s+)?(?P<secret>[^\s"',;]{6,})""",
        lambda value: looks_random(value) and not is_placeholder(value),
        re.IGNORECASE,
    ),
    shape(
        "bearer_token",
        "bearer",
        r"\bbearer[\s:]+[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
        lambda value: looks_random(value.rstrip(".")),
        re.IGNORECASE,
    ),
    shape("basic_auth", "basic", r"\bbasic\s+(?P<secret>[A-Za-z0-9+/]{6,}={0,2})", is_basic, re.IGNORECASE),
    shape("cookie", "cookie", r"\bcookie:\s*(?P<secret>[^\n\"']*=[^\n\"']*)", flags=re.IGNORECASE),
    shape(
        "basic_auth",
        "curl",
        r"""\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[ =]?["']?[^\s:"']{1,100}:(?P<secret>[^\s"']{3,})""",
        lambda value: not is_placeholder(value),
    ),
    shape(
        "url_password",
        "://",
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@\"'<>\[]*:(?P<secret>[^\s/\"'<>]+)@",
        lambda value: not is_placeholder(value),
    ),
    shape("url_token", "://", r"://(?P<secret>[A-Za-z0-9_-]{20,})@", looks_random),
    shape(
        "credit_card",
        _FIRST_OF_A_CARD,
        r"(?=[2-6]\d{3})(?<![\w.#/-])(?:4\d{3}(?:[ -]?\d{4}){3}(?:[ -]?\d{3})?|4\d{12}|"
        r"(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|"
        r"2720)(?:[ -]?\d{4}){3}|3[47]\d\d[ -]?\d{6}[ -]?\d{5}|(?:6011|65\d\d|64[4-9]\d|35[2-8]\d)(?:[ -]?\d{4}){3}"
        r"|3(?:0[0-5]|[68]\d)\d[ -]?\d{6}[ -]?\d{4})(?![\w/-]|\.\d)",
        _is_card,
    ),
)
