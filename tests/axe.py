"""axe-core in a page of a browser, and a strict reading of HTML: what a machine can tell of a page's manners."""

from functools import cache
from importlib import resources
from typing import Any

from justhtml import JustHTML

# Landmarks belong to the page that shows a mail: the webmail's, not the mail's.
OF_THE_HOST = ("landmark-one-main", "region")


@cache
def _source() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Any, without: tuple[str, ...] = ()) -> list[str]:
    """Return what axe-core finds on a page of Playwright's: the rule, and the element that breaks it."""
    page.evaluate(_source())
    rules = {rule: {"enabled": False} for rule in without}
    found = page.evaluate("rules => axe.run(document, {rules})", rules)
    return [f"{each['id']}: {node['html'][:120]}" for each in found["violations"] for node in each["nodes"]]


def faults(html: str) -> list[str]:
    """Return what a parser by the letter of the standard reports (WHATWG HTML §13.2.2)."""
    return [f"{error.line}: {error.code}" for error in JustHTML(html, collect_errors=True).errors]
