"""Each mail in a real browser: nothing runs off a narrow screen, nobody is shut out, with styles and without."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests import axe
from tests.gallery import mails, sheets
from tests.issues.samples import SEEDS
from tests.mail import mails as others

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
MAILS = mails.every() | (
    {f"real {slug}": mails.issue(slug, "zh", mails.text(slug, "zh", SEEDS)) for slug in ("daily", "weekly")}
    if SEEDS.exists()
    else {}
)
LONG = "https://example.org/" + "a-very-long-path-without-an-end/" * 8
every_mail = pytest.mark.parametrize("name", MAILS)


def shown(name: str, look: str = "light") -> str:
    return sheets.changed(sheets.View(mails.html(MAILS[name]), 320, look))


@every_mail
def test_the_page_is_html_to_the_letter(name: str) -> None:
    assert axe.faults(shown(name)) == []


@pytest.mark.parametrize("look", ["light", "bare"])
@every_mail
def test_nothing_is_wider_than_a_small_telephone(browser: Browser, name: str, look: str) -> None:
    page: Any = browser.new_page(viewport={"width": 320, "height": 700})
    page.set_content(shown(name, look))
    assert page.evaluate(OVERFLOW) <= 0
    page.close()


def test_no_address_is_too_long_for_its_column(browser: Browser) -> None:
    html = others.mail("daily").html.replace("https://example.net/a/very/long/path-to-a-table/", LONG)
    html = html.replace("example.net/a/very/long/path-to-a-table", LONG[8:])
    page: Any = browser.new_page(viewport={"width": 320, "height": 700})
    page.set_content(html)
    assert LONG[8:40] in page.inner_text("body")
    assert page.evaluate(OVERFLOW) <= 0
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@every_mail
def test_nobody_is_shut_out(browser: Browser, name: str, scheme: Any) -> None:
    page: Any = browser.new_page(viewport={"width": 600, "height": 900}, color_scheme=scheme)
    page.set_content(shown(name))
    assert axe.violations(page, without=axe.OF_THE_HOST) == []
    page.close()


@every_mail
def test_the_night_is_dark_from_edge_to_edge(browser: Browser, name: str) -> None:
    page: Any = browser.new_page(viewport={"width": 600, "height": 900}, color_scheme="dark")
    page.set_content(shown(name))
    grounds = page.evaluate(
        "[...document.querySelectorAll('*')].map(e => getComputedStyle(e).backgroundColor)"
        ".filter(c => c != 'rgba(0, 0, 0, 0)')"
    )
    bright = {ground for ground in grounds if sum(map(int, re.findall(r"\d+", ground)[:3])) > 600}
    assert bright == set()
    page.close()


def test_a_narrow_screen_and_a_wide_one_each_have_their_size(browser: Browser) -> None:
    sizes = []
    for width in (360, 600):
        page: Any = browser.new_page(viewport={"width": width, "height": 900})
        page.set_content(shown("daily-zh"))
        sizes.append(page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize"))
        page.close()
    assert sizes == ["28px", "34px"]
