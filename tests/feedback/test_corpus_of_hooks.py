"""Ninety events of six providers, kept beside the checkout: each has its status, and one effect."""

import base64
import json
import shutil
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from app.core.errors import Invalid
from app.feedback.models import KeptReport
from app.feedback.providers import PROVIDERS, sendgrid
from app.flows import bounce
from app.subscribers import addresses
from app.subscribers.models import Subscriber, Suppression
from tests.sink import Sink
from tests.world import START, World, house_at

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "webhooks"
# What a reader is after an event that means this, and what became of the report.
EFFECTS = {
    "hard": ("ended", "bounced", {"suppressed"}),
    "complaint": ("ended", "complained", {"suppressed"}),
    "unsubscribe": ("ended", "left", {"left"}),
    "soft": ("active", None, {"counted"}),
    "policy": ("active", None, {"noted"}),
    "none": ("active", None, {"noted"}),
}

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the material beside the checkout is not there")


def keys() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CORPUS / "keys/README.json").read_text())
    return found


def settings() -> dict[str, str]:
    known = keys()
    return {
        "hook_ses": known["sns_topic"],
        "hook_sendgrid": known["sendgrid_public_key"],
        "hook_mailgun": known["mailgun_signing_key"],
        "hook_postmark": base64.b64decode(known["basic"].split()[1]).decode(),
        "hook_brevo": known["brevo_bearer"].split()[1],
        "hook_resend": known["resend_secret"],
    }


def events(provider: str) -> dict[str, dict[str, Any]]:
    found = {path.stem: json.loads(path.read_text()) for path in sorted((CORPUS / provider).glob("*.json"))}
    return {name: one for name, one in found.items() if "status" in one["expect"]}


class Shelf:
    """What SNS would serve, and what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, url: str) -> bytes:
        self.asked.append(url)
        return (CORPUS / "keys/sns_test_cert.pem").read_bytes() if url.endswith(".pem") else b"<ok/>"


def opened(
    folder: Path, empty_database: Path, sink: Sink, provider: str
) -> AbstractAsyncContextManager[World]:
    relay = f"smtp+plain://127.0.0.1:{sink.port}?connections=5&hook={provider}"
    return house_at(folder, empty_database, sink, relays=relay, **settings())


def named_in(provider: str) -> set[str]:
    """Every address that an event of the corpus is about, of those that anybody could mail."""
    known = settings()
    found = set()
    for one in events(provider).values():
        text = one["body"].replace('\\"', '"')
        found |= {word for word in text.replace('"', " ").split() if "@" in word}
    assert known
    able = set()
    for word in found:
        try:
            able.add(addresses.accept(word).typed)
        except Invalid:
            continue
    return able


def to_the_day_of_the_fixtures(world: World) -> None:
    world.clock.moved = datetime.fromtimestamp(keys()["now"], UTC) - START
    world.house.documents._load = Shelf()


async def sent_to_all(world: World, provider: str) -> None:
    to_the_day_of_the_fixtures(world)
    for address in sorted(named_in(provider)):
        await world.reader(address)
    await world.deliver(await world.send(await world.issue()))


async def post(world: World, provider: str, one: dict[str, Any]) -> int:
    headers = {"authorization": "", "content-type": "application/json"} | {
        name.lower(): value for name, value in one["headers"].items()
    }
    if not headers["authorization"]:
        del headers["authorization"]
    answer = await world.web.post(f"/api/v1/hooks/{provider}", content=one["body"].encode(), headers=headers)
    return answer.status_code


async def acted(world: World) -> None:
    while await bounce.work(world.db, world.house.composer, world.clock()):
        pass


async def outcome(world: World) -> tuple[list[Any], list[Any], list[Any]]:
    """Return what is known of readers, reports and suppressions, in an order that does not depend on the calls'."""
    async with world.db.reading() as session:
        people = (await session.scalars(select(Subscriber))).all()
        reports = (await session.scalars(select(KeptReport))).all()
        barred = (await session.scalars(select(Suppression))).all()
    return (
        sorted((one.address, one.state) for one in people),
        sorted((one.event_id, one.kind) for one in reports),
        sorted(one.address or "" for one in barred),
    )


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_every_event_has_its_status_and_one_effect_though_it_comes_ten_times(
    provider: str, tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    async with opened(tmp_path, empty_database, sink, provider) as world:
        await sent_to_all(world, provider)
    wrong = []
    for name, one in events(provider).items():
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(tmp_path / "broadsheet.db", folder)
        async with opened(folder, empty_database, sink, provider) as world:
            to_the_day_of_the_fixtures(world)
            status = await post(world, provider, one)
            for time in range(9):
                await acted(world)
                assert await post(world, provider, one) == status, (name, time)
            await acted(world)
            if status != one["expect"]["status"] or not await as_expected(world, one["expect"]):
                wrong.append((name, status, one["expect"], await outcome(world)))
    assert not wrong


async def as_expected(world: World, expect: dict[str, Any]) -> bool:
    """Tell whether the readers named by the reports are what the event makes of them, and all others as before."""
    shelf = world.house.documents._load
    assert isinstance(shelf, Shelf)
    async with world.db.reading() as session:
        reports = (await session.scalars(select(KeptReport))).all()
        people = {one.id: one for one in (await session.scalars(select(Subscriber))).all()}
    if expect["action"] == "confirm":
        return not reports and any("ConfirmSubscription" in url for url in shelf.asked)
    if expect["action"] == "reject":
        return not reports and not (expect.get("no_fetch") and shelf.asked)
    if expect.get(
        "second_time"
    ):  # of the first time it is a bounce, and the second is what the file is about
        return len(reports) == 1
    state, reason, effects = EFFECTS[expect["action"]]
    whose = {one.subscriber_id for one in reports if one.subscriber_id is not None}
    are = {(people[number].state, people[number].reason) for number in whose if number}
    others = {one.state for number, one in people.items() if number not in whose}
    placed = {one.state for one in reports if one.subscriber_id is not None}
    about = all(one.subscriber_id is not None or "invalid" in (one.address or "") for one in reports)
    few = len(reports) == expect.get("events", len(reports))
    return about and few and are <= {(state, reason)} and placed <= effects and others <= {"active"}


def test_sendgrid_s_own_example_is_signed_by_its_own_key() -> None:
    (one,) = [
        found
        for path in (CORPUS / "sendgrid").glob("*.json")
        if "public_key" in (found := json.loads(path.read_text()))["expect"]
    ]
    headers = {name.lower(): value for name, value in one["headers"].items()}
    signature, stamp = headers[sendgrid.SIGNATURE], headers[sendgrid.TIMESTAMP]
    key, body = one["expect"]["public_key"], one["body"].encode()
    assert sendgrid.is_signed(signature, stamp, body, key)
    assert not sendgrid.is_signed(signature, stamp, body + b"\n", key)
