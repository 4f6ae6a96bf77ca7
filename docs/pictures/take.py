"""Takes the pictures of the README from a running `broadsheet run --demo`: python docs/pictures/take.py URL."""

import re
import sys
from base64 import b64encode
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
PROGRAMS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
MAIL = {"width": 600, "height": 740}
FORM = {"width": 600, "height": 800}
LARGEST = 250_000  # bytes


def main(base: str) -> None:
    """Take the daily mail by day and by night, and the form in both languages."""
    program = next(name for name in PROGRAMS if Path(name).exists())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        mail = f"{base}/mailbox/{daily(base)}/html"
        side_by_side(browser, mail, "mail.png", MAIL)
        for language in ("en", "zh"):
            side_by_side(browser, f"{base}/?language={language}", f"form-{language}.png", FORM)
        browser.close()


def daily(base: str) -> int:
    """Return the number of a daily issue's mail in the mailbox."""
    listed = urlopen(f"{base}/mailbox?q=daily.reader").read().decode()
    return int(re.findall(r"/mailbox/(\d+)", listed)[0])


def side_by_side(browser: Browser, url: str, name: str, size: dict[str, int]) -> None:
    """Put a page by day and by night next to each other."""
    shots = []
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(url)
        shots.append(b64encode(page.screenshot()).decode())
        page.close()
    images = "".join(f'<img width="{size["width"]}" src="data:image/png;base64,{shot}">' for shot in shots)
    both = browser.new_page(viewport={"width": 2 * size["width"], "height": size["height"]})
    both.set_content(f'<body style="margin:0;display:flex">{images}')
    picture = both.screenshot(path=HERE / name)
    both.close()
    if len(picture) > LARGEST:
        sys.exit(f"{name} has {len(picture):,} bytes; {LARGEST:,} are the most")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
