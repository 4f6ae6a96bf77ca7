"""The mailbox of returned mail, over IMAP and TLS: what is new, a bounded look at each, and a folder for it."""

import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientError

from app.core.inbox_url import InboxUrl

READ = 262_144  # bytes of a mail that are fetched
IDLE_FOR = (
    10.0  # seconds: news that comes in one packet with the answer to IDLE is not heard, so look again soon
)
POLL = 30.0  # seconds between two looks where the server knows no IDLE
PATIENCE = SocketTimeout(connect=10, read=30)
REPORTS, OTHER = "Broadsheet reports", "Broadsheet other"  # the folders; of the second a person should look

FAULTS = (IMAPClientError, OSError)


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail's front, and its number in the mailbox."""

    uid: int
    raw: bytes


class Inbox:
    """One mailbox on one connection, opened when it is first used. Every call blocks, and raises one of FAULTS."""

    def __init__(self, url: InboxUrl) -> None:
        self._url = url
        self._client: Any = None
        self._idling_since: float | None = None
        self._next_look = 0.0
        self._folders: dict[str, str] = {}

    def is_news(self, seconds: float) -> bool:
        """Wait so long for news, and tell whether there may be some; a connection just opened always has."""
        if self._client is None:
            self._open()
            return True
        if not self._client.has_capability("IDLE"):
            time.sleep(max(0.0, min(seconds, self._next_look - time.monotonic())))
            return time.monotonic() >= self._next_look
        if self._idling_since is None:
            if self._client.search(["UNDELETED"]):  # what came while the last look ended is told to nobody
                return True
            self._client.idle()
            self._idling_since = time.monotonic()
        heard = self._client.idle_check(timeout=seconds)
        if not heard and time.monotonic() - self._idling_since < IDLE_FOR:
            return False
        self._wake()
        return True

    def fetch(self, limit: int) -> list[Mail]:
        """Return up to `limit` mails that lie there, the oldest first; each is fetched no further than `READ`."""
        self._next_look = time.monotonic() + POLL
        found = []
        for uid in sorted(self._client.search(["UNDELETED"]))[:limit]:
            answer = self._client.fetch([uid], [f"BODY.PEEK[]<0.{READ}>"]).get(uid, {})
            raw = next((value for name, value in answer.items() if name.startswith(b"BODY[]")), None)
            if raw is not None:  # else somebody else has moved it meanwhile
                found.append(Mail(uid, raw))
        return found

    def file(self, mail: Mail, folder: str) -> None:
        """Move a mail to a folder of ours, which is made when it is first used."""
        place = self._folder(folder)
        if self._client.has_capability("MOVE"):
            self._client.move([mail.uid], place)
            return
        self._client.copy([mail.uid], place)
        self._client.delete_messages([mail.uid], silent=True)
        if self._client.has_capability("UIDPLUS"):
            self._client.uid_expunge([mail.uid])

    def close(self) -> None:
        """Hang up."""
        client, self._client, self._idling_since = self._client, None, None
        self._folders.clear()
        if client is not None:
            with suppress(*FAULTS):
                client.shutdown()

    def _open(self) -> None:
        url = self._url
        client = IMAPClient(
            url.host, url.port, ssl=True, ssl_context=ssl.create_default_context(), timeout=PATIENCE
        )
        self._client = client
        client.login(url.username, url.password)
        client.select_folder(url.folder)

    def _wake(self) -> None:
        self._idling_since = None
        self._client.idle_done()

    def _folder(self, name: str) -> str:
        """Return the full name of a folder of ours: some servers keep all of them below INBOX (RFC 2342)."""
        if name not in self._folders:
            personal = self._client.namespace().personal if self._client.has_capability("NAMESPACE") else None
            full = f"{personal[0][0]}{name}" if personal else name
            if not self._client.folder_exists(full):
                self._client.create_folder(full)
            self._folders[name] = full
        return self._folders[name]
