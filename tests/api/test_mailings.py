"""Editors watch a mailing by HTTP, steer it, and learn of each reader whether and why."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from app.delivery import ledger, mailings
from app.delivery.models import Delivery, Mailing, State, Tally
from app.flows import subscribe, suppress
from app.issues import store as editions
from app.issues import store as issues
from app.subscribers import consent, store
from app.subscribers.models import Subscriber
from tests import sink
from tests.api.problems import faults, holding, problem
from tests.sink import at, reply
from tests.world import World

COUNTS = ("owed", "in_flight", "sent", "deferred", "refused", "failed", "uncertain", "withdrawn", "suppressed",
          "expired")  # fmt: skip


def later(world: World, **by: float) -> str:
    return (world.clock() + timedelta(**by)).isoformat()


async def deliveries(world: World, mailing: int, **params: Any) -> list[dict[str, Any]]:
    """Return every delivery of a mailing, page by page."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        given = params | ({"cursor": cursor} if cursor else {})
        answer = await world.api.get(f"/mailings/{mailing}/deliveries", params=given)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["items"]) <= params.get("limit", 50)
        found += page["items"]
        cursor = page["next"]
    return found


async def why(world: World, issue: int, address: str) -> dict[str, Any]:
    answer = await world.api.post(f"/issues/{issue}/why", json={"address": address})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["address"] == address
    assert found["sentence"].endswith(".")
    return found


async def test_a_mailing_tells_its_balanced_counts(world: World) -> None:
    await world.readers(3)
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    shown = await world.mailing(mailing)
    assert shown["state"] == "finished"
    assert shown["audience"] == sum(shown[name] for name in COUNTS) == shown["sent"] == 3
    assert [shown[name] for name in ("bounced_hard", "bounced_soft", "complained", "left")] == [0, 0, 0, 0]
    assert shown["eta"] is None
    assert shown["problem"] is None
    assert datetime.fromisoformat(shown["finished_at"]) >= datetime.fromisoformat(shown["started_at"])


async def test_mailings_page_by_cursor(world: World) -> None:
    made = []
    for days in range(3):
        issue = await world.issue(day=datetime(2026, 10, 26 + days, tzinfo=UTC).date())
        made.append(await world.send(issue, at=later(world, days=1)))
    first = (await world.api.get("/mailings", params={"limit": 2})).json()
    second = (await world.api.get("/mailings", params={"limit": 2, "cursor": first["next"]})).json()
    assert [one["id"] for one in first["items"] + second["items"]] == made
    assert second["next"] is None


async def test_a_mailing_that_is_not_there_is_a_404_at_every_door(world: World) -> None:
    for path in ("", "/events", "/deliveries"):
        problem(await world.api.get(f"/mailings/9{path}"), 404)
    for act in ("pause", "resume", "cancel", "retry", "reconcile"):
        problem(await world.api.post(f"/mailings/9/{act}"), 404)
    problem(await world.api.patch("/mailings/9", json={"at": later(world, hours=1)}), 404)


async def test_deliveries_say_who_and_what_became_of_each(world: World) -> None:
    names = await world.readers(7)

    def script(event: sink.Event) -> sink.Action | None:
        if event.stage == "rcpt" and event.recipient == "r3@example.com":
            return reply("550 5.1.1 no such user")
        return None

    world.sink.script = script
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    found = await deliveries(world, mailing, limit=3)
    assert [one["address"] for one in found] == names
    ids = [one["subscriber_id"] for one in found]
    assert ids == sorted(set(ids))
    sent = [one for one in found if one["state"] == "sent"]
    assert len(sent) == 6
    assert all(
        one["code"] == 250 and one["relay"] and one["attempts"] == 1 and one["done_at"] for one in sent
    )
    refused = await deliveries(world, mailing, state="refused")
    assert [(one["address"], one["code"]) for one in refused] == [("r3@example.com", 550)]
    assert "5.1.1" in refused[0]["reply"]
    assert await deliveries(world, mailing, state="owed") == []


async def test_pages_of_deliveries_hold_still_while_rows_move(world: World) -> None:
    await world.readers(6)
    mailing = await world.send(await world.issue())
    async with world.db.transaction() as session:
        one = (await mailings.under_way(session))[0]
        await world.enlist(session, one.id or 0)
    first = (await world.api.get(f"/mailings/{mailing}/deliveries", params={"limit": 3})).json()
    async with world.db.transaction() as session:
        gone = first["items"][0]["subscriber_id"]
        await session.execute(delete(Subscriber).where(Subscriber.__table__.c.id == gone))  # type: ignore[attr-defined]
    params = {"limit": 3, "cursor": first["next"]}
    second = (await world.api.get(f"/mailings/{mailing}/deliveries", params=params)).json()
    assert not {one["subscriber_id"] for one in first["items"]} & {
        one["subscriber_id"] for one in second["items"]
    }
    again = (await world.api.get(f"/mailings/{mailing}/deliveries", params={"limit": 1})).json()
    assert (again["items"][0]["subscriber_id"], again["items"][0]["address"]) == (gone, None)


@pytest.mark.parametrize("query", ["state=lost", "limit=0", "limit=201", "limit=x", "cursor=zzz"])
async def test_a_wrong_question_on_deliveries_is_refused_by_its_field(world: World, query: str) -> None:
    mailing = await world.send(await world.issue())
    answer = await world.api.get(f"/mailings/{mailing}/deliveries?{query}")
    assert list(faults(answer)) == [query.partition("=")[0]]


async def test_pausing_and_resuming_twice_is_harmless(world: World) -> None:
    await world.readers(2)
    mailing = await world.send(await world.issue(), at=later(world, hours=1))
    for _ in range(2):
        paused = (await world.api.post(f"/mailings/{mailing}/pause")).json()
        assert (paused["state"], paused["problem"]) == ("paused", "paused by an editor")
    for _ in range(2):
        resumed = (await world.api.post(f"/mailings/{mailing}/resume")).json()
        assert (resumed["state"], resumed["problem"]) == ("scheduled", None)
    for _ in range(2):
        assert (await world.api.post(f"/mailings/{mailing}/cancel")).json()["state"] == "cancelled"
    problem(await world.api.post(f"/mailings/{mailing}/resume"), 409)
    problem(await world.api.post(f"/mailings/{mailing}/pause"), 409)
    problem(await world.api.post(f"/mailings/{mailing}/retry"), 409)


async def test_a_finished_mailing_is_neither_paused_nor_cancelled(world: World) -> None:
    await world.readers(1)
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    for act in ("pause", "resume", "cancel"):
        problem(await world.api.post(f"/mailings/{mailing}/{act}"), 409)
    assert (await world.api.post(f"/mailings/{mailing}/retry")).json()["state"] == "finished"


async def test_a_paused_mailing_sends_nothing_and_goes_on_where_it_stopped(world: World) -> None:
    await world.readers(5)
    mailing = await world.send(await world.issue())
    await world.api.post(f"/mailings/{mailing}/pause")
    async with world.working():
        await asyncio.sleep(0.3)
        assert world.sink.mails == []
        await world.api.post(f"/mailings/{mailing}/resume")
        await world.until(mailing)
    assert (await world.books_balance(mailing))["sent"] == 5


async def test_an_unknown_act_is_no_act(world: World) -> None:
    mailing = await world.send(await world.issue())
    problem(await world.api.post(f"/mailings/{mailing}/explode"), 404, 422)
    problem(await world.api.get(f"/mailings/{mailing}/pause"), 405)


async def test_a_mailing_gets_another_time_until_it_has_started(world: World) -> None:
    issue = await world.issue()
    mailing = await world.send(issue, at=later(world, hours=1))
    order = {"at": "2026-10-27T08:00:00", "tz": "Asia/Shanghai"}
    for _ in range(2):
        moved = await world.api.patch(f"/mailings/{mailing}", json=order)
        assert moved.status_code == 200
        assert datetime.fromisoformat(moved.json()["scheduled_at"]) == datetime(2026, 10, 27, tzinfo=UTC)
    assert (await world.api.post(f"/issues/{issue}/send", json=order)).status_code == 200
    assert "tz" in faults(await world.api.patch(f"/mailings/{mailing}", json={"at": "2026-10-27T08:00:00"}))
    assert "at" in faults(await world.api.patch(f"/mailings/{mailing}", json={}))
    far = {"at": "9999-12-31T23:59:59-12:00"}
    assert "at" in faults(await world.api.patch(f"/mailings/{mailing}", json=far))
    await world.api.patch(f"/mailings/{mailing}", json={"at": later(world, seconds=-1)})
    await world.deliver(mailing)
    problem(await world.api.patch(f"/mailings/{mailing}", json=order), 409)


async def test_a_time_long_past_is_refused_and_a_moment_ago_is_now(world: World) -> None:
    await world.readers(1)
    issue = await world.issue()
    assert "at" in faults(await world.api.post(f"/issues/{issue}/send", json={"at": later(world, hours=-7)}))
    just = await world.api.post(f"/issues/{issue}/send", json={"at": later(world, hours=-1)})
    assert (just.status_code, just.json()["state"]) == (202, "preparing")


async def test_retry_owes_again_what_failed_or_expired_and_never_what_was_refused(world: World) -> None:
    await world.readers(4)
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    async with world.db.transaction() as session:
        for number, state in enumerate((State.EXPIRED, State.FAILED, State.REFUSED), 1):
            await ledger.move(session, ledger.delivery.c.subscriber_id == number, state, world.clock())
    world.sink.forget()
    for _ in range(2):
        shown = (await world.api.post(f"/mailings/{mailing}/retry")).json()
        assert (shown["state"], shown["owed"], shown["refused"]) == ("sending", 2, 1)
    await world.deliver(mailing)
    assert sorted(world.sink.recipients()) == ["r0@example.com", "r1@example.com"]
    assert await world.books_balance(mailing) | {"sent": 3, "refused": 1} == await world.books_balance(
        mailing
    )


async def test_reconcile_finds_a_broken_tally_and_mends_it(world: World) -> None:
    await world.readers(5)
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    async with world.db.transaction() as session:
        await session.execute(update(Tally).values(sent=Tally.__table__.c.sent + 2, refused=1))  # type: ignore[attr-defined]
        await session.execute(update(Mailing).values(audience=99))
    broken = await world.mailing(mailing)
    assert broken["sent"] != 5
    answer = (await world.api.post(f"/mailings/{mailing}/reconcile")).json()
    found = {one["state"]: (one["tally"], one["rows"]) for one in answer["differences"]}
    assert found["sent"] == (broken["sent"], 5)
    assert found["refused"] == (broken["refused"], 0)
    assert answer["mailing"]["audience"] == answer["mailing"]["sent"] == 5
    assert (await world.books_balance(mailing))["sent"] == 5
    assert (await world.api.post(f"/mailings/{mailing}/reconcile")).json()["differences"] == []


async def test_reconcile_mends_tallies_that_were_lost(world: World) -> None:
    await world.readers(2)
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    async with world.db.transaction() as session:
        await session.execute(delete(Tally))
    answer = (await world.api.post(f"/mailings/{mailing}/reconcile")).json()
    assert answer["differences"] == [{"state": "sent", "tally": 0, "rows": 2}]
    assert (await world.books_balance(mailing))["sent"] == 2


def events(text: str) -> list[dict[str, Any]]:
    """Return the mailings that a stream of server-sent events told."""
    found = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if lines and not lines[0].startswith(":"):
            assert lines[0] == "event: mailing"
            assert len(lines) == 2
            found.append(json.loads(lines[1].removeprefix("data: ")))
    return found


async def test_events_tell_each_change_until_the_end(world: World) -> None:
    await world.readers(20)
    mailing = await world.send(await world.issue())
    watching = asyncio.create_task(world.api.get(f"/mailings/{mailing}/events"))
    await world.deliver(mailing)
    answer = await asyncio.wait_for(watching, 10)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    told = events(answer.text)
    assert told[0]["state"] in ("preparing", "sending")
    assert (told[-1]["state"], told[-1]["sent"]) == ("finished", 20)
    for one in told:
        assert one["audience"] == sum(one[name] for name in COUNTS)


async def test_events_end_when_the_key_is_revoked_and_when_the_program_stops(world: World) -> None:
    mailing = await world.send(await world.issue(), at=later(world, hours=1))
    async with holding(world, "editor") as other:
        watching = asyncio.create_task(other.get(f"/mailings/{mailing}/events"))
        await asyncio.sleep(0.2)
        key = (await world.api.get("/keys")).json()[-1]["id"]
        assert (await world.api.delete(f"/keys/{key}")).status_code == 204
        assert len(events((await asyncio.wait_for(watching, 10)).text)) == 1
    watching = asyncio.create_task(world.api.get(f"/mailings/{mailing}/events"))
    await asyncio.sleep(0.2)
    world.house.stopping.set()
    assert len(events((await asyncio.wait_for(watching, 10)).text)) == 1


async def test_why_tells_what_became_of_a_delivery_in_every_state(world: World) -> None:
    await world.readers(1)
    issue = await world.issue()
    mailing = await world.send(issue)
    await world.deliver(mailing)
    told = await why(world, issue, "R0@example.com")
    assert told["verdict"] == "sent"
    assert told["delivery"]["code"] == 250
    assert told["delivery"]["address"] == "r0@example.com"
    assert "took it on 2026-10-26" in told["sentence"]
    for state in State:
        values: dict[str, Any] = {"state": state.value, "reason": "a reason", "code": None, "done_at": None}
        async with world.db.transaction() as session:
            await session.execute(update(Delivery).values(values))
        told = await why(world, issue, "r0@example.com")
        assert told["verdict"] == told["delivery"]["state"] == state
        assert "None" not in told["sentence"]


async def test_why_says_that_the_mailing_is_paused(world: World) -> None:
    await world.readers(1)
    issue = await world.issue()
    mailing = await world.send(issue)
    async with world.db.transaction() as session:
        await world.enlist(session, (await mailings.under_way(session))[0].id or 0)
    await world.api.post(f"/mailings/{mailing}/pause")
    told = await why(world, issue, "r0@example.com")
    assert told["verdict"] == "owed"
    assert "paused by an editor" in told["sentence"]


async def test_why_names_the_rule_that_left_somebody_out(world: World) -> None:
    issue = await world.issue()
    now = world.clock()
    verdicts = {
        "would": "would@example.com",
        "not_chosen": "weekly@example.com",
        "unknown": "who@example.com",
    }
    for verdict in ("would", "ended", "paused", "late"):
        await world.reader(f"{verdict}@example.com")
    await world.reader("weekly@example.com", "weekly")
    async with world.db.transaction() as session:
        asked = subscribe.Request("pending@example.com", ("daily",), "zh", store.Origin("form"))
        await subscribe.ask(session, world.house.settings, asked, await issues.editions(session), now)
        await suppress.by_editor(session, world.house.settings, "suppressed@example.com", "", now)
        ended = await store.by_key(session, "ended@example.com")
        paused = await store.by_key(session, "paused@example.com")
        assert ended is not None
        assert paused is not None
        ended.state, ended.reason = consent.State.ENDED, consent.Reason.LEFT
        paused.state, paused.paused_until = consent.State.PAUSED, now + timedelta(days=1)
    verdicts |= {name: f"{name}@example.com" for name in ("ended", "paused", "pending", "suppressed")}
    for verdict, address in verdicts.items():
        assert (await why(world, issue, address))["verdict"] == verdict
    mailing = await world.send(issue)
    await world.deliver(mailing)
    await world.reader("newcomer@example.com")
    assert (await why(world, issue, "newcomer@example.com"))["verdict"] == "late"
    world.clock.forward(days=2)  # she was paused when the audience was frozen, and is not any more
    told = await why(world, issue, "paused@example.com")
    assert (told["verdict"], told["delivery"]) == ("paused", None)
    assert "address" in faults(await world.api.post(f"/issues/{issue}/why", json={"address": "nobody"}))


async def test_why_says_that_a_mailing_was_cancelled_before_anybody_was_owed_it(world: World) -> None:
    await world.readers(1)
    issue = await world.issue()
    mailing = await world.send(issue)
    await world.api.post(f"/mailings/{mailing}/cancel")
    assert (await why(world, issue, "r0@example.com"))["verdict"] == "cancelled"
    await world.deliver(await world.send(issue))
    assert (await why(world, issue, "r0@example.com"))["verdict"] == "sent"


async def test_who_leaves_is_counted_beside_the_sum(world: World) -> None:
    await world.readers(2)
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    async with world.db.transaction() as session:
        who = await store.by_key(session, "r0@example.com")
        assert who is not None
        await subscribe.leave(session, who, None, store.Origin("mail"), world.clock())
    shown = await world.mailing(mailing)
    assert (shown["left"], shown["sent"], shown["audience"]) == (1, 2, 2)


async def test_who_leaves_another_edition_is_not_counted(world: World) -> None:
    await world.readers(1, "daily", "weekly")
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    async with world.db.transaction() as session:
        who = await store.by_key(session, "r0@example.com")
        weekly = (await editions.edition(session, "weekly")).id
        assert who is not None
        await subscribe.leave(session, who, weekly, store.Origin("page"), world.clock())
    assert (await world.mailing(mailing))["left"] == 0


async def test_a_greylisted_reader_is_shown_as_deferred_with_the_time_of_the_next_try(world: World) -> None:
    await world.readers(1)
    issue = await world.issue()
    world.sink.script = at("rcpt", reply("451 4.7.1 not now"), times=1)
    mailing = await world.send(issue)
    async with world.working(), asyncio.timeout(10):
        while (await world.mailing(mailing))["deferred"] != 1:
            await asyncio.sleep(0.05)
    told = await why(world, issue, "r0@example.com")
    assert told["verdict"] == "deferred"
    assert "4.7.1" in told["sentence"]
    assert datetime.fromisoformat(told["delivery"]["due_at"]) > world.clock()


async def test_what_was_cancelled_before_its_time_goes_at_once_when_it_is_sent_again(world: World) -> None:
    await world.reader("r@example.com", "daily")
    issue = await world.issue()
    mailing = await world.send(issue, at="2026-10-30T08:00:00Z")
    assert (await world.api.post(f"/mailings/{mailing}/cancel")).json()["state"] == "cancelled"
    again = await world.api.post(f"/issues/{issue}/send")
    assert (again.status_code, again.json()["id"], again.json()["state"]) == (202, mailing, "preparing")
    await world.deliver(mailing)
    problem(await world.api.post(f"/issues/{issue}/send", json={"at": "2026-10-31T08:00:00Z"}), 409)
