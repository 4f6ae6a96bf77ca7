"""What the tests of the pages share: the links in a mail, a reader's way through the form, every row there is."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import httpx
from sqlalchemy import inspect, select, table, text

from app.flows import asking
from app.subscribers import store, suppression
from app.subscribers.addresses import accept
from app.subscribers.consent import Reason
from app.subscribers.models import ConsentEvent, Subscriber
from tests.world import World

BASE = "http://127.0.0.1:8000"
_URL = re.compile(r"https?://[^\s<>\"]+")


def parts(raw: bytes) -> tuple[str, str]:
    """Return the text and the HTML of a mail."""
    mail: EmailMessage = message_from_bytes(raw, policy=policy.default)
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert html is not None
    return plain.get_content(), html.get_content()


def links(raw: bytes) -> list[str]:
    """Return every web address of a mail, from its headers and both parts, each once."""
    plain, html = parts(raw)
    headers = "\n".join(str(value) for value in message_from_bytes(raw, policy=policy.compat32).values())
    found = re.findall(r'(?:href|src)="(https?:[^"]+)"', html) + _URL.findall(plain) + _URL.findall(headers)
    return list(dict.fromkeys(url.replace("&amp;", "&") for url in found))


def link(raw: bytes, page: str) -> str:
    """Return a mail's link to one of the pages c, p and u."""
    return next(url for url in links(raw) if f"/{page}/" in url)


def stamp(world: World) -> str:
    """Return the stamp of a page that somebody has looked at for a while."""
    return world.house.composer.signer.stamp(world.clock() - timedelta(seconds=30))


def unstamped(page: httpx.Response) -> str:
    """Return what a page says, whichever second it was made in."""
    return re.sub(r'(?<=name="stamp" value=")[^"]+', "", page.text)


async def send_form(world: World, address: str, *editions: str, **more: Any) -> httpx.Response:
    """Send the form as a page of ours has it."""
    form = {
        "email": address,
        "editions": list(editions or ("daily",)),
        "language": "zh",
        "stamp": stamp(world),
    }
    return await world.web.post("/subscribe", data=form | more)


async def ask(world: World, address: str, *editions: str, language: str = "zh") -> httpx.Response:
    """Send the form, and let what it asks for be answered as a worker would."""
    answer = await send_form(world, address, *editions, language=language, sure="true")
    await answered(world)
    return answer


async def answered(world: World) -> None:
    """Let every request that waits be answered, as far as the limits let it."""
    while await asking.answer(world.db, world.house.settings, world.clock()):
        pass


async def ask_and_confirm(world: World, address: str, *editions: str, language: str = "zh") -> str:
    """Become a reader by the form and the letter's button; return the address of the preferences."""
    before = len(world.sink.mails)
    assert (await ask(world, address, *editions, language=language)).status_code == 200
    mails = await world.letters(before + 1)
    answer = await world.web.post(link(mails[-1].data, "c"))
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].split("?")[0]


async def everything(world: World) -> dict[str, list[str]]:
    """Return every row of every table, as text, in an order of its own."""
    async with world.db.engine.connect() as connection:
        names = await connection.run_sync(lambda plain: inspect(plain).get_table_names())
        rows = {name: await connection.execute(select(text("*")).select_from(table(name))) for name in names}
        return {name: sorted(repr(tuple(row)) for row in found) for name, found in rows.items()}


@asynccontextmanager
async def unchanged(world: World) -> AsyncIterator[None]:
    """Assert that the block changes no row of any table."""
    before = await everything(world)
    yield
    assert await everything(world) == before


async def who_is(world: World, address: str) -> Subscriber:
    """Return a subscriber as the database has them."""
    async with world.db.reading() as session:
        found = await store.by_key(session, accept(address).key)
    assert found is not None
    return found


async def chosen(world: World, address: str) -> set[str]:
    """Return the names of the editions that a subscriber has."""
    answer = await world.api.get("/subscribers", params={"q": address})
    return set(answer.json()["items"][0]["editions"])


async def suppress(world: World, address: str, reason: Reason = Reason.EDITOR) -> None:
    """Say that an address must not be mailed."""
    address_hash = accept(address).hashed(world.house.settings.suppression_key)
    async with world.db.transaction() as session:
        await suppression.add(session, address_hash, reason, world.clock())


async def events(world: World, address: str) -> list[ConsentEvent]:
    """Return the proof of what a subscriber did, in order."""
    who = await who_is(world, address)
    which: Any = select(ConsentEvent).where(ConsentEvent.subscriber_id == who.id).order_by(ConsentEvent.id)  # type: ignore[arg-type]
    async with world.db.reading() as session:
        return list(await session.scalars(which))
