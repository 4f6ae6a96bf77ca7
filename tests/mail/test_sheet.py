"""The page of a mail keeps to what mail clients can show, in every kind of mail we send."""

import dataclasses
import re
import unicodedata

import pytest

from app.core import paths
from app.issues.document import Section
from app.mail import typeset
from tests.mail import mails

SLOTS = {
    "issue": {"__BS_ADDRESS__", "__BS_MANAGE__", "__BS_UNSUBSCRIBE__"},
    "letter": {"__BS_ACTION__", "__BS_ADDRESS__"},
}
every_mail = pytest.mark.parametrize("name", mails.MAILS)


@every_mail
def test_nothing_is_left_unfilled(name: str) -> None:
    mail = mails.mail(name)
    allowed = SLOTS["issue" if name in mails.DOCUMENTS else "letter"]
    for part in (mail.html, mail.text):
        assert set(re.findall(r"__[A-Z_]+__", part)) == allowed
        assert re.findall(r"\{\{(?! tables)|\{%|%\(|&amp;(?:lt|gt|amp);", part) == []


@every_mail
def test_the_page_keeps_to_what_mail_clients_can_do(name: str) -> None:
    page = mails.mail(name).html
    assert page.startswith("<!DOCTYPE html>")
    assert not re.search(r"@import|<link|<script|<form|<img|<wbr|\bfont:|position:|float:|url\(", page)
    tree = mails.tree(page)
    assert all(
        [table.get(name) for name in ("role", "border", "cellpadding", "cellspacing")]
        == ["presentation", "0", "0", "0"]
        for table in tree.iter("table")
    )
    assert max(len(list(table.iterancestors("table"))) for table in tree.iter("table")) < 4
    assert all(len(colour) == 7 for colour in tree.xpath("//@bgcolor"))
    assert all(
        "font-family:" in text.get("style") and "line-height:" in text.get("style")
        for text in tree.iter("p", "h1", "h2", "h3")
    )
    padded = tree.xpath("//*[not(self::td)][contains(@style, 'padding')]")
    assert {element.tag for element in padded} <= {"body", "a"}


@every_mail
def test_the_narrow_page_is_inline_and_the_rest_is_important(name: str) -> None:
    page = mails.mail(name).html
    blocks = re.findall(r"<style>(.*?)</style>", page, re.S)[1:]
    assert [block.strip().split("{")[0] for block in blocks][:2] == ["@media (min-width:560px)", ":root"]
    assert blocks[2].strip().startswith("[data-ogsb] .paper{")
    assert all(block.count(" !important") >= 8 for block in blocks)
    assert sum(len(block) for block in blocks) < 4096
    assert "!important" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S)


@every_mail
def test_no_class_goes_without_a_style(name: str) -> None:
    used = {word for words in mails.tree(mails.mail(name).html).xpath("//@class") for word in words.split()}
    styled = set(
        re.findall(r"\.([a-z]+)", (paths.templates() / "email/_parts/inline.html").read_text("utf-8"))
    )
    assert used <= styled | {"gut", "foot"}


@every_mail
def test_the_language_is_named_where_webmail_keeps_it(name: str) -> None:
    tree = mails.tree(mails.mail(name).html)
    (wrapper,) = tree.xpath("//div[@role='article']")
    assert tree.get("lang") == wrapper.get("lang") == ("en" if "english" in name else "zh-CN")
    assert wrapper.get("aria-label") == mails.mail(name).subject == tree.findtext("head/title")


@every_mail
def test_the_mail_is_small_and_composed(name: str) -> None:
    mail = mails.mail(name)
    assert len(mail.html.encode()) < 40 * 1024
    assert all(unicodedata.is_normalized("NFC", part) for part in (mail.subject, mail.html, mail.text))
    assert mail.text.endswith("\n")
    assert "\n\n\n" not in mail.text
    assert re.findall(r">[ \t]*\n[ \t]*<", re.sub(r"<style>.*?</style>", "", mail.html, flags=re.S)) == []


def test_link_words_say_where_they_lead() -> None:
    links = mails.tree(mails.mail("daily").html).xpath("//p[contains(@class, 'link')]/a")
    assert [link.text for link in links] == [
        "example.org/tides?station=7&year=2026",
        "example.net/a/very/long/path-to-a-table",
    ]
    assert typeset.shown("https://bank.example@evil.example/x") == "evil.example/x"


def test_dates_do_not_break_and_known_issues_are_linked() -> None:
    known = {"2026-05-01 日报": "https://news.example.com/archive/daily/2026-05-01"}
    page = mails.RENDERER.render("issue", mails.context(mails.DAILY) | {"references": known}).html
    tree = mails.tree(page)
    assert tree.xpath("//a[text()='2026-05-01 日报']/@href") == list(known.values())
    assert "2026-05-04" in tree.xpath("//span[@style='white-space:nowrap']/text()")


@pytest.mark.parametrize(
    ("title", "keeps"),
    [
        ("TMA：少发搬运指令，能否变快还要看瓶颈", True),
        ("SmoothScore：引用支持局部事实，仍可能撑不起综合结论", True),
        ("钟表：同一根发条为什么在不同的房间里快慢不同", False),
        ("Tides: easy to compute", False),
    ],
)
def test_a_title_breaks_at_its_clauses_only_when_each_fits(title: str, keeps: bool) -> None:
    assert typeset.breaks_at_clauses(title) is keeps


def test_the_preview_line_keeps_short_keys_whole_and_ends_in_time() -> None:
    items = tuple(dataclasses.replace(mails.TIDES, title=f"MXFP8 RL {n}：题") for n in range(30))
    page = mails.RENDERER.render(
        "issue", mails.context(dataclasses.replace(mails.WEEKLY, sections=(Section(None, items),)))
    ).html
    line = mails.paragraphs(page)[0]
    assert line.startswith("本期：MXFP8\u00a0RL\u00a00、MXFP8\u00a0RL\u00a01、")
    assert line.endswith("、…")
