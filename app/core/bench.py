"""The thread in which steps of work are done on a database, one after the other, on a connection that stays open."""

import asyncio
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import InterfaceError, OperationalError

from app.core.errors import Unavailable
from app.core.outage import told_plainly

Found = TypeVar("Found")
Step = Callable[[Connection], Any]


class Bench:
    """One thread and one connection. What goes wrong with the database is raised as Unavailable."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "database")
        self._connection: Connection | None = None
        self._wire: socket.socket | None = None  # to a server; a file has none
        self._steps: list[tuple[Step, asyncio.Future[Any]]] = []

    async def run(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step in a transaction and return what it returned; who is cancelled leaves when it has ended."""
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._run, step)
        with told_plainly():
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:
                self._hang_up()
                await asyncio.wait([done])
                raise

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

    def _run(self, step: Callable[[Connection], Found]) -> Found:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._wire = _wire(self._connection)
        try:
            with self._connection.begin():
                return step(self._connection)
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
