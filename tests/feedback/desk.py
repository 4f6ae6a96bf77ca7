"""A world that hears: doors for what comes back, one reader or more who were sent an issue, and what became of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlmodel import col, select

from app.feedback.fetching import Documents
from app.feedback.models import KeptReport
from app.flows import bounce
from app.subscribers.models import Subscriber, Suppression
from tests.feedback import hooks
from tests.world import DAY, World

READER = "lin@example.com"
BOUNCES = "bounce.example.com"


def shelf(url: str) -> bytes:
    """What SNS serves."""
    return hooks.certificate() if url.endswith(".pem") else b"<ok/>"


def equip(world: World) -> World:
    """Let a world fetch from the tests' own SNS and not from the network."""
    object.__setattr__(world.house, "documents", Documents(shelf))
    return world


async def post(world: World, provider: str, content: Any, number: str = "1") -> int:
    """Post a payload, signed, and return the status."""
    posted = hooks.post(provider, content, world.clock(), number)
    path = f"/api/v1/hooks/{provider}"
    return (await world.web.post(path, content=posted.body, headers=dict(posted.headers))).status_code


async def act(world: World) -> None:
    """Let what waits be acted on, as the worker does."""
    while await bounce.work(world.db, world.house.composer, world.clock()):
        pass


async def sent(world: World, *readers: str, days: int = 0) -> int:
    """Send an issue, `days` after the first, to these readers (known already or not), and return its id."""
    for address in readers:
        await world.reader(address)
    number = await world.issue(day=DAY + timedelta(days=days))
    await world.deliver(await world.send(number))
    return number


async def reports(world: World) -> Sequence[KeptReport]:
    """Return all reports, in order."""
    async with world.db.reading() as session:
        return (await session.scalars(select(KeptReport).order_by(col(KeptReport.id)))).all()


async def states(world: World) -> list[str]:
    """Return what became of each report."""
    return [one.state for one in await reports(world)]


async def standing(world: World, address: str = READER) -> tuple[str, str | None]:
    """Return a reader's state and its reason."""
    async with world.db.reading() as session:
        one = (await session.scalars(select(Subscriber).where(Subscriber.address == address))).one()
    return one.state, one.reason


async def barred(world: World) -> list[tuple[str | None, str]]:
    """Return the suppressed addresses and why they are."""
    async with world.db.reading() as session:
        return [(one.address, one.reason) for one in (await session.scalars(select(Suppression))).all()]


async def why(world: World, issue_id: int, address: str = READER) -> str:
    """Return the sentence that an editor is told."""
    answer = await world.api.post(f"/issues/{issue_id}/why", json={"address": address})
    assert answer.status_code == 200, answer.text
    sentence: str = answer.json()["sentence"]
    return sentence


def complaint(to: str) -> bytes:
    """Return a complaint as a provider passes it on (RFC 5965), about the mail with the return path `to`."""
    return f"""From: feedback@provider.example
To: {to}
Subject: FW: an issue
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

This is a report of a mail that a user called spam.

--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Provider/1.0
Version: 1

--b
Content-Type: text/rfc822-headers

From: daily@broadsheet.example
To: {READER}
Subject: an issue

--b--
""".replace("\n", "\r\n").encode()


def returned(
    to: str, status: str = "5.1.1", said: str = "550 5.1.1 no such user here", action: str = "failed"
) -> bytes:
    """Return a bounce as a mail server writes it (RFC 3464) to the address `to`."""
    return f"""Return-Path: <>
Delivered-To: {to}
From: Mail Delivery System <MAILER-DAEMON@mx.example.com>
To: {to}
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

Your message could not be delivered.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.com

Final-Recipient: rfc822; {READER}
Action: {action}
Status: {status}
Diagnostic-Code: smtp; {said}

--b
Content-Type: text/rfc822-headers

From: daily@broadsheet.example
To: {READER}
Subject: an issue

--b--
""".replace("\n", "\r\n").encode()
