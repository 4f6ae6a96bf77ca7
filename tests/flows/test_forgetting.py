"""What is kept for a time is gone when the time is over, and nothing else is."""

from app.flows import forgetting
from app.flows.rounds import Rounds
from app.subscribers.consent import Reason
from tests.web import reading
from tests.web.reading import who_is
from tests.world import World


async def test_after_thirty_days_nothing_is_left_of_who_never_confirmed(world: World) -> None:
    await reading.ask(world, "never.came@example.com")
    await world.letters(1)
    world.clock.forward(days=29)
    await forgetting.forget(world.db, world.clock())
    assert (await who_is(world, "never.came@example.com")).state == "pending"
    world.clock.forward(days=2)
    await forgetting.forget(world.db, world.clock())
    rows = await reading.everything(world)
    assert "never.came" not in repr(rows)
    assert not rows["subscriber"]
    assert not rows["ask"]
    assert not rows["consent_event"]
    assert len(rows["letter"]) == 1, "a letter that has gone is a number and a state"


async def test_a_reader_stays_and_so_does_who_waits_by_other_ways_than_the_form(world: World) -> None:
    await world.reader("stays@example.com")
    answer = await world.api.post(
        "/subscribers", json={"email": "asked@example.com", "editions": ["daily"], "confirm": True}
    )
    assert answer.status_code == 201, answer.text
    world.clock.forward(days=400)
    await forgetting.forget(world.db, world.clock())
    for address in ("stays@example.com", "asked@example.com"):
        assert (await who_is(world, address)).address == address


async def test_a_refusal_is_forgotten_after_ninety_days_and_an_editors_word_never(world: World) -> None:
    for reason in Reason:
        await reading.suppress(world, f"{reason}@example.com", reason)
    world.clock.forward(days=91)
    await Rounds(world.db, world.house.composer).work(world.clock())
    kept = (await reading.everything(world))["suppression"]
    assert len(kept) == len(Reason) - 1
    assert not [row for row in kept if "refused" in row]


async def test_who_was_sent_what_is_forgotten_after_four_hundred_days_and_the_counts_stay(
    world: World,
) -> None:
    for number in range(3):
        await world.reader(f"reader{number}@example.com", "daily", "weekly")
    old = await world.send(await world.issue())
    await world.deliver(old)
    world.clock.forward(days=399)
    recent = await world.send(await world.issue("weekly"))
    await world.deliver(recent)
    await forgetting.forget(world.db, world.clock())
    assert len((await reading.everything(world))["delivery"]) == 6
    world.clock.forward(days=2)
    before = await world.mailing(old)
    await forgetting.forget(world.db, world.clock())
    rows = (await reading.everything(world))["delivery"]
    assert len(rows) == 3
    answer = await world.api.post(f"/mailings/{old}/reconcile")
    assert answer.json() == {"mailing": before, "differences": []}
