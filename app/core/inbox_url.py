"""Reads the address of a mailbox, such as imaps://user:secret@imap.example/INBOX, into a checked value."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

PORT = 993  # RFC 8314 §3.2
SHAPE = "must look like imaps://user:password@imap.example/INBOX, with / as %2F and @ as %40 in a password"


@dataclass(frozen=True, slots=True)
class InboxUrl:
    """Where returned mail lies, and how to get at it; always by TLS. `password` never shows in the repr."""

    host: str
    port: int
    username: str
    password: str = field(repr=False)
    folder: str = "INBOX"


def parse(text: str) -> InboxUrl:
    """One mailbox as an InboxUrl. Raises ValueError with a sentence that shows no part of a password."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is no number, a bracket that is not closed
        raise ValueError(SHAPE) from None
    if parts.scheme != "imaps":
        raise ValueError("must begin with imaps://: the mailbox is opened by TLS only")
    if not host or port == 0 or not parts.username or not parts.password or parts.query or parts.fragment:
        raise ValueError(SHAPE)
    folder = unquote(parts.path.removeprefix("/")) or "INBOX"
    return InboxUrl(host, port or PORT, unquote(parts.username), unquote(parts.password), folder)
