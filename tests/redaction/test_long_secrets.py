"""Long secrets: masked whole, however long they are and wherever they stand in a text."""

from __future__ import annotations

import random
import string

import pytest

from alma.redaction.redactor import redact_json, redact_text

LENGTHS = (205, 4_000, 20_000)
FORMS = (
    *("password is {}", "password: {}", "PASSWORD='{}'", 'token = "{}"', "the token is `{}`", "{} is the password"),
    *("set the password to {}", "--token {}", "--password={}", "use the password {} now", "password:\n  {}\n"),
    *("Authorization: Bearer {}", "Bearer {}", "Cookie: session={}", "curl -u me:{} http://x", "PHPSESSID={}"),
    *("https://me:{}@host/x", "https://{}@host/x", "mysql -u me -p{}", "auth=('me', '{}')", "sqlplus me/{}@db"),
    *("aws_session_token={}", "AWS_SESSION_TOKEN: {}", "export AWS_SESSION_TOKEN={}", "FwoGZXIvYXdzE{}"),
    *("IQoJb3JpZ2luX2Vj{}", "eyJ{}.abcdefgh.ijklmnop", "sk-ant-{}", "ghp_{}", "see {} here", "identified by '{}'"),
    *("<password>{}</password>", "name: DB_PASSWORD, value: '{}'", "os.environ.get('DB_PASSWORD', '{}')"),
    *("secret: |\n  {}\n", "user,password\nme,{}\n", "| user | password |\n| me | {} |"),
    "insert into t (a, password) values (1, '{}')",
)
AROUND = "Some words of a text that says nothing. " * 250


def _secret(length: int) -> str:
    choose = random.Random(length)
    return "".join(choose.choices(string.ascii_letters + string.digits, k=length))


def _left(text: str, secret: str) -> list[str]:
    """Which parts of the secret are still to be read."""
    clean = redact_text(text).text
    return [part for at in range(0, len(secret) - 12, 12) if (part := secret[at : at + 12]) in clean]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_masked_whole(form: str, length: int) -> None:
    secret = _secret(length)
    assert _left(form.format(secret), secret) == []
    assert _left(f"{AROUND}\n{form.format(secret)}\n{AROUND}", secret) == []


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("lines", [20, 160, 2_000])
def test_a_private_key_is_masked_to_its_end(kind: str, lines: int) -> None:
    body = [_secret(60 + number % 5) for number in range(lines)]
    written = "\n".join(body)
    key = f"-----BEGIN {kind}-----\nVersion: GnuPG v2.0.22 (GNU/Linux)\n\n{written}\n-----END {kind}-----"
    assert redact_text(f"{AROUND}\n{key}\nThe rest stays.").text == f"{AROUND}\n[redacted:private_key]\nThe rest stays."
    left = redact_text(f"{written}\n-----END {kind}-----").text
    assert not any(line in left for line in body)


def test_a_secret_under_its_name_in_json_is_masked_whole() -> None:
    secret = _secret(4_000)
    assert redact_json({"aws_session_token": secret, "api_key": secret}) == {
        "aws_session_token": "[redacted:secret]",
        "api_key": "[redacted:secret]",
    }


@pytest.mark.parametrize("kept", ["iVBORw0KGgo", "/9j/4AAQSkZJRg", "JVBERi0xLjcK", "UklGR", "d09GMgAB", "T2dnUw"])
def test_a_long_file_in_base64_is_kept(kept: str) -> None:
    text = f"The picture is {kept}{_secret(3_000)} and that is all."
    assert redact_text(text).text == text


def test_long_words_and_paths_are_kept() -> None:
    path = "/".join(f"some-folder{number}" for number in range(100))
    text = f"See {path} and {'a' * 3_000} and {'0123456789' * 40} and {'word-' * 200}end."
    assert redact_text(text).text == text
