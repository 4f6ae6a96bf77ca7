"""Editors hand in an issue by HTTP, look at it, test it, send it, and every call may safely come again."""

import asyncio
import json
from datetime import date, datetime, timedelta
from email import message_from_bytes, policy
from typing import Any

import httpx
import pytest
from sqlmodel import col, select

from app.cli import demo
from app.delivery.models import Letter
from app.issues.models import IssueText
from tests.api.problems import faults, problem
from tests.issues import samples
from tests.web import reading
from tests.world import World

PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
WHERE = {"edition": "daily", "date": "2026-10-26"}


async def handed_in(world: World, source: str | bytes = samples.DAILY, **where: str) -> httpx.Response:
    content = source.encode() if isinstance(source, str) else source
    return await world.api.post("/issues", content=content, headers=PLAIN, params=WHERE | where)


async def letters(world: World, kind: str) -> list[Letter]:
    async with world.db.reading() as session:
        which = select(Letter).where(Letter.kind == kind).order_by(col(Letter.id))
        return list((await session.scalars(which)).all())


async def test_a_text_comes_back_as_it_was_understood(world: World) -> None:
    answer = await handed_in(world)
    assert answer.status_code == 201
    given = answer.json()
    assert (given["edition"], given["date"], given["language"]) == ("daily", "2026-10-26", "zh")
    assert given["subject"] == "缓存：先看瓶颈，再谈提速"
    assert [section["section"] for section in given["outline"]] == ["重点", "简讯", "经典回顾"]
    first = given["outline"][0]["items"][0]
    assert first["sources"] == ["https://example.org/cache"]
    assert first["paragraphs"][1] == "它们的差别在于何时写回。"
    assert given["diagnostics"] == [
        {
            "level": "warning",
            "line": 13,
            "part": None,
            "message": "“网络” has no source; add the URL it rests on.",
        }
    ]


async def test_a_text_in_json_is_the_same_issue_with_a_subject_of_its_own(world: World) -> None:
    new = WHERE | {"source": samples.DAILY, "subject": "三条消息", "language": "zh", "format": "text"}
    answer = await world.api.post("/issues", json=new)
    assert answer.status_code == 201
    assert answer.json()["subject"] == "三条消息"
    shown = (await world.api.get(f"/issues/{answer.json()['id']}")).json()
    assert shown["state"] == "draft"
    assert shown["mailing_id"] is None
    assert shown["texts"] == [
        {"language": "zh", "format": "text", "subject": "三条消息", "source": samples.DAILY}
    ]


async def test_every_faulty_line_is_named_at_once(world: World) -> None:
    broken = samples.DAILY.replace("https://example.org/cache", "ftp://example.org/cache").replace(
        "握手少了一次往返。", "2026-02-31 握手少了一次往返。"
    )
    found = problem(await handed_in(world, broken), 422)
    lines = [fault["line"] for fault in found["errors"]]
    assert lines == [7, 14]
    assert (await world.api.get("/issues")).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("技术日报".encode("gb18030"), 1),
        (samples.DAILY.encode() + b"\n\xff\xfe", 18),
        (samples.DAILY.replace("重点", "重\x00点", 1).encode(), None),
        (b"", 1),
        (b"\x00" * 100, 1),
    ],
)
async def test_broken_encodings_are_refused_by_line(world: World, body: bytes, line: int | None) -> None:
    found = problem(await handed_in(world, body), 422)
    assert found["errors"]
    if line:
        assert found["errors"][0]["line"] == line


async def test_an_edition_and_a_date_have_one_text_a_language(world: World) -> None:
    first = (await handed_in(world)).json()
    problem(await handed_in(world), 409)
    second = await handed_in(world, samples.ENGLISH, language="en")
    assert second.status_code == 201
    assert second.json()["id"] == first["id"]
    shown = (await world.api.get(f"/issues/{first['id']}")).json()
    assert [text["language"] for text in shown["texts"]] == ["en", "zh"]


@pytest.mark.parametrize(
    ("params", "status", "field"),
    [
        ({"edition": "hourly", "date": "2026-10-26"}, 404, None),
        ({"edition": "daily"}, 422, "date"),
        ({"date": "2026-10-26"}, 422, "edition"),
        ({"edition": "daily", "date": "2026-13-01"}, 422, "date"),
        ({"edition": "daily", "date": "1"}, 422, "date"),
        ({"edition": "daily", "date": "2026-10-26", "language": "fr"}, 422, "language"),
        ({"edition": "x" * 33, "date": "2026-10-26"}, 422, "edition"),
        ({"edition": "da\x00ily", "date": "2026-10-26"}, 404, None),
    ],
)
async def test_an_issue_that_is_not_said_rightly_is_refused_by_its_field(
    world: World, params: dict[str, str], status: int, field: str | None
) -> None:
    answer = await world.api.post("/issues", content=samples.DAILY.encode(), headers=PLAIN, params=params)
    found = problem(answer, status)
    assert [fault["field"] for fault in found["errors"]] == ([field] if field else [])


@pytest.mark.parametrize("kind", ["text/html", "application/xml", "image/png", "multipart/form-data"])
async def test_other_kinds_of_bodies_are_not_read(world: World, kind: str) -> None:
    answer = await world.api.post("/issues", content=b"<p>", headers={"Content-Type": kind}, params=WHERE)
    problem(answer, 415)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"source": None}, "source"),
    ({"source": 7}, "source"),
    ({"date": "do-not-repeat-me"}, "date"),
    ({"edition": ["do-not-repeat-me"]}, "edition"),
    ({"sauce": "do-not-repeat-me"}, "sauce"),
    ({"format": "docx"}, "format"),
    ({"subject": "do-not-repeat-me\nBcc: x@example.com"}, "subject"),
    ({"subject": "do-not-repeat-me\x00b"}, "subject"),
    ({"subject": ""}, "subject"),
    ({"subject": "do-not-repeat-me" * 126}, "subject"),
]


async def test_a_wrong_field_is_named_and_its_value_not_repeated(world: World) -> None:
    for change, field in WRONG:
        new = WHERE | {"source": samples.DAILY, "language": "zh"} | change
        answer = await world.api.post("/issues", json=new)
        assert list(faults(answer)) == [field], change
        assert "do-not-repeat-me" not in answer.text
    assert (await world.api.get("/issues")).json()["items"] == []


@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b'"x"', b"\xff", b"[" * 5000, b'{"source": "\\ud800"}'])
async def test_json_that_is_none_is_refused_and_breaks_nothing(world: World, body: bytes) -> None:
    kind = {"Content-Type": "application/json"}
    problem(await world.api.post("/issues", content=body, headers=kind), 422)
    issue = await world.issue()
    for call in ("test", "copy", "send", "why"):
        problem(await world.api.post(f"/issues/{issue}/{call}", content=body, headers=kind), 422)


async def test_lone_surrogates_and_nul_are_refused_everywhere(world: World) -> None:
    issue = await world.issue()
    kind = {"Content-Type": "application/json"}
    for bad in ("\\ud800", "\\u0000"):
        subject = f'{{"subject": "a{bad}b"}}'.encode()
        assert "subject" in faults(await world.api.patch(f"/issues/{issue}", content=subject, headers=kind))
        source = f'{{"source": "技术日报{bad}"}}'.encode()
        problem(await world.api.patch(f"/issues/{issue}", content=source, headers=kind), 422)
        to = f'{{"to": ["a{bad}@example.com"]}}'.encode()
        problem(await world.api.post(f"/issues/{issue}/test", content=to, headers=kind), 422)


async def test_a_draft_changes_and_gets_the_subject_of_its_new_text(world: World) -> None:
    issue = await world.issue()
    changed = await world.api.patch(f"/issues/{issue}", json={"subject": "另一个标题"})
    assert changed.json()["subject"] == "另一个标题"
    source = samples.DAILY.replace("缓存：先看瓶颈，再谈提速", "缓存：先量再改")
    changed = await world.api.patch(f"/issues/{issue}", json={"source": source})
    assert changed.json()["subject"] == "缓存：先量再改"
    both = await world.api.patch(f"/issues/{issue}", json={"source": source, "subject": "两者"})
    assert both.json()["subject"] == "两者"
    nothing = await world.api.patch(f"/issues/{issue}", json={})
    assert nothing.json() == both.json()
    problem(await world.api.patch(f"/issues/{issue}", json={"language": "en", "subject": "x"}), 404)


async def test_a_scheduled_issue_changes_until_it_is_published(world: World) -> None:
    issue = await world.issue()
    at = (world.clock() + timedelta(hours=1)).isoformat()
    mailing = await world.send(issue, at=at)
    assert (await world.api.patch(f"/issues/{issue}", json={"subject": "改过的"})).status_code == 200
    assert (await handed_in(world, samples.ENGLISH, language="en")).status_code == 201
    assert (await world.api.get(f"/issues/{issue}")).json()["state"] == "scheduled"
    problem(await world.api.delete(f"/issues/{issue}"), 409)
    world.clock.forward(hours=1, seconds=1)
    await world.deliver(mailing)
    shown = (await world.api.get(f"/issues/{issue}")).json()
    assert shown["state"] == "published"
    assert shown["texts"][1]["subject"] == "改过的"
    problem(await world.api.patch(f"/issues/{issue}", json={"subject": "zu spät"}), 409)
    problem(await world.api.delete(f"/issues/{issue}"), 409)


async def test_a_published_issue_gets_no_further_text(world: World) -> None:
    issue = await world.issue()
    await world.deliver(await world.send(issue))
    problem(await handed_in(world, samples.ENGLISH, language="en"), 409)


async def test_a_draft_is_deleted_with_its_texts_and_its_date_is_free_again(world: World) -> None:
    issue = await world.issue()
    gone = await world.api.delete(f"/issues/{issue}")
    assert (gone.status_code, gone.content) == (204, b"")
    problem(await world.api.get(f"/issues/{issue}"), 404)
    problem(await world.api.delete(f"/issues/{issue}"), 404)
    async with world.db.reading() as session:
        assert (await session.scalars(select(IssueText))).all() == []
    again = await handed_in(world)
    assert again.status_code == 201
    assert again.json()["id"] > issue


async def test_an_issue_whose_schedule_was_cancelled_changes_but_stays_in_the_books(world: World) -> None:
    issue = await world.issue()
    mailing = await world.send(issue, at=(world.clock() + timedelta(hours=1)).isoformat())
    await world.api.post(f"/mailings/{mailing}/cancel")
    assert (await world.api.get(f"/issues/{issue}")).json()["state"] == "draft"
    assert (await world.api.patch(f"/issues/{issue}", json={"subject": "改"})).status_code == 200
    detail = problem(await world.api.delete(f"/issues/{issue}"), 409)["detail"]
    assert f"mailing {mailing}" in detail


async def test_a_preview_is_what_a_reader_gets(world: World) -> None:
    await world.readers(1)
    issue = await world.issue()
    mailing = await world.send(issue)
    await world.deliver(mailing)
    mail = message_from_bytes(world.sink.mails[0].data, policy=policy.default)
    shown = {
        part: await world.api.get(f"/issues/{issue}/preview", params={"part": part})
        for part in ("html", "text", "headers", "message")
    }
    assert all(answer.status_code == 200 for answer in shown.values())
    assert shown["html"].headers["content-type"] == "text/html; charset=utf-8"
    assert shown["message"].headers["content-type"] == "message/rfc822"
    assert "sandbox" in shown["html"].headers["content-security-policy"]
    whole = message_from_bytes(shown["message"].content, policy=policy.default)
    for name in ("Subject", "From", "Date", "List-Id", "Content-Language", "List-Unsubscribe-Post"):
        assert whole[name] == mail[name]
    assert shown["message"].content.startswith(shown["headers"].content)
    for part in ("html", "plain"):
        ours, theirs = whole.get_body((part,)), mail.get_body((part,))
        assert ours is not None
        assert theirs is not None
        assert without_links(ours.get_content()) == without_links(theirs.get_content())
    body = whole.get_body(("html",))
    assert body is not None
    assert body.get_content().split() == shown["html"].text.split()


def without_links(text: str) -> list[str]:
    """Return a part's words but for the reader's own: tokens and address."""
    return [word for word in text.split() if "/p/" not in word and "/u/" not in word and "@" not in word]


async def test_the_links_of_a_preview_open_nothing(world: World) -> None:
    issue = await world.issue()
    text = (await world.api.get(f"/issues/{issue}/preview", params={"part": "text"})).text
    links = [word for word in text.split() if "/p/" in word or "/u/" in word]
    assert len(links) == 3
    for link in links:
        assert (await world.web.post(link.removeprefix("http://127.0.0.1:8000"))).status_code in (404, 405)


async def test_a_preview_of_another_part_or_language_is_refused_or_not_there(world: World) -> None:
    issue = await world.issue()
    assert "part" in faults(await world.api.get(f"/issues/{issue}/preview?part=source"))
    problem(await world.api.get(f"/issues/{issue}/preview?language=en"), 404)
    problem(await world.api.get("/issues/99/preview"), 404)


async def test_a_test_says_so_and_is_in_no_books(world: World) -> None:
    issue = await world.issue()
    answer = await world.api.post(f"/issues/{issue}/test", json={"to": ["me@example.com", "you@example.com"]})
    assert (answer.status_code, answer.json()) == (202, {"queued": ["me@example.com", "you@example.com"]})
    mails = await world.letters(2)
    assert {mail.recipient for mail in mails} == {"me@example.com", "you@example.com"}
    for mail in mails:
        assert message_from_bytes(mail.data, policy=policy.default)["Subject"].startswith("[Test] ")
    assert (await world.api.get("/mailings")).json()["items"] == []


async def test_there_are_twenty_tests_an_hour(world: World) -> None:
    issue = await world.issue()
    to = [f"t{number}@example.com" for number in range(20)]
    assert (await world.api.post(f"/issues/{issue}/test", json={"to": to})).status_code == 202
    problem(await world.api.post(f"/issues/{issue}/test", json={"to": ["one@example.com"]}), 429)
    assert "to" in faults(await world.api.post(f"/issues/{issue}/test", json={"to": [*to, "x@example.com"]}))
    world.clock.forward(hours=1, seconds=1)
    assert (await world.api.post(f"/issues/{issue}/test", json={"to": to[:1]})).status_code == 202


async def test_no_test_goes_out_when_one_address_is_bad(world: World) -> None:
    issue = await world.issue()
    answer = await world.api.post(f"/issues/{issue}/test", json={"to": ["good@example.com", "bad@@example"]})
    assert list(faults(answer)) == ["to.1"]
    assert await letters(world, "test") == []


async def test_a_copy_goes_to_a_reader_only_and_is_what_they_would_have_got(world: World) -> None:
    issue = await world.issue()
    await handed_in(world, samples.ENGLISH, language="en")
    await world.reader("lin@example.com", "daily", language="en")
    answer = await world.api.post(f"/issues/{issue}/copy", json={"address": "LIN@example.com"})
    assert (answer.status_code, answer.json()) == (202, {"queued": ["lin@example.com"]})
    problem(await world.api.post(f"/issues/{issue}/copy", json={"address": "who@example.com"}), 404)
    assert "address" in faults(await world.api.post(f"/issues/{issue}/copy", json={"address": "nobody"}))
    mail = message_from_bytes((await world.letters(1))[0].data, policy=policy.default)
    assert mail["Subject"] == "Caches: look for the bottleneck first"
    assert mail["Content-Language"] == "en"


async def test_the_links_of_a_copy_open_for_its_reader_and_those_of_a_test_for_nobody(world: World) -> None:
    issue = await world.issue()
    await world.reader("lin@example.com", "daily", "weekly")
    await world.api.post(f"/issues/{issue}/test", json={"to": ["lin@example.com"]})
    await world.api.post(f"/issues/{issue}/copy", json={"address": "lin@example.com"})
    mails = sorted(await world.letters(2), key=lambda mail: b"List-Unsubscribe:" in mail.data)
    test, copy = (message_from_bytes(mail.data) for mail in mails)
    assert "List-Unsubscribe" not in test
    for page in ("p", "u"):
        assert (await world.web.get(reading.link(mails[0].data, page))).status_code == 404
        assert (await world.web.get(reading.link(mails[1].data, page))).status_code == 200
    assert copy["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    one_click = copy["List-Unsubscribe"].partition(">")[0].lstrip("<")
    assert one_click == reading.link(mails[1].data, "u")
    await world.web.post(one_click, data={"List-Unsubscribe": "One-Click"})
    (reader,) = (await world.api.get("/subscribers")).json()["items"]
    assert reader["editions"] == ["weekly"]


async def test_a_subject_may_have_the_spaces_of_its_script(world: World) -> None:
    for day, space in enumerate(("\u3000", "\u00a0", "\u200d"), 1):
        subject = f"缓存{space}先看瓶颈"
        new = {"edition": "daily", "date": f"2026-11-0{day}", "source": samples.DAILY, "subject": subject}
        answer = await world.api.post("/issues", json=new)
        assert (answer.status_code, answer.json().get("subject")) == (201, subject)
    for bad in ("\u0085", "\u2028", "\u2029", "\x7f", "\t"):
        new = WHERE | {"source": samples.DAILY, "subject": f"a{bad}b"}
        assert "subject" in faults(await world.api.post("/issues", json=new))


async def test_markdown_is_handed_in_by_its_media_type_or_by_its_name(world: World) -> None:
    headers = {"Content-Type": "text/markdown"}
    answer = await world.api.post("/issues", params=WHERE, content=samples.MARKDOWN.encode(), headers=headers)
    assert answer.status_code == 201
    assert [item["line"] for part in answer.json()["outline"] for item in part["items"]] == [7, 30]
    new = WHERE | {"date": "2026-10-27", "format": "markdown", "source": samples.MARKDOWN}
    assert (await world.api.post("/issues", json=new)).status_code == 201
    bad = samples.MARKDOWN.replace("> 没有", "<b>没有")
    found = problem(await world.api.post("/issues", json=new | {"date": "2026-10-28", "source": bad}), 422)
    assert [fault["line"] for fault in found["errors"]] == [17]
    slot = samples.MARKDOWN.replace("> 没有", "> \\_\\_BS\\_MANAGE\\_\\_ 没有")
    found = problem(await world.api.post("/issues", json=new | {"date": "2026-10-28", "source": slot}), 422)
    assert "__BS_" in found["detail"]


async def test_a_markdown_issue_says_all_of_itself_in_both_parts(world: World) -> None:
    issue = await world.issue(source=samples.DAILY)
    change = {"source": samples.MARKDOWN, "format": "markdown"}
    assert (await world.api.patch(f"/issues/{issue}", json=change)).status_code == 200
    html = (await world.api.get(f"/issues/{issue}/preview?part=html")).text
    text = (await world.api.get(f"/issues/{issue}/preview?part=text")).text
    for piece in (
        "<strong>缓存为何没有变快。</strong>",
        "<em>研究</em>",
        "flush(page)</pre>",
        "<ol",
        "example/cache#12",
    ):
        assert piece in html
    for row in (
        "本期重点：缓存为何没有变快。先看一篇论文。",
        "https://arxiv.org/abs/2410.12345",
        "- 写穿：先改磁盘。",
        "  1. 慢，",
        "> 没有测量，就没有结论。",
        "    flush(page)",
        "[两条曲线，一条平]",
        "https://example.org/curves.png",
    ):
        assert row in text.splitlines()
    assert (await world.api.get(f"/issues/{issue}/preflight")).json()["errors"] == []


async def test_a_reference_to_a_published_issue_is_a_link_in_the_mail(world: World) -> None:
    weekly = await world.issue("weekly")
    page = "/archive/daily/2026-10-22"
    assert page not in (await world.api.get(f"/issues/{weekly}/preview?part=html")).text
    daily = await world.issue(day=date(2026, 10, 22))
    assert page not in (await world.api.get(f"/issues/{weekly}/preview?part=html")).text
    await world.send(daily)
    assert page in (await world.api.get(f"/issues/{weekly}/preview?part=html")).text


async def test_preflight_finds_nothing_in_a_sound_issue(world: World) -> None:
    sourced = samples.DAILY.replace("握手少了一次往返。", "握手少了一次往返。\nhttps://example.org/handshake")
    quiet = samples.WEEKLY.replace("2026-10-22 日报", "上周")
    for edition, source in (("daily", sourced), ("weekly", quiet)):
        issue = await world.issue(edition, source=source)
        assert (await world.api.get(f"/issues/{issue}/preflight")).json() == {"errors": [], "warnings": []}
    problem(await world.api.get("/issues/99/preflight"), 404)


async def test_preflight_errors_block_the_send_unless_it_is_forced(world: World) -> None:
    source = samples.DAILY.replace("它们的差别在于何时写回。", "模板里写着 {{ name }} 两个括号。")
    issue = await world.issue(source=source)
    found = (await world.api.get(f"/issues/{issue}/preflight")).json()
    assert [(one["part"], one["language"]) for one in found["errors"]] == [("html", "zh"), ("text", "zh")]
    assert list(faults(await world.api.post(f"/issues/{issue}/send"))) == ["html", "text"]
    assert (await world.api.get("/mailings")).json()["items"] == []
    assert (await world.api.post(f"/issues/{issue}/send", json={"force": True})).status_code == 202
    assert (await world.api.post(f"/issues/{issue}/send")).status_code == 200


async def test_preflight_also_blocks_a_cancelled_issue_that_was_changed_before_it_started(
    world: World,
) -> None:
    issue = await world.issue()
    mailing = await world.send(issue, at="2026-10-27T08:00:00+08:00")
    assert (await world.api.post(f"/mailings/{mailing}/cancel")).status_code == 200
    source = samples.DAILY.replace("它们的差别在于何时写回。", "模板里写着 {{ name }} 两个括号。")
    assert (await world.api.patch(f"/issues/{issue}", json={"source": source})).status_code == 200
    assert list(faults(await world.api.post(f"/issues/{issue}/send"))) == ["html", "text"]
    assert (await world.mailing(mailing))["state"] == "cancelled"


async def test_preflight_sees_that_the_html_is_too_large_for_gmail(world: World) -> None:
    items = [f"条目{n}：说明{n}\n{'字' * 290}。\nhttps://example.org/{n}" for n in range(120)]
    source = "技术日报\n本期重点：很多。\n重点\n" + "\n".join(items)
    issue = await world.issue(source=source)
    found = (await world.api.get(f"/issues/{issue}/preflight")).json()
    assert [one["part"] for one in found["errors"]] == ["html"]


async def test_preflight_warns_of_what_is_worth_a_look(world: World) -> None:
    source = samples.DAILY.replace("技术日报", "技术周报").replace(
        "example.org/compiler/notes", "example.org/cache"
    )
    issue = await world.issue(day=date(2026, 10, 25), source=source)
    found = (await world.api.get(f"/issues/{issue}/preflight")).json()
    assert found["errors"] == []
    assert [one["line"] for one in found["warnings"]] == [1, 5, 12, 13]


async def test_sending_answers_202_once_and_200_ever_after(world: World) -> None:
    issue = await world.issue()
    first = await world.api.post(f"/issues/{issue}/send")
    again = await world.api.post(f"/issues/{issue}/send", json={})
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first.json()["state"] == "preparing"
    problem(await world.api.post("/issues/99/send"), 404)


async def test_another_time_is_a_conflict_and_the_same_time_is_not(world: World) -> None:
    issue = await world.issue()
    order = {"at": "2026-10-27T08:00:00", "tz": "Asia/Shanghai"}
    first = await world.api.post(f"/issues/{issue}/send", json=order)
    assert first.status_code == 202
    assert instant(first.json()["scheduled_at"]) == instant("2026-10-27T00:00:00+00:00")
    same = await world.api.post(f"/issues/{issue}/send", json={"at": "2026-10-27T02:00:00+02:00"})
    assert (same.status_code, same.json()["id"]) == (200, first.json()["id"])
    assert (await world.api.post(f"/issues/{issue}/send")).status_code == 200
    found = problem(await world.api.post(f"/issues/{issue}/send", json={"at": "2026-10-27T00:00:01Z"}), 409)
    assert "reschedule" in found["detail"]


async def test_a_cancelled_mailing_is_reopened_by_sending_again(world: World) -> None:
    await world.readers(2)
    issue = await world.issue()
    first = await world.send(issue, at=(world.clock() + timedelta(hours=1)).isoformat())
    await world.api.post(f"/mailings/{first}/cancel")
    answer = await world.api.post(f"/issues/{issue}/send")
    assert (answer.status_code, answer.json()["id"]) == (202, first)
    assert answer.json()["state"] in ("scheduled", "preparing")
    await world.deliver(first)
    assert (await world.books_balance(first))["sent"] == 2
    assert (await world.api.get(f"/issues/{issue}")).json()["state"] == "published"


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"at": "tomorrow"}, "at"),
    ({"at": 99999999999999999999}, "at"),
    ({"at": "9999-12-31T23:59:59-12:00"}, "at"),
    ({"at": "0001-01-01T00:00:00+12:00"}, "at"),
    ({"at": "2026-10-27T08:00:00"}, "tz"),
    ({"at": "2026-10-27T08:00:00", "tz": "Mars/Olympus"}, "tz"),
    ({"at": "2026-10-27T08:00:00", "tz": "../../etc/passwd"}, "tz"),
    ({"at": "2026-10-27T08:00:00", "tz": "UTC\x00"}, "tz"),
    ({"max_lateness": 59}, "max_lateness"),
    ({"max_lateness": 1 << 70}, "max_lateness"),
    ({"max_lateness": "6h"}, "max_lateness"),
    ({"on_uncertain": "guess"}, "on_uncertain"),
    ({"force": "perhaps"}, "force"),
    ({"fast": True}, "fast"),
]


async def test_an_order_that_cannot_be_kept_is_refused_by_its_field(world: World) -> None:
    issue = await world.issue()
    for order, field in UNFIT:
        answer = await world.api.post(f"/issues/{issue}/send", json=order)
        assert list(faults(answer)) == [field], order
    assert (await world.api.get("/mailings")).json()["items"] == []


async def test_fifty_sends_at_once_make_one_mailing(world: World) -> None:
    issue = await world.issue()
    answers = await asyncio.gather(*(world.api.post(f"/issues/{issue}/send") for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await world.api.get("/mailings")).json()["items"]) == 1


async def test_a_call_with_a_key_has_its_effect_once_and_its_answer_again(world: World) -> None:
    key = {"Idempotency-Key": "one-and-the-same"}
    new = WHERE | {"source": samples.DAILY}
    answers = await asyncio.gather(*(world.api.post("/issues", json=new, headers=key) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 49
    assert len((await world.api.get("/issues")).json()["items"]) == 1


async def test_fifty_doubles_of_a_test_and_a_copy_send_one_each(world: World) -> None:
    issue = await world.issue()
    await world.reader("lin@example.com")
    key = {"Idempotency-Key": "k"}  # one key for two calls: they are told apart by their path
    calls = [
        world.api.post(f"/issues/{issue}/{call}", json=body, headers=key)
        for call, body in (("test", {"to": ["me@example.com"]}), ("copy", {"address": "lin@example.com"}))
        for _ in range(50)
    ]
    assert {answer.status_code for answer in await asyncio.gather(*calls)} == {202}
    assert len(await letters(world, "test")) == 1
    assert len(await letters(world, "copy")) == 1


async def test_a_key_that_comes_with_another_body_is_refused(world: World) -> None:
    key = {"Idempotency-Key": "k"}
    issue = await world.issue()
    url = f"/issues/{issue}/test"
    assert (await world.api.post(url, json={"to": ["a@example.com"]}, headers=key)).status_code == 202
    found = problem(await world.api.post(url, json={"to": ["b@example.com"]}, headers=key), 422)
    assert "Idempotency-Key" in found["detail"]
    assert len(await letters(world, "test")) == 1


async def test_a_refused_call_may_come_again_with_its_key(world: World) -> None:
    key = {"Idempotency-Key": "k"}
    new = WHERE | {"source": samples.DAILY}
    problem(await world.api.post("/issues", json=new | {"source": "技术日报"}, headers=key), 422)
    assert (await world.api.post("/issues", json=new, headers=key)).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "k\xe9y"])
async def test_a_strange_key_is_refused_or_kept_as_it_is(world: World, key: str) -> None:
    issue = await world.issue()
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    answer = await world.api.post(f"/issues/{issue}/test", json={"to": ["a@example.com"]}, headers=headers)
    assert answer.status_code == (202 if 0 < len(key) < 201 else 422)


async def test_issues_page_by_cursor_until_there_are_no_more(world: World) -> None:
    made = [await world.issue(day=date(2026, 10, 1) + timedelta(days=days)) for days in range(5)]
    seen, cursor = [], None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await world.api.get("/issues", params=params)).json()
        seen += [item["id"] for item in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == made


async def test_a_foreign_cursor_is_refused(world: World) -> None:
    for cursor in ("%00", "x", "YWZ0ZXI6LTE", "YWZ0ZXI6MQ==!", "é", "9" * 3000, "YWZ0ZXI6bmFu"):
        answer = await world.api.get("/issues", params={"cursor": cursor})
        assert list(faults(answer)) == ["cursor"], cursor


async def test_every_time_in_an_answer_has_a_zone(world: World) -> None:
    issue = await world.issue()
    await world.readers(1)
    mailing = await world.send(issue)
    await world.deliver(mailing)
    paths = (f"/issues/{issue}", f"/mailings/{mailing}", f"/mailings/{mailing}/deliveries", "/audit", "/keys")
    found = [moment for path in paths for moment in times(json.loads((await world.api.get(path)).content))]
    assert len(found) > 8
    assert all(moment.tzinfo is not None for moment in found)


def times(value: Any) -> list[datetime]:
    """Return every time in an answer: the fields that end in `_at`, `at` and `since`."""
    if isinstance(value, list):
        return [moment for each in value for moment in times(each)]
    if not isinstance(value, dict):
        return []
    here = [instant(v) for k, v in value.items() if v and (k in ("at", "since") or k.endswith("_at"))]
    return here + [moment for each in value.values() for moment in times(each)]


def instant(written: str) -> datetime:
    return datetime.fromisoformat(written)


@pytest.mark.parametrize(("edition", "day"), [("daily", "2026-10-26"), ("weekly", "2026-10-25")])
async def test_the_samples_of_a_first_run_have_nothing_to_look_at_twice(
    world: World, edition: str, day: str
) -> None:
    text = (demo.SAMPLES / f"{edition}.txt").read_text(encoding="utf-8")
    made = await world.api.post(
        "/issues", params={"edition": edition, "date": day}, content=text, headers=PLAIN
    )
    found = await world.api.get(f"/issues/{made.json()['id']}/preflight")
    assert found.json() == {"errors": [], "warnings": []}
