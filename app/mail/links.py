"""A link says where it leads: host and path, and the number that its place gives it, without asking anybody."""

import re
from urllib.parse import urlsplit

_ARXIV_ID = r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(v\d+)?"
_ARXIV = re.compile(rf"/(?:abs|pdf|html)/{_ARXIV_ID}(?:\.pdf)?/?")
_PAPER = re.compile(rf"/papers/{_ARXIV_ID}/?")
_NAME = r"([A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+)"
_NUMBERED = re.compile(rf"/{_NAME}/(?:issues|pull|discussions)/(\d+)(?:/.*)?")
_COMMIT = re.compile(rf"/{_NAME}/(?:pull/\d+/)?commits?/([0-9a-f]{{7,40}})(?:/.*)?")
_RELEASE = re.compile(rf"/{_NAME}/releases/tag/([^/]+)/?")


def shown(url: str) -> str:
    """Return host, path and query of a URL: what a reader sees of a link, so that it says where it leads."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return (host + parts.path).rstrip("/") + (f"?{parts.query}" if parts.query else "")


def reference(url: str) -> str:
    """Return what the page of a URL is cited by: `arXiv:2410.12345`, `owner/repo#12`; empty for other places."""
    parts = urlsplit(url)
    match (parts.hostname or "").removeprefix("www."):
        case "arxiv.org" | "export.arxiv.org" if found := _ARXIV.fullmatch(parts.path):
            return f"arXiv:{found[1]}{found[2] or ''}"
        case "huggingface.co" if found := _PAPER.fullmatch(parts.path):
            return f"arXiv:{found[1]}"
        case "github.com":
            return _on_github(parts.path)
    return ""


def _on_github(path: str) -> str:
    if found := _COMMIT.fullmatch(path):
        return f"{found[1]}@{found[2][:7]}"
    if found := _NUMBERED.fullmatch(path):
        return f"{found[1]}#{found[2]}"
    if found := _RELEASE.fullmatch(path):
        return f"{found[1]} {found[2]}"
    return ""
