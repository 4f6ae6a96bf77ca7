"""A mail says all that its issue says, in both parts and in order, and does nothing its issue asks it to."""

import dataclasses
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.core.errors import Invalid, Misconfigured
from app.issues.blocks import texts_of_all
from app.issues.document import Document, Section
from app.mail.render import Renderer
from tests.mail import mails

ISSUE_SLOTS = {"__BS_ADDRESS__", "__BS_MANAGE__", "__BS_UNSUBSCRIBE__"}
every_issue = pytest.mark.parametrize("name", mails.DOCUMENTS)


def in_order(document: Document) -> list[str]:
    said = [document.title, *texts_of_all(document.lead)]
    for section in document.sections:
        said += [section.name] if section.name else []
        for item in section.items:
            said += [item.title, *item.paragraphs, *item.sources]
    return [*said, document.question.text] if document.question else said


@every_issue
def test_the_html_holds_every_text_whole_and_in_order(name: str) -> None:
    document, shown = mails.DOCUMENTS[name](), mails.paragraphs(mails.mail(name).html)
    wanted = [text for text in in_order(document) if not text.startswith("https://")]
    assert [text for text in shown if text in wanted] == wanted


@every_issue
def test_the_html_links_every_source_in_order(name: str) -> None:
    links = mails.tree(mails.mail(name).html).xpath("//p[contains(@class, 'link')]/a/@href")
    assert links == [url for item in mails.DOCUMENTS[name]().items for url in item.sources]


@every_issue
def test_the_text_holds_every_text_on_a_line_of_its_own_and_in_order(name: str) -> None:
    rest = mails.mail(name).text
    for wanted in in_order(mails.DOCUMENTS[name]()):
        found = re.search(
            rf"^(【|\[|\d+\. |[一二三四五]、|想一想：|带着一个问题读：)?{re.escape(wanted)}[】\]]?$",
            rest,
            re.M,
        )
        assert found, wanted
        rest = rest[found.end() :]


@every_issue
def test_every_address_in_the_text_stands_alone_on_its_line(name: str) -> None:
    lines = [line for line in mails.mail(name).text.splitlines() if "://" in line]
    assert lines
    assert [line for line in lines if re.search(r"[^!-~]", line) or not line.startswith("https://")] == []


def test_a_daily_counts_through_its_named_sections() -> None:
    text = mails.mail("daily").text
    assert "【要闻】\n\n1. 潮汐：" in text
    assert "【旧文】\n\n2. 钟表：" in text
    assert "\n\n想一想：钟慢了，潮水会等吗？\n\n-- \n" in text
    assert "2026-05-04 星期一\n" in text


def test_a_weekly_counts_its_topics_and_shows_its_period() -> None:
    mail = mails.mail("weekly")
    assert "\n\n一、潮汐：" in mail.text
    assert "\n\n二、钟表：" in mail.text
    assert "2026-05-01 至 2026-05-07\n" in mail.text
    assert {"其一", "其二", "至 2026-05-07"} <= set(mails.paragraphs(mail.html))


def test_an_english_issue_is_set_in_english() -> None:
    mail = mails.mail("english")
    assert "[Highlights]\n\n1. Tides: easy" in mail.text
    assert "In this issue: Tides" in mails.paragraphs(mail.html)
    assert "font-family:Georgia," in mail.html
    assert "text-transform:uppercase" in mail.html
    assert '<html lang="en"' in mail.html


def test_topics_past_the_list_go_on_in_plain_numbers() -> None:
    many = dataclasses.replace(mails.WEEKLY, sections=(Section(None, (mails.TIDES,) * 13),))
    mail = mails.RENDERER.render("issue", mails.context(many))
    assert "十二、潮汐" in mail.text
    assert "\n13. 潮汐" in mail.text


@every_issue
def test_everything_personal_stands_in_the_footer(name: str) -> None:
    mail = mails.mail(name)
    before, _, footer = mail.text.rpartition("\n-- \n")
    assert "__BS_" not in before
    assert all(slot in footer for slot in ISSUE_SLOTS)
    head, _, foot = mail.html.partition('class="foot"')
    assert "__BS_" not in head
    assert all(slot in foot for slot in ISSUE_SLOTS)


def test_a_word_kept_for_readers_links_is_refused_in_the_content() -> None:
    planted = dataclasses.replace(mails.DAILY, lead=("看 __BS_UNSUBSCRIBE__ 这里。",))
    with pytest.raises(Invalid, match="__BS_UNSUBSCRIBE__"):
        mails.RENDERER.render("issue", mails.context(planted))


def test_content_is_shown_and_never_run() -> None:
    hostile = (
        '{{ 7 * 7 }} {% raw %} <script>alert(1)</script> " style="color: red; x: y" \'%(name)s\' &nbsp;。'
    )
    odd = dataclasses.replace(mails.DAILY, title=hostile, lead=(hostile,))
    mail = mails.RENDERER.render("issue", mails.context(odd) | {"subject": hostile})
    assert mail.subject == hostile
    assert mails.paragraphs(mail.html).count(hostile) == 2
    assert f"\n{hostile}\n" in mail.text
    assert "<script" not in mail.html
    assert mails.tree(mail.html).xpath("//div[@role='article']/@aria-label") == [hostile]


def test_a_confirmation_says_what_was_asked_and_carries_its_link_twice() -> None:
    mail = mails.mail("confirm")
    assert mail.subject == "请确认订阅《海边日报》和《海边周报》"
    assert mails.tree(mail.html).xpath("//a[@href='__BS_ACTION__']/text()") == [
        "确认订阅",
        "__BS_ACTION__",
    ]
    assert "\n__BS_ACTION__\n" in mail.text
    assert mails.mail("confirm english").subject == "Please confirm: A & B and C"


def test_a_footer_leaves_out_what_is_not_known() -> None:
    bare = {"postal_address": "", "contact": "", "other_edition_label": None}
    mail = mails.RENDERER.render("issue", mails.context(mails.DAILY) | bare)
    assert "改收" not in mail.html + mail.text
    assert "回复" not in mail.html + mail.text
    assert " · " not in mail.html + mail.text


def overlay(folder: Path, file: str, text: str) -> Renderer:
    path = folder / "email" / file
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return Renderer(folder)


def test_an_overlay_goes_before_our_templates(tmp_path: Path) -> None:
    renderer = overlay(tmp_path, "issue/subject.txt", "  〔海〕\n {{ subject }} \n")
    assert renderer.render("issue", mails.context(mails.WEEKLY)).subject == "〔海〕 潮汐、钟表"


@pytest.mark.parametrize("word", ["@import url(x)", "<LINK rel=stylesheet>", "<script src=x>"])
def test_a_template_that_would_fetch_or_run_is_refused_by_name(tmp_path: Path, word: str) -> None:
    renderer = overlay(tmp_path, "_parts/dark.html", word)
    with pytest.raises(Misconfigured, match=r"_parts/dark\.html"):
        renderer.render("issue", mails.context(mails.DAILY))


@pytest.mark.parametrize(
    "text", ["{{ nobody }}", "{% if %}", "{{ ''.__class__.__mro__ }}", "{{ keys.append(1) }}"]
)
def test_a_template_that_fails_names_its_mail(tmp_path: Path, text: str) -> None:
    renderer = overlay(tmp_path, "issue/body.txt", text)
    with pytest.raises(Misconfigured, match="issue"):
        renderer.render("issue", mails.context(mails.DAILY) | {"keys": []})


@pytest.mark.parametrize("colour", ["red", "#fff", "#b4371e;x:y", "#b4371g"])
def test_a_colour_that_some_client_cannot_read_is_refused(colour: str) -> None:
    with pytest.raises(Invalid, match="#rrggbb"):
        mails.RENDERER.render("issue", mails.context(mails.DAILY, accents=(colour, mails.RED[1])))


def test_many_threads_get_the_same_mail() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: mails.RENDERER.render("issue", mails.context(mails.DAILY)), range(32)))
    assert made == {mails.mail("daily")}
