"""A relay with a quota takes so many mails a day and says when it has had them; one that warms up, few at first."""

import asyncio
from pathlib import Path

import pytest

from tests.crowd import accounts, crowd, rows
from tests.sink import Sink
from tests.stories.test_provider_pace import readers
from tests.world import World, house_at


def relay(sink: Sink, options: str) -> str:
    return f"smtp+plain://127.0.0.1:{sink.port}?connections=4&{options}"


async def at_rest(world: World, mailing_id: int, sent: int) -> None:
    """Wait until so many are sent, nothing is in the air, and a second look has sent no more."""
    calm = 0
    async with asyncio.timeout(60):
        while calm < 15:
            shown = await world.mailing(mailing_id)
            calm = calm + 1 if (shown["sent"], shown["in_flight"]) == (sent, 0) else 0
            await asyncio.sleep(0.1)


async def next_day(world: World) -> None:
    world.clock.forward(days=1)
    world.house.wake.call()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_relay_takes_its_quota_says_so_and_goes_on_the_next_day(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path, sink: Sink, kind: str
) -> None:
    given = {"relays": relay(sink, "quota=10")}
    if kind == "postgresql":
        given["database_url"] = request.getfixturevalue("postgres_url")
    async with house_at(tmp_path, empty_database, sink, **given) as world:
        people = await crowd(world, 23, "weekly")  # whose issue lives for three days
        mailing = await world.send(await world.issue("weekly"))
        async with world.working(), asyncio.timeout(60):
            for day in (1, 2):
                while "has had its 10 mails of today" not in (
                    (await world.mailing(mailing))["problem"] or ""
                ):
                    await asyncio.sleep(0.02)
                await at_rest(world, mailing, 10 * day)
                shown = (await world.web.get("/readyz")).json()["relays"][0]
                assert shown["state"] == "failing"
                assert "00:00 UTC" in shown["problem"]
                await next_day(world)
            shown = await world.until(mailing)
        assert shown["problem"] is None
        assert await accounts(world, mailing, people) == (0, 0)
        assert {row.attempts for row in await rows(world, mailing)} == {1}


async def test_a_restart_forgets_no_mail_of_the_day(tmp_path: Path, empty_database: Path, sink: Sink) -> None:
    async with house_at(tmp_path, empty_database, sink, relays=relay(sink, "quota=8")) as world:
        await crowd(world, 6)
        await world.deliver(await world.send(await world.issue()))
        await crowd(world, 9, "weekly", "w")
        mailing = await world.send(await world.issue("weekly"))
        async with world.working(), asyncio.timeout(30):
            while "has had its 8 mails" not in ((await world.mailing(mailing))["problem"] or ""):
                await asyncio.sleep(0.02)
        # A worker takes them by the handful and may stop with some left: never more go out, but fewer may.
        assert 6 <= len(sink.mails) <= 8


async def test_another_relay_takes_over_when_one_has_had_its_day(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    with Sink() as other:
        relays = f"{relay(other, 'quota=5&weight=3')} {relay(sink, 'weight=1')}"
        async with house_at(tmp_path, empty_database, sink, relays=relays) as world:
            people = await crowd(world, 60)
            mailing = await world.send(await world.issue())
            await world.deliver(mailing)
            assert (len(other.mails), len(sink.mails)) == (5, 55)
            sink.mails += other.mails
            assert await accounts(world, mailing, people) == (0, 0)


@pytest.mark.parametrize("since", ["yes", "2026-10-26"])
async def test_a_relay_that_warms_up_takes_twice_as_many_for_a_provider_each_day(
    tmp_path: Path, empty_database: Path, sink: Sink, since: str
) -> None:
    async with house_at(tmp_path, empty_database, sink, relays=relay(sink, f"warmup={since}")) as world:
        people = await readers(world, 160, "qq.com", edition="weekly")  # whose issue lives for three days
        others = await crowd(world, 60, "weekly")
        mailing = await world.send(await world.issue("weekly"))
        async with world.working():
            await at_rest(world, mailing, 50 + 60)
            assert sum(mail.recipient.endswith("@qq.com") for mail in sink.mails) == 50
            shown = (await world.web.get("/readyz")).json()["relays"][0]
            told = {one["provider"]: (one["state"], one["problem"]) for one in shown["providers"]}
            assert told["qq"] == ("full", "It has had its 50 mails of today: this relay warms up.")
            await next_day(world)
            await at_rest(world, mailing, 150 + 60)
            await next_day(world)
            await world.until(mailing)
        assert await accounts(world, mailing, people + others) == (0, 0)
