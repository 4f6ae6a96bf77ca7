"""A fault of our own stops the mailing after a few mails, says why, costs no reader, and is over by `resume`."""

import asyncio
from pathlib import Path

import pytest

from tests.crowd import accounts, crowd, gather, rows
from tests.sink import Script, Sink, at, reply
from tests.world import World, house_at

UNSIGNED = "550 5.7.26 This mail is unauthenticated: SPF and DKIM did not pass"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (at("mail", reply("550 5.7.1 Sender not allowed")), "refuses our sender: 550 5.7.1"),
        (at("rcpt", reply(UNSIGNED)), "5.7.26"),
        (at("dot", reply(UNSIGNED)), "5.7.26"),
        (at("dot", reply(UNSIGNED.replace("5", "4"))), "4.7.26"),
    ],
    ids=["sender", "rcpt", "dot", "for now"],
)
async def test_a_fault_of_our_own_pauses_the_mailing_and_resume_sends_all(
    tmp_path: Path, empty_database: Path, sink: Sink, script: Script, words: str
) -> None:
    relay = f"smtp+plain://127.0.0.1:{sink.port}?connections=20"
    async with house_at(tmp_path, empty_database, sink, relays=relay) as world:
        readers = await crowd(world, 60)
        sink.script = script
        mailing = await world.send(await world.issue())
        async with world.working():
            shown = await world.until(mailing, "paused")
            assert words in shown["problem"]
            assert sum(line.startswith("MAIL") for _, line in sink.commands) <= 10
        counts = await world.books_balance(mailing)
        assert counts["owed"] == 60
        sink.script = None
        await world.api.post(f"/mailings/{mailing}/resume")
        await world.deliver(mailing)
        assert await accounts(world, mailing, readers) == (0, 0)
        assert (await world.api.get("/suppressions")).json()["items"] == []


async def test_a_refused_login_pauses_the_mailing_and_no_mail_is_tried(
    tmp_path: Path, empty_database: Path
) -> None:
    with Sink(auth=("news", "right")) as sink:
        relay = f"smtp+plain://news:wrong@127.0.0.1:{sink.port}?connections=5"
        async with house_at(tmp_path, empty_database, sink, relays=relay) as world:
            readers = await crowd(world, 20)
            mailing = await world.send(await world.issue())
            async with world.working():
                shown = await world.until(mailing, "paused")
                assert "refused the login: 535" in shown["problem"]
                assert (await world.books_balance(mailing))["owed"] == 20
                sink.auth = ("news", "wrong")  # now it is right
                await world.api.post(f"/mailings/{mailing}/resume")
                await world.until(mailing)
            assert await accounts(world, mailing, readers) == (0, 0)
            assert {row.attempts for row in await rows(world, mailing)} == {1}


async def test_a_relay_without_starttls_pauses_every_mailing_under_way(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    relay = f"smtp://127.0.0.1:{sink.port}?connections=5"
    given = {"postal_address": "1 Road", "contact": "editor@example.com"}
    async with house_at(tmp_path, empty_database, sink, relays=relay, **given) as world:
        await crowd(world, 5)
        await crowd(world, 5, "weekly", "w")
        both = [await world.send(await world.issue()), await world.send(await world.issue("weekly"))]
        async with world.working():
            for mailing in both:
                assert "offers no STARTTLS" in (await world.until(mailing, "paused"))["problem"]
        assert sink.mails == []


async def test_one_reader_whose_server_finds_fault_with_us_stops_no_mailing(world: World) -> None:
    readers = [*await crowd(world, 40), "odd@example.net"]
    await gather(world, readers[-1:])
    world.sink.script = lambda event: (
        reply(UNSIGNED) if event.stage == "rcpt" and event.recipient == readers[-1] else None
    )
    mailing = await world.send(await world.issue())
    async with world.working():
        for tries in (1, 2, 3, 4):
            async with asyncio.timeout(30):
                while (
                    len(world.sink.mails) < 40
                    or (await world.mailing(mailing))["in_flight"]
                    or (await rows(world, mailing))[-1].attempts < tries
                ):
                    assert (await world.mailing(mailing))["state"] in ("preparing", "sending")
            world.clock.forward(hours=1)
            world.house.wake.call()
    assert (await world.books_balance(mailing))["owed"] == 1
