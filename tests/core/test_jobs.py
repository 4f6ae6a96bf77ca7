"""Jobs on PostgreSQL: one worker at a time does each, whoever asked, and nothing of it has to last."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from sqlalchemy import text

from app.core import jobs, schema
from app.core.db import Database
from app.core.errors import Unavailable

Work = Callable[[], Awaitable[None]]


class Diary:
    """What was done, and how many did it at once at most."""

    def __init__(self) -> None:
        self.done, self.doing, self.most = 0, 0, 0
        self.news = asyncio.Event()

    async def job(self) -> None:
        """Do something that takes a moment."""
        self.doing += 1
        self.most = max(self.most, self.doing)
        await asyncio.sleep(0.02)
        self.doing -= 1
        self.done += 1
        self.news.set()

    async def goes_on(self, times: int = 1) -> None:
        """Wait until it was done so many times more."""
        wanted = self.done + times
        async with asyncio.timeout(60):
            while self.done < wanted:
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def at_work(url: str, job: Work, workers: int = 1):  # type: ignore[no-untyped-def]
    """Run the first of the jobs with so many workers, each of which begins anew when it falls."""
    stop = asyncio.Event()

    async def run() -> None:
        while not stop.is_set():
            with suppress(Unavailable):
                await jobs.Queue(url).run({jobs.NAMES[0]: job}, stop)
            await asyncio.sleep(0.05)

    tasks = [asyncio.create_task(run()) for _ in range(workers)]
    try:
        yield tasks
    finally:
        stop.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)


@pytest.fixture
async def url(postgres_url: str) -> str:
    """Return a migrated database."""
    db = Database(postgres_url)
    await schema.upgrade(db)
    await db.close()
    return postgres_url


async def change(url: str, statement: str) -> None:
    """Run a statement in the database, alone."""
    db = Database(url)
    async with db.transaction() as session:
        await session.execute(text(statement))
    await db.close()


async def test_a_job_goes_on_and_on_and_never_twice_at_once(url: str) -> None:
    diary = Diary()
    async with at_work(url, diary.job, workers=3):
        await diary.goes_on(3)
    assert diary.most == 1
    assert diary.doing == 0  # what had begun came to its end before its worker did


async def test_who_asks_in_a_transaction_is_heard_with_its_commit(url: str) -> None:
    db = Database(url)
    waiting = text("SELECT count(*) FROM broadsheet_jobs.procrastinate_jobs WHERE status = 'todo'")
    with suppress(ZeroDivisionError):
        async with db.transaction() as session:
            await jobs.ask(session)
            raise ZeroDivisionError
    async with db.reading() as session:
        assert (await session.execute(waiting)).scalar() == 0
    for _ in range(2):
        async with db.transaction() as session:
            await jobs.ask(session)
    async with db.reading() as session:
        assert (await session.execute(waiting)).scalar() == len(jobs.NAMES)
    await db.close()


async def test_a_queue_whose_connections_are_cut_begins_anew(url: str) -> None:
    diary = Diary()
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with at_work(url, diary.job):
        await diary.goes_on()
        await change(url, cut)
        await diary.goes_on(2)


async def test_a_job_whose_end_could_not_be_written_down_is_done_again(url: str) -> None:
    await change(url, "CREATE SEQUENCE ended")
    await change(
        url,
        "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF nextval('public.ended') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; "
        "RETURN OLD; END $$",
    )
    job = "broadsheet_jobs.procrastinate_jobs"
    await change(url, f"CREATE TRIGGER cut BEFORE DELETE ON {job} FOR EACH ROW EXECUTE FUNCTION public.cut()")
    diary = Diary()
    async with at_work(url, diary.job):
        await diary.goes_on(3)


async def test_what_a_dead_worker_was_doing_is_done_by_another(url: str) -> None:
    await change(
        url,
        "WITH dead AS (INSERT INTO broadsheet_jobs.procrastinate_workers (last_heartbeat) "
        "VALUES (now() - interval '1 hour') RETURNING id) "
        "INSERT INTO broadsheet_jobs.procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, status, "
        f"worker_id) SELECT 'broadsheet', '{jobs.NAMES[0]}', '{jobs.NAMES[0]}', '{jobs.NAMES[0]}', '{{}}', 'doing', "
        "id FROM dead",
    )
    diary = Diary()
    async with at_work(url, diary.job):
        await diary.goes_on()


async def test_tables_of_another_version_of_the_queue_are_made_anew(url: str) -> None:
    await change(url, "COMMENT ON SCHEMA broadsheet_jobs IS 'Procrastinate 0.1'")
    await change(url, "DROP TABLE broadsheet_jobs.procrastinate_periodic_defers")
    db = Database(url)
    for _ in range(2):
        await schema.upgrade(db)
    async with db.transaction() as session:
        await session.execute(text("SELECT * FROM broadsheet_jobs.procrastinate_periodic_defers"))
    await db.close()
