"""Admins run the office by HTTP: keys and what each may do, editions, suppressions, and the trail of it all."""

import sqlite3
from typing import Any

import httpx
import pytest

from tests.api.problems import faults, holding, problem
from tests.world import World

MONTHLY = {
    "slug": "monthly", "name": "AI 技术月报", "label": "月报", "language": "zh", "accent": "#2f6b3a",
    "accent_dark": "#8fcf9a", "cadence": {"day_of_month": 1}, "timezone": "Asia/Shanghai",
}  # fmt: skip


async def made_key(world: World, scope: str = "editor", name: str = "script") -> dict[str, Any]:
    answer = await world.api.post("/keys", json={"name": name, "scope": scope})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def keys_by_id(world: World) -> dict[int, dict[str, Any]]:
    return {one["id"]: one for one in (await world.api.get("/keys")).json()}


async def test_a_key_is_shown_once_and_works_until_it_is_revoked(world: World) -> None:
    key = await made_key(world)
    assert key["key"].startswith(f"bs_{key['handle']}_")
    assert key["key"] not in (await world.api.get("/keys")).text
    held = {"Authorization": f"Bearer {key['key']}"}
    assert (await world.api.get("/issues", headers=held)).status_code == 200
    for _ in range(2):
        assert (await world.api.delete(f"/keys/{key['id']}")).status_code == 204
        problem(await world.api.get("/issues", headers=held), 401)
    assert (await keys_by_id(world))[key["id"]]["revoked_at"]
    problem(await world.api.delete("/keys/99"), 404)


async def test_the_last_use_is_kept_to_the_minute(world: World) -> None:
    key = await made_key(world)
    assert key["last_used_at"] is None
    held = {"Authorization": f"Bearer {key['key']}"}
    await world.api.get("/issues", headers=held)
    first = (await keys_by_id(world))[key["id"]]["last_used_at"]
    assert first
    await world.api.get("/issues", headers=held)
    assert (await keys_by_id(world))[key["id"]]["last_used_at"] == first
    world.clock.forward(seconds=61)
    await world.api.get("/issues", headers=held)
    assert (await keys_by_id(world))[key["id"]]["last_used_at"] > first


async def test_the_database_holds_no_key(world: World) -> None:
    key = (await made_key(world))["key"]
    secret = key.rpartition("_")[2] if key.count("_") == 2 else key.split("_", 2)[2]
    with sqlite3.connect(world.house.settings.database_url.removeprefix("sqlite:///")) as file:
        dump = "\n".join(file.iterdump())
    assert secret not in dump
    assert world.key.split("_", 2)[2] not in dump


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer bs_000000000000_" + "A" * 43},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer ' OR 1=1 --"},
        {"Authorization": "Bearer " + "x" * 4000},
        {"Authorization": b"Bearer bs_\xff\x80"},
    ],
)
async def test_nobody_gets_in_without_a_key_of_ours(world: World, header: dict[str, Any]) -> None:
    bare = httpx.AsyncClient(transport=world.api._transport, base_url=world.api.base_url)
    for path in ("/issues", "/mailings", "/subscribers", "/editions", "/suppressions", "/keys", "/audit"):
        answer = await bare.get(path, headers=header)
        problem(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_right_handle_with_a_wrong_secret_is_no_key(world: World) -> None:
    key = (await made_key(world))["key"]
    for at in (len(key) - 1, 20, 4):
        forged = key[:at] + ("A" if key[at] != "A" else "B") + key[at + 1 :]
        problem(await world.api.get("/issues", headers={"Authorization": f"Bearer {forged}"}), 401)


async def test_each_scope_may_what_it_may_and_no_more(world: World) -> None:
    issue = await world.issue()
    for_admins: list[tuple[str, str, Any]] = [
        ("GET", "/keys", None), ("POST", "/keys", {"name": "x", "scope": "admin"}), ("DELETE", "/keys/1", None),
        ("POST", "/editions", MONTHLY), ("PATCH", "/editions/daily", {"name": "x"}),
        ("DELETE", "/suppressions/1", None), ("GET", "/audit", None),
    ]  # fmt: skip
    for_editors = [
        "/issues", f"/issues/{issue}", "/mailings", "/editions", "/suppressions", "/subscribers",
    ]  # fmt: skip
    async with holding(world, "editor") as editor, holding(world, "inbound") as inbound:
        for method, path, body in for_admins:
            for client in (editor, inbound):
                problem(await client.request(method, path, json=body), 403)
        for path in for_editors:
            assert (await editor.get(path)).status_code == 200
            found = problem(await inbound.get(path), 403)
            assert "inbound" in found["detail"]
        problem(await inbound.post(f"/issues/{issue}/send"), 403)
        problem(await editor.get("/issues/99"), 404)
        problem(await inbound.get("/issues/99"), 403)
    assert (await world.api.get("/mailings")).json()["items"] == []


@pytest.mark.parametrize(
    ("new", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x", "scope": "root"}, "scope"),
        ({"name": "x", "expires": "never"}, "expires"),
    ],
)
async def test_a_key_that_cannot_be_made_is_refused_by_its_field(
    world: World, new: dict[str, Any], field: str
) -> None:
    assert list(faults(await world.api.post("/keys", json=new))) == [field]


async def test_a_name_may_have_the_spaces_of_its_script(world: World) -> None:
    name = "林\u3000一\u00a0！"
    assert (await world.api.post("/keys", json={"name": name})).status_code == 201
    assert name in [one["name"] for one in (await world.api.get("/keys")).json()]
    answer = await world.api.patch("/editions/daily", json={"name": name})
    assert (answer.status_code, answer.json().get("name")) == (200, name)


async def test_a_third_edition_is_a_row_and_stands_on_the_form(world: World) -> None:
    answer = await world.api.post("/editions", json=MONTHLY)
    assert answer.status_code == 201, answer.text
    added = answer.json()
    assert {name: added[name] for name in MONTHLY} == MONTHLY
    assert [one["slug"] for one in (await world.api.get("/editions")).json()] == [
        "daily",
        "weekly",
        "monthly",
    ]
    form = (await world.web.get("/")).text
    assert 'value="monthly"' in form
    assert "AI 技术月报" in form
    problem(await world.api.post("/editions", json=MONTHLY), 409)
    await world.reader("lin@example.com", "monthly")
    issue = await world.issue("monthly")
    await world.deliver(await world.send(issue))
    assert world.sink.recipients() == ["lin@example.com"]
    assert "monthly." in world.sink.parsed()[0]["List-Id"]


async def test_an_edition_changes_field_by_field(world: World) -> None:
    before = (await world.api.get("/editions")).json()[0]
    answer = await world.api.patch("/editions/daily", json={"name": "晨报", "max_lateness": 3600})
    assert answer.json() == before | {"name": "晨报", "max_lateness": 3600}
    assert (await world.api.patch("/editions/daily", json={})).json() == answer.json()
    problem(await world.api.patch("/editions/hourly", json={"name": "x"}), 404)


async def test_a_list_id_is_for_ever_once_mail_has_gone_out(world: World) -> None:
    first = await world.api.patch("/editions/daily", json={"list_id": "daily.news.example.com"})
    assert first.status_code == 200
    assert (await world.api.patch("/editions/daily", json={"list_id": "d.example.com"})).status_code == 200
    await world.readers(1)
    await world.deliver(await world.send(await world.issue()))
    assert "<d.example.com>" in world.sink.parsed()[0]["List-Id"]
    problem(await world.api.patch("/editions/daily", json={"list_id": "other.example.com"}), 409)
    assert (await world.api.patch("/editions/daily", json={"list_id": "d.example.com"})).status_code == 200


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"slug": "Monthly"}, "slug"),
    ({"slug": ""}, "slug"),
    ({"slug": "a/b"}, "slug"),
    ({"name": " "}, "name"),
    ({"name": "x" * 81}, "name"),
    ({"name": "a\nBcc: x@example.com"}, "name"),
    ({"name": None}, "name"),
    ({"label": "x" * 21}, "label"),
    ({"label": "a\x07"}, "label"),
    ({"description": "x" * 201}, "description"),
    ({"description": "two\nlines"}, "description"),
    ({"language": "fr"}, "language"),
    ({"accent": "red"}, "accent"),
    ({"accent_dark": "#12345"}, "accent_dark"),
    ({"accent": "#000000;}"}, "accent"),
    ({"cadence": {"weekdays": []}}, "cadence"),
    ({"cadence": {"weekdays": [7]}}, "cadence"),
    ({"cadence": {"weekdays": ["mon"]}}, "cadence"),
    ({"cadence": {"weekdays": [True]}}, "cadence"),
    ({"cadence": {"day_of_month": 29}}, "cadence"),
    ({"cadence": {"day_of_month": True}}, "cadence"),
    ({"cadence": {"day_of_month": 1, "x": 1}}, "cadence"),
    ({"cadence": {}}, "cadence"),
    ({"cadence": "daily"}, "cadence"),
    ({"timezone": "Mars"}, "timezone"),
    ({"timezone": "../UTC"}, "timezone"),
    ({"timezone": ""}, "timezone"),
    ({"max_lateness": 1}, "max_lateness"),
    ({"time_to_live": 1 << 80}, "time_to_live"),
    ({"sender": "nobody"}, "sender"),
    ({"sender": "a@b@example.com"}, "sender"),
    ({"sender": "a\r\n@example.com"}, "sender"),
    ({"sender_name": "a\r\nBcc: b"}, "sender_name"),
    ({"list_id": "nodot"}, "list_id"),
    ({"position": 1}, "position"),
]


async def test_an_edition_that_cannot_be_kept_is_refused_by_its_field(world: World) -> None:
    for change, field in UNFIT:
        answer = await world.api.post("/editions", json=MONTHLY | change)
        assert list(faults(answer)) == [field], change
    assert len((await world.api.get("/editions")).json()) == 2


async def test_a_suppressed_address_is_owed_nothing_more(world: World) -> None:
    await world.readers(2)
    issue = await world.issue()
    await world.send(issue)
    answer = await world.api.post(
        "/suppressions", json={"address": "R1@example.com", "note": "asked by phone"}
    )
    assert answer.status_code == 201
    row = answer.json()
    assert (row["address"], row["reason"], row["note"]) == ("R1@example.com", "editor", "asked by phone")
    again = await world.api.post("/suppressions", json={"address": "r1@example.com"})
    assert again.json()["id"] == row["id"]
    mailing = (await world.api.get(f"/issues/{issue}")).json()["mailing_id"]
    await world.deliver(mailing)
    assert world.sink.recipients() == ["r0@example.com"]
    listed = (await world.api.get("/suppressions")).json()
    assert [one["id"] for one in listed["items"]] == [row["id"]]
    assert (await world.api.delete(f"/suppressions/{row['id']}")).status_code == 204
    problem(await world.api.delete(f"/suppressions/{row['id']}"), 404)
    assert "address" in faults(await world.api.post("/suppressions", json={"address": "nobody"}))


async def test_suppressions_page_by_cursor(world: World) -> None:
    for number in range(3):
        await world.api.post("/suppressions", json={"address": f"s{number}@example.com"})
    first = (await world.api.get("/suppressions?limit=2")).json()
    second = (await world.api.get("/suppressions", params={"limit": 2, "cursor": first["next"]})).json()
    assert [one["address"] for one in first["items"] + second["items"]] == [
        f"s{n}@example.com" for n in range(3)
    ]
    assert second["next"] is None


async def test_the_trail_says_who_did_what_and_never_to_which_address(world: World) -> None:
    await world.reader("lin@example.com")
    new = {"edition": "daily", "date": "2026-10-26", "source": "x"}
    await world.api.post("/issues", json=new)  # refused, so no entry
    issue = await world.issue()
    mailing = await world.send(issue, at="2026-10-27T00:00:00Z")
    await world.send(issue)  # changes nothing, so no entry
    for act in ("pause", "resume", "cancel", "reconcile"):
        await world.api.post(f"/mailings/{mailing}/{act}")
    await world.api.post(f"/issues/{issue}/copy", json={"address": "lin@example.com"})
    await world.api.post(f"/issues/{issue}/test", json={"to": ["me@example.com"]})
    row = (await world.api.post("/suppressions", json={"address": "gone@example.com"})).json()
    await world.api.delete(f"/suppressions/{row['id']}")
    key = await made_key(world)
    await world.api.delete(f"/keys/{key['id']}")
    await world.api.patch("/editions/daily", json={"label": "日"})
    entries = (await world.api.get("/audit?limit=200")).json()["items"]
    assert [(one["act"], one["subject"]) for one in entries] == [
        ("send", f"issue {issue}"), ("pause", f"mailing {mailing}"), ("resume", f"mailing {mailing}"),
        ("cancel", f"mailing {mailing}"), ("reconcile", f"mailing {mailing}"), ("copy", f"issue {issue}"),
        ("test", f"issue {issue}"), ("suppress", f"suppression {row['id']}"),
        ("lift", f"suppression {row['id']}"), ("make", f"key {key['id']}"), ("revoke", f"key {key['id']}"),
        ("edit", "edition daily"),
    ]  # fmt: skip
    assert {one["actor"] for one in entries} == {"test"}
    assert "@" not in str(entries)
