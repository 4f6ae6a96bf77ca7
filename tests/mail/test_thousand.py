"""A thousand issues that nobody would write: each leaves as octets that every server reads in one way."""

import random
import re
import unicodedata
from base64 import b64decode
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest

from app.flows.compose import Reader
from app.issues.document import Document, Item, Question, Section
from app.mail import headers
from app.mail.render import Rendition
from tests.gallery import mails as gallery
from tests.mail import mails

KINDS = (
    "缓存：先看瓶颈", "🦊🦊‍🔥 emoji 👩🏽‍🚀", "עברית مرحبا", "𠮷𡈽𠀀", "a\u2028b\u2029c", "x" * 2000, "字" * 2000,
    "=?utf-8?q?x?=", ". dot first", "..\r\n.", "From here", "Subject: no\r\nBcc: a@b.example",
    "{{ 7 }} {% x %}", "<b>&amp;</b>",
    "e\u0301 \u212b", "\u202eright to left", "a\u00a0b\u3000c", "%(name)s %d", "-- ", "“引号”，（括号）！",
)  # fmt: skip
LINE = re.compile(rb"[ -~\t]*")


def text_of(dice: random.Random) -> str:
    return " ".join(dice.choice(KINDS) for _ in range(dice.randint(1, 4)))


def document_of(dice: random.Random) -> Document:
    items = tuple(
        Item(text_of(dice), (text_of(dice), text_of(dice)), (f"https://example.org/{number}",))
        for number in range(dice.randint(1, 3))
    )
    question = Question(text_of(dice), text_of(dice)) if dice.random() < 0.5 else None
    return Document(text_of(dice), (text_of(dice),), (Section(dice.choice((None, "名")), items),), question)


def message_of(number: int) -> tuple[Rendition, bytes]:
    """Return one of the thousand, and its octets."""
    dice = random.Random(number)
    house, edition = gallery.composer("zh"), gallery.edition("daily", "zh")
    edition.sender_name = text_of(dice)[:60]
    document = document_of(dice)
    rendered = mails.RENDERER.render("issue", mails.context(document) | {"subject": text_of(dice)})
    moment = gallery.MADE + timedelta(seconds=number)
    press = house.press(edition, 1, gallery.DAY, "zh", moment, rendered)
    return rendered, house.issue_message(press, Reader(number + 1, f"r{number}@example.com")).message


@pytest.mark.parametrize("hundred", range(10))
def test_every_message_keeps_to_the_rules_of_octets(hundred: int) -> None:
    for number in range(100 * hundred, 100 * hundred + 100):
        rendered, octets = message_of(number)
        lines = octets.split(b"\r\n")
        assert all(LINE.fullmatch(line) and len(line) <= 998 and line[:1] != b"." for line in lines), number
        head = octets.partition(b"\r\n\r\n")[0]
        assert all(len(word) <= 75 for word in re.findall(rb"=\?[^ \r]+\?=", head)), number
        (leave,) = re.findall(rb"^List-Unsubscribe: (.*)\r$", head, re.M)
        assert re.fullmatch(rb"<https://news\.example\.com/u/[!-~]{32}>", leave), number
        names = [line.split(b":")[0] for line in head.split(b"\r\n") if line[:1] not in b" \t"]
        assert len(names) == len(set(names)), number
        assert b"Bcc" not in names
        mail: EmailMessage = message_from_bytes(octets, policy=policy.default)
        assert mail["Subject"] == headers.clean(rendered.subject), number
        parts: Any = mail.get_payload()
        plain, html = parts
        for part, made in ((plain, rendered.text), (html, rendered.html)):
            got = b64decode(part.get_payload()).decode()
            before = made.partition("__BS_")[0].replace("\r\n", "\n").replace("\r", "\n")
            assert got.replace("\r\n", "\n").startswith(before), number
        assert unicodedata.is_normalized("NFC", b64decode(plain.get_payload()).decode()), number
