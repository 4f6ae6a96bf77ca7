"""The schema goes up and down on both databases, is what the models say, and both run the ledger's main line."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, select, text

from app.core import schema
from app.core.db import Database, metadata, run
from app.core.errors import Misconfigured
from app.delivery import books, claims, ledger, mailings, workers
from app.delivery.claims import Settlement
from app.delivery.ledger import Audience
from app.delivery.models import Delivery, Letter, Mailing, State
from app.issues.models import Issue
from app.subscribers import audience
from app.subscribers.models import Subscriber, Subscription
from tests.delivery import steps

delivery = Delivery.__table__  # type: ignore[attr-defined]
NOW = datetime(2026, 10, 26, 7, 0, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database of either kind."""
    is_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/one.db" if is_file else request.getfixturevalue("postgres_url")
    one = Database(url)
    yield one
    await one.close()


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names()) - {"alembic_version", "sqlite_sequence"}


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True, "render_as_batch": True})
    return list(compare_metadata(context, metadata))


async def test_the_schema_goes_up_and_down_and_up_again(db: Database) -> None:
    assert await schema.upgrade(db) is None
    await schema.require_current(db)
    async with db.engine.begin() as connection:
        assert await connection.run_sync(tables) == set(metadata.tables)
        await connection.run_sync(lambda sync: command.downgrade(schema.configure(sync), "base"))
        assert await connection.run_sync(tables) == set()
    with pytest.raises(Misconfigured, match="run `broadsheet migrate`"):
        await schema.require_current(db)
    await schema.upgrade(db)
    assert await schema.upgrade(db) == schema.newest()
    await schema.require_current(db)


async def test_the_schema_is_what_the_models_say(db: Database) -> None:
    await schema.upgrade(db)
    async with db.engine.begin() as connection:
        assert await connection.run_sync(differences) == []


async def test_a_database_of_a_newer_version_is_refused_in_a_sentence_and_left_alone(db: Database) -> None:
    await schema.upgrade(db)
    async with db.engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for look in (schema.upgrade, schema.require_current):
        with pytest.raises(Misconfigured, match=r"made by a newer Broadsheet .*9999.*restore a backup"):
            await look(db)
    async with db.engine.begin() as connection:
        assert (
            await connection.execute(text("SELECT version_num FROM alembic_version"))
        ).scalar_one() == "9999"


async def owed(db: Database, readers: int) -> int:
    """Enlist so many readers of an edition in chunks of three, and return the mailing's id."""
    await schema.upgrade(db)
    async with db.transaction() as session:
        issue = Issue(edition_id=1, date=date(2026, 10, 26), created_at=NOW)
        session.add(issue)
        people = [
            Subscriber(address=f"{n}@example.com", address_key=f"{n}@example.com", address_hash=b"%d" % n,
                       language="zh", state="active", created_at=NOW)
            for n in range(readers)
        ]  # fmt: skip
        session.add_all(people)
        await session.flush()
        session.add_all(Subscription(subscriber_id=one.id or 0, edition_id=1, since=NOW) for one in people)
        mailing = Mailing(issue_id=issue.id or 0, state="scheduled", scheduled_at=NOW, max_lateness=60,
                          time_to_live=3600, created_at=NOW)  # fmt: skip
        session.add(mailing)
        await session.flush()
        number = mailing.id or 0
        assert await mailings.start(session, number, NOW, NOW)
    whole, rounds = False, 0
    whose = Audience(audience.choosers_of(1, NOW), partial(audience.between, audience.readers_of(1, NOW)))
    while not whole:
        async with db.transaction() as session:
            whole = await ledger.enlist(session, number, whose, NOW, chunk=3)
            rounds += 1
    assert rounds == -(-readers // 3) + 1
    async with db.transaction() as session:
        await mailings.complete(session, number)
    return number


async def balance(db: Database, mailing_id: int) -> dict[str, int]:
    """Assert that tallies and rows agree, and return the states that any row is in."""
    async with db.reading() as session:
        counts = await books.counts(session, mailing_id)
        assert counts == await books.recount(session, mailing_id)
        assert (await mailings.get(session, mailing_id)).audience == sum(counts.values())
    return {state: many for state, many in counts.items() if many}


async def test_the_ledger_s_main_line_runs(db: Database) -> None:
    number = await owed(db, 10)
    assert await balance(db, number) == {"owed": 10}
    async with db.transaction() as session:
        worker = await workers.register(session, "a-0", NOW)
        session.add(
            Letter(
                kind="confirm", address="x@example.com", language="zh", data={}, created_at=NOW, due_at=NOW
            )
        )
    async with db.transaction() as session:
        who = audience.addressees(1)
        taken = await run(session, steps.claim, worker, (number, ""), who, 8, NOW)
        letters = await run(session, claims.claim_letters, worker, 5, NOW)
    assert (len(taken), len(letters)) == (8, 1)
    assert await balance(db, number) == {"owed": 2, "in_flight": 8}
    outcomes = [State.SENT, State.SENT, State.DEFERRED, State.REFUSED, State.FAILED, State.UNCERTAIN]
    done = [
        Settlement(claim, state, due_at=NOW, done_at=NOW, reply="好", attempts=1)
        for claim, state in zip([*letters, *taken], [State.SENT, *outcomes], strict=False)
    ]
    for _ in range(2):
        async with db.transaction() as session:
            await run(session, steps.settle, worker, done)
    assert await balance(db, number) == {
        "owed": 2, "in_flight": 2, "sent": 2, "deferred": 1, "refused": 1, "failed": 1, "uncertain": 1,
    }  # fmt: skip
    async with db.transaction() as session:
        held = [taken[6].key, letters[0].key]
        assert await ledger.free_unknown(session, worker, held, NOW) == 1
        assert await ledger.free(session, [worker], NOW) == 1
    async with db.transaction() as session:
        assert await ledger.withdraw(session, taken[6].subscriber_id or 0, None, NOW, "the reader left") == 1
        await mailings.pause(session, number, "by an editor")
        await mailings.resume(session, number, NOW)
        await mailings.cancel(session, number, NOW)
    assert (await balance(db, number))["withdrawn"] == 5
    async with db.transaction() as session:
        await mailings.reopen(session, number, NOW, NOW)
    assert (await balance(db, number))["owed"] == 4
    later = NOW + timedelta(hours=2)
    async with db.transaction() as session:
        await ledger.expire(session, later)
        await ledger.expire_letters(session, later, later)
        assert await mailings.finish(session, later) == [number]
    assert await balance(db, number) == {
        "sent": 2, "refused": 1, "failed": 1, "uncertain": 1, "withdrawn": 1, "expired": 4,
    }  # fmt: skip


async def test_two_workers_claim_at_once_and_nobody_twice(db: Database) -> None:
    number = await owed(db, 9)
    who = audience.addressees(1)
    if db.is_sqlite:  # one writer at a time
        async with db.transaction() as session:
            first = await run(session, steps.claim, 1, (number, ""), who, 5, NOW)
        async with db.transaction() as session:
            second = await run(session, steps.claim, 2, (number, ""), who, 5, NOW)
    else:
        async with db.transaction() as one, db.transaction() as other:
            first = await run(one, steps.claim, 1, (number, ""), who, 5, NOW)
            second = await run(other, steps.claim, 2, (number, ""), who, 5, NOW)
    assert len(first) + len(second) == 9
    assert not {claim.key for claim in first} & {claim.key for claim in second}
    assert await balance(db, number) == {"in_flight": 9}
    async with db.reading() as session:
        holders = (await session.execute(select(delivery.c.worker_id))).scalars().all()
    assert sorted(map(int, holders)) == [1] * 5 + [2] * 4
