"""Hostile texts: units that a scanner without bounds follows to the end of the text from every place."""

from __future__ import annotations

import random

UNITS: tuple[str, ...] = (
    *"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \n\t\r\x85",
    *("a", "1", "A", "é", "中", "\u0301", "a\u0301\u0316", "\u200b", "\u202e", "\U000e0041", "“", "«", "👨‍👩‍👧"),
    *("@1", "eyJ-", "a.", "1:", "not ", "http://", "A=", "Bearer ", "1 ", "1.2.", "a ", "A ", "I ", "a-b ", "Aa1"),
    *("\n- ", "\n#", "\n\n", "a\n", "a-\n", "```\n", "- ", ", ", ". ", "! ", "is \t", "a|b\n", "password|b\n"),
    *("password is ", "password: ", "password=", 'password: "', "token='", "pass: ", "key", "token", "auth", "sk-"),
    *(
        "authorization: ",
        "cookie: ",
        "basic ",
        "secret",
        "AKIA",
        "://a:",
        "://",
        "a@b.c:",
        "<a>",
        "<password>",
        "4111 ",
    ),
    *("-----BEGIN PRIVATE KEY-----", "private key " + "A" * 60 + "\n", "secret: |\n a\n", "insert into a (", "$2a$"),
    *("key: a value: ", "&#x41;", "&amp;", "%41", "\\u0041", "aGVsbG8gd29ybGQ", "41 ", "i g n o r e ", "1gn0re "),
    *("ignore ", "ignore all previous ", "send ", "you are now ", "system: ", "vafgehpgvba ", "noitcurtsni "),
    *("the ", "if ", "because ", "please ", "remember that ", "we should use ", "has been ", "no longer ", "from "),
    *("Error: ", "in 2024 ", "on monday ", "Anna ", "x@y.z ", "![a](http://a ", "curl ", "<think>"),
)
"""Signs, words and the beginnings of secrets, links, lists and orders, to be repeated."""


def repeated(unit: str, size: int) -> str:
    """So many characters of one unit."""
    return (unit * (size // len(unit) + 1))[:size]


def mixed(size: int, seed: int) -> str:
    """So many characters of units in no order."""
    choose = random.Random(seed)
    return "".join(choose.choices(UNITS, k=size))[:size]


def noise(size: int, seed: int, highest: int = 0x2FFF) -> str:
    """So many characters of any kind."""
    choose = random.Random(seed)
    return "".join(chr(choose.randint(32, highest)) for _ in range(size))
