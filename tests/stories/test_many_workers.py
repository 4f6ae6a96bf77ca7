"""Several workers on one PostgreSQL: each takes its share, each reader gets one mail, and the books balance."""

import asyncio
from pathlib import Path

from sqlalchemy import func, select

from app.core.db import Database
from app.core.jobs import Wake
from app.delivery.models import Delivery, State
from app.mail.relay import Relay
from app.worker import Worker
from tests.crowd import accounts, crowd
from tests.sink import Sink, at, delay
from tests.world import QUICK, house_at

READERS = 120


async def test_three_workers_share_a_mailing_and_nobody_gets_it_twice(
    tmp_path: Path, empty_database: Path, sink: Sink, postgres_url: str
) -> None:
    sink.script = at("dot", delay(0.05))
    async with house_at(tmp_path, empty_database, sink, database_url=postgres_url) as world:
        readers = await crowd(world, READERS)
        stop, tasks, databases = asyncio.Event(), [], []
        for number in range(3):
            own = Database(postgres_url)
            databases.append(own)
            worker = Worker(
                own, world.house.composer, Wake(), lambda url: Relay(url, "test.example", timeouts=QUICK), world.clock
            )  # fmt: skip
            tasks.append(asyncio.create_task(worker.run(stop, f"test-{number}")))
        mailing = await world.send(await world.issue())
        await world.until(mailing, seconds=60)
        stop.set()
        await asyncio.gather(*tasks)
        for own in databases:
            await own.close()
        assert await accounts(world, mailing, readers) == (0, 0)
        async with world.db.reading() as session:
            shares = select(func.count(func.distinct(Delivery.worker_id))).where(Delivery.state == State.SENT)  # type: ignore[arg-type]
            assert (await session.execute(shares)).scalar_one() > 1
