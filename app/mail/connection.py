"""An open SMTP connection, which hands one mail after another over."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from app.mail.outcome import Deferred, Outcome, Refused, Reply, Sent, Uncertain, Unreached
from app.mail.smtp import Lost, ReplyQueue, Timeouts, check_address, check_message, judge

CHUNK = 262_144

Permit = Callable[[], Awaitable[None]]


class Line(Protocol):
    """What a sender of mail needs of an open connection; tests may stand something else in for it."""

    @property
    def usable(self) -> bool:
        """Whether it may take another mail."""

    @property
    def fresh(self) -> bool:
        """Whether it has taken none yet."""

    async def hand_over(
        self, sender: str, recipient: str, *pieces: bytes, permit: Permit | None = None
    ) -> Outcome:
        """Hands one mail over; see Connection."""

    async def close(self) -> None:
        """Takes leave; never fails."""


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

    async def hand_over(
        self, sender: str, recipient: str, *pieces: bytes, permit: Permit | None = None
    ) -> Outcome:
        """Hands one mail over and says what became of it; `sender` may be "" (bounces, RFC 5321 §4.5.5).

        The message comes in pieces. It is not begun before `permit` has returned, for which the relay waits after its
        354; what that raises ends the connection, and nobody gets the mail. Raises ValueError where an address cannot
        be written into a command, or a piece is not 7-bit text in CRLF lines none of which begins with a dot: nothing
        was sent then. When the caller is cancelled the connection is cut; the mail may be accepted only if its dot
        was already written.
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
            if (trouble := await self._envelope(sender, recipient, size)) is not None:
                return trouble
            if permit is not None:
                await permit()
            return await self._body(message) or await self._answer()
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
