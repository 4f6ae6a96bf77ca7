"""What the tests of the relay share: an open line to the sink, and a mail to hand over it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.core import relay_url
from app.mail.connection import Connection, Line
from app.mail.outcome import Outcome
from app.mail.relay import Relay
from app.mail.smtp import Timeouts
from tests.sink import Action, Event, Sink

QUICK = Timeouts(opening=5, command=2, data=2, block=2, dot=2, quit=1)
BRIEF = Timeouts(opening=0.2, command=0.2, data=0.2, block=0.2, dot=0.2, quit=0.2)
MESSAGE = b"Subject: One\r\n\r\nTwo\r\n"


def large(megabytes: int) -> bytes:
    line = b"x" * 76 + b"\r\n"
    return b"Subject: Large\r\n\r\n" + line * (megabytes * 1_000_000 // len(line))


def relay_to(sink: Sink, timeouts: Timeouts = QUICK, options: str = "") -> Relay:
    return Relay(relay_url.parse(sink.url + options), "client.example", timeouts=timeouts)


@asynccontextmanager
async def open_line(sink: Sink, timeouts: Timeouts = QUICK, options: str = "") -> AsyncIterator[Connection]:
    connection = await relay_to(sink, timeouts, options).connect()
    try:
        yield connection
    finally:
        await connection.close()


async def hand(connection: Line, number: int = 1, message: bytes = MESSAGE) -> Outcome:
    return await connection.hand_over("news@a.example", f"reader{number}@b.example", message)


async def once(script: Callable[[Event], Action | None], message: bytes = MESSAGE) -> tuple[Outcome, bool]:
    """One mail to a sink with a script: what became of it, and whether the connection is usable after."""
    with Sink(script) as sink:
        async with open_line(sink) as connection:
            return await hand(connection, message=message), connection.usable


async def soon(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)
