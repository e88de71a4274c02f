"""Calls and commands: secrets that only the function, program or form tells which they are given to."""

from __future__ import annotations

import re

from alma.redaction.secrets import (
    A_LONG_WORD,
    A_QUOTE,
    AN_ASSIGNMENT,
    AN_OPTION,
    Rule,
    is_placeholder,
    looks_random,
    mixed,
    shape,
)
from alma.redaction.values import is_no_word, is_password, may_be, may_be_secret

# An argument of a command, with or without quotes around it.
_ARGUMENT = r"""["']?(?P<secret>(?![-$])[^\s"'|;&<>]{3,}+)"""
_COMMANDS = (
    (("mysql", "mariadb"), r"\b(?:mysql|mariadb)\w*\b[^\n|;&]{0,200}?\s-p"),
    (("sshpass",), r"\bsshpass\s+-p\s*"),
    (("docker login", "podman login"), r"\b(?:docker|podman) login\b[^\n|;&]{0,200}?\s-p[ =]?"),
    (("mongo",), r"\bmongo(?:sh|dump|restore|import|export)?\b[^\n|;&]{0,200}?\s-p[ =]?"),
    (("redis-cli",), r"\bredis-cli\b[^\n|;&]{0,200}?\s-a\s+"),
    (("ldap",), r"\bldap\w+\b[^\n|;&]{0,200}?\s-w\s+"),
    (("zip -",), r"\b(?:un)?zip\s+(?:-\w+\s+){0,5}-P\s+"),
    (("7z",), r"\b7za?\s+\w\s[^\n|;&]{0,200}?-p"),
    (("openssl",), r"\bopenssl\b[^\n|;&]{0,200}?\s-(?:k\s+|pass(?:in|out)?\s+pass:)"),
    (("htpasswd",), r"\bhtpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+"),
    (("smbclient",), r"\bsmbclient\b[^\n|;&]{0,200}?\s-U\s*[^\s%]{1,80}%"),
    (("aws configure set",), r"\baws configure set \w*(?:secret|token)\w*\s+"),
    (("http -", "https -"), r"\bhttps?\s+(?:-\w+\s+){0,3}(?:-a|--auth)[ =]\s?[\"']?[^\s:\"']{1,80}:"),
    (("az login",), r"\baz login\b[^\n|;&]{0,200}?\s-p\s+"),
    (("useradd", "usermod"), r"\buser(?:add|mod)\b[^\n|;&]{0,200}?\s-p\s+"),
    (("ipmitool", "sqlcmd", "bcp "), r"\b(?:ipmitool|sqlcmd|bcp)\b[^\n|;&]{0,200}?\s-P\s+"),
    (("snmp",), r"\bsnmp\w+\b[^\n|;&]{0,200}?\s-c\s+"),
    (("keytool",), r"\bkeytool\b[^\n|;&]{0,400}?\s-(?:src|dest)?(?:store|key)pass\s+"),
    (("storepass", "keypass"), r"\s-dest(?:store|key)pass\s+"),
    (("from-literal",), r"--from-literal=[\w.-]{1,80}="),
    (("gh secret set",), r"\bgh secret set\b[^\n|;&]{0,200}?\s(?:--body|-b)[ =]"),
    (
        ("securestring", "secret-string"),
        r"\baws\b[^\n]{0,300}?(?:--secret-string|SecureString\b[^\n]{0,200}?--value)[ =]",
    ),
)


def _is_argument(value: str) -> bool:
    return not is_placeholder(value) and not value.startswith(("/", "./", "~"))


def _is_second(value: str) -> bool:
    """Whether what stands beside the name of a user is a password, and no other word."""
    return may_be_secret(value) and (is_password(value) or is_no_word(value))


_A_USER = r"""b?["'][^"'\n]{1,80}["']\s?,\s{0,4}b?["'](?P<secret>[^"'\n]{3,}+)(?:["']|\Z)"""
_WITHOUT_OPTIONS = (
    (("requirepass",), r"\brequirepass\s+"),
    (("vault login",), r"\bvault login\s+"),
    (("secrets set", "config:set"), r"\b(?:(?:fly|flyctl|doppler) secrets set|heroku config:set)\s+\w{1,80}="),
    (("kinit",), r"\bkinit\b[^\n]{0,80}<<<\s*"),
    (("net use",), r"\bnet use\s+\S{1,10}\s+\\\\\S{1,100}\s+(?:/user:\S{1,80}\s+)?"),
    (("net user",), r"\bnet user\s+\S{1,80}\s+"),
    (("masterauth",), r"\bmasterauth\s+"),
    (("wpa_passphrase",), r"\bwpa_passphrase\s+\S{1,80}\s+"),
    (("lftp -",), r"\blftp\b[^\n|;&]{0,80}?\s-u\s+[^\s,]{1,80},"),
    (("identified by",), r"\bidentified\s+by\s+"),
    # A Dockerfile may name a variable and its value without a sign between them.
    (("env ", "arg "), r"^[ \t]*(?:env|arg)\s+\w{0,60}(?:pass(?:word|wd)?|pwd|secret|token|api_?key)\s+"),
    # Whatever the program: a user, and behind it what lets it in.
    ((" -u ", " --user"), r"\s(?:-u|--user(?:name)?)[ =]\S{1,80}\s(?:[^\n|;&]{0,80}?\s)?(?:-p|--pass)[ =]"),
)

CALLS: tuple[Rule, ...] = (
    *(shape("password", hints, f"{before}{_ARGUMENT}", _is_argument, needs=AN_OPTION) for hints, before in _COMMANDS),
    *(
        shape("password", hints, f"{before}{_ARGUMENT}", _is_second, re.IGNORECASE | re.MULTILINE)
        for hints, before in _WITHOUT_OPTIONS
    ),
    shape(
        "password", "auth ", r"^\W{0,3}AUTH\s+(?:[\w-]{1,40}\s+)?(?P<secret>\S{6,}+)[ \t]*$", _is_second, re.MULTILINE
    ),
    shape(
        "password",
        "chpasswd",
        r"""\becho\s+(?:-\w\s+)?["']?[\w.-]{1,40}:(?P<secret>[^\s"'|]{3,}+)["']?\s*\|\s*(?:sudo\s+)?chpasswd\b""",
        _is_argument,
    ),
    shape(
        "password",
        "sudo -s",
        r"""\becho\s+(?:-\w\s+)?["']?(?P<secret>[^\s"'|$]{3,}+)["']?\s*\|\s*sudo\s+-S\b""",
        _is_argument,
    ),
    shape(
        "password",
        "convertto-securestring",
        r"""\bConvertTo-SecureString\s+(?:-String\s+)?["'](?P<secret>[^"'\n$]{3,}+)(?:["']|\Z)""",
        _is_argument,
        re.IGNORECASE,
        A_QUOTE,
    ),
    shape(
        "basic_auth",
        ("auth", "credential", "login"),
        rf"""(?:auth\w{{0,40}}+|credentials?(?:\.new)?|\blogin)\s?[=(]\s?\(?\s{{0,4}}{_A_USER}""",
        _is_second,
        re.IGNORECASE,
        A_QUOTE,
    ),
    shape(
        "password",
        "getconnection",
        r"""\bgetConnection\(\s{0,4}"[^"\n]{1,300}"\s?,\s{0,4}"[^"\n]{0,80}"\s?,\s{0,4}"(?P<secret>[^"\n]{3,}+)(?:"|\Z)""",
        _is_argument,
        needs=A_QUOTE,
    ),
    shape("twilio_key", "client(", r"""\bClient\(\s?["']AC[0-9a-f]{32}["']\s?,\s?["'](?P<secret>[0-9a-f]{32})["']"""),
    shape(
        "key",
        ("client(", "fernet(", "openai(", "anthropic("),
        r"""(?:Client|Fernet|OpenAI|Anthropic)\(\s?b?["'](?P<secret>[A-Za-z0-9_=-]{32,}+)(?:["']|\Z)""",
        mixed,
        needs=A_LONG_WORD,
    ),
    # A value in braces, as ODBC has it, or with its quotes doubled.
    shape(
        "password",
        ("pwd={", "password={"),
        r"(?:(?<=;)|^)(?:pwd|password)=\{(?P<secret>(?:[^}\n]|\}\}){3,}+)(?:\}(?=;|$)|\Z)",
        flags=re.IGNORECASE,
        needs=AN_ASSIGNMENT,
    ),
    shape("password", "password='", r"\bpassword='(?P<secret>[^'\n]{2,}+''(?:[^'\n]|'')*+)(?:'|\Z)", needs=A_QUOTE),
    shape(
        "authorization",
        "digest",
        r"""\bDigest\s[^\n]{0,400}?\bresponse="(?P<secret>[0-9a-f]{32,128})\"""",
        flags=re.IGNORECASE,
        needs=A_LONG_WORD,
    ),
    shape(
        "password",
        "type=",
        r"""<input\b[^>\n]{0,200}?type=["']?password["']?[^>\n]{0,200}?\bvalue=["'](?P<secret>[^"'\n]{3,}+)(?:["']|\Z)""",
        _is_argument,
        re.IGNORECASE,
        AN_ASSIGNMENT,
    ),
    shape("password", "wifi:", r"\bWIFI:[^\n]{0,80}?;P:(?P<secret>[^;\n]{3,80});", _is_argument, needs=AN_ASSIGNMENT),
    shape(
        "password",
        "password ",
        r"\bpassword\s+[0579]\s+(?P<secret>[0-9A-Fa-f]{8,64}|\$\S{8,}+)(?!\S)",
        lambda value: may_be(value) and looks_random(value),
        re.IGNORECASE,
    ),
    shape(
        "password",
        ("password:", "passphrase:"),
        r"""pass(?:word|phrase):\s?["']?\s{0,4}\n\s{0,20}send\s+(?:--\s+)?["'](?P<secret>[^"'\\\n]{3,}+)""",
        _is_argument,
        re.IGNORECASE,
        A_QUOTE,
    ),
    shape(
        "code",
        ("backup code", "recovery code"),
        r"\b(?:backup|recovery) codes?\b[^\n:=]{0,20}[:=]\s{0,4}(?P<secret>(?:[a-z0-9]{4,5}-[a-z0-9]{4,5}[,;\s]{0,3}"
        r"){1,20})",
        lambda value: any(c.isdigit() for c in value),
        re.IGNORECASE,
        AN_ASSIGNMENT,
    ),
    # Everything that a secret of Kubernetes holds.
    shape(
        "secret",
        "kind: secret",
        r"(?:^|\n)kind: Secret\b[\s\S]{0,600}?\n(?:data|stringData):[ \t]*\n(?P<secret>(?:[ "
        r"\t]+\S[^\n]*+\n?)++)",
        lambda value: not all(is_placeholder(line.partition(":")[2].strip()) for line in value.strip().split("\n")),
        re.IGNORECASE,
        AN_ASSIGNMENT,
        at_once=True,
    ),
)
"""Where what is handed over is a secret, whatever it looks like."""
