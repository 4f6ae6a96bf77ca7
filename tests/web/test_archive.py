"""What is published is for everybody, as pages, as text and as feeds; what is not is nowhere."""

import json
import re
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from app.core import paths
from app.issues.models import Issue, IssueText
from tests.issues import samples
from tests.sink import Sink
from tests.world import DAY, World, house_at

ATOM = "{http://www.w3.org/2005/Atom}"
DATE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
HOSTILE = """\
<b>Daily</b> & 'more'
Lead with <script>alert(1)</script> and ]]> and &amp; in it.
<i>Features</i>
"><img src=x onerror=alert(1)>: a title
A paragraph with {{ 7*7 }} and <a href="javascript:alert(1)">a link</a> and %s and </content>.
https://example.org/?a=1&b='2'&amp;c=3
"""
NOWHERE = (
    "/archive/hourly",
    "/archive/hourly/2026-10-26",
    "/archive/daily/2026-10-25",
    "/archive/daily/2026-13-45",
    "/archive/daily/20261026",
    "/archive/daily/1793000000",
    "/archive/daily/today",
    "/archive/..%2f..%2fetc/2026-10-26",
    "/source/daily/2026-10-25.txt",
    "/source/daily/2026-W44-1.txt",
    "/source/hourly/2026-10-26.txt",
    "/source/daily/2026-10-26",
    "/feeds/hourly.atom",
    "/feeds/hourly.json",
    "/feeds/daily",
    "/feeds/daily.rss",
)


async def publish(world: World, edition: str = "daily", day: date = DAY, source: str | None = None) -> None:
    """Hand in an issue and send it to nobody, which publishes it."""
    await world.send(await world.issue(edition, day, source), force=True)


async def page(world: World, path: str, **options: Any) -> str:
    answer = await world.web.get(path, **options)
    assert answer.status_code == 200, path
    return answer.text


async def test_a_published_issue_is_found_from_the_front_page_and_from_every_archive(world: World) -> None:
    await publish(world)
    url = "http://127.0.0.1:8000/archive/daily/2026-10-26"
    for path in ("/", "/archive", "/archive/daily"):
        assert f'href="{url}"' in await page(world, path)
    assert url not in await page(world, "/archive/weekly")
    text = await page(world, url)
    for line in samples.DAILY.splitlines():
        words = line.split("：")[-1]
        assert re.sub(r"<[^>]+>|https?://", "", words) in re.sub(r"</?span>|https?://", "", text)


async def test_an_issue_stays_to_be_found_after_its_edition_changed_its_language(world: World) -> None:
    for number in range(2):
        await publish(world, day=DAY + timedelta(days=number))
    assert (await world.api.patch("/editions/daily", json={"language": "en"})).status_code == 200
    for path in (
        "/",
        "/archive",
        "/archive/daily",
        "/archive/daily/2026-10-27",
        "/feeds/daily.atom",
        "/feeds/daily.json",
    ):
        assert "/archive/daily/2026-10-26" in await page(world, path), path


async def test_a_draft_or_a_scheduled_issue_is_on_no_page_and_in_no_feed(world: World) -> None:
    await publish(world)
    await world.issue("daily", date(2026, 10, 27))
    await world.send(await world.issue("daily", date(2026, 10, 28)), at="2026-10-28T08:00:00+08:00")
    for day in ("2026-10-27", "2026-10-28"):
        for path in (f"/archive/daily/{day}", f"/source/daily/{day}.txt"):
            assert (await world.web.get(path)).status_code == 404
        open_pages = ("/", "/archive", "/archive/daily", "/archive/daily/2026-10-26")
        for path in (*open_pages, "/feeds/daily.atom", "/feeds/daily.json"):
            assert day not in re.sub(r"<span class=.hint.>.*?</span>", "", await page(world, path))


async def test_what_is_not_there_is_404(world: World) -> None:
    await publish(world)
    for path in NOWHERE:
        assert (await world.web.get(path)).status_code == 404, path


async def test_an_issue_leads_to_its_neighbours_and_to_its_text(world: World) -> None:
    for number in (24, 25, 26):
        await publish(world, day=date(2026, 10, number))
    text = await page(world, "/archive/daily/2026-10-25?language=en")
    for day in ("2026-10-24", "2026-10-26"):
        assert f'href="http://127.0.0.1:8000/archive/daily/{day}?language=en"' in text
    answer = await world.web.get("/source/daily/2026-10-25.txt")
    assert answer.text == samples.DAILY
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_another_issue_that_a_text_names_is_a_link_once_it_is_published(world: World) -> None:
    await publish(world, "weekly", date(2026, 10, 25))
    assert '更新了 <span class="nb">2026-10-22</span> 日报中' in await page(
        world, "/archive/weekly/2026-10-25"
    )
    await publish(world, "daily", date(2026, 10, 22))
    link = '<a class="acc" href="http://127.0.0.1:8000/archive/daily/2026-10-22">2026-10-22 日报</a>'
    assert f'更新了 <span class="nb">{link}</span>中' in await page(world, "/archive/weekly/2026-10-25")


async def test_the_archive_goes_on_beyond_a_thousand_issues(world: World) -> None:
    await publish(world)
    days = [DAY - timedelta(days=number) for number in range(1, 1100)]
    async with world.db.transaction() as session:
        for number, day in enumerate(days, start=100):
            session.add(Issue(id=number, edition_id=1, date=day, state="published", created_at=world.clock()))
        await session.flush()
        for number, _ in enumerate(days, start=100):
            session.add(IssueText(issue_id=number, language="zh", format="text", source="", subject="题"))
    seen: list[str] = []
    back: list[str] = []
    url = "/archive?language=zh"
    while url:
        shown = await page(world, url)
        assert len(shown) < 100_000
        seen += re.findall(r'<time datetime="([^"]+)"', shown)
        back += re.findall(r'href="([^"]+)" rel="prev"', shown)
        found = re.search(r'href="([^"]+)" rel="next"', shown)
        url = found.group(1).replace("&amp;", "&") if found else ""
    assert seen == [str(day) for day in (DAY, *days)]
    assert back[0].endswith("/archive?language=zh")
    assert "before=" in back[-1]
    assert (await world.web.get("/archive/daily?before=2026-02-30")).status_code == 404


async def test_the_stylesheet_is_small_and_the_mailbox_keeps_its_own(world: World) -> None:
    css = await page(world, "/style.css")
    assert len(css.encode()) <= 7 * 1024
    assert "iframe" not in css


async def test_an_operators_folder_goes_before_our_pages_and_styles(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    own = tmp_path / "own" / "web"
    own.mkdir(parents=True)
    (own / "_parts.html").write_text((paths.templates() / "web/_parts.html").read_text("utf-8"), "utf-8")
    (own / "archive.html").write_text(
        "{% extends '_page.html' %}{% block heading %}我们的{% endblock %}", "utf-8"
    )
    (own / "editions.css").write_text("body{color:#010203}", "utf-8")
    async with house_at(tmp_path, empty_database, sink, templates=own.parent) as world:
        assert "<h1>我们的</h1>" in await page(world, "/archive")
        assert (await page(world, "/style.css")).endswith("body{color:#010203}")


async def test_markup_in_a_text_is_words_on_the_page_and_in_the_feeds(world: World) -> None:
    await publish(world, source=HOSTILE)
    text = await page(world, "/archive/daily/2026-10-26")
    feed = ET.fromstring(await page(world, "/feeds/daily.atom"))
    content = feed.findtext(f"{ATOM}entry/{ATOM}content") or ""
    item = json.loads(await page(world, "/feeds/daily.json"))["items"][0]
    assert item["content_html"] == content
    for html in (text, content):
        assert "<script" not in html
        assert "<img" not in html
        assert "<b>" not in html
        assert "{{ 7*7 }}" in html
        assert not re.search(r"<a [^>]*javascript:", html)
    assert (
        item["title"]
        == feed.findtext(f"{ATOM}entry/{ATOM}title")
        == '"><img src=x onerror=alert(1)>: a title'
    )


async def test_the_atom_feed_holds_what_the_standard_asks_for(world: World) -> None:
    await publish(world)
    world.clock.forward(days=1)
    await publish(world, day=date(2026, 10, 27))
    answer = await world.web.get("/feeds/daily.atom")
    assert answer.headers["content-type"] == "application/atom+xml; charset=utf-8"
    feed = ET.fromstring(answer.content)
    assert feed.tag == f"{ATOM}feed"
    for of in (feed, *feed.findall(f"{ATOM}entry")):  # RFC 4287 §4.1.1, §4.1.2
        for name in ("id", "title", "updated"):
            assert len(of.findall(f"{ATOM}{name}")) == 1
        assert DATE.fullmatch(of.findtext(f"{ATOM}updated") or "")
    assert feed.findtext(f"{ATOM}author/{ATOM}name")
    links = {link.get("rel"): link.get("href") for link in feed.findall(f"{ATOM}link")}
    base = "http://127.0.0.1:8000"
    assert links == {"self": f"{base}/feeds/daily.atom", "alternate": f"{base}/archive/daily"}
    entries = feed.findall(f"{ATOM}entry")
    urls = [entry.find(f"{ATOM}link").get("href") for entry in entries]  # type: ignore[union-attr]
    assert urls == [f"{base}/archive/daily/2026-10-27", f"{base}/archive/daily/2026-10-26"]
    updated = [entry.findtext(f"{ATOM}updated") for entry in entries]
    assert updated[0] == feed.findtext(f"{ATOM}updated")
    moments = [datetime.fromisoformat(each or "") for each in updated]
    assert timedelta(hours=23) < moments[0] - moments[1] < timedelta(hours=25)
    content = entries[0].find(f"{ATOM}content")
    assert content is not None
    assert content.get("type") == "html"
    for line in samples.DAILY.splitlines()[1:]:
        assert line.partition("带着")[0] in (content.text or "")


async def test_the_json_feed_holds_what_the_standard_asks_for(world: World) -> None:
    await publish(world)
    answer = await world.web.get("/feeds/daily.json")
    assert answer.headers["content-type"].startswith("application/feed+json")
    feed = answer.json()
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert feed["feed_url"] == "http://127.0.0.1:8000/feeds/daily.json"
    assert feed["home_page_url"] == "http://127.0.0.1:8000/archive/daily"
    assert feed["language"] == "zh-CN"
    item = feed["items"][0]
    assert item["url"] == "http://127.0.0.1:8000/archive/daily/2026-10-26"
    assert DATE.fullmatch(item["date_published"])
    atom = ET.fromstring((await world.web.get("/feeds/daily.atom")).content)
    assert item["id"] == atom.findtext(f"{ATOM}entry/{ATOM}id")


async def test_a_feed_without_an_issue_is_a_feed_all_the_same(world: World) -> None:
    feed = ET.fromstring((await world.web.get("/feeds/weekly.atom")).content)
    assert DATE.fullmatch(feed.findtext(f"{ATOM}updated") or "")
    assert feed.findall(f"{ATOM}entry") == []
    assert (await world.web.get("/feeds/weekly.json")).json()["items"] == []


async def test_a_feed_has_the_newest_thirty_and_is_not_sent_twice_to_who_has_it(world: World) -> None:
    for number in range(32):
        await publish(world, day=DAY + timedelta(days=number))
    answer = await world.web.get("/feeds/daily.json")
    days = [item["url"][-10:] for item in answer.json()["items"]]
    assert len(days) == 30
    assert days[0] == str(DAY + timedelta(days=31))
    known = {"If-None-Match": answer.headers["etag"]}
    again = await world.web.get("/feeds/daily.json", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    await publish(world, day=DAY + timedelta(days=40))
    assert (await world.web.get("/feeds/daily.json", headers=known)).status_code == 200


async def test_every_page_names_its_feeds_and_they_are_there(world: World) -> None:
    found = set(re.findall(r'href="([^"]+/feeds/[^"]+)"', await page(world, "/")))
    assert len(found) == 4
    for url in found:
        assert (await world.web.get(url)).status_code == 200


async def test_a_markdown_issue_is_shown_whole_and_each_item_has_a_link_of_its_own(world: World) -> None:
    issue = await world.issue(source=samples.DAILY)
    change = {"source": samples.MARKDOWN, "format": "markdown"}
    assert (await world.api.patch(f"/issues/{issue}", json=change)).status_code == 200
    await world.send(issue)
    page = await world.web.get("/archive/daily/2026-10-26")
    for piece in (
        '<ul class="points">',
        "<blockquote>",
        "<strong>两种缓存</strong>",
        'alt="两条曲线，一条平"',
        'href="#2"',
    ):
        assert piece in page.text
    assert "example/cache#12" in page.text
    assert page.headers["Content-Security-Policy"].endswith("; img-src https:")
