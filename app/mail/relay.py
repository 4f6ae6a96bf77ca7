"""The only socket to a relay: opens SMTP connections and hands one mail after another over them."""

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, cast

import aiosmtplib

from app.core.relay_url import RelayUrl
from app.mail.outcome import Deferred, Outcome, Refused, Reply, Sent, Uncertain, Unreached
from app.mail.smtp import Lost, ReplyQueue, Timeouts, check_address, check_message, judge

__all__ = [
    "Connection",
    "Deferred",
    "Line",
    "Outcome",
    "Refused",
    "Relay",
    "RelayDown",
    "Reply",
    "Sent",
    "Timeouts",
    "Uncertain",
    "Unreached",
]

CHUNK = 262_144


class RelayDown(Exception):
    """No connection to the relay; `ours` is True where only a change of our settings can help."""

    def __init__(self, sentence: str, reply: Reply | None = None, ours: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.reply = reply
        self.ours = ours


class Line(Protocol):
    """What a sender of mail needs of an open connection; tests may stand something else in for it."""

    @property
    def usable(self) -> bool:
        """Whether it may take another mail."""

    @property
    def fresh(self) -> bool:
        """Whether it has taken none yet."""

    async def hand_over(self, sender: str, recipient: str, *pieces: bytes) -> Outcome:
        """Hands one mail over; see Connection."""

    async def close(self) -> None:
        """Takes leave; never fails."""


class Relay:
    """A relay to hand mail to. `helo` is our own host name; `tls` replaces the system's trusted roots."""

    def __init__(
        self, url: RelayUrl, helo: str, tls: ssl.SSLContext | None = None, timeouts: Timeouts | None = None
    ) -> None:
        self.url = url
        self.helo = helo
        self.timeouts = timeouts or Timeouts()
        self._tls = (tls or ssl.create_default_context()) if url.scheme in ("smtp", "smtps") else None

    async def connect(self) -> "Connection":
        """A connection past EHLO, TLS and AUTH. Raises RelayDown.

        With smtp:// STARTTLS must be offered and succeed before anything else is said, AUTH above all
        (RFC 3207 §6); certificates are verified against the host of the URL.
        """
        client = aiosmtplib.SMTP(
            hostname=self.url.host,
            port=self.url.port,
            local_hostname=self.helo,
            timeout=self.timeouts.opening,
            use_tls=self.url.scheme == "smtps",
            start_tls=False,
            tls_context=self._tls,
        )
        try:
            with _told_plainly(self.url.name):
                await self._open(client)
            if client.transport is None:
                raise RelayDown(f"The relay {self.url.name} closed the connection.")
            transport = cast(asyncio.Transport, client.transport)
            return Connection(transport, client.esmtp_extensions, self.url.per_connection, self.timeouts)
        except BaseException:
            client.close()
            raise

    async def _open(self, client: aiosmtplib.SMTP) -> None:
        await client.connect()
        await client.ehlo()
        if self.url.scheme == "smtp":
            if not client.supports_extension("starttls"):
                raise RelayDown(f"The relay {self.url.name} offers no STARTTLS.", ours=True)
            await client.starttls()
            await client.ehlo()
        if self.url.username is not None and self.url.password is not None:
            if not client.supported_auth_methods:
                raise RelayDown(f"The relay {self.url.name} offers no login that is known here.", ours=True)
            await client.login(self.url.username, self.url.password)


@contextmanager
def _told_plainly(name: str) -> Iterator[None]:
    """Turns what aiosmtplib raises into RelayDown."""
    try:
        yield
    except aiosmtplib.SMTPResponseException as error:
        raise _refusal(name, error) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        cause = error.__cause__ or error
        if isinstance(cause, ssl.SSLCertVerificationError):
            sentence = f"The certificate of the relay {name} is not valid: {cause.verify_message}."
            raise RelayDown(sentence, ours=True) from error
        raise RelayDown(f"The relay {name} cannot be reached: {_reason(cause) or error}.") from error


def _reason(cause: BaseException) -> str:
    # asyncio's own text names addresses where the reason should stand; the number knows the reason.
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError | socket.gaierror) and cause.errno:
        return os.strerror(cause.errno)
    return str(cause)


def _refusal(name: str, error: aiosmtplib.SMTPResponseException) -> RelayDown:
    text = " ".join(error.message.split())
    if not 200 <= error.code <= 599:
        return RelayDown(f"The relay {name} answered what is not SMTP: {text[:80]}.")
    reply, permanent = Reply(error.code, text), error.code >= 500
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return RelayDown(f"The relay {name} refused the login: {reply.code} {text}", reply, permanent)
    if isinstance(error, aiosmtplib.SMTPConnectResponseError | aiosmtplib.SMTPHeloError):
        return RelayDown(f"The relay {name} refused the connection: {reply.code} {text}", reply)
    return RelayDown(f"The relay {name} refused STARTTLS: {reply.code} {text}", reply, permanent)


class Connection:
    """One open connection that takes one mail after another, never two at a time."""

    def __init__(
        self, transport: asyncio.Transport, extensions: dict[str, str], mails: int, timeouts: Timeouts
    ) -> None:
        size = extensions.get("size", "")
        self._queue = ReplyQueue(transport)
        self._timeouts = timeouts
        self._pipelining = "pipelining" in extensions
        self._announces_size = "size" in extensions
        self._largest = int(size) if size.isdecimal() else 0
        self._mails = mails
        self._handed = 0
        self._envelope_open = False
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock() + timeouts.age
        self.smtputf8 = "smtputf8" in extensions

    @property
    def usable(self) -> bool:
        """Whether it may take another mail: not after a 421, an error, its mail limit or its age limit."""
        return self._queue.quiet and self._handed < self._mails and self._clock() < self._last

    @property
    def fresh(self) -> bool:
        """Whether no mail has been handed over yet."""
        return self._handed == 0

    async def hand_over(self, sender: str, recipient: str, *pieces: bytes) -> Outcome:
        """Hands one mail over and says what became of it; `sender` may be "" (bounces, RFC 5321 §4.5.5).

        The message comes in pieces. Raises ValueError where an address cannot be written into a command, or a
        piece is not 7-bit text in CRLF lines none of which begins with a dot: nothing was sent then. When the
        caller is cancelled the connection is cut; the mail may be accepted only if its dot was already written.
        """
        check_address(sender)
        check_address(recipient or " ")
        check_message(pieces)
        message = b"".join((*pieces, b".\r\n"))
        size = len(message) - len(b".\r\n")
        if 0 < self._largest < size:
            return Refused(
                Reply(552, f"5.3.4 The message has {size} octets, the relay takes {self._largest}"), "mail"
            )
        self._handed += 1
        try:
            trouble = await self._envelope(sender, recipient, size) or await self._body(message)
            return trouble or await self._answer()
        except Lost as lost:
            self._queue.abort()
            return Unreached(lost.reason, lost.reply)
        except BaseException:
            self._queue.abort()
            raise

    def abort(self) -> None:
        """Ends the connection at once, without taking leave."""
        self._queue.abort()

    async def close(self) -> None:
        """Says QUIT where there is someone to say it to, and closes; no failure of it is a mail's."""
        try:
            with suppress(Lost):
                self._queue.write(b"QUIT\r\n")
                await self._queue.reply(self._timeouts.quit)
        finally:
            self._queue.abort()
        with suppress(Lost):
            await self._queue.closed(self._timeouts.quit)

    async def _envelope(self, sender: str, recipient: str, size: int) -> Outcome | None:
        """MAIL, RCPT and DATA up to the 354: None, or why the mail goes no further. Raises Lost."""
        commands = self._commands(sender, recipient, size)
        trouble = verdict = None
        for group in [commands] if self._pipelining else [[command] for command in commands]:
            self._queue.write(b"".join([line for _, line in group]))
            for stage, _ in group:
                verdict = await self._verdict(stage)
                trouble = trouble or verdict
                if isinstance(verdict, Unreached):
                    self._queue.abort()
                    return trouble
            if trouble is not None:
                break
        # The last verdict of a group that went wrong tells whether DATA was answered with 354 all the same.
        self._envelope_open = verdict is not None
        if trouble is not None and verdict is None:
            await self._lone_dot()
        return trouble

    def _commands(self, sender: str, recipient: str, size: int) -> list[tuple[str, bytes]]:
        parameter = f" SIZE={size}" if self._announces_size else ""
        commands = [
            ("mail", f"MAIL FROM:<{sender}>{parameter}\r\n".encode("ascii")),
            ("rcpt", f"RCPT TO:<{recipient}>\r\n".encode("ascii")),
            ("data", b"DATA\r\n"),
        ]
        return [("rset", b"RSET\r\n"), *commands] if self._envelope_open else commands

    async def _verdict(self, stage: str) -> Outcome | None:
        reply = self._queue.heard()
        if reply is None:
            seconds = self._timeouts.data if stage == "data" else self._timeouts.command
            try:
                reply = await self._queue.reply(seconds)
            except Lost as lost:
                return Unreached(lost.reason)
        return judge(stage, reply)

    async def _lone_dot(self) -> None:
        """Ends a DATA that was answered with 354 though nobody is to get the mail (RFC 2920 §3.1)."""
        try:
            self._queue.write(b".\r\n")
            if (await self._queue.reply(self._timeouts.data)).code == 421:
                self._queue.abort()
        except Lost:
            self._queue.abort()

    async def _body(self, message: bytes) -> Outcome | None:
        """The message and its final dot: None, or what the relay said before it had the whole. Raises Lost."""
        view = memoryview(message)
        for start in range(0, len(view), CHUNK):
            self._queue.write(view[start : start + CHUNK])
            await self._queue.drained(self._timeouts.block)
            if len(view) > start + CHUNK:
                await asyncio.sleep(0)  # others have their turn, and an early answer is seen
                if self._queue.quiet:
                    continue
            elif not self._queue.paused:
                break
            reply = await self._queue.reply(0)
            self._queue.abort()
            return judge("body", reply)
        return None

    async def _answer(self) -> Outcome:
        """What the relay says to the final dot; from here on its silence is Uncertain."""
        try:
            reply = await self._queue.reply(self._timeouts.dot)
        except Lost as lost:
            self._queue.abort()
            return Unreached(lost.reason) if self._queue.paused else Uncertain(lost.reason)
        if reply.code == 421 or reply.code // 100 == 3:
            self._queue.abort()
        match reply.code // 100:
            case 2:
                return Sent(reply, reply.queue_id)
            case 4:
                return Deferred(reply, "dot")
            case 5:
                return Refused(reply, "dot")
        return Uncertain(f"the relay answered {reply.code} to the end of the mail")
