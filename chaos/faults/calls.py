"""What comes in while mail goes out: fifty orders at once, poison, readers who leave, webhooks again and again."""

import json
import random
import socket
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx
import psycopg

from app.core import config
from app.core.tokens import Purpose
from app.flows.compose import Composer
from chaos.fault import Fault, enter
from chaos.place import KEY, Broken, until
from chaos.scene import Scene
from chaos.stage import ISSUE
from tests.feedback import hooks
from tests.sink import Action, Event, reset

POISON = (
    "two words@example.com", "line\u2028end@example.com", "broken\r\nRCPT TO:<victim@example.com>",
    "a@example.com>,<b@example.com", "nobody", "a@exa\u2028mple.com", "x" * 240 + "@e.example",
)  # fmt: skip
BREAKS = 3  # connections that one mail breaks; in the end each costs the relay a minute
REPORTS, COMPLAINTS = 10, 2  # that come back in a storm of calls: too few to pause a mailing
LATE = 5.0  # seconds for which what was claimed before somebody left may still be on its way
Act = tuple[str, Callable[[], httpx.Response]]  # whom it takes out of the mailing (nobody: ""), and the call
ISSUE_HEADERS = {"content-type": "text/plain"}


def fifty_times(scene: Scene) -> None:
    """F15: fifty orders at once, with and without a key, after one whose answer nobody heard."""
    with scene.serving() as (_, api):
        unheard(scene, api)

        def order(number: int) -> httpx.Response:
            key = {"Idempotency-Key": "once"} if number % 2 else {}
            return api.post("/api/v1/issues/1/send", headers=key)

        with ThreadPoolExecutor(25) as pool:
            answers = list(pool.map(order, range(50)))
    codes, ids = {one.status_code for one in answers}, {one.json().get("id") for one in answers}
    if codes - {200, 202} or len(ids) != 1 or scene.place.one("SELECT count(*) FROM mailing") != 1:
        raise Broken(f"answers {codes}, mailings {ids}")
    worker = scene.worker()
    scene.finished()
    worker.stop()
    scene.note("51 orders, one mailing")


def unheard(scene: Scene, api: httpx.Client) -> None:
    """Order, and hang up before the answer."""
    url = api.base_url
    head = f"POST /api/v1/issues/1/send HTTP/1.1\r\nHost: {url.host}:{url.port}\r\n"
    with socket.create_connection((url.host, url.port or 80)) as wire:
        wire.sendall(f"{head}Authorization: Bearer {scene.key}\r\nContent-Length: 0\r\n\r\n".encode())


def poisoned(scene: Scene) -> None:
    """F18: addresses nobody can write to, a title with a line separator, a body of 30 MB, a mail that breaks all."""
    whom = scene.rolls.sample(list(scene.readers), len(POISON) + 1)
    for who, address in zip(whom, POISON, strict=False):
        change(scene, who, address)
    breaker = scene.readers[whom[-1]]

    broken = 0

    def script(event: Event) -> Action | None:
        nonlocal broken
        hit = event.stage == "body" and event.recipient == breaker and broken < BREAKS
        broken += hit
        return reset() if hit else None

    scene.sink.script = script
    with scene.serving() as (_, api):
        title = ISSUE.read_text("utf-8").replace("\n", "\u2028 再\n", 1)
        params = {"edition": "daily", "date": "2030-01-02"}
        made = api.post("/api/v1/issues", params=params, content=title.encode(), headers=ISSUE_HEADERS)
        huge = offered(api, params | {"date": "2030-01-03"}, bytes(30_000_000))
    if made.status_code not in (201, 422) or huge != 413:
        raise Broken(f"a title with U+2028 was answered {made.status_code}, 30 MB {huge}")
    scene.send(issue=str(made.json()["id"]) if made.status_code == 201 else "1")
    worker = scene.worker()
    scene.patiently()
    worker.stop()
    sent, failed, expired = (scene.count(state) for state in ("sent", "failed", "expired"))
    scene.note(f"{sent} sent, {failed} failed, {expired} expired")
    if (sent, failed, expired) != (len(scene.readers) - len(POISON), len(POISON), 0):
        raise Broken("one bad row stopped another")
    if scene.place.one("SELECT count(*) FROM delivery WHERE state = 'failed' AND reason IS NULL"):
        raise Broken("a failed row has no reason")


def offered(api: httpx.Client, params: dict[str, str], body: bytes) -> int:
    """Hand in an issue and return the status alone: who is refused in mid-body may not hear the whole answer."""
    with api.stream("POST", "/api/v1/issues", params=params, content=body, headers=ISSUE_HEADERS) as answer:
        return answer.status_code


def change(scene: Scene, who: int, address: str) -> None:
    """Write an address into the database that no door would take."""
    if scene.is_sqlite:
        with sqlite3.connect(scene.place.url.removeprefix("sqlite:///")) as one:
            one.execute("UPDATE subscriber SET address = ? WHERE id = ?", (address, who))
        one.close()
        return
    with psycopg.connect(scene.place.url) as other:
        other.execute("UPDATE subscriber SET address = %s WHERE id = %s", (address, who))


def stormed(scene: Scene) -> None:
    """F20: readers leave, are erased, suppressed and bounce while their mailing runs."""
    scene.slowly(0.03)
    scene.place.relay += "&hook=postmark"
    scene.send()
    with scene.serving(BROADSHEET_HOOK_POSTMARK=hooks.LOGIN) as (program, api):
        worker = scene.worker(BROADSHEET_HOOK_POSTMARK=hooks.LOGIN)
        scene.arrive(len(scene.readers) // 10)
        acts = planned(scene, api)
        with ThreadPoolExecutor(6) as pool:
            done = list(pool.map(lambda act: (act[0], act[1]().status_code, time.time()), acts))
        scene.finished(300)
        until(
            lambda: not scene.place.one("SELECT count(*) FROM report WHERE state = 'waiting'"),
            "the last report",
        )
        worker.stop()
        said = program.said() + worker.said()
    back = scene.place.one("SELECT count(*) FROM report")
    heard = scene.place.one("SELECT count(*) FROM report WHERE state = 'suppressed'")
    wrong = {code for _, code, _ in done if code >= 300}
    after = late(scene, {address: at for address, _, at in done if address})
    scene.note(
        f"{len(done)} calls; {scene.count('withdrawn')} withdrawn, {scene.count('suppressed')} suppressed, "
        f"{heard} of {back} reports heeded"
    )
    if not back or heard != back:
        raise Broken(f"{back - heard} of {back} bounces and complaints were not heeded")
    if wrong or after or "deadlock" in said.lower():
        raise Broken(
            f"answers {wrong}; {len(after)} mails more than {LATE:.0f} s after; {said[-200:] if wrong else ''}"
        )


def late(scene: Scene, gone: dict[str, float]) -> list[str]:
    """Return who got a mail although they were gone for a while."""
    mails = scene.sink.mails.copy()
    return [
        m.recipient for m in mails if b"<letter-" not in m.data and m.at > gone.get(m.recipient, m.at) + LATE
    ]


def planned(scene: Scene, api: httpx.Client) -> list[Act]:
    """Return the calls of a storm in a random order."""
    settings = config.load(secret_key=KEY, suppression_key=KEY, base_url=str(api.base_url), _env_file=None)
    composer, edition = Composer(settings), scene.place.one("SELECT id FROM edition WHERE slug = 'daily'")
    share = len(scene.readers) // 25
    some = scene.rolls.sample(list(scene.readers), 3 * share)
    leaving, erased, barred = some[:share], some[share : 2 * share], some[2 * share :]
    gone = {scene.readers[who] for who in some}
    got = [address for address in scene.sink.recipients() if address not in gone]
    click = {"List-Unsubscribe": "One-Click"}
    acts: list[Act] = []
    for who in leaving:
        link = composer.link(Purpose.UNSUBSCRIBE, who, edition)
        acts.append((scene.readers[who], partial(httpx.post, link, data=click, timeout=60)))
    acts += [(scene.readers[who], partial(api.delete, f"/api/v1/subscribers/{who}")) for who in erased]
    for address in (scene.readers[who] for who in barred):
        acts.append((address, partial(api.post, "/api/v1/suppressions", json={"address": address})))
    for number, address in enumerate(got[:REPORTS]):
        kind = "complaint" if number < COMPLAINTS else "hard_bounce"
        acts.append(("", partial(hook, api, "postmark", told(kind, address, number), number)))
    scene.rolls.shuffle(acts)
    return acts


def told(kind: str, address: str, number: int) -> dict[str, object]:
    """Return what Postmark says of a reader."""
    content: dict[str, object] = hooks.payload("postmark", kind)[0]
    return content | {"Email": address, "ID": 1000 + number, "MessageID": f"c0ffee-{number}"}


def hook(
    api: httpx.Client, provider: str, content: object, number: int, late_by: timedelta = timedelta()
) -> httpx.Response:
    """Post a webhook as the provider does, perhaps long after it was signed."""
    posted = hooks.post(provider, content, datetime.now(UTC) - late_by, str(number))
    return api.post(f"/api/v1/hooks/{provider}", content=posted.body, headers=dict(posted.headers))


def again_and_again(scene: Scene) -> None:
    """F21: each webhook ten times, shuffled, some long after they were signed."""
    scene.place.relay += "&hook=sendgrid"
    scene.send()
    key = {"BROADSHEET_HOOK_SENDGRID": hooks.SENDGRID_KEY}
    with scene.serving(**key) as (_, api):
        worker = scene.worker(**key)
        scene.finished()
        whom = scene.rolls.sample(scene.sink.mails, max(5, len(scene.readers) // 50))
        calls = [(number, mail.recipient, event) for number, mail in enumerate(whom, 2)
                 for event in ("bounce", "delivered")] * 10  # fmt: skip
        random.Random(scene.rolls.random()).shuffle(calls)
        codes, stale = set(), set()
        for place, (number, address, kind) in enumerate(calls):
            content = [event_of(kind, address)]
            codes.add(hook(api, "sendgrid", content, number).status_code)
            if place < 5:
                stale.add(hook(api, "sendgrid", content, number, timedelta(hours=2)).status_code)
        until(
            lambda: not scene.place.one("SELECT count(*) FROM report WHERE state = 'waiting'"),
            "the last report",
        )
        worker.stop()
    reports = scene.place.one("SELECT count(*) FROM report WHERE kind = 'bounce'")
    barred = scene.place.one("SELECT count(*) FROM suppression")
    if codes != {200} or any(code < 400 for code in stale) or (reports, barred) != (len(whom), len(whom)):
        raise Broken(
            f"answers {codes}, to late ones {stale}; {reports} bounces, {barred} suppressed of {len(whom)}"
        )
    scene.note(f"{len(calls)} calls, {len(whom)} effects; late ones answered {stale}")


def event_of(kind: str, address: str) -> dict[str, object]:
    """Return what SendGrid says of a reader."""
    bounce: dict[str, object] = hooks.payload("sendgrid", "hard_bounce")[0][0]
    name = json.dumps(address)
    delivered = {"event": "delivered", "response": "250 OK", "status": "", "type": "", "reason": ""}
    changed = delivered if kind == "delivered" else {}
    own = {"email": address, "sg_event_id": f"{kind}-{name}", "smtp-id": "", "sg_message_id": ""}
    return bounce | own | changed


enter(
    Fault("F15", "fifty orders at once", fifty_times),
    Fault("F18", "poison rows", poisoned, is_turned=True),
    Fault("F20", "readers leave, are erased, suppressed and bounce meanwhile", stormed),
    Fault("F21", "webhooks ten times, shuffled, late", again_and_again),
)
