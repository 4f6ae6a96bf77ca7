"""Several relays: each takes its share, one that is out is left alone, and the others take over."""

import asyncio
from collections import Counter
from pathlib import Path

from tests.crowd import accounts, crowd
from tests.sink import Action, Event, Sink, at, delay, reply
from tests.world import World, house_at


def relays(*sinks: Sink, options: str = "connections=5") -> str:
    return " ".join(f"smtp+plain://127.0.0.1:{sink.port}?{options}" for sink in sinks)


async def health(world: World) -> dict[str, str]:
    """Return how each relay is said to be, by port."""
    shown = (await world.web.get("/readyz")).json()["relays"]
    return {one["name"].rpartition(":")[2]: one["state"] for one in shown}


async def test_each_relay_takes_its_share_by_weight_however_fast_it_is(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    with Sink(script=at("dot", delay(0.01))) as slow:
        both = f"{relays(slow)}&weight=3 {relays(sink)}&weight=1"
        async with house_at(tmp_path, empty_database, sink, relays=both) as world:
            readers = await crowd(world, 200)
            mailing = await world.send(await world.issue())
            await world.deliver(mailing)
        assert sorted(slow.recipients() + sink.recipients()) == sorted(readers)
        assert 145 <= len(slow.mails) <= 155


async def test_a_relay_that_goes_out_is_taken_over_for_and_nothing_is_lost_or_doubled(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    with Sink() as other:
        async with house_at(tmp_path, empty_database, sink, relays=relays(sink, other)) as world:
            readers = await crowd(world, 120)
            mailing = await world.send(await world.issue())
            seen = Counter[str]()

            def fails_from_the_twentieth(event: Event) -> Action | None:
                # A mail that is half through by then ends as it began: its 421 would rightly wait for minutes.
                seen[event.stage] += 1
                is_new = event.stage in ("connect", "ehlo", "mail")
                return reply("421 4.3.2 Going down") if is_new and seen["mail"] > 20 else None

            sink.script = fails_from_the_twentieth
            other.script = at("dot", delay(0.01))
            async with world.working():
                shown = await world.until(mailing)
            assert (shown["sent"], shown["problem"]) == (120, None)
            assert len(sink.mails) == 20
            sink.mails += other.mails
            assert await accounts(world, mailing, readers) == (0, 0)


async def test_one_relay_that_is_down_from_the_start_stops_nobody_and_is_seen(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    down = "smtp+plain://127.0.0.1:9?connections=5&weight=9"
    async with house_at(tmp_path, empty_database, sink, relays=f"{down} {relays(sink)}") as world:
        assert await health(world) == {"9": "unknown", str(sink.port): "unknown"}
        readers = await crowd(world, 60)
        mailing = await world.send(await world.issue())
        async with world.working(), asyncio.timeout(20):
            shown = await world.until(mailing)
            while await health(world) != {"9": "failing", str(sink.port): "ready"}:
                await asyncio.sleep(0.02)
        assert shown["problem"] is None
        assert await accounts(world, mailing, readers) == (0, 0)
        assert (await world.mailing(mailing))["sent"] == 60


async def test_a_mailing_has_a_problem_only_when_every_relay_is_out(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    with Sink(script=at("connect", reply("421 4.3.2 Not now"))) as other:
        async with house_at(tmp_path, empty_database, sink, relays=relays(sink, other)) as world:
            readers = await crowd(world, 30)
            sink.script = at("connect", reply("421 4.3.2 Not now"))
            mailing = await world.send(await world.issue())
            async with world.working(), asyncio.timeout(60):
                while "421 4.3.2" not in ((await world.mailing(mailing))["problem"] or ""):
                    await asyncio.sleep(0.02)
                sink.script = None
                shown = await world.until(mailing)
            assert shown["problem"] is None
            assert await accounts(world, mailing, readers) == (0, 0)


async def test_a_fault_of_ours_at_one_relay_pauses_nothing_while_another_takes_mail(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    with Sink(script=at("mail", reply("550 5.7.1 Sender not allowed"))) as other:
        async with house_at(tmp_path, empty_database, sink, relays=relays(other, sink)) as world:
            readers = await crowd(world, 40)
            sink.script = at("dot", delay(0.02))
            mailing = await world.send(await world.issue())
            async with world.working(), asyncio.timeout(60):
                while len(sink.mails) < 40:
                    if not (await world.mailing(mailing))["in_flight"]:
                        world.clock.forward(minutes=6)
                        world.house.wake.call()
                    await asyncio.sleep(0.05)
                shown = await world.until(mailing)
            assert shown["sent"] == 40
            assert await accounts(world, mailing, readers) == (0, 0)
