"""A client that costs next to nothing: one connection, one request after the other."""

import asyncio
import json
from types import TracebackType
from typing import Any


class Client:
    """A kept connection to a port of this machine; `key` is an editor's."""

    def __init__(self, port: int, key: str = "") -> None:
        self.port = port
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n" if key else "Host: 127.0.0.1\r\n"

    async def open(self) -> "Client":
        """Open the connection."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def close(self) -> None:
        """Close it."""
        self._writer.close()

    @property
    def is_open(self) -> bool:
        """Whether the other side has not closed it."""
        return not self._reader.at_eof()

    async def __aenter__(self) -> "Client":
        """Open the connection for a block."""
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    async def ask(self, what: str, body: bytes = b"", kind: str = "application/json") -> tuple[int, bytes]:
        """Make a request, such as `GET /`, and return the status and the body of the answer."""
        head = f"{what} HTTP/1.1\r\n{self._head}"
        if body:
            head += f"Content-Type: {kind}\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        told = await self._reader.readuntil(b"\r\n\r\n")
        length = int(told.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(told[9:12]), await self._reader.readexactly(length)

    async def call(self, what: str, body: bytes = b"") -> Any:
        """Make a request to the API and return what it said; raise RuntimeError when it was refused."""
        status, told = await self.ask(what, body)
        if status >= 300:
            raise RuntimeError(f"{what}: {status} {told.decode(errors='replace')[:200]}")
        return json.loads(told)
