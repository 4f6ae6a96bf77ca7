"""The grammar of SMTP: what may be written, what an answer means, and a queue that keeps every answer."""

import asyncio
import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.mail.outcome import Deferred, Outcome, Refused, Reply, Unreached

LINE_LIMIT = 8192
REPLY_LIMIT = 65536
QUEUE_LIMIT = 16
LONG = 4096  # octets of a piece that is worth remembering

_REPLY_LINE = re.compile(rb"([2-5][0-9]{2})(?:([ -])(.*))?", re.DOTALL)
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")
_GOES_ON = {"rset": 2, "mail": 2, "rcpt": 2, "data": 3}  # kinds of reply, by stage
_UNSAFE = frozenset(map(chr, (*range(33), 127))) | frozenset("<>")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. RFC 5321 §4.5.3.2 asks for 300, 120, 180 and 600 from `command` to `dot`.

    `opening` is for each step up to AUTH, shorter than the RFC's 300: giving up there costs no mail.
    A connection takes no new mail once it is `age` old.
    """

    opening: float = 60.0
    command: float = 300.0
    data: float = 120.0
    block: float = 180.0
    dot: float = 600.0
    quit: float = 5.0
    age: float = 900.0


class Lost(Exception):
    """The connection is over or cannot be trusted any more; `reply` is what it said last, unasked."""

    def __init__(self, reason: str, reply: Reply | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.reply = reply


class ReplyQueue(asyncio.BufferedProtocol):
    """Takes over an open transport and keeps the replies in the order they came, however they were cut.

    Writing is held back until the transport has passed everything to the kernel, so a message is never
    kept twice in memory, and an error while a message is written is noticed before its final dot is.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._room = memoryview(bytearray(LINE_LIMIT))  # where the transport puts what came
        self._rest = b""  # of a line that has no end yet
        self._lines: list[Reply] = []  # of a reply that has no end yet
        self._replies: deque[Reply] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._limit = math.inf  # loop time at which whoever waits is too late
        self._timer: asyncio.TimerHandle | None = None
        self._fault: str | None = "the connection is closed" if transport.is_closing() else None
        self._closed = False
        self.paused = False  # whether the kernel has yet to take some of what was written
        transport.set_protocol(self)
        transport.set_write_buffer_limits(high=1, low=0)

    @property
    def quiet(self) -> bool:
        """Whether the connection lives and nothing waits to be read; a 421 said unasked makes it False."""
        return self._fault is None and not self._replies

    def write(self, data: bytes | memoryview) -> None:
        """Hands bytes to the transport. Raises Lost, with nothing written, where it is not quiet."""
        if self._replies:
            raise Lost("the relay spoke unasked", self._replies[0])
        if self._transport.is_closing():
            self._fault = self._fault or "the connection is closed"
        if self._fault is not None:
            raise Lost(self._fault)
        self._transport.write(data)
        if self._transport.is_closing():  # the kernel has taken none of it
            raise Lost("the connection is closed")

    async def drained(self, seconds: float) -> None:
        """Returns when the kernel has all that was written, or a reply came early. Raises Lost."""
        limit = self._loop.time() + seconds
        while self._transport.get_write_buffer_size() and not self._replies and self._fault is None:
            if self.paused:
                await self._stirred(limit, f"the relay took no data for {seconds:g} s")
            else:
                await asyncio.sleep(0)  # uvloop writes when all that is ready has had its turn
        if self._transport.is_closing():
            self._fault = self._fault or "the connection is closed"
        if self._fault is not None and not self._replies:
            raise Lost(self._fault)

    def heard(self) -> Reply | None:
        """The next reply, if it is there."""
        return self._replies.popleft() if self._replies else None

    async def reply(self, seconds: float) -> Reply:
        """The next reply; those that came before the connection ended are still given. Raises Lost."""
        limit = self._loop.time() + seconds
        while not self._replies and self._fault is None:
            await self._stirred(limit, f"the relay gave no answer for {seconds:g} s")
        if self._replies:
            return self._replies.popleft()
        raise Lost(self._fault or "the connection is closed")

    def abort(self) -> None:
        """Ends the connection at once; what was written and not yet sent is forgotten."""
        self._fault = self._fault or "the connection is closed"
        self._transport.abort()

    async def closed(self, seconds: float) -> None:
        """Returns when the transport is gone. Raises Lost when that takes longer."""
        limit = self._loop.time() + seconds
        while not self._closed:
            await self._stirred(limit, "the connection does not close")

    async def _stirred(self, limit: float, late: str) -> None:
        """Wait until something happens. Raises Lost at loop time `limit`.

        Most waits end long before their time, so one timer a connection is moved on lazily.
        """
        if self._loop.time() >= limit:
            raise Lost(late)
        self._limit = limit
        if self._timer is None or self._timer.when() > limit:
            self._watch()
        self._wake = self._loop.create_future()
        try:
            await self._wake
        finally:
            self._wake, self._limit = None, math.inf

    def _watch(self) -> None:
        """Look at the clock when the time of whoever waits is over."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._wake is not None and self._loop.time() >= self._limit:
            self._stir()
        elif self._limit < math.inf and not self._closed:
            self._timer = self._loop.call_at(self._limit, self._watch)

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """asyncio calls this; it puts what comes into what it is given."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio calls this; takes whole lines off what came and makes replies of them."""
        *lines, self._rest = (self._rest + self._room[:nbytes]).split(b"\n")
        for line in lines:
            if self._fault is not None:
                break
            self._take_line(line)
        if len(self._rest) > LINE_LIMIT:
            self._distrust("the relay sends a line without an end")
        self._stir()

    def eof_received(self) -> None:
        """asyncio calls this; the relay will say nothing more."""
        self._fault = self._fault or "the relay closed the connection"
        self._stir()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio calls this last."""
        self._fault = self._fault or f"the connection was lost ({exc or 'closed'})"
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._stir()

    def pause_writing(self) -> None:
        """asyncio calls this while the kernel takes no more."""
        self.paused = True

    def resume_writing(self) -> None:
        """asyncio calls this when the kernel has taken all."""
        self.paused = False
        self._stir()

    def _take_line(self, line: bytes) -> None:
        found = _parsed(line)
        if found is None or (self._lines and found[0].code != self._lines[0].code):
            self._distrust(f"the relay answered what is not SMTP: {_plain(line[:80])}")
            return
        reply, is_last = found
        if self._lines or not is_last:
            self._lines.append(reply)
            if not is_last:
                if (
                    sum(len(one.text) for one in self._lines) > REPLY_LIMIT
                    or len(self._lines) > REPLY_LIMIT // 64
                ):
                    self._distrust("the relay sends a reply without an end")
                return
            reply, self._lines = _joined(self._lines), []
        self._replies.append(reply)
        if len(self._replies) > QUEUE_LIMIT:
            self._distrust("the relay answers what nobody asked")

    def _distrust(self, reason: str) -> None:
        if self._fault is None:
            self._fault = reason
            self._transport.abort()


@lru_cache(maxsize=256)
def _parsed(line: bytes) -> tuple[Reply, bool] | None:
    """The reply that a line is, and whether it is its last; None for what is not SMTP."""
    found = _REPLY_LINE.fullmatch(line.removesuffix(b"\r"))
    if found is None or len(line) > LINE_LIMIT:
        return None
    return Reply(int(found[1]), _plain(found[3] or b"")), found[2] != b"-"


def _plain(line: bytes) -> str:
    return line.decode("utf-8", "replace").translate(_CONTROLS).strip()


def _joined(lines: Sequence[Reply]) -> Reply:
    """One line of many; the enhanced code that servers repeat on each line is kept on the first only."""
    first, *others = lines
    texts, code = [one.text for one in others], first.enhanced
    if code is not None and first.text.startswith(code):
        texts = [text.removeprefix(code).lstrip() for text in texts]
    return Reply(first.code, " ".join(filter(None, (first.text, *texts))))


def judge(stage: str, reply: Reply) -> Outcome | None:
    """What a reply before the dot means for the mail: None is to go on (RFC 5321 §4.3.2)."""
    kind = reply.code // 100
    if kind == _GOES_ON.get(stage):
        return None
    if reply.code == 421:
        return Unreached("the relay closes the connection", reply, stage)
    if kind not in (4, 5) or stage == "rset":
        return Unreached(f"the relay answered {reply.code} to {stage.upper()}", reply)
    return Deferred(reply, stage) if kind == 4 else Refused(reply, stage)


def check_address(address: str) -> None:
    """Raises ValueError where an address would be another one, or another command, on the wire."""
    if not address.isascii() or not _UNSAFE.isdisjoint(address):
        raise ValueError("An envelope address is ASCII without spaces, brackets and control characters.")
    if len(address) > 254:
        raise ValueError("An envelope address has at most 254 octets (RFC 5321 §4.5.3.1.3).")


def check_message(pieces: Sequence[bytes]) -> None:
    """Raises ValueError where a server could see the end of the mail elsewhere (CVE-2023-51764).

    Each piece is whole lines. A long one that comes again, the same in every mail of a mailing, is not looked at
    again; the short ones are looked at together.
    """
    short = [piece for piece in pieces if len(piece) <= LONG]
    for piece in pieces:
        if len(piece) > LONG:
            _checked(piece)
        elif piece and not piece.endswith(b"\r\n"):
            raise ValueError("A message is made of lines that end in CRLF, and of no other CR or LF.")
    if together := b"".join(short):
        _check(together)
    elif len(short) == len(pieces):
        raise ValueError("A message has at least one line.")


def _check(lines: bytes) -> None:
    if b"\0" in lines or not lines.isascii():
        raise ValueError("A message is 7-bit text without NUL.")
    bare = lines.replace(b"\r\n", b"")
    if not lines.endswith(b"\r\n") or b"\r" in bare or b"\n" in bare:
        raise ValueError("A message is made of lines that end in CRLF, and of no other CR or LF.")
    if lines.startswith(b".") or b"\n." in lines[: lines.rfind(b".") + 1]:  # base64 has no dots
        raise ValueError("No line of a message begins with a dot.")


_checked = lru_cache(maxsize=64)(_check)
