"""A relay with a rate gets its mails evenly spaced, and one with a sender gets that envelope sender."""

from pathlib import Path

from tests.sink import Sink
from tests.world import house_at


async def test_mails_go_no_faster_than_the_relay_may_be_used(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    relay = f"smtp+plain://127.0.0.1:{sink.port}?connections=5&rate=20/s"
    async with house_at(tmp_path, empty_database, sink, relays=relay) as world:
        await world.readers(30, "daily")
        await world.deliver(await world.send(await world.issue()))
        times = sorted(mail.at for mail in sink.mails)
        assert len(times) == 30
        # 29 gaps of a twentieth of a second are the least that 20 a second allows.
        assert times[-1] - times[0] >= 29 / 20 - 0.3
        assert (await world.books_balance(1))["sent"] == 30


async def test_a_worker_that_stops_does_not_wait_for_the_next_slot(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    relay = f"smtp+plain://127.0.0.1:{sink.port}?connections=2&rate=1/h"
    async with house_at(tmp_path, empty_database, sink, relays=relay) as world:
        await world.readers(5, "daily")
        mailing = await world.send(await world.issue())
        assert len(await world.letters(1)) == 1
        counts = await world.books_balance(mailing)
        assert (counts["sent"], counts["owed"], counts["in_flight"]) == (1, 4, 0)


async def test_a_relay_with_a_sender_gets_it_as_envelope_sender(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    relay = f"smtp+plain://127.0.0.1:{sink.port}?connections=2&sender=box@example.net"
    async with house_at(tmp_path, empty_database, sink, relays=relay) as world:
        await world.readers(2, "daily")
        await world.deliver(await world.send(await world.issue()))
        assert [mail.sender for mail in sink.mails] == ["box@example.net"] * 2
        assert b"From: " in sink.mails[0].data
        assert b"daily@broadsheet.example" in sink.mails[0].data
