"""Editors work on readers by HTTP: list, add, change, import, export, erase."""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.core.tokens import Purpose
from app.flows import imports
from tests.api.problems import faults, holding, problem
from tests.world import START, World


async def posted(world: World, content: str | bytes, **query: Any) -> dict[str, Any]:
    """Hand a file in and return the import."""
    data = content.encode() if isinstance(content, str) else content
    answer = await world.api.post("/subscribers/import", params={"editions": "daily"} | query, content=data)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def finished(world: World, number: int) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while (found := (await world.api.get(f"/imports/{number}")).json())["state"] == "running":
            await asyncio.sleep(0.02)
    shown: dict[str, Any] = found
    return shown


async def exported(world: World, **query: str) -> list[dict[str, str]]:
    answer = await world.api.get("/subscribers/export", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text)))


async def test_a_part_of_an_address_that_no_database_takes_is_refused(world: World) -> None:
    await world.reader("lin@example.com")
    for bad in ("\x00", "lin\x00", "a\nb"):
        assert list(faults(await world.api.get("/subscribers", params={"q": bad}))) == ["q"]


async def test_readers_are_listed_by_address_state_and_edition_with_counts(world: World) -> None:
    await world.readers(3, "daily")
    await world.reader("weekly@example.com", "weekly")
    page = (await world.api.get("/subscribers", params={"edition": "weekly"})).json()
    assert [one["email"] for one in page["items"]] == ["weekly@example.com"]
    assert page["counts"] == {"pending": 0, "active": 4, "paused": 0, "ended": 0}
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await world.api.get("/subscribers", params={"q": "R", "limit": 2, "cursor": cursor})).json()
        found += [one["email"] for one in page["items"]]
        cursor = page["next"]
    assert found == ["r0@example.com", "r1@example.com", "r2@example.com"]
    assert not (await world.api.get("/subscribers", params={"state": "ended"})).json()["items"]
    problem(await world.api.get("/subscribers", params={"edition": "monthly"}), 404)


async def test_a_reader_is_changed_as_they_asked(world: World) -> None:
    number = await world.reader("a@example.com", "daily")
    change = {
        "name": " Ann\n Lee ",
        "editions": ["weekly"],
        "timezone": "Asia/Shanghai",
        "hour": 7,
        "weekdays_only": True,
        "language": "en",
    }
    answer = await world.api.patch(f"/subscribers/{number}", json=change)
    assert answer.status_code == 200, answer.text
    shown = (await world.api.get(f"/subscribers/{number}")).json()
    assert shown == answer.json()
    assert shown | change | {"name": "Ann Lee"} == shown
    back = {"timezone": None, "hour": None, "weekdays_only": False}
    shown = (await world.api.patch(f"/subscribers/{number}", json=back)).json()
    assert shown | back | {"name": "Ann Lee", "editions": ["weekly"]} == shown


async def test_all_that_a_reader_chooses_on_their_page_an_editor_can_read_and_change(world: World) -> None:
    number = await world.reader("a@example.com", "daily")
    page = await world.web.get(world.house.composer.link(Purpose.PREFERENCES, number))
    chosen = set(re.findall(r'<(?:input|select)[^>]* name="(\w+)"', page.text))
    one_of = {"pause": "paused_until", "until": "paused_until"}
    assert chosen == {"editions", "weekdays_only", "hour", "timezone", "pause", "until", "language"}
    properties = (await world.api.get("/openapi.json")).json()["components"]["schemas"]
    for shape in ("SubscriberView", "SubscriberChange"):
        assert {one_of.get(name, name) for name in chosen} <= set(properties[shape]["properties"])


async def test_a_reader_pauses_through_an_editor_and_comes_back(world: World) -> None:
    number = await world.reader("a@example.com", "daily")
    mailing = await world.send(await world.issue())
    await world.worker().chores.advance()
    until = START + timedelta(days=7)
    shown = (await world.api.patch(f"/subscribers/{number}", json={"paused_until": until.isoformat()})).json()
    assert (shown["status"], datetime.fromisoformat(shown["paused_until"])) == ("paused", until)
    assert (await world.books_balance(mailing))["withdrawn"] == 1
    shown = (await world.api.patch(f"/subscribers/{number}", json={"paused_until": None})).json()
    assert (shown["status"], shown["paused_until"]) == ("active", None)
    await world.api.patch(f"/subscribers/{number}", json={"editions": []})
    problem(await world.api.patch(f"/subscribers/{number}", json={"paused_until": until.isoformat()}), 409)
    assert (await world.api.get(f"/subscribers/{number}")).json()["status"] == "ended"


async def test_no_editions_is_leaving_and_what_was_owed_is_withdrawn(world: World) -> None:
    number = await world.reader("a@example.com", "daily")
    mailing = await world.send(await world.issue())
    await world.worker().chores.advance()
    shown = (await world.api.patch(f"/subscribers/{number}", json={"editions": []})).json()
    assert (shown["status"], shown["reason"]) == ("ended", "left")
    assert (await world.books_balance(mailing))["withdrawn"] == 1
    problem(await world.api.patch(f"/subscribers/{number}", json={"editions": ["daily"]}), 409)
    assert (await world.api.patch(f"/subscribers/{number}", json={"name": "Ann"})).status_code == 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"hour": 24}, "hour"),
        ({"weekdays_only": None}, "weekdays_only"),
        ({"paused_until": "2026-10-01T00:00:00Z"}, "paused_until"),
        ({"paused_until": "2028-10-01T00:00:00Z"}, "paused_until"),
        ({"paused_until": "2026-11-01T00:00:00"}, "paused_until"),
        ({"language": "tlh"}, "language"),
        ({"email": "b@example.com"}, "email"),
    ],
)
async def test_a_change_that_cannot_be_is_refused_by_field(
    world: World, change: dict[str, Any], field: str
) -> None:
    number = await world.reader("a@example.com")
    assert list(faults(await world.api.patch(f"/subscribers/{number}", json=change))) == [field]


async def test_a_reader_is_erased_and_a_second_time_is_not_found(world: World) -> None:
    number = await world.reader("a@example.com")
    assert (await world.api.delete(f"/subscribers/{number}")).status_code == 204
    problem(await world.api.delete(f"/subscribers/{number}"), 404)
    problem(await world.api.get(f"/subscribers/{number}"), 404)
    assert (await posted(world, "email\na@example.com\n"))["counts"]["suppressed"] == 1


@pytest.mark.parametrize("number", ["0", "-1", "99999999999999999999", "1%20OR%201=1", "import", "1.5"])
async def test_a_number_that_is_none_is_refused_and_no_bug(world: World, number: str) -> None:
    for path in (f"/subscribers/{number}", f"/imports/{number}"):
        problem(await world.api.get(path), 404, 422)


async def test_a_file_of_readers_is_taken_and_what_was_not_is_told_by_line(world: World) -> None:
    told = await posted(world, "邮箱,姓名\na@example.com,安\nbad\na@example.com,安\n", source="paper list")
    assert told["state"] == "done"
    assert told["columns"] == {"email": "邮箱", "name": "姓名"}
    assert {name: count for name, count in told["counts"].items() if count} == {
        "new": 1, "invalid": 1, "doubled": 1,
    }  # fmt: skip
    assert [(row["line"], row["kind"]) for row in told["rows"]] == [(3, "invalid"), (4, "doubled")]
    (reader,) = (await world.api.get("/subscribers")).json()["items"]
    assert (reader["source"], reader["name"], reader["status"]) == ("paper list", "安", "active")


async def test_a_long_file_goes_on_in_the_worker_and_its_rows_page(world: World) -> None:
    content = "email\n" + "".join(f"r{i}@example.com\n" for i in range(4_500)) + "bad\n" * 5
    told = await posted(world, content)
    assert told["state"] == "running"
    assert told["counts"]["new"] == 2_000

    while await imports.work(world.db, world.house.settings, world.clock()):
        pass
    told = await finished(world, told["id"])
    assert (told["counts"]["new"], told["counts"]["invalid"], told["progress"]) == (4_500, 5, 1.0)
    lines: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        params: dict[str, str | int] = {"limit": 2, "cursor": cursor}
        page = (await world.api.get(f"/imports/{told['id']}", params=params)).json()
        lines += [row["line"] for row in page["rows"]]
        cursor = page["next"]
    assert lines == list(range(4_502, 4_507))


async def test_a_dry_run_answers_with_all_counts_and_changes_nothing(world: World) -> None:
    content = "email\n" + "".join(f"r{i}@example.com\n" for i in range(4_500))
    told = await posted(world, content, dry_run=True)
    assert (told["state"], told["counts"]["new"]) == ("done", 4_500)
    assert (await world.api.get("/subscribers")).json()["counts"]["active"] == 0


async def test_a_file_that_is_no_table_is_refused(world: World) -> None:
    for content, status in (
        (b"email" + b"," * 1_000_000, 400),
        (b"PK\x03\x04", 400),
        (b"name\nAnn\n", 422),
        (b"", 422),
    ):
        problem(await world.api.post("/subscribers/import", content=content), status)
    answer = await world.api.post("/subscribers/import", params={"editions": "monthly"}, content=b"email\n")
    problem(answer, 422)
    assert not list(imports.folder(world.house.settings).iterdir())


async def test_more_than_a_hundred_megabytes_are_refused_while_they_come(world: World) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"email\n"
        for _ in range(120):
            yield b"a@example.com\n" * 70_000

    problem(await world.api.post("/subscribers/import", content=endless()), 413)
    assert (await world.api.get("/subscribers")).json()["counts"]["active"] == 0


async def test_the_same_call_again_makes_no_second_import(world: World) -> None:
    headers = {"Idempotency-Key": "k1"}
    one, two = [
        await world.api.post(
            "/subscribers/import?editions=daily", content=b"email\na@example.com\n", headers=headers
        )
        for _ in range(2)
    ]
    assert one.json() == two.json()
    assert two.headers["idempotency-replayed"] == "true"
    other = await world.api.post(
        "/subscribers/import?editions=daily", content=b"email\nb@example.com\n", headers=headers
    )
    problem(other, 422)
    assert not list(imports.folder(world.house.settings).iterdir())


async def test_an_export_is_filtered_and_holds_no_formula(world: World) -> None:
    await world.readers(2, "daily")
    number = await world.reader("a@example.com", "weekly")
    await world.api.patch(f"/subscribers/{number}", json={"name": "=cmd|' /C calc'!A0"})
    rows = await exported(world)
    assert [row["email"] for row in rows] == ["r0@example.com", "r1@example.com", "a@example.com"]
    assert rows[2]["name"] == "'=cmd|' /C calc'!A0"
    assert [row["email"] for row in await exported(world, edition="weekly", state="active")] == [
        "a@example.com"
    ]
    assert not await exported(world, state="ended")
    problem(await world.api.get("/subscribers/export", params={"edition": "monthly"}), 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/subscribers"),
        ("POST", "/subscribers/import"),
        ("GET", "/subscribers/export"),
        ("GET", "/imports/1"),
        ("DELETE", "/subscribers/1"),
    ],
)
async def test_readers_are_for_editors_only(world: World, method: str, path: str) -> None:
    async with holding(world, "inbound") as other:
        problem(await other.request(method, path), 403)
    problem(await world.web.request(method, f"/api/v1{path}"), 401)


async def test_imports_exports_and_erasures_are_on_the_trail(world: World) -> None:
    number = await world.reader("a@example.com")
    await posted(world, "email\nb@example.com\n")
    await exported(world)
    await world.api.delete(f"/subscribers/{number}")
    trail = (await world.api.get("/audit")).json()["items"]
    assert [one["act"] for one in trail] == ["import", "export", "erase"]
    assert not [one for one in trail if "@" in one["subject"]]
