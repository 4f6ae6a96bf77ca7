"""What editors and workers do to one mailing at the same moment, and the indexes that keep it cheap."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Select, select, update

from app.core import schema
from app.core.db import Database, run, stored
from app.delivery import books, claims, ledger, mailings
from app.delivery.models import Delivery, Mailing, State, is_in_flight, is_waiting
from app.issues.models import Issue
from tests.delivery import steps

delivery = Delivery.__table__  # type: ignore[attr-defined]
NOW = datetime(2026, 10, 26, 7, 0, tzinfo=UTC)


async def mailing_of(db: Database, many: int, state: str) -> int:
    """Make a mailing whose deliveries are all in one state, with its books, and return its id."""
    await schema.upgrade(db)
    async with db.transaction() as session:
        issue = Issue(edition_id=1, date=date(2026, 10, 26), created_at=NOW)
        session.add(issue)
        await session.flush()
        one = Mailing(
            issue_id=issue.id or 0, state="sending", scheduled_at=NOW, cutoff=NOW, started_at=NOW, enlisted_at=NOW,
            expires_at=NOW + timedelta(hours=20), max_lateness=60, time_to_live=72_000, created_at=NOW, audience=many,
        )  # fmt: skip
        session.add(one)
        await session.flush()
        rows = [
            {"issue_id": issue.id, "subscriber_id": n, "mailing_id": one.id, "state": state, "due_at": NOW,
             "attempts": 1, "provider": ""}
            for n in range(1, many + 1)
        ]  # fmt: skip
        await session.execute(delivery.insert(), rows)
        await books.correct(session, one.id or 0, {state: many})
    return one.id or 0


@pytest.fixture
async def postgres(postgres_url: str) -> AsyncIterator[Database]:
    """A database that others write to meanwhile."""
    one = Database(postgres_url)
    yield one
    await one.close()


async def test_a_mailing_that_is_being_retried_cannot_finish_with_open_rows(postgres: Database) -> None:
    number = await mailing_of(postgres, 3, "failed")
    owed_again, may_commit = asyncio.Event(), asyncio.Event()

    async def retry() -> None:
        async with postgres.transaction() as session:
            await mailings.retry(session, number, NOW)
            owed_again.set()
            await may_commit.wait()

    async def finish() -> list[int]:
        async with postgres.transaction() as session:
            return await mailings.finish(session, NOW)

    retrying = asyncio.create_task(retry())
    await owed_again.wait()
    finishing = asyncio.create_task(finish())
    await asyncio.wait([finishing], timeout=0.3)  # it waits for the retry, which holds the mailing
    may_commit.set()
    await retrying
    assert await finishing == []
    async with postgres.reading() as session:
        assert (await mailings.get(session, number)).state == "sending"


async def test_a_cancel_counts_what_it_took_back_while_outcomes_arrive(postgres: Database) -> None:
    number, many = await mailing_of(postgres, 400, "in_flight"), 400

    async def defer(n: int) -> None:
        async with postgres.transaction() as session:
            its = (delivery.c.mailing_id == number, delivery.c.subscriber_id == n)
            await session.execute(update(delivery).where(*its).values(state="deferred"))
            await run(session, books.count, 1, books.Moves({(number, "in_flight", "deferred"): 1}))  # type: ignore[dict-item]

    async def cancel() -> None:
        async with postgres.transaction() as session:
            await mailings.withdraw_cancelled(session, NOW)

    async with postgres.transaction() as session:
        await session.execute(update(Mailing).values(state="cancelled"))
    for start in range(1, many, 40):
        await asyncio.gather(*(defer(n) for n in range(start, start + 8)), cancel())
    async with postgres.reading() as session:
        assert await books.counts(session, number) == await books.recount(session, number)


async def test_a_claim_and_a_finish_use_the_partial_indexes(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/plan.db")
    number = await mailing_of(db, 5, "sent")
    due = claims._due(is_postgresql=False).params(mailing=number, provider="qq", limit=10, now=NOW)
    flying = select(delivery.c.issue_id).where(is_in_flight(delivery), delivery.c.worker_id == 1)
    waiting = select(delivery.c.issue_id).where(delivery.c.mailing_id == number, is_waiting(delivery))
    theirs = ledger.with_due(number, NOW)
    for statement, index in ((due, "due"), (flying, "claimed"), (waiting, "due"), (theirs, "due")):
        plan = await db.work(partial(plan_of, statement))
        assert f"USING INDEX {index} " in plan + " "
        assert "TEMP B-TREE" not in plan
        assert "SCAN delivery" not in plan
    await db.close()


def plan_of(statement: Select[*tuple[Any, ...]], connection: Connection) -> str:
    """Return how SQLite goes about a query."""
    made = statement.compile(connection).construct_expanded_state()
    values = [made.parameters[name] for name in made.positiontup or ()]
    bound = tuple(stored(value) if isinstance(value, datetime) else value for value in values)
    plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {made.statement}", bound)
    return " ".join(str(row[3]) for row in plan)


async def test_twelve_hundred_outcomes_are_recorded_at_once(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/many.db")
    number = await mailing_of(db, 1_200, "in_flight")
    async with db.transaction() as session:
        await session.execute(update(delivery).values(worker_id=7))
        taken = [claims.Claim((1, n), number, n, "a@example.com", "zh", 1) for n in range(1, 1_201)]
        done = [claims.Settlement(one, State.SENT, due_at=NOW, done_at=NOW) for one in taken]
        await run(session, steps.settle, 7, done)
        assert (await books.counts(session, number))["sent"] == 1_200
        assert await ledger.expire(session, NOW) == 0
    await db.close()
