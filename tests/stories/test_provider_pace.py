"""A provider that is told to be overrun is slowed, then left alone, then tried with one mail; nobody else waits."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.core.db import Database
from app.core.jobs import Wake
from app.mail.relay import Relay
from app.worker import Worker
from tests.crowd import accounts, due_now, gather, rows
from tests.sink import Action, Event, Script, Sink, Stage, reply
from tests.world import QUICK, World, house_at

TOO_FAST = "421 4.7.28 Our system has detected an unusual rate of mail; try again later"
FREQUENCY = "550 Ip frequency limited"
REPUTATION = "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to user complaints"


def answers(domain: str, words: str, stage: Stage = "rcpt", after: int = 0) -> Script:
    """A script that answers so to a domain's readers, once so many of them have had their mail."""
    seen: set[str] = set()

    def script(event: Event) -> Action | None:
        address = event.recipient or ""
        if event.stage != stage or not address.endswith(f"@{domain}"):
            return None
        seen.add(address)
        return reply(words) if len(seen) > after else None

    return script


async def lanes(world: World) -> dict[str, dict[str, Any]]:
    """Return what /readyz says of each provider whose mails the first relay holds back."""
    shown = (await world.web.get("/readyz")).json()["relays"][0]
    return {one["provider"]: one for one in shown["providers"]}


async def until(
    world: World, is_so: Callable[[dict[str, dict[str, Any]]], bool], seconds: float = 30
) -> None:
    async with asyncio.timeout(seconds):
        while not is_so(await lanes(world)):
            await asyncio.sleep(0.02)


async def to_the_end(world: World, mailing_id: int) -> None:
    """Turn the clock whenever nothing moves, be it that mails wait for a later try or for a provider's lane."""
    async with asyncio.timeout(60):
        while (shown := await world.mailing(mailing_id))["state"] != "finished":
            if not shown["in_flight"] and (await lanes(world) or not await due_now(world, mailing_id)):
                world.clock.forward(minutes=16)
                world.house.wake.call()
            await asyncio.sleep(0.1)


async def readers(world: World, many: int, *domains: str, edition: str = "daily") -> list[str]:
    """Add so many readers of each domain, by the door that names their providers."""
    addresses = [f"r{number}@{domain}" for number in range(many) for domain in domains]
    for address in addresses:
        await world.reader(address, edition)
    return addresses


async def test_a_provider_that_is_overrun_is_slowed_and_paused_while_all_others_get_theirs(
    world: World,
) -> None:
    people = await readers(world, 40, "qq.com", "gmail.com", "example.com")
    world.sink.script = answers("qq.com", FREQUENCY, after=5)
    mailing = await world.send(await world.issue())
    async with world.working():
        await until(world, lambda told: told.get("qq", {}).get("state") == "paused")
        async with asyncio.timeout(20):
            while len(world.sink.mails) < 85:
                await asyncio.sleep(0.02)
        tried = sum(line.endswith("@qq.com>") for _, line in world.sink.commands)
        assert tried < 40
        told = (await lanes(world))["qq"]
        assert "550 Ip frequency limited" in told["problem"]
        assert list(await lanes(world)) == ["qq"]
        waits = next(
            one for one in await rows(world, mailing) if one.provider == "qq" and one.state == "owed"
        )
        who = people[waits.subscriber_id - 1]
        answer = (await world.api.post(f"/issues/{waits.issue_id}/why", json={"address": who})).json()
        assert "leaves qq alone until" in answer["sentence"]
        world.sink.script = None
        await to_the_end(world, mailing)
    assert await accounts(world, mailing, people) == (0, 0)


async def test_a_421_to_a_provider_s_reader_says_nothing_of_the_relay(world: World) -> None:
    people = await readers(world, 10, "gmail.com", "example.com")
    world.sink.script = answers("gmail.com", TOO_FAST)
    mailing = await world.send(await world.issue())
    async with world.working():
        async with asyncio.timeout(20):
            while len(world.sink.mails) < 10:
                await asyncio.sleep(0.02)
        await until(world, lambda told: "gmail" in told)
        shown = (await world.web.get("/readyz")).json()["relays"][0]
        assert (shown["state"], shown["problem"]) == ("ready", None)
        asked = [one for one in await rows(world, mailing) if one.provider == "gmail" and one.code]
        assert {(one.state, one.code) for one in asked} == {("deferred", 421)}
        world.sink.script = None
        await to_the_end(world, mailing)
    assert await accounts(world, mailing, people) == (0, 0)


async def test_a_pause_ends_with_one_mail_and_doubles_when_that_is_refused_too(world: World) -> None:
    people = await readers(world, 12, "yahoo.com")
    world.sink.script = answers("yahoo.com", REPUTATION)
    mailing = await world.send(await world.issue())
    async with world.working():
        await until(world, lambda told: told.get("yahoo", {}).get("state") == "paused")
        for minutes in (16, 31):
            world.sink.commands.clear()
            before = (await lanes(world))["yahoo"]["until"]
            world.clock.forward(minutes=minutes)
            world.house.wake.call()
            async with asyncio.timeout(20):
                while (one := (await lanes(world))["yahoo"])["until"] <= before or one["state"] != "paused":
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
            assert world.sink.verbs().count("RCPT") == 1
        world.sink.script = None
        world.sink.commands.clear()
        world.clock.forward(minutes=61)
        world.house.wake.call()
        await until(world, lambda told: told.get("yahoo", {}).get("state") == "slowed")
        assert (await lanes(world))["yahoo"]["rate"] > 0
        world.clock.forward(minutes=30)
        world.house.wake.call()
        await until(world, lambda told: told == {})
        await to_the_end(world, mailing)
    assert await accounts(world, mailing, people) == (0, 0)


async def test_a_provider_closed_to_one_relay_goes_by_the_other(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    with Sink(script=answers("qq.com", FREQUENCY)) as other:
        relays = " ".join(
            f"smtp+plain://127.0.0.1:{one.port}?connections=3&weight={weight}"
            for one, weight in ((other, 3), (sink, 1))
        )
        async with house_at(tmp_path, empty_database, sink, relays=relays) as world:
            people = await readers(world, 40, "qq.com")
            mailing = await world.send(await world.issue())
            async with world.working():
                async with asyncio.timeout(30):
                    while len(sink.mails) < 25:
                        await asyncio.sleep(0.02)
                shown = (await world.web.get("/readyz")).json()["relays"]
                assert [len(one["providers"]) for one in shown] == [1, 0]
                await to_the_end(world, mailing)
            assert await accounts(world, mailing, people) == (0, 0)


async def test_what_was_owed_before_readers_had_a_provider_goes_out(world: World) -> None:
    people = await readers(world, 5, "qq.com")
    people += [f"old{number}@gmail.com" for number in range(5)]
    await gather(world, people[5:])  # as a database has them whose readers nobody has named the providers of
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert sorted(one.provider for one in await rows(world, mailing)) == [""] * 5 + ["qq"] * 5
    assert await accounts(world, mailing, people) == (0, 0)


async def test_two_workers_share_one_lane(
    tmp_path: Path, empty_database: Path, sink: Sink, postgres_url: str
) -> None:
    async with house_at(tmp_path, empty_database, sink, database_url=postgres_url) as world:
        people = await readers(world, 30, "qq.com", "example.com")
        sink.script = answers("qq.com", REPUTATION)
        stop, tasks, databases = asyncio.Event(), [], []
        for number in range(2):
            databases.append(own := Database(postgres_url))
            worker = Worker(
                own, world.house.composer, Wake(), lambda url: Relay(url, "test.example", timeouts=QUICK), world.clock
            )  # fmt: skip
            tasks.append(asyncio.create_task(worker.run(stop, f"test-{number}")))
        mailing = await world.send(await world.issue())
        await until(world, lambda told: told.get("qq", {}).get("state") == "paused")
        async with asyncio.timeout(20):
            while len(sink.mails) < 30 or (await world.mailing(mailing))["in_flight"]:
                await asyncio.sleep(0.02)
        await asyncio.sleep(1.5)  # both have looked by now
        sink.commands.clear()
        world.clock.forward(minutes=16)
        await until(world, lambda told: told["qq"]["state"] == "paused" and "T00:4" in told["qq"]["until"])
        await asyncio.sleep(1.5)
        assert sink.verbs().count("RCPT") == 1
        sink.script = None
        world.clock.forward(minutes=60)
        await to_the_end(world, mailing)
        stop.set()
        await asyncio.gather(*tasks)
        for own in databases:
            await own.close()
        assert await accounts(world, mailing, people) == (0, 0)
        assert not await due_now(world, mailing)
