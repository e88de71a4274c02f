"""Secrets without a telling name: long words that only a machine makes up go, sums, ids and addresses stay."""

from __future__ import annotations

import random
import string

import pytest

from alma.redaction.redactor import DEFAULT_REDACTOR, redact_json, redact_text

KEY = "TCyxcTWsABPMZqwpy2Li7Nm2TLxeQnv3"
AWS = "p1vRt+1fjORS/6ilI8ihN5KXSc7Tvo/hBKqFYY/k"
SIXTY_TWO = string.ascii_letters + string.digits

SECRETS = [
    f"I signed in with {KEY} and it worked",
    f"The other half of the pair is {AWS}, keep it.",
    f"export K={KEY}",
    f'client = Client("{KEY}")',
    f"use `{AWS}`",
    f"he said:\n{KEY}\nand left",
    f"It is the account's, {KEY}.",
]
NO_SECRETS = [
    f"the id is {KEY}",
    f"docId={KEY}",
    f"checksum: {AWS}=",
    f"{KEY} is the checksum",
    f"wallet {KEY} got paid",
    f"https://docs.example.com/document/d/{KEY}/edit",
    f"https://example.com/watch?v={KEY}",
    f"/var/lib/{KEY}/data",
    f"bob@{KEY}.example.com",
    f"run-{KEY}",
    f"dpl_{KEY}",
    f"integrity sha512-{'oKxIrRWTpQyhFYmQYkNPGjhH8sKy8VZ4sOpbkH6MHWwCoQg8iQvTq6OVnPpZLBQ8XQ2iLdYBz6Bzk0EAjR8YwQ'}==",
    "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPBdG",
    "SGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0IG9mIGJhc2U2NA==",
    "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDvdaqNt5KCYIUKXaQ",
    "fixed in 8b0e7153bf7c3706d85c524e440066559a6656c9",
    "getUserAccountDetailsByOrganizationIdentifier2And3Names",
    "src/alma/retrieval/Version2/TestCase3/fixtures/Data4",
    "KUBERNETES_SERVICE_PORT_HTTPS_Internal_2_And_More_Words1",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_long_word_that_only_a_machine_makes_up_goes(text: str) -> None:
    assert KEY not in redact_text(text).text
    assert AWS not in redact_text(text).text


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_is_said_to_be_something_else_or_is_part_of_something_stays(text: str) -> None:
    assert redact_text(text).text == text


def test_nearly_all_made_up_words_are_found_and_no_short_ones() -> None:
    chance = random.Random(11)
    words = ["".join(chance.choices(SIXTY_TWO, k=40)) for _ in range(500)]
    found = sum(word not in redact_text(f"it works with {word} only").text for word in words)
    assert found >= 480
    assert all(redact_text(f"the row V1 {word[:21]}").text.endswith(word[:21]) for word in words)


def test_the_name_of_a_field_says_what_a_word_is() -> None:
    given = {"etag": KEY, "commit_sha": KEY, "said": KEY}
    assert redact_json(given) == {**given, "said": "[redacted:unnamed_secret]"}


def test_a_text_that_is_none_under_one_name_is_looked_at_again_under_another() -> None:
    assert DEFAULT_REDACTOR.redact(KEY, "etag").text == KEY
    assert DEFAULT_REDACTOR.redact(KEY, "fact").text != KEY


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("admin:Kj8#mP2$vL9 gets you into the router", "Kj8#mP2$vL9"),
        ("root / Gu7!kLm0pQ on the old box", "Gu7!kLm0pQ"),
        ("app password for gmail: ctpf axrx zfph vxvx", "axrx zfph"),
        ("it runs on render with rnd_tTIr6uqpq1CfHOF2fmiB9YsNXx6c", "rnd_tTIr6uqpq1CfHOF2fmiB9YsNXx6c"),
    ],
)
def test_a_password_beside_a_usual_account_goes(text: str, secret: str) -> None:
    assert secret not in redact_text(text).text


@pytest.mark.parametrize(
    "text",
    [
        "admin:read and admin:write are scopes",
        "root:x:0:0:root:/root:/bin/bash",
        "user/Settings2.tsx#L10-L20",
        "chown root:wheel /etc/sudoers",
        "the app password is only used when the user asks",
    ],
)
def test_what_stands_beside_a_usual_account_and_is_not_a_password_stays(text: str) -> None:
    assert redact_text(text).text == text
