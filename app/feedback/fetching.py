"""Fetches the few documents that a provider's call names, from addresses that were checked before."""

import asyncio
import http.client
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

from app.core.errors import Forbidden, Unavailable

PATIENCE = 5.0  # seconds
LARGEST = 65_536  # bytes
MOST_KEPT = 16


class Documents:
    """Fetches by TLS with the certificate checked, follows no redirect, reads little, and one at a time."""

    def __init__(self, load: Callable[[str], bytes] | None = None) -> None:
        self._load = load or load_by_https
        self._kept: dict[str, bytes] = {}
        self._turn = asyncio.Lock()

    async def get(self, url: str) -> bytes:
        """Return a document that never changes, fetched once. Raises Forbidden, or Unavailable to be asked again."""
        if url not in self._kept:
            found = await self.visit(url)
            if len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[url] = found
        return self._kept[url]

    async def visit(self, url: str) -> bytes:
        """Return what is there now. Raises Forbidden for a refusal, Unavailable when nobody answers."""
        async with self._turn:
            return await asyncio.to_thread(self._load, url)


def load_by_https(url: str) -> bytes:
    """Return what an https address holds; a redirect is a refusal. Blocks, for some seconds at most."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise Forbidden("Only https addresses are fetched.")
    line = http.client.HTTPSConnection(
        parts.hostname, parts.port or 443, timeout=PATIENCE, context=ssl.create_default_context()
    )
    try:
        line.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path or "/")
        answer = line.getresponse()
        body = answer.read(LARGEST + 1)
    except (OSError, http.client.HTTPException):
        raise Unavailable(f"{parts.hostname} does not answer; try again in a moment.") from None
    finally:
        line.close()
    if answer.status != 200 or len(body) > LARGEST:
        raise Forbidden(f"{parts.hostname} answered {answer.status}, which is not what was asked for.")
    return body
