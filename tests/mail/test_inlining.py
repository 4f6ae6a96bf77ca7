"""The inliner is kept from all that it does unasked: dropping, rewriting, fetching, guessing and complaining."""

import logging
import re
import socket
from pathlib import Path

import pytest

from app.mail.render import Renderer
from tests.mail import mails

PAGE = """<!DOCTYPE html>
<html lang="zh-CN"><head><title>{{ subject }}</title>
<style>%(inlined)s</style>
<style data-premailer="ignore">%(kept)s</style>
</head><body>
%(body)s
</body></html>
"""


@pytest.fixture
def page(tmp_path: Path) -> "Page":
    """A mail whose body and styles a test sets."""
    return Page(tmp_path)


class Page:
    """Renders a mail of its own from an operator's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, body: str = "", inlined: str = "p{margin:0}", kept: str = "") -> str:
        """Return the HTML that comes out."""
        place = self.folder / "email" / "trap"
        place.mkdir(parents=True, exist_ok=True)
        (place / "subject.txt").write_text("题")
        (place / "body.txt").write_text("文")
        (place / "body.html").write_text(PAGE % {"body": body, "inlined": inlined, "kept": kept})
        return Renderer(self.folder).render("trap", {"language": "zh", "word": "__BS_ACTION__"}).html


@pytest.mark.parametrize(
    "rule",
    [
        "@media (prefers-color-scheme:dark){.a{color:#fff000 !important}}",
        "@media (min-width:560px){.a{padding:0;color:#fff000}}",
        "[data-ogsc] .a{color:#fff000 !important}",
        "@supports (color:red){.a{color:#fff000}}",
        '@font-face{font-family:"X";src:local("X")}',
        ".nobody{color:#fff000}",
        "a[x-apple-data-detectors]{color:inherit !important}",
        ".a{background:#ffffff url(data:image/gif;base64,R0lGODlhAQABAAAAACw=)}",
        ".a{mso-line-height-rule:exactly;text-wrap:balance}",
    ],
)
def test_a_style_that_is_not_to_be_inlined_comes_out_as_it_was_written(page: Page, rule: str) -> None:
    assert f"<style>{rule}</style>" in page('<p class="a">字</p>', kept=rule)


def test_no_mark_of_ours_is_left_on_the_styles_that_stay() -> None:
    assert "data-premailer" not in mails.mail("daily").html


def test_what_is_inlined_is_inlined_once_and_its_style_is_gone(page: Page) -> None:
    html = page('<p class="a">字</p>', inlined=".a { color: #192a3b; margin: 0 }")
    assert '<p class="a" style="color:#192a3b;margin:0">字</p>' in html
    assert html.count("#192a3b") == 1


def test_a_style_of_an_element_wins_over_one_of_its_class(page: Page) -> None:
    html = page('<p class="a" style="color:#4c5d6e">字</p>', inlined=".a { color: #192a3b }")
    assert "#4c5d6e" in html
    assert "#192a3b" not in html


@pytest.mark.parametrize("size", ["width:1.5em", "width:calc(100% - 2px)", "height:3em", "width:100%"])
def test_no_size_becomes_an_attribute(page: Page, size: str) -> None:
    assert not re.search(r"<h1[^>]* (?:width|height)=", page(f'<h1 style="{size}">字</h1>'))


def test_a_word_for_a_readers_link_stays_one_word(page: Page) -> None:
    html = page('<a href="{{ word }}">{{ word }}</a><a href="https://example.org/#top">上</a>')
    assert '<a href="__BS_ACTION__">__BS_ACTION__</a>' in html
    assert 'href="https://example.org/#top"' in html


@pytest.mark.parametrize(
    ("written", "href"),
    [
        ("https://example.org/?a=1&amp;b=2", "https://example.org/?a=1&amp;b=2"),
        ("https://example.org/路", "https://example.org/%E8%B7%AF"),
        ("mailto:a+b@example.org", "mailto:a+b@example.org"),
        ("#top", "#top"),
    ],
)
def test_a_link_leads_where_it_led(page: Page, written: str, href: str) -> None:
    assert f'href="{href}"' in page(f'<a href="{written}">去</a>')


def test_conditional_comments_stay_whole(page: Page) -> None:
    comment = '<!--[if mso]><table width="600"><tr><td><p class="a"><![endif]-->'
    assert comment in page(f'{comment}<p class="a">字</p>', inlined=".a { color: #192a3b }")


def test_spaces_that_mean_something_stay(page: Page) -> None:
    html = page("<p>甲&nbsp;乙\u3000丙&#8203;丁</p>\n  <p>“戊”</p>")
    assert "<p" in html
    assert "甲\u00a0乙\u3000丙\u200b丁</p><p" in html
    assert "“戊”" in html


def test_odd_properties_are_no_cause_for_a_word_in_the_log(
    page: Page, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        page(
            '<p style="mso-padding-alt:0;text-underline-offset:2px;color:light-dark(red,blue)">字</p>',
            inlined="p { text-wrap: balance; color-scheme: light dark; mso-line-height-rule: exactly }",
        )
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_nothing_is_fetched_whatever_the_text_says(page: Page) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.setblocking(False)
        said = (
            f"@import url(http://127.0.0.1:{door.getsockname()[1]}/x.css); <link rel=stylesheet href=/y.css>"
        )
        html = page(f"<p>{{{{ {said!r} }}}}</p>".replace("@im", "@' ~ 'im").replace("<link", "<' ~ 'link"))
        with pytest.raises(BlockingIOError):
            door.accept()
    assert "@import url(http://127.0.0.1" in html
    assert "&lt;link" in html


def test_the_inliner_remembers_more_rules_than_all_mails_have() -> None:
    mails.mail("daily")
    from premailer import cache  # which reads its size while it is imported

    assert cache.cache.maxsize >= 1024
