"""Keys and tokens of vendors, each one word, by the beginnings and forms that the vendors publish."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from alma.redaction.secrets import START, Rule, mixed, shape

SHORTEST_KEY = 16
"""Nothing shorter is a key of a vendor."""

_END = r"(?![A-Za-z0-9])"
_AWS_KEYS = ("akia", "asia", "abia", "acca", "aroa", "aida")
# What every token begins with that a session of AWS is given.
_SESSIONS = ("FwoGZXIvYXdz", "FQoGZXIvYXdz", "FQoDYXdz", "AQoDYXdz", "IQoJb3JpZ2luX2Vj", "AgoJb3JpZ2luX2Vj")
_AWS_SESSIONS = tuple(begin.lower() for begin in _SESSIONS)
# What begins as a token and has no dot is passed over as a whole: every "eyJ" in it would be followed to its end.
_JWT = (
    START + r"(?:(?P<secret>eyJ[\w-]{8,}+\.(?:\.|\s?\n\s{0,80}+)?[\w-]{4,}+"
    r"(?:\.(?:\s?\n\s{0,80}+(?=[\w-]{16}))?[\w-]*+){1,3})|eyJ[\w-]{8,}+)"
)
# Kind, how the key begins, and how it goes on; further beginnings of the same vendor share its kind.
_BEGINNINGS = r"""
1password_token      ops_                   eyJ[\w-]{40,}
adafruit_key         aio_                   [A-Za-z0-9]{28}
adobe_secret         p8e-                   [A-Za-z0-9]{32}
anyscale_key         esecret_               [A-Za-z0-9]{20,}
artifactory_key      cmVmd                  [A-Za-z0-9]{40,}
baidu_key            bce-v3/                ALTAK-[\w/-]{20,}
buildkite_token      bkua_                  [A-Za-z0-9]{32,}
buildkite_token      bkct_                  [A-Za-z0-9]{32,}
buildkite_token      bkaa_                  [A-Za-z0-9]{32,}
cerebras_key         csk-                   [a-z0-9]{40,}
clojars_token        CLOJARS_               [a-z0-9]{40,}
cloudflare_token     cfk_                   [A-Za-z0-9]{40,}
cloudflare_token     cfut_                  [A-Za-z0-9]{40,}
cloudflare_token     cfat_                  [A-Za-z0-9]{40,}
cloudflare_key       v1.0-                  [0-9a-f]{24}-[0-9a-f]{140,}
contentful_token     CFPAT-                 [\w-]{40,}
cursor_key           crsr_                  [A-Za-z0-9]{32,}
databricks_token     dose                   [0-9a-f]{32}
definednet_token     dnkey-                 [a-z0-9=_-]{26}-[a-z0-9=_-]{40,}
duffel_token         duffel_                (?:test|live)_[\w=-]{30,}
e2b_key              e2b_                   [0-9a-f]{32,}
easypost_key         EZAK                   [A-Za-z0-9]{54}
easypost_key         EZTK                   [A-Za-z0-9]{54}
elevenlabs_key       sk_                    [0-9a-f]{48}
firecrawl_key        fc-                    [0-9a-f]{32}
flutterwave_key      FLWSECK                (?:_TEST|_PROD)?-[A-Za-z0-9]{12,}
frameio_token        fio-u-                 [\w=-]{40,}
google_key           GOOG1E                 [A-Z0-9]{40,}
harness_token        pat.                   [\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}
heroku_key           HRKU-                  [\w-]{30,}
huggingface_token    api_org_               [A-Za-z0-9]{30,}
fireworks_key        fw_                    [A-Za-z0-9]{22,24}
discord_token        mfa.                   [\w-]{80,}
paseto_token         v1.local.              [\w-]{40,}
paseto_token         v2.local.              [\w-]{40,}
paseto_token         v3.local.              [\w-]{40,}
paseto_token         v4.local.              [\w-]{40,}
bitcoin_key          xprv                   [A-Za-z0-9]{100,110}
infracost_key        ico-                   [A-Za-z0-9]{32}
intra42_secret       s-s4t2                 (?:ud|af)-[0-9a-f]{40,}
jina_key             jina_                  [A-Za-z0-9_]{40,}
langfuse_key         sk-lf-                 [0-9a-f-]{36}
launchdarkly_key     api-                   [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
launchdarkly_key     sdk-                   [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
mapbox_token         sk.                    eyJ[\w-]{20,}\.[\w-]{20,}
mercury_token        mercury_production_    \w{20,}
mongodb_secret       mdb_sa_sk_             [\w-]{20,}
neon_key             napi_                  [a-z0-9]{40,}
netlify_token        nfp_                   [A-Za-z0-9]{36,}
netlify_token        nfc_                   [A-Za-z0-9]{36,}
netlify_token        nfo_                   [A-Za-z0-9]{36,}
netlify_token        nfb_                   [A-Za-z0-9]{36,}
netlify_token        nfu_                   [A-Za-z0-9]{36,}
nuget_key            oy2                    [a-z0-9]{43}
nylas_key            nyk_v0_                \w{30,}
octopus_key          API-                   [A-Z0-9]{26}
paddle_key           pdl_                   (?:live|sdbx|ntfset)_\w{20,}
paypal_token         access_token$          (?:production|sandbox)\$[0-9a-z]{10,}\$[0-9a-f]{32}
pinecone_key         pcsk_                  [A-Za-z0-9_]{20,}
plaid_token          access-                (?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}
polar_token          polar_                 (?:oat|pat|whs|at_[uo]|rt_[uo])_[A-Za-z0-9]{20,}
posthog_key          phs_                   [A-Za-z0-9]{32,}
prefect_key          pnu_                   [A-Za-z0-9]{36}
prefect_key          pnb_                   [A-Za-z0-9]{36}
pulumi_token         pul-                   [0-9a-f]{40}
razorpay_key         rzp_                   (?:live|test)_[A-Za-z0-9]{14,}
readme_key           rdme_                  [a-z0-9]{40,}
runpod_key           rpa_                   [A-Za-z0-9]{30,}
samsara_token        samsara_api_           [A-Za-z0-9]{20,}
sendinblue_key       xsmtpsib-              [0-9a-f]{40,}-[A-Za-z0-9]{8,}
shippo_token         shippo_                (?:live|test)_[0-9a-f]{40}
slack_token          xwfp-                  [A-Za-z0-9-]{20,}
sonar_token          sqp_                   [0-9a-f]{40}
sonar_token          squ_                   [0-9a-f]{40}
sonar_token          sqa_                   [0-9a-f]{40}
square_token         EAAA                   [\w-]{60}
stytch_secret        secret-                (?:live|test)-[\w=-]{30,}
tencent_key          AKID                   [A-Za-z0-9]{32}
together_key         tgp_v1_                [\w-]{30,}
trello_token         ATTA                   [0-9a-f]{64}
typeform_token       tfp_                   [\w.=-]{40,}
unkey_key            unkey_                 [A-Za-z0-9]{16,}
vercel_token         vcp_                   [A-Za-z0-9]{40,}
vercel_token         vca_                   [A-Za-z0-9]{40,}
vercel_token         vci_                   [A-Za-z0-9]{40,}
vercel_token         vck_                   [A-Za-z0-9]{40,}
vercel_token         vcr_                   [A-Za-z0-9]{40,}
volcengine_key       AKLT                   [A-Za-z0-9+/=_-]{40,}
voyage_key           pa-                    [\w-]{43}
wakatime_key         waka_                  [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
wandb_key            wandb_v1_              \w{40,}
yandex_token         y0_                    [\w-]{50,}
yandex_key           AQVN                   [\w-]{35,}
zoho_token           1000.                  [0-9a-f]{32}\.[0-9a-f]{32}
render_key           rnd_                   [A-Za-z0-9]{24,}
zuplo_key            zpka_                  [a-z0-9]{32}_[0-9a-f]{8}
"""


_TABLE = tuple(sorted((line.split() for line in _BEGINNINGS.split("\n") if line), key=lambda row: row[1].lower()))
KEYS_BY_BEGINNING: tuple[Rule, ...] = tuple(
    shape(kind, begin.lower(), f"{START}{re.escape(begin)}{rest}{_END}") for kind, begin, rest in _TABLE
)
"""Keys that are only worth looking for where a word begins like one."""


def _first_letters(beginnings: Iterable[str]) -> str:
    """Beginnings as a pattern that is tried at every word, and so asks for the first letter before the others."""
    groups = groupby(beginnings, key=lambda begin: begin[0])
    further = ((first, "|".join(re.escape(each[1:]) for each in group)) for first, group in groups)
    return "|".join(f"{re.escape(first)}(?:{others})" for first, others in further)


BEGINNING = re.compile(rf"(?<![a-z0-9])(?:{_first_letters(begin.lower() for _, begin, _ in _TABLE)})")
"""How these keys begin, in small letters."""

KEYS: tuple[Rule, ...] = (
    shape("age_key", "age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    shape("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    shape("openai_key", "sk-", r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{16,}"),
    shape("stripe_key", "k_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    shape("stripe_key", "whsec_", START + r"whsec_[A-Za-z0-9+/=]{16,}"),
    shape("aws_access_key", _AWS_KEYS, r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}" + _END),
    shape("aws_session_token", _AWS_SESSIONS, START + rf"(?:{'|'.join(_SESSIONS)})[A-Za-z0-9+/=_%-]{{40,}}+"),
    shape("github_token", "gh", r"gh[pousr]_[A-Za-z0-9]{16,}"),
    shape("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{16,}"),
    shape("gitlab_token", "gl", START + r"gl(?:pat|dt|rtr?|cbt|ptt|ft|ffct|soat|imt|agent|oas|wt)-[A-Za-z0-9_.-]{16,}"),
    shape("slack_token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    shape("slack_token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{10,}"),
    shape("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/+-]{20,})"),
    shape(
        "teams_webhook",
        "webhook.office.com",
        r"webhook\.office\.com/webhookb2/[^\s/]{1,120}/IncomingWebhook/(?P<secret>[0-9a-f]{32})",
    ),
    shape("signature", "x-goog-signature=", r"X-Goog-Signature=(?P<secret>[0-9a-f]{64,})", flags=re.IGNORECASE),
    shape("discord_webhook", "/api/webhooks/", r"/api/webhooks/\d{1,30}/(?P<secret>[\w-]{20,})"),
    shape("discord_token", ".", START + r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,}", mixed),
    shape("google_key", "aiza", r"AIza[0-9A-Za-z_-]{30,}"),
    shape("google_key", ":apa91b", START + r"[A-Za-z0-9_-]{7,32}:APA91b[0-9A-Za-z_-]{60,}"),
    shape("google_token", "ya29.", r"ya29\.[0-9A-Za-z_-]{20,}"),
    shape("google_secret", "gocspx-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    # A sum of SHA-512 is as long.
    shape("azure_key", "==", r"(?<![A-Za-z0-9+/])(?<!sha512-)[A-Za-z0-9+/]{86}=="),
    shape("azure_secret", "q~", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    shape("azure_sas", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,})", flags=re.IGNORECASE),
    shape("docker_token", "dckr_", START + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    shape("npm_token", "npm_", START + r"npm_[A-Za-z0-9]{20,}"),
    shape("pypi_token", "pypi-", START + r"pypi-[A-Za-z0-9_-]{20,}", mixed),
    shape("huggingface_token", "hf_", START + r"hf_[A-Za-z0-9]{16,}"),
    shape("twilio_key", "sk", START + r"SK[0-9a-f]{32}" + _END),
    shape("sendgrid_key", "sg.", START + r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    shape("mailgun_key", "key-", START + r"key-[0-9a-f]{32}" + _END),
    shape("telegram_token", ":aa", r"(?:(?<![A-Za-z0-9])|(?<=/bot))\d{8,10}:AA[\w-]{30,}"),
    shape("digitalocean_token", "_v1_", START + r"do[opr]_v1_[0-9a-f]{40,}"),
    shape("databricks_token", "dapi", START + r"dapi[0-9a-f]{32}"),
    shape("shopify_token", "shp", START + r"shp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{32}"),
    shape("groq_key", "gsk_", START + r"gsk_[A-Za-z0-9]{20,}"),
    shape("perplexity_key", "pplx-", START + r"pplx-[A-Za-z0-9]{20,}"),
    shape("xai_key", "xai-", START + r"xai-[A-Za-z0-9]{40,}"),
    shape("replicate_token", "r8_", START + r"r8_[A-Za-z0-9]{20,}"),
    shape("linear_key", "lin_", START + r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
    shape("notion_token", "ntn_", START + r"ntn_[A-Za-z0-9]{20,}"),
    shape("vault_token", "hv", START + r"hv[sbr]\.[\w-]{20,}"),
    shape("doppler_token", "dp.", START + r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:\w+\.)?[A-Za-z0-9]{30,}"),
    shape("newrelic_key", "nr", START + r"NR(?:AK|II|JS|RA|SP)-[A-Za-z0-9_-]{20,}"),
    shape("sentry_token", "sntry", r"sntry[su]_[A-Za-z0-9_=+/-]{20,}"),
    shape("atlassian_token", "atatt3", r"ATATT3[\w=-]{20,}"),
    shape("supabase_key", "sb", START + r"sb(?:p|_secret)_[A-Za-z0-9_-]{20,}"),
    shape("google_token", "1//0", r"(?<![\w/])1//0[\w-]{30,}"),
    shape("square_token", "sq0", START + r"sq0[a-z]{3}-[\w-]{22,}"),
    shape("facebook_token", "eaa", START + r"EAA[A-Za-z0-9]{24,}", mixed),
    shape("rubygems_key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
    shape("figma_token", "fig", START + r"fig(?:d|o[rh]?)_[\w-]{24,}"),
    shape("hubspot_token", "pat-", START + r"pat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    shape("postman_key", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{30,}"),
    shape("grafana_token", "gl", START + r"gl(?:sa|c)_[A-Za-z0-9_=+/]{24,}"),
    shape("grafana_token", "eyjrijoi", r"eyJrIjoi[A-Za-z0-9+/=_-]{20,}"),
    shape("tailscale_key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    shape("dropbox_token", "sl.", START + r"sl\.[A-Za-z0-9][\w-]{39,}", mixed),
    shape("mailchimp_key", "-us", START + r"[0-9a-f]{32}-us\d{1,2}" + _END),
    shape("nvidia_key", "nvapi-", r"nvapi-[\w-]{24,}"),
    shape("notion_token", "secret_", START + r"secret_[A-Za-z0-9]{40,}"),
    shape("brevo_key", "xkeysib-", r"xkeysib-[0-9a-f]{40,}-[A-Za-z0-9]{8,}"),
    shape("posthog_key", "ph", START + r"ph[xr]_[A-Za-z0-9]{32,}"),
    shape("dynatrace_token", "dt0", START + r"dt0[a-z]\d\d\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    shape("alibaba_key", "ltai", START + r"LTAI[A-Za-z0-9]{12,24}" + _END, mixed),
    shape("tavily_key", "tvly-", r"tvly-[\w-]{20,}"),
    shape("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{8,}"),
    shape("planetscale_token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{20,}"),
    shape("circleci_token", "cci", r"CCI(?:PAT|PRJ)_[\w-]{20,}"),
    shape("flyio_token", "fm", r"fm[12][ar]?_[A-Za-z0-9+/=_,-]{40,}"),
    shape("sourcegraph_token", "sgp_", START + r"sgp_[A-Za-z0-9_]{36,}"),
    shape("bitbucket_token", "at", START + r"AT(?:BB|CTT3)[\w=-]{24,}", mixed),
    shape("artifactory_key", "akcp", START + r"AKCp[A-Za-z0-9]{40,}"),
    shape("amazon_token", "amzn.mws.", r"amzn\.mws\.[0-9a-f-]{36}"),
    shape("resend_key", "re_", START + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    shape("password_hash", "$", r"\$(?:2[abxy]|[156y]|apr1|argon2(?:id?|d))\$[^\s:\"',;]{20,}"),
    shape("password_hash", "ssha", r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{24,}={0,2}"),
    shape("signature", "signature=", r"\bSignature=(?P<secret>[0-9a-fA-F]{64})" + _END, flags=re.IGNORECASE),
    shape("airtable_token", "pat", START + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}" + _END),
    shape("terraform_token", ".atlasv1.", START + r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}"),
    shape("asana_token", ("1/", "2/"), START + r"[12]/\d{12,}(?:/\d{12,})?:[0-9a-f]{32}" + _END),
    shape("gitlab_token", "gr1348941", START + r"GR1348941[\w-]{20,}"),
    shape("maxmind_key", "_mmk", START + r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk" + _END),
    shape("twitter_token", "aaaaaaaaaaaaaaaaaaaa", START + r"A{20,}[A-Za-z0-9%]{50,}"),
    shape("1password_key", "a3-", START + r"A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,6}){4,6}" + _END),
    shape("jwt", "eyj", _JWT),
)
"""Keys that are one word of at least `SHORTEST_KEY` signs."""
