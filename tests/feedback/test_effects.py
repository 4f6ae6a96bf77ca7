"""What a report does to a reader, to what they are owed, and to the books; and what it never does."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import pytest
from sqlalchemy import Table, select, update
from sqlmodel import col

from app.delivery import mailings
from app.delivery.models import Delivery, Letter
from app.feedback import store
from app.feedback.models import KeptReport, ReportState
from app.feedback.report import Action, Kind, Report
from app.flows import erase, returns, subscribe, suppress
from app.sending import deliver
from app.subscribers import store as subscribers
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin
from tests import sink as sinking
from tests.feedback import desk
from tests.feedback.desk import BOUNCES, READER
from tests.sink import Sink
from tests.web import reading
from tests.world import World, house_at

delivery: Table = Delivery.__table__  # type: ignore[attr-defined]
FULL = {"status": "4.2.2", "said": "452 4.2.2 the mailbox is full"}


@pytest.fixture
async def hearing(tmp_path: Path, empty_database: Path, sink: Sink) -> AsyncIterator[World]:
    """A world whose mails have a return path of their own."""
    async with house_at(tmp_path, empty_database, sink, bounce_domain=BOUNCES) as world:
        yield world


async def comes_back(world: World, to: str, **how: str) -> list[Report]:
    """Let a bounce come to a return path, and be acted on."""
    found = await returns.take_mail(world.db, desk.returned(to, **how), to, world.clock())
    await desk.act(world)
    return found


def path_of_last(world: World) -> str:
    return world.sink.mails[-1].sender


async def test_a_bounce_to_the_signed_return_path_ends_the_reader(hearing: World) -> None:
    issue = await desk.sent(hearing, READER)
    assert path_of_last(hearing).endswith(f"@{BOUNCES}")
    await comes_back(hearing, path_of_last(hearing))
    assert await desk.standing(hearing) == ("ended", "bounced")
    assert "no such user here" in await desk.why(hearing, issue)
    counts = await hearing.books_balance(1)
    assert counts["sent"] == 1


async def test_a_bounce_without_a_token_or_with_a_forged_one_changes_nothing(hearing: World) -> None:
    await desk.sent(hearing, READER)
    path = path_of_last(hearing)
    forged = f"b+{path[2:41]}{'a' if path[41] != 'a' else 'b'}@{BOUNCES}"
    await comes_back(hearing, f"daily@{BOUNCES}")
    await comes_back(hearing, forged)
    assert await desk.states(hearing) == ["stray", "stray"]
    assert await desk.standing(hearing) == ("active", None)


async def test_a_token_of_long_ago_changes_nothing(hearing: World) -> None:
    await desk.sent(hearing, READER)
    hearing.clock.forward(days=31)
    await comes_back(hearing, path_of_last(hearing))
    assert await desk.states(hearing) == ["noted"]
    assert await desk.standing(hearing) == ("active", None)


async def test_a_bounce_from_before_they_came_back_says_nothing_of_today(hearing: World) -> None:
    await desk.sent(hearing, READER)
    hearing.clock.forward(days=1)
    async with hearing.db.transaction() as session:
        who = (await session.scalars(select(Subscriber))).one()
        who.confirmed_at = hearing.clock()
    await comes_back(hearing, path_of_last(hearing))
    assert await desk.standing(hearing) == ("active", None)


async def test_a_full_mailbox_is_counted_and_three_issues_over_a_week_end_it(hearing: World) -> None:
    for days in (0, 4, 8):
        await desk.sent(hearing, *([READER] if not days else []), days=days)
        await comes_back(hearing, path_of_last(hearing), **FULL)
        expected = ("ended", "bounced") if days == 8 else ("active", None)
        assert await desk.standing(hearing) == expected
        hearing.clock.forward(days=4)
    assert await desk.states(hearing) == ["counted", "counted", "suppressed"]


async def test_three_full_mailboxes_within_a_week_are_not_enough(hearing: World) -> None:
    for days in (0, 2, 4):
        await desk.sent(hearing, *([READER] if not days else []), days=days)
        await comes_back(hearing, path_of_last(hearing), **FULL)
        hearing.clock.forward(days=2)
    assert await desk.standing(hearing) == ("active", None)


async def test_a_notice_of_delay_is_noted_and_never_counted(hearing: World) -> None:
    late = {"status": "4.4.1", "said": "connection timed out", "action": "delayed"}
    for days in (0, 4, 8, 12):
        await desk.sent(hearing, *([READER] if not days else []), days=days)
        await comes_back(hearing, path_of_last(hearing), **late)
        hearing.clock.forward(days=4)
    assert {one.meaning for one in await desk.reports(hearing)} == {"delayed"}
    assert await desk.states(hearing) == ["noted"] * 4
    async with hearing.db.reading() as session:
        assert (await store.counts(session, (await desk.reports(hearing))[0].issue_id or 0))[
            "bounced_soft"
        ] == 0
    await comes_back(hearing, path_of_last(hearing), status="4.4.7", said="delivery time expired")
    assert (await desk.states(hearing))[-1] == "counted"
    assert await desk.standing(hearing) == ("active", None)


async def test_an_issue_that_is_only_late_does_not_begin_the_count_anew(hearing: World) -> None:
    late = {"status": "4.4.1", "said": "connection timed out", "action": "delayed"}
    for days in (0, 4, 8, 12):
        await desk.sent(hearing, *([READER] if not days else []), days=days)
        await comes_back(hearing, path_of_last(hearing), **(late if days == 4 else FULL))
        hearing.clock.forward(days=4)
    assert await desk.states(hearing) == ["counted", "noted", "counted", "suppressed"]


async def test_a_mail_that_came_through_between_begins_the_count_anew(hearing: World) -> None:
    for days in (0, 4, 8, 12):
        await desk.sent(hearing, *([READER] if not days else []), days=days)
        if days != 4:
            await comes_back(hearing, path_of_last(hearing), **FULL)
        hearing.clock.forward(days=4)
    assert await desk.states(hearing) == ["counted"] * 3
    assert await desk.standing(hearing) == ("active", None)


async def test_a_policy_block_speaks_against_nobody(hearing: World) -> None:
    await desk.sent(hearing, READER)
    await comes_back(
        hearing, path_of_last(hearing), status="5.7.1", said="550 5.7.1 blocked: your IP is on a block list"
    )
    assert await desk.states(hearing) == ["noted"]
    assert await desk.standing(hearing) == ("active", None)


async def test_what_a_suppressed_reader_is_still_owed_is_taken_back(hearing: World) -> None:
    await hearing.reader(READER, "daily", "weekly")
    await desk.sent(hearing)
    second = await hearing.send(await hearing.issue("weekly"))
    async with hearing.working():
        await hearing.until(second)
    async with hearing.db.transaction() as session:  # as after a 4xx
        await session.execute(
            update(delivery).where(delivery.c.mailing_id == second).values(state="deferred")
        )
        await session.execute(
            update(mailings.mailing).where(mailings.mailing.c.id == second).values(state="sending")
        )
    await hearing.api.post(f"/mailings/{second}/reconcile")
    await comes_back(hearing, hearing.sink.mails[0].sender)
    assert (await hearing.books_balance(second))["suppressed"] == 1
    assert (await hearing.books_balance(1))["sent"] == 1


async def test_what_comes_back_proves_that_an_uncertain_mail_was_taken(hearing: World) -> None:
    await desk.sent(hearing, READER)
    async with hearing.db.transaction() as session:
        await session.execute(update(delivery).values(state="uncertain"))
    await hearing.api.post("/mailings/1/reconcile")
    await comes_back(hearing, path_of_last(hearing), **FULL)
    counts = await hearing.books_balance(1)
    assert (counts["sent"], counts["uncertain"]) == (1, 0)


async def test_a_mail_to_the_unsubscribe_address_leaves_that_edition(hearing: World) -> None:
    await hearing.reader(READER, "daily", "weekly")
    await desk.sent(hearing)
    head = hearing.sink.mails[-1].data.decode().partition("\r\n\r\n")[0].replace("\r\n ", " ")
    address = head.partition("mailto:unsubscribe+")[2].partition(">")[0]
    await returns.take_mail(
        hearing.db,
        f"From: {READER}\r\nSubject: x\r\n\r\nplease".encode(),
        f"unsubscribe+{address}",
        hearing.clock(),
    )
    await desk.act(hearing)
    assert await desk.states(hearing) == ["left"]
    assert await desk.standing(hearing) == ("active", None)
    (found,) = (await hearing.api.get("/subscribers?q=lin")).json()["items"]
    assert found["editions"] == ["weekly"]


async def test_a_returned_letter_is_known_too(hearing: World) -> None:
    await reading.ask(hearing, READER)
    mails = await hearing.letters(1)
    await comes_back(hearing, mails[0].sender)
    assert await desk.standing(hearing) == ("ended", "bounced")


async def test_after_a_hard_bounce_one_confirmation_in_thirty_days_goes_out(hearing: World) -> None:
    await desk.sent(hearing, READER)
    await comes_back(hearing, path_of_last(hearing))
    hearing.clock.forward(days=2)
    await reading.ask(hearing, READER)
    mails = await hearing.letters(len(hearing.sink.mails) + 1)
    await comes_back(hearing, mails[-1].sender)
    made = []
    for days in (2, 2, 25, 2, 2):  # until the days 4, 6, 31, 33 and 35 after the first bounce
        hearing.clock.forward(days=days)
        await reading.ask(hearing, READER)
        async with hearing.db.reading() as session:
            made.append((await session.scalars(select(col(Letter.kind)))).all().count("confirm"))
    assert made == [1, 1, 1, 2, 2]


async def test_a_relay_that_refuses_an_unknown_user_at_once_ends_the_reader(hearing: World) -> None:
    hearing.sink.script = sinking.at("rcpt", sinking.reply("550 5.1.1 no such user here"))
    issue = await desk.sent(hearing, READER)
    await desk.act(hearing)
    assert await desk.standing(hearing) == ("ended", "bounced")
    assert await desk.states(hearing) == ["suppressed"]
    assert (await hearing.books_balance(1))["refused"] == 1
    assert "refused it" in await desk.why(hearing, issue)


async def test_an_automatic_reply_is_never_answered(hearing: World) -> None:
    await desk.sent(hearing, READER)
    before = len(hearing.sink.mails)
    raw = (
        f"From: {READER}\r\nTo: x\r\nSubject: Out of office\r\nAuto-Submitted: auto-replied\r\n\r\nI am away."
    )
    await returns.take_mail(hearing.db, raw.encode(), path_of_last(hearing), hearing.clock())
    async with hearing.working():
        await desk.act(hearing)
    assert len(hearing.sink.mails) == before
    assert await desk.standing(hearing) == ("active", None)


async def test_the_same_mail_twice_is_kept_once(hearing: World) -> None:
    await desk.sent(hearing, READER)
    for _ in range(3):
        await comes_back(hearing, path_of_last(hearing), **FULL)
    assert await desk.states(hearing) == ["counted"]


async def test_nothing_of_the_reader_is_left_once_it_is_known_whose_it_was(hearing: World) -> None:
    await desk.sent(hearing, READER)
    await comes_back(hearing, path_of_last(hearing), said=f"550 5.1.1 <{READER}> no such user here")
    (report,) = await desk.reports(hearing)
    assert "‹address›" in report.text
    assert READER not in repr(report.model_dump())
    async with hearing.db.transaction() as session:
        await erase.erase(session, report.subscriber_id or 0, hearing.clock())
        await store.forget_old(session, hearing.clock() + timedelta(days=30, seconds=1))
    file = Path(hearing.db.url.removeprefix("sqlite:///"))
    async with hearing.db.engine.connect() as connection:
        await connection.exec_driver_sql("COMMIT")
        await connection.exec_driver_sql("VACUUM")
        await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        await connection.exec_driver_sql("BEGIN")
    assert READER.encode() not in file.read_bytes()


async def test_what_nobody_can_place_is_kept_for_thirty_days(hearing: World) -> None:
    await comes_back(hearing, f"daily@{BOUNCES}")
    for days, left in ((29, 1), (31, 0)):
        async with hearing.db.transaction() as session:
            await store.forget_old(session, hearing.clock() + timedelta(days=days))
        assert len(await desk.reports(hearing)) == left


async def test_a_key_for_returned_mail_opens_that_door_and_no_other(hearing: World) -> None:
    await desk.sent(hearing, READER)
    made = await hearing.api.post("/keys", json={"name": "mx", "scope": "inbound"})
    key = {"Authorization": f"Bearer {made.json()['key']}"}
    path = path_of_last(hearing)
    url = "/api/v1/hooks/mail"
    answer = await hearing.web.post(url, content=desk.returned(path), headers=key, params={"to": path})
    assert (answer.status_code, answer.json()) == (202, {"kinds": ["bounce"]})
    assert (await hearing.web.post(url, content=desk.returned(path))).status_code == 401
    assert (await hearing.web.get("/api/v1/reports", headers=key)).status_code == 403
    assert (await hearing.web.post(url, content=b" \r\n", headers=key)).status_code == 422
    await desk.act(hearing)
    (shown,) = (await hearing.api.get("/reports?kind=bounce&state=suppressed")).json()["items"]
    detail = (await hearing.api.get(f"/reports/{shown['id']}")).json()
    assert detail["raw"].startswith("Return-Path: <>")
    assert (await hearing.api.get("/reports/999")).status_code == 404


async def test_a_report_that_breaks_is_set_aside_and_the_next_is_acted_on(hearing: World) -> None:
    await desk.sent(hearing, READER)
    at = hearing.clock()
    async with hearing.db.transaction() as session:  # a delivery whose issue is not there, which cannot be
        session.add(Delivery(issue_id=99, subscriber_id=1, mailing_id=1, state="sent", due_at=at, done_at=at))
        session.add(
            KeptReport(origin="smtp", event_id="x", kind="bounce", action="suppress", meaning="bad-mailbox",
                       received_at=at, issue_id=99, subscriber_id=1)
        )  # fmt: skip
    await comes_back(hearing, path_of_last(hearing))
    assert await desk.states(hearing) == ["stray", "suppressed"]


async def test_reports_readers_editors_and_timers_at_once_end_all_and_nobody_waits_for_ever(
    postgres_url: str, tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    async with house_at(
        tmp_path, empty_database, sink, database_url=postgres_url, bounce_domain=BOUNCES
    ) as world:
        people = await world.readers(24, "daily", "weekly")
        await desk.sent(world)
        second = await world.send(await world.issue("weekly"))
        await world.worker().chores.advance()  # owed to all, handed to nobody yet
        paths = [mail.sender for mail in world.sink.mails if mail.recipient in people]
        for path in paths:
            await returns.take_mail(world.db, desk.returned(path), path, world.clock())
        await asyncio.gather(
            desk.act(world),
            desk.act(world),
            *(_leaves(world, address) for address in people[::2]),
            *(_is_suppressed(world, address) for address in people[1::3]),
            *(_is_erased(world, address) for address in people[2::5]),
            *(_looked_after(world) for _ in range(6)),
        )
        await desk.act(world)
        counts = await world.books_balance(second)
        assert counts["owed"] == 0
        assert counts["suppressed"] + counts["withdrawn"] == len(people)
        assert "waiting" not in await desk.states(world)


async def _leaves(world: World, address: str) -> None:
    async with world.db.transaction() as session:
        who = await subscribers.by_key(session, address)
        if who is not None and await subscribers.held(session, who.id or 0) is not None:
            await subscribe.leave(session, who, None, Origin("test"), world.clock())


async def _is_suppressed(world: World, address: str) -> None:
    async with world.db.transaction() as session:
        await suppress.by_editor(session, world.house.settings, address, "", world.clock())


async def _is_erased(world: World, address: str) -> None:
    async with world.db.transaction() as session:
        await erase.by_address(session, world.house.settings, address, world.clock())


async def _looked_after(world: World) -> None:
    async with world.db.transaction() as session:
        await deliver.look_after(session, world.clock())


@pytest.mark.parametrize(("words", "limit"), [(Kind, 12), (ReportState, 10), (Action, 8)])
def test_every_word_fits_its_column(words: type[StrEnum], limit: int) -> None:
    assert max(map(len, words)) <= limit
