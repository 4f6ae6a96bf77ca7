"""Whether each link of a text leads a reader somewhere, and where its words say."""

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from app.core.errors import Fault
from app.issues import blocks as kinds
from app.issues.blocks import Block, Passage
from app.issues.checks.text import line_of
from app.issues.document import Document

_AT_HOME = (".local", ".localhost", ".internal", ".intranet", ".lan", ".home.arpa", ".test", ".invalid")
_LIKE_A_HOST = re.compile(r"(?:https?://)?((?:[a-z0-9-]+\.)+[a-z]{2,})(?:[/:?#]\S*)?", re.IGNORECASE)


def findings(document: Document) -> list[Fault]:
    """An error for each link that only we could open, or whose words name another host."""
    found = []
    for paragraph in document.lead:
        found += [Fault(message, field="lead") for message in _complaints(paragraph)]
    for item in document.items:
        for at, block in enumerate(item.blocks, 1):
            found += [Fault(message, line_of(item, at)) for message in _complaints(block)]
        for at, url in enumerate(item.sources, 1 + len(item.blocks)):
            found += [Fault(message, line_of(item, at)) for message in complaints_about(url)]
    return found


def complaints_about(url: str) -> Iterator[str]:
    """What keeps a reader elsewhere from opening a URL."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    if not host:
        yield f"“{url[:60]}” has no host; write the whole URL."
    elif _is_private(host):
        yield f"{url[:60]} leads to a private host, which readers cannot open; write its public URL."


def _complaints(block: Block) -> Iterator[str]:
    for url in kinds.urls_of(block):
        yield from complaints_about(url)
    for part in kinds.parts_of([block]):
        for run in part.runs if isinstance(part, Passage) else ():
            said = _LIKE_A_HOST.fullmatch(run.text.strip()) if run.url else None
            if run.url and said and _bare(said[1]) != _bare(urlsplit(run.url).hostname or ""):
                yield f"The link says {said[1]} and leads to {urlsplit(run.url).hostname}; make them one."


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        plain = host.rstrip(".")
        return "." not in plain or plain.endswith(_AT_HOME)


def _bare(host: str) -> str:
    return host.lower().removeprefix("www.")
