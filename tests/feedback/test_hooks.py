"""A provider's webhook comes to the door: verified, kept, acted on once, and told to whoever asks why."""

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.errors import Forbidden, Unavailable
from app.feedback.fetching import Documents, load_by_https
from app.feedback.providers import PROVIDERS
from app.flows import returns
from app.main import LARGER
from tests.feedback import desk, hooks
from tests.feedback.desk import READER
from tests.programs import Shop, stopped
from tests.sink import Sink
from tests.world import World, house_at

WORDS = "550 5.1.1 no such user here"


@pytest.fixture
async def open_world(
    tmp_path: Path, empty_database: Path, sink: Sink, request: pytest.FixtureRequest
) -> AsyncIterator[World]:
    """A world with all doors open, whose relay is the provider's that the test names."""
    relay = f"smtp+plain://127.0.0.1:{sink.port}?connections=5&hook={getattr(request, 'param', 'sendgrid')}"
    async with house_at(tmp_path, empty_database, sink, relays=relay, **hooks.SETTINGS) as world:
        yield desk.equip(world)


async def handed(world: World) -> tuple[str, str]:
    """Return the Message-ID of the last mail that went out, and the relay's id for it."""
    whole = world.sink.mails[-1].data.decode()
    (line,) = [line for line in whole.splitlines() if line.lower().startswith("message-id:")]
    answer = await world.api.get("/mailings/1/deliveries")
    return line.partition(":")[2].strip(), answer.json()["items"][0]["relay_id"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_provider_that_is_not_set_up_is_not_there(world: World, provider: str) -> None:
    assert await desk.post(world, provider, hooks.payload(provider, "hard_bounce")[0]) == 404
    assert (await world.web.post("/api/v1/hooks/nobody", content=b"{}")).status_code == 404
    assert not await desk.reports(world)


@pytest.mark.parametrize("open_world", PROVIDERS, indirect=True)
async def test_a_hard_bounce_ends_the_reader_and_why_tells_it(
    open_world: World, request: pytest.FixtureRequest
) -> None:
    provider = request.node.callspec.params["open_world"]
    issue = await desk.sent(open_world, READER)
    assert await desk.post(open_world, provider, hooks.payload(provider, "hard_bounce")[0]) == 200
    assert await desk.states(open_world) == ["waiting"]
    await desk.act(open_world)
    assert await desk.standing(open_world) == ("ended", "bounced")
    assert await desk.barred(open_world) == [(READER, "bounced")]
    said = await desk.why(open_world, issue)
    assert "took it on 2026-10-26" in said
    assert "it came back: “550 5.1.1 " in said
    assert "no such user here” (the mailbox does not exist)" in said
    assert "so the address is not mailed any more." in said
    assert READER not in said
    (mailing,) = (await open_world.api.get("/mailings")).json()["items"]
    assert (mailing["sent"], mailing["bounced_hard"], mailing["bounced_soft"]) == (1, 1, 0)


@pytest.mark.parametrize("open_world", PROVIDERS, indirect=True)
async def test_every_payload_ten_times_out_of_order_has_one_effect(
    open_world: World, request: pytest.FixtureRequest
) -> None:
    provider = request.node.callspec.params["open_world"]
    await desk.sent(open_world, READER, "wei@example.com")
    names = [name for owner, name in hooks.payloads() if owner == provider]
    calls = [(name, hooks.post(provider, hooks.payload(provider, name)[0], open_world.clock(), name))
             for name in names] * 10  # fmt: skip
    random.Random(5).shuffle(calls)
    for place, (_, posted) in enumerate(calls):
        answer = await open_world.web.post(
            f"/api/v1/hooks/{provider}", content=posted.body, headers=dict(posted.headers)
        )
        assert answer.status_code == 200
        if place % 9 == 0:
            await desk.act(open_world)
    await desk.act(open_world)
    kept = [one for name in names for one in hooks.payload(provider, name)[1] if one[0] != "other"]
    assert len(await desk.reports(open_world)) == len(kept)
    assert [address for address, _ in await desk.barred(open_world)] == [READER]
    assert await desk.standing(open_world, "wei@example.com") == ("active", None)
    await open_world.books_balance(1)


async def test_a_mail_is_known_by_our_message_id_though_the_address_is_another(open_world: World) -> None:
    await desk.sent(open_world, READER)
    event = hooks.payload("sendgrid", "hard_bounce")[0][0]
    message_id, _ = await handed(open_world)
    await desk.post(open_world, "sendgrid", [event | {"email": "alias@example.net", "smtp-id": message_id}])
    await desk.act(open_world)
    assert await desk.standing(open_world) == ("ended", "bounced")


async def test_a_mail_is_known_by_the_relay_s_own_id(open_world: World) -> None:
    await desk.sent(open_world, READER)
    event = hooks.payload("sendgrid", "hard_bounce")[0][0]
    _, relay_id = await handed(open_world)
    assert relay_id
    changed = event | {"email": "alias@example.net", "smtp-id": "", "sg_message_id": f"{relay_id}.filter1.2"}
    await desk.post(open_world, "sendgrid", [changed])
    await desk.act(open_world)
    assert await desk.standing(open_world) == ("ended", "bounced")


async def test_our_message_id_is_believed_before_the_relay_s_id_and_that_before_the_address(
    open_world: World,
) -> None:
    await desk.sent(open_world, READER, "wei@example.com", "mei@example.com")
    rows = (await open_world.api.get("/mailings/1/deliveries")).json()["items"]
    ids = {one["address"]: one["relay_id"] for one in rows}
    (first,) = [mail for mail in open_world.sink.mails if mail.recipient == READER]
    message_id = first.data.decode().partition("Message-ID: ")[2].split()[0]
    event = hooks.payload("sendgrid", "hard_bounce")[0][0] | {"email": "mei@example.com"}
    by_relay = event | {"sg_message_id": f"{ids['wei@example.com']}.filter1.2"}
    for place, (each, ended) in enumerate(
        [
            (by_relay | {"smtp-id": message_id}, READER),
            (by_relay | {"smtp-id": ""}, "wei@example.com"),
            (event | {"smtp-id": "", "sg_message_id": "unknown.1"}, "mei@example.com"),
        ]
    ):
        assert await desk.post(open_world, "sendgrid", [each], str(place)) == 200
        await desk.act(open_world)
        assert (await desk.barred(open_world))[-1] == (ended, "bounced")


@pytest.mark.parametrize(
    ("relay", "given", "said"),
    [
        ("hook=sendgrid", {}, ["BROADSHEET_HOOK_SENDGRID is not set"]),
        ("hook=ses", {"hook_ses": hooks.TOPIC}, []),
        ("connections=5", {}, []),
    ],
)
async def test_a_relay_whose_provider_has_no_secret_is_warned_of(
    tmp_path: Path, empty_database: Path, sink: Sink, relay: str, given: dict[str, str], said: list[str]
) -> None:
    relays = f"smtp+plain://127.0.0.1:{sink.port}?{relay}"
    async with house_at(tmp_path, empty_database, sink, relays=relays, **given) as world:
        doubts = returns.doubts(world.house.settings)
    assert len(doubts) == len(said)
    assert all(words in doubt for words, doubt in zip(said, doubts, strict=True))


def test_the_start_says_that_webhooks_are_not_heard(shop: Shop, sink: Sink) -> None:
    relays = f"smtp+plain://127.0.0.1:{sink.port}?hook=brevo"
    program, _ = shop.serve("serve", BROADSHEET_RELAYS=relays)
    code, _, said = stopped(program)
    assert code == 0
    assert f"The relay 127.0.0.1:{sink.port} names hook=brevo, but BROADSHEET_HOOK_BREVO is not set" in said


async def test_a_message_id_that_we_did_not_sign_places_nothing(open_world: World) -> None:
    await desk.sent(open_world, READER)
    message_id, _ = await handed(open_world)
    head, _, domain = message_id.partition("@")
    forged = f"{head[:-1]}{'A' if head[-1] != 'A' else 'B'}@{domain}"
    event = hooks.payload("sendgrid", "hard_bounce")[0][0]
    await desk.post(open_world, "sendgrid", [event | {"email": "x@example.net", "smtp-id": forged}])
    await desk.act(open_world)
    assert await desk.states(open_world) == ["stray"]
    assert await desk.standing(open_world) == ("active", None)


async def test_one_provider_does_not_speak_for_the_relay_of_another(open_world: World) -> None:
    await desk.sent(open_world, READER)
    await desk.post(open_world, "brevo", hooks.payload("brevo", "hard_bounce")[0])
    await desk.act(open_world)
    assert await desk.states(open_world) == ["stray"]
    assert await desk.standing(open_world) == ("active", None)
    shown = (await open_world.api.get("/reports?state=stray")).json()["items"]
    assert [one["address"] for one in shown] == [READER]


async def test_leaving_at_the_provider_leaves_all_editions(open_world: World) -> None:
    await open_world.reader(READER, "daily", "weekly")
    await desk.sent(open_world)
    await desk.post(open_world, "sendgrid", [hooks.payload("sendgrid", "several")[0][2]])
    await desk.act(open_world)
    assert await desk.standing(open_world) == ("ended", "left")
    (mailing,) = (await open_world.api.get("/mailings")).json()["items"]
    assert mailing["left"] == 1


async def test_opens_and_clicks_are_not_kept(open_world: World) -> None:
    await desk.sent(open_world, READER)
    assert await desk.post(open_world, "brevo", hooks.payload("brevo", "proxy_open")[0]) == 200
    assert not await desk.reports(open_world)


async def test_a_token_of_mailgun_is_taken_once_whatever_comes_with_it(open_world: World) -> None:
    await desk.sent(open_world, READER)
    told = hooks.payload("mailgun", "greylisted")[0]
    posted = hooks.post("mailgun", told, open_world.clock())
    await open_world.web.post("/api/v1/hooks/mailgun", content=posted.body)
    forged = json.loads(posted.body) | {
        "event-data": hooks.payload("mailgun", "hard_bounce")[0]["event-data"]
    }
    assert (await open_world.web.post("/api/v1/hooks/mailgun", content=json.dumps(forged))).status_code == 200
    await desk.act(open_world)
    assert await desk.standing(open_world) == ("active", None)


async def test_an_old_but_authentic_event_is_refused_counted_and_shown(open_world: World) -> None:
    posted = hooks.post("ses", hooks.payload("ses", "hard_bounce")[0], open_world.clock() - hooks.LATE["ses"])
    for _ in range(2):
        answer = await open_world.web.post("/api/v1/hooks/ses", content=posted.body)
        assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (403, "stale-event")
    (stale,) = (await open_world.api.get("/numbers")).json()["stale"]
    assert (stale["origin"], stale["calls"]) == ("ses", 2)
    assert not await desk.reports(open_world)


async def test_a_topic_is_confirmed_by_a_visit_to_sns_alone(open_world: World) -> None:
    visited: list[str] = []

    def load(url: str) -> bytes:
        visited.append(url)
        return desk.shelf(url)

    object.__setattr__(open_world.house, "documents", Documents(load))
    good = hooks.sns(hooks.confirmation(open_world.clock()))
    bad = hooks.sns(hooks.confirmation(open_world.clock(), "https://169.254.169.254/latest/"))
    assert (await open_world.web.post("/api/v1/hooks/ses", content=bad.body)).status_code == 403
    assert not visited
    assert (await open_world.web.post("/api/v1/hooks/ses", content=good.body)).status_code == 200
    assert visited == [hooks.CERTIFICATE_URL, hooks.CONFIRM_URL]


async def test_a_certificate_that_cannot_be_had_now_is_asked_for_again(open_world: World) -> None:
    def load(url: str) -> bytes:
        raise Unavailable(f"{url} does not answer")

    object.__setattr__(open_world.house, "documents", Documents(load))
    assert await desk.post(open_world, "ses", hooks.payload("ses", "hard_bounce")[0]) == 503


async def test_a_database_that_is_full_is_a_failure_that_providers_repeat(open_world: World) -> None:
    await open_world.db.close()
    Path(open_world.db.url.removeprefix("sqlite:///")).unlink()
    assert await desk.post(open_world, "brevo", hooks.payload("brevo", "hard_bounce")[0]) == 503


async def test_a_body_of_more_than_ten_million_bytes_is_refused(open_world: World) -> None:
    assert {f"/api/v1/hooks/{name}" for name in PROVIDERS} < LARGER.keys()
    for path in ("/api/v1/hooks/brevo", "/api/v1/hooks/mail"):
        answer = await open_world.api.post(path, content=b" " * 10_000_001)
        assert answer.status_code == 413


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "file:///etc/hostname", "https:///x"])
def test_only_https_is_fetched(url: str) -> None:
    with pytest.raises(Forbidden):
        load_by_https(url)


def test_a_host_that_does_not_answer_is_tried_again_later() -> None:
    with pytest.raises(Unavailable):
        load_by_https("https://127.0.0.1:1/x")
