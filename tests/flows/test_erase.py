"""A reader who is erased leaves no trace but a hash: no file brings them back, their own new wish does."""

import re
import sqlite3
from pathlib import Path

import pytest

from app.core.errors import NotFound
from app.flows import erase, imports, readers
from app.flows.imports import Plan
from app.subscribers import suppression
from app.subscribers.addresses import accept
from app.subscribers.consent import Reason
from tests.flows.test_imports import counts_of, reader
from tests.world import World

ADDRESS = "Erased.Reader@example.com"


async def erased(world: World) -> None:
    async with world.db.transaction() as session:
        who = await readers.by_address(session, ADDRESS)
        await erase.erase(session, who.id or 0, world.clock())


def dump(world: World) -> str:
    """Return everything that the database file holds, as text."""
    path = Path(world.house.settings.database_url.removeprefix("sqlite:///"))
    with sqlite3.connect(path) as connection:
        text = "\n".join(connection.iterdump())
    connection.close()
    return text


async def test_nothing_of_an_erased_reader_is_left_but_a_hash(world: World) -> None:
    number = await world.reader(ADDRESS, "daily", "weekly")
    await counts_of(world, f"email,name\n{ADDRESS},Planted Name\n", update=True)
    await world.api.post(f"/issues/{await world.issue()}/test", json={"to": [ADDRESS.lower()]})
    await world.letters(1)
    assert ADDRESS.lower() in dump(world).lower()
    await erased(world)
    left = dump(world).lower()
    assert ADDRESS.lower() not in left
    assert "planted name" not in left
    for table in ("subscription", "consent_event"):
        assert not re.search(rf'insert into "{table}" values\({number},', left)


async def test_what_an_erased_reader_was_owed_is_withdrawn_and_the_books_balance(world: World) -> None:
    await world.reader(ADDRESS)
    await world.reader("stays@example.com")
    mailing = await world.send(await world.issue())
    await world.worker().chores.advance()
    await erased(world)
    await world.deliver(mailing)
    counts = await world.books_balance(mailing)
    assert (counts["sent"], counts["withdrawn"]) == (1, 1)
    assert [mail.recipient for mail in world.sink.mails] == ["stays@example.com"]


async def test_a_letter_that_waits_for_an_erased_reader_never_goes(world: World) -> None:
    await counts_of(world, f"email\n{ADDRESS}\n", confirm=True)
    await erased(world)
    await world.reader("stays@example.com")
    await world.deliver(await world.send(await world.issue()))
    assert [mail.recipient for mail in world.sink.mails] == ["stays@example.com"]


async def test_no_file_and_no_editor_brings_an_erased_reader_back(world: World) -> None:
    await world.reader(ADDRESS)
    await erased(world)
    for update in (False, True):
        rows = f"email\n{ADDRESS.swapcase()}\n"
        assert await counts_of(world, rows, update=update) == {"suppressed": 1}
    answer = await world.api.post("/subscribers", json={"email": ADDRESS, "editions": ["daily"]})
    assert answer.status_code == 409
    with pytest.raises(NotFound):
        await reader(world, ADDRESS)


async def test_a_new_sign_up_that_is_confirmed_makes_a_new_reader(world: World) -> None:
    number = await world.reader(ADDRESS)
    await erased(world)
    page = (await world.web.get("/")).text
    hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page))
    world.clock.forward(minutes=1)
    await world.web.post(
        "/subscribe", data={**hidden, "email": ADDRESS, "editions": "daily", "language": "zh"}
    )
    (mail,) = await world.letters(1)
    link = re.search(rb"/c/[\w-]{32}", mail.data) or re.search(r"/c/[\w-]{32}", _text(mail.data))
    assert link is not None
    path = link[0].decode() if isinstance(link[0], bytes) else link[0]
    assert (await world.web.post(path)).status_code in (200, 303)
    found = await reader(world, ADDRESS)
    assert (found["status"], found["suppressed"]) == ("active", None)
    assert found["id"] > number


def _text(data: bytes) -> str:
    from email import message_from_bytes, policy

    part = message_from_bytes(data, policy=policy.default).get_body(("plain",))
    return str(part.get_content()) if part is not None else ""


async def test_what_an_editor_suppressed_stays_so_and_loses_the_address(world: World) -> None:
    await world.reader(ADDRESS)
    answer = await world.api.post("/suppressions", json={"address": ADDRESS, "note": "asked by letter"})
    assert answer.status_code == 201, answer.text
    async with world.db.transaction() as session:
        await erase.by_address(session, world.house.settings, ADDRESS, world.clock())
    async with world.db.reading() as session:
        kept = await suppression.find(session, accept(ADDRESS).hashed(world.house.settings.suppression_key))
    assert kept is not None
    assert (kept.reason, kept.address, kept.note) == (Reason.EDITOR, None, "")


async def test_an_address_that_is_only_suppressed_can_be_erased_and_an_unknown_one_is_said_to_be(
    world: World,
) -> None:
    await world.api.post("/suppressions", json={"address": ADDRESS, "note": ""})
    async with world.db.transaction() as session:
        assert await erase.by_address(session, world.house.settings, ADDRESS, world.clock()) is None
        with pytest.raises(NotFound):
            await erase.by_address(session, world.house.settings, "nobody@example.com", world.clock())
    assert ADDRESS.lower() not in dump(world).lower()


async def test_a_file_under_way_does_not_bring_back_who_is_erased_meanwhile(world: World) -> None:
    await world.reader(ADDRESS)
    rows = "email\n" + "".join(f"r{i}@example.com\n" for i in range(2_500)) + f"{ADDRESS}\n"
    settings = world.house.settings
    with (settings.data_dir / "file.csv").open("w+b") as file:
        file.write(rows.encode())
        job = await imports.start(world.db, settings, file, Plan("test", ("daily",)), "", world.clock())
    assert await imports.step(world.db, settings, job, world.clock())
    await erased(world)
    assert not await imports.step(world.db, settings, job, world.clock())
    async with world.db.reading() as session:
        assert (await imports.view(session, job))["counts"]["suppressed"] == 1
