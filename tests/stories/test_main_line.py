"""The main line: both issues reach the readers who asked for them, once, and they can leave by the link in it."""

import re
from datetime import date
from email import message_from_bytes, policy
from email.message import EmailMessage

from app.issues import sources
from tests.issues import samples
from tests.world import World, recipients


def bodies(raw: bytes) -> tuple[str, str]:
    """Return the text and HTML of a mail."""
    mail: EmailMessage = message_from_bytes(raw, policy=policy.default)
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    return text.get_content(), html.get_content()


async def test_both_issues_reach_a_thousand_readers_as_they_chose(world: World) -> None:
    daily = await world.readers(400, "daily", prefix="daily")
    weekly = await world.readers(300, "weekly", prefix="weekly")
    both = await world.readers(300, "daily", "weekly", prefix="both")
    texts = {"daily": samples.seed("daily"), "weekly": samples.seed("weekly")}
    issues = {name: await world.issue(name, source=text) for name, text in texts.items()}
    sent = {name: await world.send(issue) for name, issue in issues.items()}
    await world.deliver(*sent.values())

    by_edition: dict[str, list[str]] = {"daily": [], "weekly": []}
    for mail in world.sink.mails:
        parsed = message_from_bytes(mail.data, policy=policy.default)
        assert not parsed.defects
        assert parsed["To"] == mail.recipient
        by_edition[parsed["List-Id"].split("<")[1].split(".")[0]].append(mail.recipient)
    assert sorted(by_edition["daily"]) == sorted(daily + both)
    assert sorted(by_edition["weekly"]) == sorted(weekly + both)
    for name, number in sent.items():
        counts = await world.books_balance(number)
        assert counts["sent"] == len(by_edition[name]) == sum(counts.values())


async def test_both_parts_hold_every_paragraph_and_url_of_the_text(world: World) -> None:
    await world.readers(1, "daily", "weekly")
    for name in ("daily", "weekly"):
        source = samples.seed(name)
        await world.deliver(await world.send(await world.issue(name, source=source)))
        text, html = bodies(world.sink.mails[-1].data)
        document = sources.parse(source)
        hrefs = re.findall(r'href="([^"]+)"', html)
        shown = re.sub(r"\s+", "", re.sub(r"<[^>]+>", "", html)).replace("&amp;", "&")
        for item in document.items:
            for paragraph in item.paragraphs:
                assert paragraph in text
                assert re.sub(r"\s+", "", paragraph) in shown
            for url in item.sources:
                assert url in text.splitlines()
                assert url in [href.replace("&amp;", "&") for href in hrefs]


async def test_one_click_from_a_mail_stops_that_edition_and_no_other(world: World) -> None:
    await world.reader("leaver@example.com", "daily", "weekly")
    await world.reader("stayer@example.com", "daily")
    await world.deliver(await world.send(await world.issue("daily")))
    mail = next(mail for mail in world.sink.mails if mail.recipient == "leaver@example.com")
    parsed = message_from_bytes(mail.data, policy=policy.default)
    assert parsed["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    url = parsed["List-Unsubscribe"].split(">")[0].strip("<")
    for _ in range(2):
        answer = await world.web.post(url, data={"List-Unsubscribe": "One-Click"})
        assert answer.status_code == 200

    second = await world.send(await world.issue("daily", day=date(2026, 10, 27)))
    weekly = await world.send(await world.issue("weekly"))
    world.sink.forget()
    await world.deliver(second, weekly)
    assert recipients(world.sink.mails) == ["leaver@example.com", "stayer@example.com"]
    lists = {mail.recipient: message_from_bytes(mail.data)["List-Id"] for mail in world.sink.mails}
    assert "weekly" in lists["leaver@example.com"]
    assert "daily" in lists["stayer@example.com"]
