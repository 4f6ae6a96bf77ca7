"""What brings the work forward: timers in one process on SQLite, Procrastinate for many workers on PostgreSQL.

A job may be lost, repeated or late: it looks in the database for what is to be done, and each worker asks for
every job again each second. The queue only decides who does it, and makes it soon.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from app.core.errors import Unavailable

log = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]
TICK = 1.0  # seconds between two times that a job is asked for
STALLED = 30.0  # seconds without a sign of life after which a worker's jobs are given to others
SCHEMA = "broadsheet_jobs"
QUEUE = "broadsheet"
NAMES = ("advance", "hear", "round", "take_in", "look_up")  # what any one worker does for all
# One that waits already is enough; two who ask at once do not disturb each other.
_ASK = text(
    "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args) "
    "SELECT :queue, name, 0, name, name, '{}' FROM unnest(CAST(:names AS text[])) AS name ON CONFLICT DO NOTHING"
)


class Ear:
    """One loop's ear: it hears a call made before it listens, and being called in vain costs it one look."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def call(self) -> None:
        """Wake the loop."""
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Return when called, or after `seconds`."""
        if not self._event.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._event.wait()
        self._event.clear()


class Wake:
    """Calls every loop of this process: somebody may have been owed something."""

    def __init__(self) -> None:
        self._ears: list[Ear] = []

    def ear(self) -> Ear:
        """Return a new ear that hears every call from now on."""
        self._ears.append(Ear())
        return self._ears[-1]

    def call(self) -> None:
        """Wake every loop."""
        for ear in self._ears:
            ear.call()


async def ask(session: AsyncSession) -> None:
    """Ask for every job as the last act of a transaction: workers hear of it with the commit. Nothing on SQLite."""
    if session.get_bind().dialect.name == "postgresql":
        await session.flush()
        await session.execute(text(f"SET LOCAL search_path TO {SCHEMA}"))
        await session.execute(_ASK, {"queue": QUEUE, "names": list(NAMES)})


def engine(url: str, wake: Wake) -> "Timers | Queue":
    """Return what runs the jobs on this database."""
    return Queue(url) if make_url(url).get_backend_name() == "postgresql" else Timers(wake)


async def every(seconds: float, job: Job, stop: asyncio.Event, ear: Ear) -> None:
    """Do a job when called, and every so many seconds, until `stop` is set; a database that is away is only logged."""
    while not stop.is_set():
        try:
            await job()
        except Unavailable as error:
            log.error("%s", error.detail)
        await ear.wait(seconds)


class Timers:
    """Every job each second, and at once when this process owes something to somebody."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake

    async def run(self, jobs: Mapping[str, Job], stop: asyncio.Event) -> None:
        """Run the jobs until `stop` is set and each has come to its end."""
        await asyncio.gather(*(every(TICK, job, stop, self._wake.ear()) for job in jobs.values()))


class Queue:
    """Procrastinate's queue, in a schema of its own: of all workers one at a time does each job."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)

    async def run(self, jobs: Mapping[str, Job], stop: asyncio.Event) -> None:
        """Take the jobs that are asked for, and ask for them, until `stop` is set; then finish those begun."""
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        async with self._opened(jobs, failed) as app:
            working = asyncio.create_task(
                app.run_worker_async(
                    queues=[QUEUE], concurrency=len(jobs), install_signal_handlers=False, delete_jobs="always"
                )
            )
            reminding = asyncio.create_task(self._remind(app, list(jobs)))
            stopped = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait((working, reminding, stopped, failed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (working, reminding, stopped, failed):
                    each.cancel()
                ended = await asyncio.gather(working, reminding, stopped, failed, return_exceptions=True)
        if not stop.is_set():  # Procrastinate's worker leaves when the database does
            raise Unavailable(f"The queue of jobs stands still and begins anew ({_why(ended)}).")

    async def _remind(self, app: Any, names: Sequence[str]) -> None:
        """Ask for every job again and again, and clear away what dead workers had begun."""
        statement = _ASK.text.replace(":queue", "%(queue)s").replace(":names", "%(names)s")
        last_look = float("-inf")
        while True:
            await app.connector.execute_query_async(statement, queue=QUEUE, names=list(names))
            if (at := asyncio.get_running_loop().time()) - last_look >= STALLED:
                last_look = at
                for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED):
                    await self._clear_away(app, job)
            await asyncio.sleep(TICK)

    async def _clear_away(self, app: Any, job: Any) -> None:
        """End a job of a dead worker: it has been asked for again, and waits for this one's lock."""
        from procrastinate import exceptions, jobs

        with suppress(exceptions.ConnectorException):  # another worker was quicker
            await app.job_manager.finish_job(job, status=jobs.Status.FAILED, delete_job=True)

    @asynccontextmanager
    async def _opened(self, jobs: Mapping[str, Job], failed: asyncio.Future[None]) -> AsyncIterator[Any]:
        import procrastinate  # an extra: only PostgreSQL needs it

        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        options = {"options": f"-c search_path={SCHEMA}"}
        connector = _telling(failed)(conninfo=self._url, kwargs=options, min_size=1, max_size=4)
        app = procrastinate.App(connector=connector)
        for name, job in jobs.items():
            app.task(name=name, queue=QUEUE, lock=name, queueing_lock=name)(job)
        try:
            async with app.open_async():
                yield app
        except (OSError, procrastinate.exceptions.ConnectorException) as error:
            raise Unavailable("The database cannot be reached; try again in a moment.") from error


def _telling(failed: asyncio.Future[None]) -> Any:
    """Return a connector that also ends `failed` when the database cannot take a statement.

    Procrastinate lets that pass where it writes down the end of a job, which would then be under way for ever.
    """
    import procrastinate
    import psycopg

    class Connector(procrastinate.PsycopgConnector):
        async def execute_query_async(self, query: Any, **arguments: Any) -> None:
            try:
                await super().execute_query_async(query, **arguments)
            except procrastinate.exceptions.ConnectorException as error:
                if isinstance(error.__cause__, psycopg.OperationalError) and not failed.done():
                    failed.set_exception(error)
                raise

    return Connector


async def lay_down(connection: AsyncConnection) -> None:
    """Make the queue's tables for the Procrastinate that is installed; those of another version go, jobs and all."""
    from procrastinate.schema import SchemaManager

    wanted = f"Procrastinate {version('procrastinate')}"
    found = text("SELECT obj_description(to_regnamespace(:name), 'pg_namespace')")
    if (await connection.execute(found, {"name": SCHEMA})).scalar() == wanted:
        return
    driver = (await connection.get_raw_connection()).driver_connection
    if driver is None:
        raise RuntimeError("a connection without a driver")
    await connection.execute(text(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"))
    await connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
    await connection.execute(text(f"COMMENT ON SCHEMA {SCHEMA} IS '{wanted}'"))
    await connection.execute(text(f"SET LOCAL search_path TO {SCHEMA}, public"))
    await driver.execute(SchemaManager.get_schema())
    await connection.execute(text("SET LOCAL search_path TO DEFAULT"))


def _why(ended: Sequence[object]) -> str:
    faults = [type(one).__name__ for one in ended if isinstance(one, Exception)]
    return ", ".join(faults) or "it ended by itself"
