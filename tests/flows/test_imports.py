"""Readers come from a file: counted, nobody revived, nothing lost or doubled by a stop, and out again unchanged."""

import asyncio
import csv
import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.core.db import Database
from app.core.errors import Invalid
from app.flows import exports, imports, readers, subscribe
from app.flows.imports import Plan
from app.subscribers import addresses, jobs, store, suppression
from app.subscribers.consent import Reason
from app.subscribers.imports import cells
from app.subscribers.imports.candidate import COLUMNS
from app.subscribers.store import Origin
from tests.sink import Sink
from tests.world import World, house_at, settings_for

ROOT = Path(__file__).resolve().parents[2]


async def take(world: World, content: str | bytes, **plan: Any) -> dict[str, Any]:
    """Take a file to its end and return the job with all rows that were not taken."""
    data = content.encode() if isinstance(content, str) else content
    how = Plan("test", plan.pop("editions", ("daily",)), **plan)
    settings = world.house.settings
    job = await imports.start(world.db, settings, io.BytesIO(data), how, "readers.csv", world.clock())
    while await imports.work(world.db, settings, world.clock()):
        pass
    async with world.db.reading() as session:
        return await imports.view(session, job, limit=100_000)


async def counts_of(world: World, content: str | bytes, **plan: Any) -> dict[str, int]:
    """Take a file and return the counts that are not 0."""
    return {name: count for name, count in (await take(world, content, **plan))["counts"].items() if count}


async def reader(world: World, address: str) -> dict[str, Any]:
    async with world.db.reading() as session:
        return await readers.record(session, await readers.by_address(session, address))


async def exported(db: Database) -> str:
    return "".join([page async for page in exports.write(db)])


async def totals(db: Database) -> dict[str, int]:
    """Return how many rows the tables have that an import may change."""
    tables = ("subscriber", "subscription", "consent_event", "suppression", "letter", "import_seen")
    async with db.reading() as session:
        return {
            name: (await session.execute(text(f"SELECT count(*) FROM {name}"))).scalar_one()
            for name in tables
        }


MIXED = (
    "email,name,status\nnew@example.com,Ann,\nNEW@example.com,Ann,\nhere@example.com,Bo,\nleft@example.com,Cy,\n"
    "barred@example.com,Di,\nno address,Ed,\ncleaned@example.com,Fy,ended (bounced)\nx@example.com,Gy\n"
)


async def prepare(world: World) -> None:
    """Let one reader be here, one have left, one be suppressed by an editor."""
    await world.reader("here@example.com")
    number = await world.reader("left@example.com")
    barred = addresses.accept("barred@example.com").hashed(world.house.settings.suppression_key)
    async with world.db.transaction() as session:
        who = await store.get(session, number)
        await subscribe.leave(session, who, None, Origin("test"), world.clock())
        await suppression.add(session, barred, Reason.EDITOR, world.clock())


async def test_each_row_is_counted_and_each_that_is_not_taken_named_by_its_line(world: World) -> None:
    await prepare(world)
    told = await take(world, MIXED)
    assert told["state"] == "done"
    assert told["counts"] == {
        "new": 1, "ended": 1, "updated": 0, "known": 1, "left": 1, "suppressed": 1, "doubled": 1, "invalid": 2,
    }  # fmt: skip
    assert [(row["line"], row["kind"]) for row in told["rows"]] == [
        (3, "doubled"), (4, "known"), (5, "left"), (6, "suppressed"), (7, "invalid"), (9, "invalid"),
    ]  # fmt: skip
    assert (await reader(world, "new@example.com"))["status"] == "active"
    assert (await reader(world, "left@example.com"))["reason"] == "left"
    assert not list(imports.folder(world.house.settings).iterdir())


async def test_a_dry_run_counts_the_same_and_changes_nothing(world: World) -> None:
    await prepare(world)
    before = await totals(world.db)
    dry = await take(world, MIXED, dry_run=True)
    assert await totals(world.db) == before
    real = await take(world, MIXED)
    assert dry["counts"] == real["counts"]
    assert dry["rows"] == real["rows"]


@pytest.mark.parametrize(
    ("status", "reason", "barred"),
    [("unsubscribed", "left", False), ("cleaned", "bounced", True), ("complained", "complained", True)],
)
async def test_who_ended_elsewhere_is_ended_here_and_no_later_file_revives_them(
    world: World, status: str, reason: str, barred: bool
) -> None:
    assert await counts_of(world, f"email,status\na@example.com,{status}\n") == {"ended": 1}
    for update in (False, True):
        assert await counts_of(world, "email\na@example.com\n", update=update) == {"left": 1}
    found = await reader(world, "a@example.com")
    assert (found["status"], found["reason"]) == ("ended", reason)
    assert found["suppressed"] == (reason if barred else None)
    assert found["consent"] == []
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert not world.sink.mails


async def test_a_row_that_says_erased_leaves_a_hash_and_no_address(world: World) -> None:
    assert await counts_of(world, "email,status\na@example.com,erased\n") == {"suppressed": 1}
    assert await totals(world.db) | {"suppression": 0} == dict.fromkeys(await totals(world.db), 0)
    assert await counts_of(world, "email\na@example.com\n") == {"suppressed": 1}


async def test_a_known_readers_choice_changes_only_with_update(world: World) -> None:
    await world.reader("a@example.com", "daily")
    row = "email,name,editions,hour\na@example.com,Ann,weekly,7\n"
    assert await counts_of(world, row) == {"known": 1}
    assert (await reader(world, "a@example.com"))["editions"] == ["daily"]
    assert await counts_of(world, row, update=True) == {"updated": 1}
    found = await reader(world, "a@example.com")
    assert (found["editions"], found["name"], found["hour"]) == (["weekly"], "Ann", 7)


async def test_with_update_who_bounced_elsewhere_is_mailed_no_more(world: World) -> None:
    await world.reader("a@example.com")
    mailing = await world.send(await world.issue())
    worker = world.worker()
    await worker.chores.advance()
    assert await counts_of(world, "email,status\na@example.com,bounced\n") == {"known": 1}
    assert await counts_of(world, "email,status\na@example.com,bounced\n", update=True) == {"updated": 1}
    assert (await reader(world, "a@example.com"))["suppressed"] == "bounced"
    assert (await world.books_balance(mailing))["withdrawn"] == 1


async def test_with_confirm_each_is_asked_by_mail_and_nobody_who_left(world: World) -> None:
    rows = "email,status\na@example.com,\nb@example.com,pending\nc@example.com,pending (left)\nd@example.com,left\n"
    assert await counts_of(world, rows, confirm=True) == {"new": 3, "ended": 1}
    assert (await reader(world, "a@example.com"))["status"] == "pending"
    mails = await world.letters(2)
    assert sorted(mail.recipient for mail in mails) == ["a@example.com", "b@example.com"]
    assert (await totals(world.db))["letter"] == 2


async def test_an_edition_is_known_by_its_name_and_by_its_label(world: World) -> None:
    rows = "邮箱,频率\na@example.com,日报、周报\nb@example.com,Weekly\nc@example.com,月报\n"
    told = await take(world, rows, editions=())
    assert told["counts"]["new"] == 2
    assert told["rows"] == [
        {"line": 4, "kind": "invalid", "problem": "There is no edition “月报”; there are: daily, weekly."}
    ]
    assert (await reader(world, "a@example.com"))["editions"] == ["daily", "weekly"]


async def test_a_plan_or_a_file_that_cannot_be_taken_leaves_nothing_behind(world: World) -> None:
    for content, editions in (("email\na@example.com\n", ("monthly",)), ("name\nAnn\n", ("daily",))):
        with pytest.raises(Invalid):
            await take(world, content, editions=editions)
    assert not list(imports.folder(world.house.settings).iterdir())
    assert not await imports.work(world.db, world.house.settings, world.clock())


async def test_two_hands_on_one_job_take_no_row_twice(world: World) -> None:
    content = "email\n" + "".join(f"r{i}@example.com\n" for i in range(9_000))
    settings = world.house.settings
    job = await imports.start(
        world.db, settings, io.BytesIO(content.encode()), Plan("test", ("daily",)), "", world.clock()
    )

    async def hand() -> None:
        while await imports.step(world.db, settings, job, world.clock()):
            pass

    await asyncio.gather(hand(), hand(), hand())
    async with world.db.reading() as session:
        told = await imports.view(session, job)
    assert told["counts"]["new"] == 9_000 == sum(told["counts"].values())
    assert (await totals(world.db))["subscription"] == 9_000


async def test_a_file_that_a_crash_left_without_a_job_is_removed_in_a_day(world: World) -> None:
    laid = imports.lay_down(world.house.settings, io.BytesIO(b"email\na@example.com\n"))
    assert not await imports.work(world.db, world.house.settings, world.clock())
    assert laid.path.exists()
    later = datetime.now(UTC) + timedelta(hours=25)
    assert not await imports.work(world.db, world.house.settings, later)
    assert not laid.path.exists()


async def test_the_files_of_two_databases_in_one_folder_are_kept_apart(world: World) -> None:
    laid = imports.lay_down(world.house.settings, io.BytesIO(b"email\na@example.com\n"))
    folder = world.house.settings.data_dir
    other = settings_for(folder, world.sink, database_url=f"sqlite:///{folder}/other.db")
    later = datetime.now(UTC) + timedelta(hours=25)
    assert not await imports.work(world.db, other, later)
    assert laid.path.exists()


async def test_a_job_whose_file_is_gone_fails_in_a_sentence_and_old_jobs_are_forgotten(world: World) -> None:
    settings = world.house.settings
    job = await imports.start(
        world.db, settings, io.BytesIO(b"email\nx\n"), Plan("test", ("daily",)), "", world.clock()
    )
    for file in imports.folder(settings).iterdir():
        file.unlink()
    assert not await imports.work(world.db, settings, world.clock())
    world.clock.forward(hours=2)
    assert not await imports.work(world.db, settings, world.clock())
    async with world.db.reading() as session:
        told = await imports.view(session, job)
        assert (told["state"], told["problem"][:16]) == ("failed", "The file is gone")
    world.clock.forward(days=31)
    await imports.work(world.db, settings, world.clock())
    async with world.db.reading() as session:
        assert not await jobs.over_before(session, world.clock())


@asynccontextmanager
async def another(tmp_path: Path, empty: Path, sink: Sink) -> AsyncIterator[World]:
    """Open a second, empty house."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    async with house_at(folder, empty, sink) as one:
        yield one


def canonical(count: int) -> str:
    """Return a file just as we export it: readers in every state, and names that a spreadsheet would calculate."""
    states = ("active", "active", "active", "paused", "pending", "ended (left)", "ended (bounced)", "pending (left)",
              "paused (until 2027-01-05T00:00:00Z)", "ended (complained)")  # fmt: skip
    names = ("林一", "'=1+1", "''=x", '"An, Lee"', "'@here", "陈 二", "", "'-5", "'Quote'", "Ann", "''", "'")
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    writer.writerows(
        [
            f"{cells.neutral('=') if i % 50 == 0 else ''}r{i}@Example{i % 97}.com",
            names[i % len(names)],
            ("zh", "en")[i % 2],
            ("daily", "weekly", "daily weekly")[i % 3],
            states[i % 10],
            ("", "Asia/Shanghai")[i % 2],
            ("", "7", "23")[i % 3],
            f"2025-01-{i % 28 + 1:02}T08:00:00.{i + 1:06}Z",
            "2025-02-01T00:00:00Z" if states[i % 10].startswith(("active", "paused")) or i % 20 == 7 else "",
            ("form", "'+x")[i % 2],
        ]
        for i in range(count)
    )
    return out.getvalue()


async def test_a_hundred_thousand_readers_come_in_and_go_out_unchanged(world: World) -> None:
    file = canonical(100_000)
    told = await take(world, file)
    assert told["counts"]["new"] + told["counts"]["ended"] == 100_000 == sum(told["counts"].values())
    out = await exported(world.db)
    assert out == file
    assert not [line for line in out.splitlines() if line.startswith(("=", "+", "-", "@"))]


async def test_what_went_out_comes_in_elsewhere_unchanged(
    world: World, tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    await prepare(world)
    rows = (
        "email,name,status\n" + "".join(f'r{i}@example.com," =N{i}\n ",\n' for i in range(3_000))
    ) + MIXED[18:]
    await take(world, rows)
    out = await exported(world.db)
    async with another(tmp_path, empty_database, sink) as other:
        again = await take(other, out)
        assert sum(again["counts"].values()) == again["counts"]["new"] + again["counts"]["ended"] > 3_000
        assert await exported(other.db) == out


@pytest.mark.parametrize("after", [1, 3])
async def test_a_command_killed_half_way_is_finished_by_a_worker_exactly(
    tmp_path: Path, empty_database: Path, sink: Sink, after: int
) -> None:
    shutil.copy(empty_database, tmp_path / "broadsheet.db")
    file = tmp_path / "readers.csv"
    file.write_text("email\n" + "".join(f"r{i % 19_000}@example.com\n" for i in range(20_000)) + "bad\n" * 3)
    command = [sys.executable, "-c", "from app.cli import main; main()", "subscribers", "import", str(file)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BROADSHEET_")} | {
        "BROADSHEET_DATABASE_URL": f"sqlite:///{tmp_path}/broadsheet.db",
        "PYTHONPATH": str(ROOT),
    }
    process = subprocess.Popen(
        [*command, "--editions", "daily"], env=environment, cwd=tmp_path, stderr=subprocess.PIPE
    )
    async with house_at(tmp_path, empty_database, sink) as world:
        async with asyncio.timeout(60):
            while (await totals(world.db))["subscriber"] < 2_000 * after and process.poll() is None:
                await asyncio.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        async with world.db.reading() as session:
            (job,) = await jobs.running(session)
            assert sum(job.counts.values()) < 20_003
        while await imports.work(world.db, world.house.settings, world.clock()):
            pass
        async with world.db.reading() as session:
            told = await imports.view(session, job.id or 0, limit=2_000)
        assert told["counts"] | {"new": 0, "doubled": 0, "invalid": 0} == dict.fromkeys(told["counts"], 0)
        assert (told["counts"]["new"], told["counts"]["doubled"], told["counts"]["invalid"]) == (
            19_000,
            1_000,
            3,
        )
        lines = [row["line"] for row in told["rows"]]
        assert lines == list(range(19_002, 20_005))
        found = await totals(world.db)
        assert found["subscriber"] == found["subscription"] == found["consent_event"] == 19_000
        assert found["import_seen"] == 0


async def test_it_is_the_same_on_postgresql(
    postgres_url: str, tmp_path: Path, empty_database: Path, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # beside a database elsewhere, files lie under the working folder
    file = canonical(5_000)
    async with house_at(tmp_path, empty_database, sink, database_url=postgres_url) as world:
        told = await take(world, file)
        assert told["counts"]["new"] + told["counts"]["ended"] == 5_000
        assert await exported(world.db) == file
        assert await counts_of(world, file) == {"known": 3_000, "left": 2_000}
        await prepare(world)
        assert sum((await counts_of(world, MIXED)).values()) == 8
        assert await counts_of(world, "email\nask@example.com\n", confirm=True) == {"new": 1}
        assert await counts_of(world, "email,status\nask@example.com,bounced\n", update=True) == {
            "updated": 1
        }
