"""How long the sample issues take to render: the first in a fresh process, and those that follow."""

import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

from app.issues import sources
from app.issues.document import subject_of
from app.mail.render import Renderer
from bench.place import ROOT
from bench.sizes import Sizes
from bench.stock import Stock
from bench.table import Figure, Target

COLD, WARM = 5, 30
ACCENTS = {"daily": ("#b4371e", "#f08a6e"), "weekly": ("#1d5785", "#86b7e8")}


def rendering(sizes: Sizes, stock: Stock) -> list[Figure]:  # noqa: ARG001 (every measure is given both)
    """Milliseconds of one rendition: cold with every template compiled, warm with another text each time.

    The inliner is imported before the first, once a process, and has a row of its own.
    """
    found: list[Figure] = []
    for slug in ACCENTS:
        cold = [_cold(slug) for _ in range(COLD)]
        renderer = Renderer()
        _render(renderer, slug, 0)
        warm = [_timed(renderer, slug, number) for number in range(1, WARM + 1)]
        found += [
            Figure(f"{slug}, the inliner's import, ms", [imported for imported, _ in cold]),
            Figure(f"{slug}, cold, ms", [rendered for _, rendered in cold], target=Target(150)),
            Figure(f"{slug}, warm, ms", warm, target=Target(20)),
        ]
    return found


def _cold(slug: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.rendering", slug], cwd=ROOT, capture_output=True, check=True
    )
    imported, rendered = map(float, done.stdout.split())
    return imported, rendered


def _timed(renderer: Renderer, slug: str, number: int) -> float:
    began = time.perf_counter()
    _render(renderer, slug, number)
    return 1000 * (time.perf_counter() - began)


def _render(renderer: Renderer, slug: str, number: int) -> None:
    text = (ROOT / "app" / "cli" / "samples" / f"{slug}.txt").read_text(encoding="utf-8")
    document = sources.parse(text, "text")
    document = replace(document, lead=(f"第 {number} 遍。", *document.lead))
    accent, accent_dark = ACCENTS[slug]
    edition = SimpleNamespace(
        slug=slug, name=document.title, sender_name="", footer="", accent=accent, accent_dark=accent_dark
    )
    home = "https://news.example.com/"
    context = {
        "language": "zh", "edition": edition, "document": document, "issue_date": date(2026, 10, 26),
        "subject": subject_of(document), "web_url": home, "archive_url": home, "home_url": home,
        "postal_address": "", "contact": "", "other_edition_label": None,
    }  # fmt: skip
    renderer.render("issue", context)


if __name__ == "__main__":
    start = time.perf_counter()
    import premailer  # noqa: F401 (for its time)

    taken = 1000 * (time.perf_counter() - start)
    sys.stdout.write(f"{taken} {_timed(Renderer(), sys.argv[1], 0)}")
