"""A wire between a program and its database that can be cut without either of them being told."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.ports import free_port


class Wire:
    """Listens on `port` and passes everything on to another port, except while it is cut."""

    def __init__(self, to: int) -> None:
        self.to, self.port = to, free_port()
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="wire", daemon=True)

    def cut(self) -> None:
        """Let nothing through in either direction; connections stay open and new ones get no answer."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Let everything through, what was held up too."""
        self._loop.call_soon_threadsafe(self._whole.set)

    def open(self) -> None:
        """Begin to listen."""
        self.thread.start()
        self._ready.wait()

    def close(self) -> None:
        """End."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._join, "127.0.0.1", self.port))
        self._ready.set()
        self._loop.run_forever()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        try:
            theirs, ours = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._copy(reader, ours), self._copy(theirs, writer))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self._whole.wait()
                target.write(data)
                await target.drain()
        target.close()


@contextmanager
def wire(to: int) -> Iterator[Wire]:
    """Give a wire to a port of this machine."""
    one = Wire(to)
    one.open()
    try:
        yield one
    finally:
        one.close()
