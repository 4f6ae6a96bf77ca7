"""Another address, one's data, erasure: each by a link just mailed to the owner, and by nothing else."""

import json
from typing import Any

import pytest

from app.core.tokens import Purpose
from app.subscribers.consent import State
from app.subscribers.models import Errand
from tests.web import reading
from tests.web.reading import link, who_is
from tests.world import World

KINDS = ("address", "data", "erase")


async def mailed(world: World, address: str, errand: str) -> str:
    """Ask on the preferences page for an errand's link, and return it as it came by mail."""
    preferences = await preferences_of(world, address)
    before = len(world.sink.mails)
    answer = await world.web.post(f"{preferences}/mail", data={"errand": errand})
    assert answer.status_code == 200, answer.text
    letter = (await world.letters(before + 1))[before]
    assert letter.recipient == address
    return link(letter.data, "e")


async def preferences_of(world: World, address: str) -> str:
    return world.house.composer.link(Purpose.PREFERENCES, (await who_is(world, address)).id or 0)


async def test_a_change_is_asked_of_the_owner_confirmed_at_the_new_address_and_told_to_the_old(
    world: World,
) -> None:
    await world.reader("old@example.com", "daily", "weekly", language="en")
    name = await mailed(world, "old@example.com", "address")
    page = await world.web.get(name)
    assert "o***@example.com" in page.text
    answer = await world.web.post(name, data={"email": "New@example.org"})
    assert "Look into your new inbox" in answer.text
    assert (await who_is(world, "old@example.com")).address == "old@example.com", "not before it is confirmed"

    confirm = link((await world.letters(2))[1].data, "e")
    assert world.sink.mails[1].recipient == "New@example.org"
    page = await world.web.get(confirm)
    assert "N***@example.org" in page.text
    assert (await world.web.post(confirm)).status_code == 303
    who = await who_is(world, "new@example.org")
    assert (who.address, who.state) == ("New@example.org", State.ACTIVE)
    assert await reading.chosen(world, "new@example.org") == {"daily", "weekly"}
    told = (await world.letters(3))[2]
    assert told.recipient == "old@example.com"
    text, _ = reading.parts(told.data)
    assert "N***@example.org" in text
    assert "New@example.org" not in text
    assert not [url for url in reading.links(told.data) if "/p/" in url or "/e/" in url], "it gives no rights"
    async with reading.unchanged(world):
        for used in (name, confirm):
            assert (await world.web.get(used)).status_code == 410
            assert (await world.web.post(used, data={"email": "x@example.org"})).status_code == 410

    world.sink.forget()
    await world.deliver(await world.send(await world.issue()))
    assert world.sink.recipients() == ["New@example.org"]


async def test_an_address_with_a_subscription_of_its_own_is_not_taken_and_hears_so_itself(
    world: World,
) -> None:
    await world.reader("old@example.com")
    await world.reader("taken@example.com")
    name = await mailed(world, "old@example.com", "address")
    free = await world.web.post(name, data={"email": "free@example.com"})
    taken = await world.web.post(name, data={"email": "taken@example.com"})
    assert (free.status_code, free.content) == (taken.status_code, taken.content)
    mails = {mail.recipient: mail for mail in (await world.letters(3))[1:]}
    assert mails.keys() == {"free@example.com", "taken@example.com"}
    assert not [url for url in reading.links(mails["taken@example.com"].data) if "/e/" in url]


async def test_an_address_taken_between_the_letter_and_its_button_stays_with_its_reader(world: World) -> None:
    await world.reader("old@example.com")
    name = await mailed(world, "old@example.com", "address")
    await world.web.post(name, data={"email": "new@example.com"})
    confirm = link((await world.letters(2))[1].data, "e")
    await world.reader("new@example.com")
    async with reading.unchanged(world):
        assert (await world.web.post(confirm)).status_code == 409


@pytest.mark.parametrize("address", ["", "x", "OLD@example.com", "r@exa mple.org"])
async def test_a_bad_new_address_is_said_to_be_one_beside_the_field(world: World, address: str) -> None:
    await world.reader("old@example.com")
    name = await mailed(world, "old@example.com", "address")
    async with reading.unchanged(world):
        answer = await world.web.post(name, data={"email": address})
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text


async def test_a_stranger_with_the_link_cannot_pelt_an_address_with_letters(world: World) -> None:
    await world.reader("old@example.com")
    name = await mailed(world, "old@example.com", "address")
    for number in range(20):
        await world.web.post(name, data={"email": f"victim+{number}@example.com"})
    assert len((await reading.everything(world))["letter"]) == 2


async def test_the_data_is_all_that_is_kept_and_comes_as_json(world: World) -> None:
    await world.reader("r@example.com", "daily")
    await world.deliver(await world.send(await world.issue()))
    url = await mailed(world, "r@example.com", "data")
    page = await world.web.get(url)
    assert "application/json" not in page.headers["content-type"]
    assert "r@example.com" not in page.text
    answer = await world.web.post(url)
    assert answer.headers["content-disposition"] == 'attachment; filename="broadsheet.json"'
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = json.loads(answer.text)
    assert (found["email"], found["editions"], found["status"]) == ("r@example.com", ["daily"], "active")
    assert [(one["edition"], one["date"], one["state"]) for one in found["issues"]] == [
        ("daily", "2026-10-26", "sent")
    ]
    assert [one["kind"] for one in found["letters"]] == ["data"]
    assert [one["kind"] for one in found["consent"]] == ["added"]
    columns = {
        "name",
        "language",
        "timezone",
        "hour",
        "weekdays_only",
        "paused_until",
        "source",
        "confirmed_at",
    }
    assert columns <= found.keys()


async def test_erasure_takes_a_button_and_leaves_nothing(world: World) -> None:
    await world.reader("lin.gone@example.com")
    url = await mailed(world, "lin.gone@example.com", "erase")
    preferences = await preferences_of(world, "lin.gone@example.com")
    async with reading.unchanged(world):
        assert (await world.web.get(url)).status_code == 200
    answer = await world.web.post(url)
    assert "已经删除" in answer.text
    assert "lin.gone" not in repr(await reading.everything(world))
    for gone in (url, preferences):
        assert (await world.web.get(gone)).status_code in (404, 410)


async def test_a_link_is_good_for_a_day_and_one_of_a_kind_is_mailed_a_day(world: World) -> None:
    await world.reader("r@example.com")
    for kind in KINDS:
        url = await mailed(world, "r@example.com", kind)
        sent = len(world.sink.mails)
        again = await world.web.post(
            f"{await preferences_of(world, 'r@example.com')}/mail", data={"errand": kind}
        )
        assert again.status_code == 200
        assert len((await reading.everything(world))["letter"]) == sent
        assert (await world.web.get(url)).status_code == 200
        world.clock.forward(hours=24)
        async with reading.unchanged(world):
            assert (await world.web.get(url)).status_code == 410
            assert (await world.web.post(url)).status_code == 410


async def test_a_forwarded_mail_opens_no_errand(world: World) -> None:
    reader = await world.reader("r@example.com")
    await world.deliver(await world.send(await world.issue()))
    mail = world.sink.mails[0].data
    forwarded = [url.rpartition("/")[2] for url in reading.links(mail) if "/p/" in url or "/u/" in url]
    forwarded.append(world.house.composer.signer.sign(Purpose.ERRAND, reader))
    assert len(forwarded) > 2
    async with reading.unchanged(world):
        for token in forwarded:
            assert (await world.web.get(f"/e/{token}")).status_code in (404, 410)
            assert (await world.web.post(f"/e/{token}")).status_code in (404, 410)
    page = (await world.web.get(link(mail, "p"))).text
    assert "r@example.com" not in page


async def test_nobody_mails_an_errand_that_is_none_or_for_who_is_no_reader(world: World) -> None:
    await world.reader("r@example.com")
    preferences = await preferences_of(world, "r@example.com")
    async with reading.unchanged(world):
        for errand in ("move", "", "x"):
            assert (await world.web.post(f"{preferences}/mail", data={"errand": errand})).status_code == 422
    await world.web.post(f"{preferences}/leave")
    async with reading.unchanged(world):
        assert (await world.web.post(f"{preferences}/mail", data={"errand": "data"})).status_code == 409


def test_the_kinds_of_an_errand_are_those_of_the_table() -> None:
    from app.subscribers.errands import Kind

    constraint = next(one for one in Errand.__table__.constraints if one.name == "ck_errand_kind")  # type: ignore[attr-defined]
    assert all(f"'{kind}'" in str(constraint.sqltext) for kind in Kind)
