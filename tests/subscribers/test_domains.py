"""Whose mailboxes readers have: known by the domain at once, by its mail exchangers a little later, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from app.core import schema
from app.core.db import Database
from app.flows.exchanges import Exchanges
from app.mail import exchangers
from app.subscribers import domains
from app.subscribers.models import Subscriber
from tests.crowd import gather, rows
from tests.sink import Sink
from tests.world import START, World, house_at

GOOGLE = ("aspmx.l.google.com", "alt1.aspmx.l.google.com")


@pytest.fixture(params=["sqlite", "postgresql"])
async def house(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path, sink: Sink
) -> AsyncIterator[World]:
    """A house on a database of each kind."""
    given = {}
    if request.param == "postgresql":
        given["database_url"] = request.getfixturevalue("postgres_url")
        db = Database(given["database_url"])
        await schema.upgrade(db)
        await db.close()
    async with house_at(tmp_path, empty_database, sink, **given) as one:
        yield one


class Resolver:
    """A DNS that knows some domains, and is asked about what it does not know in vain."""

    def __init__(self, **known: Sequence[str]) -> None:
        self.known = {name.replace("_", "."): hosts for name, hosts in known.items()}
        self.asked: list[str] = []

    async def __call__(self, domain: str) -> Sequence[str]:
        """Return the exchangers of a domain."""
        self.asked.append(domain)
        if domain not in self.known:
            raise OSError("no answer")
        return self.known[domain]


async def settled(one: Exchanges, now: Callable[[], object]) -> None:
    while await one.work(now()):  # type: ignore[arg-type]
        pass


async def provider_of(world: World, address: str) -> str:
    """Return the provider that the next snapshot finds for a reader."""
    world.clock.forward(hours=30)
    day = (world.clock() - START).days
    issue = await world.issue(day=START.date() + timedelta(days=day))
    mailing = await world.send(issue, force=True)
    await world.deliver(mailing)
    who = (await world.api.get("/subscribers", params={"q": address})).json()["items"][0]["id"]
    return next(str(one.provider) for one in await rows(world, mailing) if one.subscriber_id == who)


async def test_a_known_domain_is_named_at_once_however_the_reader_comes(house: World) -> None:
    await house.reader("a@Foxmail.com")
    await house.api.post("/subscribers", json={"email": "b@hotmail.co.uk", "editions": ["daily"]})
    content = b"email\nc@yeah.net\nd@example.com\n"
    number = (await house.api.post("/subscribers/import?editions=daily", content=content)).json()["id"]
    async with house.working(), asyncio.timeout(20):
        while (await house.api.get(f"/imports/{number}")).json()["state"] == "running":
            await asyncio.sleep(0.02)
    async with house.db.reading() as session:
        found = await session.execute(text("SELECT address, provider FROM subscriber ORDER BY address"))
        told = {"a@Foxmail.com": "qq", "b@hotmail.co.uk": "outlook", "c@yeah.net": "163", "d@example.com": ""}
        assert dict(found.all()) == told


async def test_another_domain_is_known_by_its_exchangers_from_the_next_snapshot_on(house: World) -> None:
    dns = Resolver(firm_example=GOOGLE, own_example=["mail.own.example"])
    for address in ("a@firm.example", "b@own.example", "c@qq.com"):
        await house.reader(address)
    await settled(Exchanges(house.db, dns), house.clock)
    assert sorted(dns.asked) == ["firm.example", "own.example"]
    assert await provider_of(house, "a@firm.example") == "gmail"


async def test_an_answer_is_believed_for_a_month_and_none_for_a_day(house: World) -> None:
    dns = Resolver(firm_example=GOOGLE)
    for address in ("a@firm.example", "b@silent.example"):
        await house.reader(address)
    one = Exchanges(house.db, dns)
    await settled(one, house.clock)
    await settled(one, house.clock)
    assert sorted(dns.asked) == ["firm.example", "silent.example"]
    house.clock.forward(days=1, minutes=1)
    await settled(one, house.clock)
    assert dns.asked[2:] == ["silent.example"]
    dns.known = {"silent.example": ["mx.qiye.163.com"]}
    house.clock.forward(days=30)
    await settled(one, house.clock)
    assert sorted(dns.asked[3:]) == ["firm.example", "silent.example"]
    async with house.db.reading() as session:
        found = await session.execute(text("SELECT domain, provider FROM mail_domain ORDER BY domain"))
        # Nobody could tell of the first any more, so what was known of it stays.
        assert [tuple(row) for row in found] == [("firm.example", "gmail"), ("silent.example", "163")]


async def test_few_are_looked_up_at_once_and_no_domain_waits_for_ever(house: World) -> None:
    await gather(house, [f"a@d{number}.example" for number in range(50)])
    dns = Resolver()
    one = Exchanges(house.db, dns)
    assert await one.work(house.clock())
    assert len(dns.asked) == 20
    await settled(one, house.clock)
    assert len(set(dns.asked)) == len(dns.asked) == 50


async def test_a_domain_that_no_reader_has_any_more_is_forgotten(house: World) -> None:
    who = await house.reader("a@smith.example")
    one = Exchanges(house.db, Resolver())
    await settled(one, house.clock)
    async with house.db.transaction() as session:
        await session.execute(text("DELETE FROM subscription"))
        await session.delete(await session.get(Subscriber, who))
    house.clock.forward(minutes=11)
    await settled(one, house.clock)
    async with house.db.reading() as session:
        assert (await session.execute(text("SELECT count(*) FROM mail_domain"))).scalar_one() == 0


async def test_a_reader_who_moves_to_another_domain_has_that_one_s_provider(house: World) -> None:
    async with house.db.transaction() as session:
        await domains.put_down(session, ["firm.example"], house.clock())
        await domains.note(session, {"firm.example": "office365"}, house.clock())
    who = await house.reader("a@qq.com")
    async with house.db.transaction() as session:
        one = await session.get(Subscriber, who)
        assert one is not None
        one.address, one.address_key, one.provider = "a@firm.example", "a@firm.example", ""
    assert await provider_of(house, "a@firm.example") == "office365"


async def test_without_a_dns_nothing_fails_and_mail_goes_out(world: World) -> None:
    await gather(world, ["a@nowhere-known.net"])
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)  # whose sockets reach this machine only
    assert world.sink.recipients() == ["a@nowhere-known.net"]


@pytest.mark.parametrize("domain", ["example.com", "news.example", "x.test", "localhost", "a.invalid"])
async def test_names_that_are_nobody_s_are_not_looked_up(domain: str) -> None:
    assert await exchangers.exchangers(domain) == ()


async def test_readers_who_were_here_before_are_named_by_the_migration(house: World) -> None:
    async with house.db.engine.begin() as connection:
        await connection.run_sync(lambda sync: command.downgrade(schema.configure(sync), "0008"))
    await gather(house, ["a@qq.com", "b@126.com", "c@example.com"])
    await schema.upgrade(house.db)
    async with house.db.reading() as session:
        found = await session.execute(text("SELECT provider FROM subscriber ORDER BY address_key"))
        assert list(found.scalars()) == ["qq", "163", ""]
