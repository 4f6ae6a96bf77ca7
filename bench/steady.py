"""Asks at steady times, in a thread of its own, and notes how long each answer took."""

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from bench.web import Client


@dataclass(frozen=True, slots=True)
class Answer:
    """When a request was sent (time.perf_counter), the milliseconds to its answer, and what that told."""

    at: float
    took: float
    told: Any


class Steady:
    """Makes so many requests a second while the block runs, however long an answer takes; `answers` grows.

    A request has a connection to itself, one that was opened before if there is one. What goes wrong with one is
    raised at the end of the block.
    """

    def __init__(
        self, port: int, a_second: float, ask: Callable[[Client], Awaitable[Any]], key: str = ""
    ) -> None:
        self.answers: list[Answer] = []
        self._port, self._key, self._ask, self._pause = port, key, ask, 1 / a_second
        self._idle: list[Client] = []
        self._over, self._fault = threading.Event(), list[Exception]()
        self._thread = threading.Thread(target=self._run, name="steady", daemon=True)

    def __enter__(self) -> "Steady":
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the last answer."""
        self._over.set()
        self._thread.join()
        if self._fault and error is None:
            raise self._fault[0]

    def _run(self) -> None:
        try:
            asyncio.run(self._go())
        except Exception as error:
            self._fault.append(error)

    async def _go(self) -> None:
        began, asked = time.perf_counter(), list[asyncio.Task[None]]()
        for number in itertools.count():
            await asyncio.sleep(began + number * self._pause - time.perf_counter())
            if self._over.is_set():
                break
            asked.append(asyncio.create_task(self._one()))
        await asyncio.gather(*asked)
        for client in self._idle:
            client.close()

    async def _one(self) -> None:
        at = time.perf_counter()
        while self._idle and not self._idle[-1].is_open:
            self._idle.pop().close()
        client = self._idle.pop() if self._idle else await Client(self._port, self._key).open()
        told = await self._ask(client)
        self.answers.append(Answer(at, 1000 * (time.perf_counter() - at), told))
        self._idle.append(client)
