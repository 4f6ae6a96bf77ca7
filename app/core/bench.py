"""Where steps of work are done on a database, one after the other, on a connection that stays open."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Transaction
from sqlalchemy.exc import InterfaceError, OperationalError

from app.core.errors import Unavailable
from app.core.outage import told_plainly

Found = TypeVar("Found")
Step = Callable[[Connection], Any]

PATIENCE = 10_000  # milliseconds for which a writer waits for another process that writes to the file


class Bench:
    """One connection and one thread for it. What goes wrong with the database is raised as Unavailable."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "database")
        self._connection: Connection | None = None
        self._wire: socket.socket | None = None  # to a server; a file has none
        self._looking = asyncio.Lock()
        self._steps: list[tuple[Step, asyncio.Future[Any]]] = []

    async def run(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step in a transaction and return what it returned; who is cancelled leaves when it has ended."""
        return await self._in_thread(lambda: self._run(step))

    async def run_here(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step of a few quick statements on a file as `run` does, but on the loop, where nobody else writes.

        The thread would have to wait for the interpreter at every statement. What waits for the disk is left to it.
        """
        begun = self._begun_at_once()
        if begun is None:
            return await self.run(step)
        with told_plainly(), self._watched():
            try:
                found = step(begun.connection)
            except BaseException:
                begun.rollback()
                raise
        await self._in_thread(lambda: self._commit(begun))
        return found

    async def look(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step that only reads a file, by a few quick statements: on the loop, where nobody else looks."""
        async with self._looking:
            begun = self._begun_at_once()
            if begun is None:
                return await self.run(step)
            with told_plainly(), self._watched(), begun:
                return step(begun.connection)

    def put(self, step: Step) -> asyncio.Future[Any]:
        """Put a step down for the next `run_together`; the future is what it returned or raised."""
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._steps.append((step, told))
        return told

    async def run_together(self) -> None:
        """Run the steps that were put down in one transaction; each is undone alone."""
        those, self._steps = self._steps, []
        try:
            ends = await self.run(lambda connection: [_end_of(connection, step) for step, _ in those])
        except BaseException as error:
            lost = error if isinstance(error, Exception) else Unavailable("The program ends; try again.")
            ends = [lost] * len(those)
            if lost is not error:
                raise
        finally:
            for (_, told), end in zip(those, ends, strict=True):
                told.set_exception(end) if isinstance(end, Exception) else told.set_result(end)

    def close(self) -> None:
        """Give the connection back; once more does no harm."""
        self._thread.shutdown()
        self._let_go()
        self._engine.dispose()

    async def _in_thread(self, call: Callable[[], Found]) -> Found:
        done = asyncio.get_running_loop().run_in_executor(self._thread, call)
        with told_plainly():
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:
                self._hang_up()
                await asyncio.wait([done])
                raise

    def _run(self, step: Callable[[Connection], Found]) -> Found:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._wire = _wire(self._connection)
        with self._watched(), self._connection.begin():
            return step(self._connection)

    def _begun_at_once(self) -> Transaction | None:
        """Begin a transaction on a file; None where that cannot be had at once."""
        if self._connection is None:
            return None
        driver: Any = self._connection.connection.driver_connection
        driver.execute("PRAGMA busy_timeout=0")
        try:
            return self._connection.begin()
        except OperationalError:  # another process writes, or it is worse; the thread will find out
            return None
        finally:
            driver.execute(f"PRAGMA busy_timeout={PATIENCE}")

    def _commit(self, begun: Transaction) -> None:
        with self._watched():
            try:
                begun.commit()
            except BaseException:
                begun.rollback()
                raise

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Give a connection up that does not work any more."""
        try:
            yield
        except (OperationalError, InterfaceError):
            self._let_go()
            raise

    def _let_go(self) -> None:
        if self._connection is not None:
            lost, self._connection = self._connection, None
            lost.invalidate()
            lost.close()
        if self._wire is not None:
            self._wire.close()

    def _hang_up(self) -> None:
        """Wait no longer for a server that may never answer; a step on a file comes to its end by itself."""
        if self._wire is not None:
            with suppress(OSError):  # it is gone already
                self._wire.shutdown(socket.SHUT_RDWR)


def _wire(connection: Connection) -> socket.socket | None:
    """Return a second handle on a connection's socket, which another thread may use."""
    driver: Any = connection.connection.driver_connection
    return socket.socket(fileno=os.dup(driver.fileno())) if hasattr(driver, "fileno") else None


def _end_of(connection: Connection, step: Step) -> Any:
    """Run a step in a savepoint; return what it returned or raised, and raise when the transaction is lost."""
    connection.exec_driver_sql("SAVEPOINT step")
    try:
        return step(connection)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        connection.exec_driver_sql("ROLLBACK TO step")
        return error
    finally:
        connection.exec_driver_sql("RELEASE step")
