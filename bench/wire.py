"""A long wire: a program that passes bytes on to another port, each direction late by half the round trip.

`python -m bench.wire PORT TO SECONDS` listens on PORT until it is ended. Nothing is limited but time: any number
of bytes may be under way.
"""

import asyncio
import smtplib
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from bench.place import ROOT, wait_for
from tests.ports import free_port


class End(asyncio.Protocol):
    """One end of a connection; what it hears goes to the other one after the delay."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self.other: End | None = None
        self.transport: asyncio.Transport | None = None
        self._under_way: deque[tuple[float, bytes]] = deque()  # when it is due; b"" is the end
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Know the socket."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Send it on its way."""
        self._under_way.append((self._loop.time() + self._delay, data))
        if len(self._under_way) == 1:
            self._loop.call_at(self._under_way[0][0], self._arrive)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 (its end is all the other one hears)
        """Let the end follow what is under way."""
        self.data_received(b"")

    def _arrive(self) -> None:
        """Hand over all that is due, and wait for the next."""
        if self.other is None or self.other.transport is None:
            self._loop.call_later(0.001, self._arrive)  # the way is still being opened
            return
        there = self.other.transport
        while self._under_way and self._under_way[0][0] <= self._loop.time():
            _, data = self._under_way.popleft()
            if not data:
                there.close()
            elif not there.is_closing():
                there.write(data)
        if self._under_way:
            self._loop.call_at(self._under_way[0][0], self._arrive)


class Near(End):
    """The end that was called: it calls the other."""

    def __init__(self, delay: float, to: int) -> None:
        super().__init__(delay)
        self._to = to

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the way to the other port."""
        super().connection_made(transport)
        self._opening = asyncio.create_task(self._open())

    async def _open(self) -> None:
        far = End(self._delay)
        far.other = self
        await self._loop.create_connection(lambda: far, "127.0.0.1", self._to)
        self.other = far


async def serve(port: int, to: int, delay: float) -> None:
    """Pass on what comes to a port, until cancelled."""
    server = await asyncio.get_running_loop().create_server(lambda: Near(delay, to), "127.0.0.1", port)
    await server.serve_forever()


@contextmanager
def wire(to: int, round_trip: float) -> Iterator[int]:
    """Give the port of a wire to a port of this machine, so many seconds long there and back."""
    port = free_port()
    command = [sys.executable, "-m", "bench.wire", str(port), str(to), str(round_trip / 2)]
    program = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for(port)
        yield port
    finally:
        program.kill()
        program.wait()


def length(port: int, times: int = 20) -> float:
    """Return the median of some round trips to an SMTP server at the other end, in seconds."""
    found = []
    with smtplib.SMTP("127.0.0.1", port) as client:
        for _ in range(times):
            began = time.perf_counter()
            client.noop()
            found.append(time.perf_counter() - began)
    return median(found)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
