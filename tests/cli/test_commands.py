"""Operators work by commands: tables for people, JSON for programs, 0 for done, 1 for refused, 2 for misused."""

import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.issues import samples
from tests.ports import free_port
from tests.programs import COMMAND, Shop, stopped, until
from tests.sink import Sink

COUNTS = ("owed", "in_flight", "sent", "deferred", "refused", "failed", "uncertain", "withdrawn", "suppressed",
          "expired")  # fmt: skip


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the one object that a command printed."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the objects that a command printed, one a line."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def refused(done: subprocess.CompletedProcess[str], *words: str) -> str:
    """Assert that a command refused with exit code 1 and without a trace; return what it said."""
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    return done.stderr


def sentence(said: str) -> str:
    """Assert that something is one line that ends as a sentence does."""
    assert said.count("\n") == 1, said
    assert said.rstrip().endswith("."), said
    return said


@pytest.fixture
def issue(shop: Shop) -> str:
    """The id of an issue in the shop, with three readers of it."""
    (shop.folder / "daily.txt").write_text(samples.DAILY, encoding="utf-8")
    done = shop.command("issues", "add", "daily.txt", "--edition", "daily", "--date", "2026-10-26", "--json")
    for number in range(3):
        add_reader(shop, f"r{number}@example.com")
    return str(told(done)["id"])


def add_reader(shop: Shop, address: str) -> None:
    """Add an active reader of the daily straight into the database: faster than a command."""
    with sqlite3.connect(shop.folder / "broadsheet.db") as file:
        values = (
            address,
            address,
            address.encode(),
            "",
            "",
            "zh",
            "active",
            "test",
            "2026-10-01 00:00:00",
        )
        columns = "address, address_key, address_hash, provider, name, language, state, source, created_at"
        who = file.execute(
            f"INSERT INTO subscriber ({columns}) VALUES ({','.join('?' * 9)})", values
        ).lastrowid
        file.execute("INSERT INTO subscription VALUES (?, 1, '2026-10-01 00:00:00')", (who,))


def test_keys_are_made_listed_and_revoked(shop: Shop) -> None:
    made = shop.command("keys", "create", "script", "--scope", "admin")
    assert re.fullmatch(r"bs_[0-9a-f]{12}_[\w-]{43}\n", made.stdout)
    assert "only now" in made.stderr
    other = told(shop.command("keys", "create", "other", "--json"))
    assert list(other) == ["key"]
    listed = rows(shop.command("keys", "list", "--json"))
    assert [(one["name"], one["scope"], one["revoked_at"]) for one in listed] == [
        ("script", "admin", None), ("other", "editor", None),
    ]  # fmt: skip
    assert made.stdout.strip().split("_", 2)[2] not in str(listed)
    assert "script" in shop.command("keys", "revoke", str(listed[0]["id"])).stdout
    assert "other" in shop.command("keys", "revoke", listed[1]["handle"]).stdout
    table = shop.command("keys", "list").stdout
    assert table.splitlines()[0].split() == [
        "id",
        "name",
        "scope",
        "created_at",
        "last_used_at",
        "revoked_at",
    ]
    refused(shop.command("keys", "revoke", "99"), "no key")
    refused(shop.command("keys", "revoke", "9" * 30), "no key")
    refused(shop.command("keys", "create", ""), "name")
    assert shop.command("keys", "create", "x", "--scope", "root").returncode == 2


def test_square_brackets_in_a_name_are_shown_as_they_are(shop: Shop) -> None:
    for name in ("[/b]", "[red]x[/red]", ":smile:"):
        told(shop.command("keys", "create", name, "--json"))
    table = shop.command("keys", "list").stdout
    assert [line.split()[1] for line in table.splitlines()[1:]] == ["[/b]", "[red]x[/red]", ":smile:"]


def test_a_command_with_another_suppression_key_than_the_databases_is_refused(shop: Shop) -> None:
    assert shop.command("keys", "list").returncode == 0, "a fresh database knows no key yet"
    with sqlite3.connect(shop.folder / "broadsheet.db") as file:
        assert file.execute("SELECT count(*) FROM suppression_key").fetchone() == (0,)
        file.execute("INSERT INTO suppression_key (id, fingerprint) VALUES (1, 'of another key')")
    for command in (("keys", "list"), ("suppressions", "add", "lin@example.com")):
        sentence(refused(shop.command(*command), "SUPPRESSION_KEY"))


def test_editions_are_listed_added_and_edited(shop: Shop) -> None:
    listed = rows(shop.command("editions", "list", "--json"))
    assert [one["slug"] for one in listed] == ["daily", "weekly"]
    assert listed[0]["sender"] == "daily@broadsheet.example"
    added = told(
        shop.command("editions", "add", "monthly", "--name", "AI 技术月报", "--cadence", "1", "--json")
    )
    assert (added["cadence"], added["label"], added["language"]) == ({"day_of_month": 1}, "AI 技术月报", "zh")
    edited = told(
        shop.command("editions", "edit", "monthly", "--cadence", "mon,thu", "--label", "月报", "--json")
    )
    assert (edited["cadence"], edited["label"]) == ({"weekdays": [0, 3]}, "月报")
    assert "monthly" in shop.command("editions", "list").stdout
    assert shop.command("editions", "add", "x").returncode == 2
    said = refused(shop.command("editions", "add", "X", "--name", "x", "--accent", "red"), "slug:", "accent:")
    assert len(said.splitlines()) == 3
    refused(shop.command("editions", "edit", "daily", "--cadence", "32"), "cadence")
    refused(shop.command("editions", "edit", "daily", "--cadence", "sometimes"), "cadence")
    refused(shop.command("editions", "edit", "hourly", "--name", "x"), "daily, weekly")


def test_a_faulty_text_is_refused_with_every_line_on_standard_error(shop: Shop) -> None:
    broken = samples.DAILY.replace("https://example.org/cache", "ftp://x").replace(
        "握手少", "2026-02-31 握手少"
    )
    (shop.folder / "broken.txt").write_text(broken, encoding="utf-8")
    command = ("issues", "add", "broken.txt", "--edition", "daily", "--date", "2026-10-26")
    refused(shop.command(*command), "line 7:", "line 14:")
    refused(shop.command(*command, "--json"), "line 7:", "line 14:")
    (shop.folder / "gbk.txt").write_bytes("技术日报\n".encode("gb18030"))
    refused(shop.command("issues", "add", "gbk.txt", "--edition", "daily", "--date", "2026-10-26"), "line 1:")
    assert rows(shop.command("issues", "list", "--json")) == []


def test_an_issue_is_added_listed_shown_and_previewed(shop: Shop, issue: str) -> None:
    again = ("issues", "add", "daily.txt", "--edition", "daily", "--date", "2026-10-26")
    refused(shop.command(*again), "already")
    other = shop.command(
        "issues", "add", "daily.txt", "--edition", "daily", "--date", "2026-10-27", "--subject", "别的"
    )
    assert (other.returncode, other.stdout.strip().isdecimal()) == (0, True)
    assert "别的" in other.stderr
    listed = rows(shop.command("issues", "list", "--json"))
    assert [(one["edition"], one["date"], one["state"]) for one in listed] == [
        ("daily", "2026-10-26", "draft"), ("daily", "2026-10-27", "draft"),
    ]  # fmt: skip
    assert told(shop.command("issues", "show", issue, "--json"))["texts"][0]["source"] == samples.DAILY
    assert "缓存：先看瓶颈" in shop.command("issues", "show", issue).stdout
    for part, words in (
        ("html", "<!DOCTYPE html"),
        ("text", "缓存"),
        ("headers", "Subject: "),
        ("message", "MIME-"),
    ):
        assert words in shop.command("issues", "preview", issue, "--part", part).stdout
    refused(shop.command("issues", "preview", issue, "--language", "en"), "en")
    assert shop.command("issues", "preview", issue, "--part", "soul").returncode == 2
    refused(shop.command("issues", "show", "99"), "no issue 99")


def test_preflight_says_that_nothing_or_what_stands_in_the_way(shop: Shop, issue: str) -> None:
    assert shop.command("issues", "preflight", issue).stdout.startswith("warning: zh, line 13: “网络”")
    found = told(shop.command("issues", "preflight", issue, "--json"))
    assert (found["errors"], [one["line"] for one in found["warnings"]]) == ([], [13])
    (shop.folder / "odd.txt").write_text(samples.DAILY.replace("往返。", "往返 {{ x }}。"), encoding="utf-8")
    added = shop.command("issues", "add", "odd.txt", "--edition", "daily", "--date", "2026-10-28", "--json")
    odd = str(told(added)["id"])
    listed = shop.command("issues", "preflight", odd)
    assert (listed.returncode, "error: zh, html:" in listed.stdout) == (1, True)
    refused(shop.command("send", odd, "--detach"), "html:")
    assert shop.command("send", odd, "--detach", "--force").returncode == 0


def test_a_text_is_changed_and_a_draft_deleted_by_command(shop: Shop, issue: str) -> None:
    (shop.folder / "new.md").write_text(samples.MARKDOWN, encoding="utf-8")
    changed = told(shop.command("issues", "edit", issue, "new.md", "--json"))
    assert [len(part["items"]) for part in changed["outline"]] == [1, 1]
    assert told(shop.command("issues", "show", issue, "--json"))["texts"][0]["format"] == "markdown"
    assert shop.command("issues", "edit", issue, "--subject", "另一个题").stdout == f"{issue}\n"
    assert told(shop.command("issues", "show", issue, "--json"))["texts"][0]["subject"] == "另一个题"
    assert shop.command("issues", "edit", issue).returncode == 2
    (shop.folder / "bad.md").write_text(samples.MARKDOWN + "\n<b>\n", encoding="utf-8")
    refused(shop.command("issues", "edit", issue, "bad.md"), "raw HTML")
    assert shop.command("issues", "delete", issue).returncode == 0
    refused(shop.command("issues", "delete", issue), "no issue")


def test_a_preview_follows_every_change_of_its_file(shop: Shop, issue: str) -> None:
    file = shop.folder / "draft.md"
    file.write_text(samples.MARKDOWN, encoding="utf-8")
    port = str(free_port())
    program = shop.start("issues", "preview", issue, "--watch", "--file", "draft.md", "--port", port)
    url = f"http://127.0.0.1:{port}"
    assert program.stdout is not None
    assert url in program.stdout.readline()
    with httpx.Client(timeout=30) as client:
        seen = re.search(r'seen = "(\w+)"', client.get(url).text)
        assert seen is not None
        assert "没有测量，就没有结论。" in client.get(f"{url}/mail").text
        file.write_text(samples.MARKDOWN.replace("没有测量", "没有证明"), encoding="utf-8")
        now = client.get(f"{url}/changes", params={"since": seen[1]}).text
        assert now != seen[1]
        assert "没有证明，就没有结论。" in client.get(f"{url}/mail").text
        file.write_text(samples.MARKDOWN + "\n<b>\n", encoding="utf-8")
        assert client.get(f"{url}/changes", params={"since": now}).text != now
        assert "raw HTML" in client.get(f"{url}/mail").text
        assert client.get(f"{url}/mail", headers={"Host": "evil.example"}).status_code == 403
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=30)


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("issues",),
        ("issues", "show", "x"),
        ("issues", "show", "99999999999999999999"),
        ("issues", "show", "-1"),
        ("issues", "add", "missing.txt", "--edition", "daily", "--date", "2026-10-26"),
        ("issues", "add", ".", "--edition", "daily", "--date", "2026-10-26"),
        ("issues", "test", "1"),
        ("send",),
        ("send", "1", "--max-lateness", "soon"),
        ("send", "1", "--max-lateness", "59s"),
        ("send", "1", "--max-lateness", "31d"),
        ("send", "1", "--max-lateness", "9" * 5000 + "d"),
        ("send", "1", "--at", "tomorrow"),
        ("send", "1", "--on-uncertain", "guess"),
        ("mailings", "reschedule", "1"),
        ("run", "--port", "70000"),
        ("why", "lin@example.com"),
    ],
)
def test_what_is_misused_exits_with_2_and_says_how_it_is_meant(shop: Shop, args: tuple[str, ...]) -> None:
    done = shop.command(*args)
    assert done.returncode == 2, done.stderr
    assert "Usage: " in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_has_help_and_none_is_missing(shop: Shop) -> None:
    top = shop.command("--help")
    wanted = [
        "run",
        "serve",
        "worker",
        "migrate",
        "keys",
        "editions",
        "issues",
        "send",
        "mailings",
        "subscribers",
        "why",
        "suppressions",
        "dns",
    ]
    assert top.returncode == 0
    for name in wanted:
        assert re.search(rf"^  {name} ", top.stdout, re.M), name
    code = "import sys; from app.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    loaded = subprocess.run(
        [COMMAND[0], "-c", code, "--help"],
        env=shop.env,
        cwd=shop.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    heavy = {"sqlalchemy", "fastapi", "uvicorn", "pydantic", "rich", "jinja2", "asyncio"}
    assert heavy & set(loaded.stdout.split()) == set()
    assert re.fullmatch(r"broadsheet \d+\.\d+\.\d+\S*\n", shop.command("--version").stdout)


def test_a_mailing_is_steered_by_commands(shop: Shop, issue: str) -> None:
    sent = told(shop.command("send", issue, "--at", "2030-01-01 08:00", "--tz", "Asia/Shanghai", "--json"))
    assert (sent["state"], sent["scheduled_at"]) == ("scheduled", "2030-01-01T00:00:00+00:00")
    number = str(sent["id"])
    assert (
        told(shop.command("send", issue, "--at", "2030-01-01 00:00", "--tz", "UTC", "--json"))["id"]
        == sent["id"]
    )
    refused(shop.command("send", issue, "--at", "2030-01-02 08:00", "--tz", "UTC"), "reschedule mailing")
    refused(shop.command("send", issue, "--at", "2030-01-02 08:00"), "tz")
    moved = told(
        shop.command("mailings", "reschedule", number, "--at", "2031-01-01T00:00", "--tz", "UTC", "--json")
    )
    assert moved["scheduled_at"] == "2031-01-01T00:00:00+00:00"
    for act, state in (("pause", "paused"), ("resume", "scheduled"), ("cancel", "cancelled")):
        for _ in range(2 if act == "pause" else 1):
            assert told(shop.command("mailings", act, number, "--json"))["state"] == state
    refused(shop.command("mailings", "retry", number), "cancelled")
    refused(shop.command("mailings", "pause", "99"), "no mailing 99")
    assert "scheduled" in shop.command("send", issue, "--at", "2030-01-01 08:00", "--tz", "UTC").stdout
    listed = shop.command("mailings", "list").stdout.splitlines()
    assert listed[0].split()[:5] == ["id", "edition", "date", "state", "audience"]
    assert listed[1].split()[:4] == [number, "daily", "2026-10-26", "scheduled"]
    assert listed[1].rstrip().endswith("缓存：先看瓶颈，再谈提速")
    shown = shop.command("mailings", "show", number).stdout
    assert re.search(r"^state +scheduled$", shown, re.M)
    assert "balance" in shop.command("mailings", "reconcile", number).stdout


def test_ctrl_c_ends_the_watching_and_says_that_the_mailing_goes_on(shop: Shop, issue: str) -> None:
    watching = shop.start("send", issue)
    until(lambda: shop.command("mailings", "list", "--json").stdout)
    code, out, err = stopped(watching, signal.SIGINT)
    (mailing,) = rows(shop.command("mailings", "list", "--json"))
    assert (code, out) == (0, "")
    assert f"Mailing {mailing['id']} goes on" in err
    for command in (f"broadsheet send {issue}", f"broadsheet mailings pause {mailing['id']}"):
        assert command in err
    assert mailing["state"] == "preparing"


@pytest.mark.parametrize("columns", ["", "40"])
def test_a_table_that_no_terminal_shows_is_not_cut(shop: Shop, issue: str, columns: str) -> None:
    title = "一个很长的标题，" * 12
    shop.command("issues", "edit", issue, "--subject", title)
    shop.command("send", issue, "--at", "2030-01-01 08:00", "--tz", "UTC")
    for noun in ("issues", "mailings"):
        assert title in shop.command(noun, "list", COLUMNS=columns).stdout


def test_a_setting_that_there_is_not_is_doubted_at_start_with_the_name_that_was_meant(shop: Shop) -> None:
    (shop.folder / ".env").write_text("BROADSHEET_POSTAL_ADRESS=x\nOTHER=1\n", encoding="utf-8")
    (shop.folder / "broadsheet.toml").write_text('nmae = "x"\ncontact = ""\n', encoding="utf-8")
    _, _, err = stopped(
        shop.serve("serve", BROADSHEET_RELAY="x", BROADSHEET_BANANA="y", BROADSHEET_TEST_X="z")[0]
    )
    for shown in (
        "BROADSHEET_POSTAL_ADRESS, in .env, is no setting and changes nothing; did you mean BROADSHEET_POSTAL_ADDRESS?",
        "nmae, in broadsheet.toml, is no setting and changes nothing; did you mean name?",
        "BROADSHEET_RELAY, in the environment, is no setting and changes nothing; did you mean BROADSHEET_RELAYS?",
        "BROADSHEET_BANANA, in the environment, is no setting and changes nothing; docs/settings.md has all names.",
    ):
        assert shown in err
    assert err.count("is no setting") == 4


def test_suppressions_are_added_listed_and_removed(shop: Shop) -> None:
    added = told(shop.command("suppressions", "add", "gone@example.com", "--note", "by phone", "--json"))
    assert (added["address"], added["reason"], added["note"]) == ("gone@example.com", "editor", "by phone")
    assert "gone@example.com" in shop.command("suppressions", "list").stdout
    assert rows(shop.command("suppressions", "list", "--json"))[0]["id"] == added["id"]
    assert shop.command("suppressions", "remove", str(added["id"])).returncode == 0
    refused(shop.command("suppressions", "remove", str(added["id"])), "no suppression")
    refused(shop.command("suppressions", "add", "nobody"), "address")


def test_dns_prints_what_to_set_without_asking_anybody(shop: Shop) -> None:
    done = shop.command(
        "dns",
        "--offline",
        BROADSHEET_MAIL_DOMAIN="news.example.com",
        BROADSHEET_BOUNCE_DOMAIN="b.example.com",
    )
    assert done.returncode == 0, done.stderr
    assert "news.example.com  TXT  v=spf1" in done.stdout
    assert "_dmarc.news.example.com  TXT  v=DMARC1; p=none" in done.stdout
    assert "b.example.com  MX  10 b.example.com." in done.stdout
    found = rows(shop.command("dns", "--offline", "--json"))
    assert {"name", "type", "value", "why", "found", "problem"} == set(found[0])


def test_send_goes_to_the_end_beside_a_program_that_runs(shop: Shop, issue: str, sink: Sink) -> None:
    program, url = shop.serve("run")
    done = shop.command("send", issue)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"Mailing 1 is finished: 3 sent\.\n", done.stdout)
    assert sorted(sink.recipients()) == ["r0@example.com", "r1@example.com", "r2@example.com"]
    again = told(shop.command("send", issue, "--json"))
    assert (again["sent"], again["audience"], sum(again[name] for name in COUNTS)) == (3, 3, 3)
    answer = shop.command("why", "r1@example.com", issue)
    assert "took it on" in answer.stdout
    assert told(shop.command("why", "r1@example.com", issue, "--json"))["verdict"] == "sent"
    assert "no reader" in shop.command("why", "who@example.com", issue).stdout
    refused(shop.command("why", "nobody", issue), "address")
    for command, mark in (("test", "[Test] "), ("copy", "")):
        sink.forget()
        assert shop.command("issues", command, issue, "--to", "r2@example.com").returncode == 0
        sink.wait(1)
        assert sink.parsed()[0]["Subject"].startswith(mark + "缓存")
    refused(shop.command("issues", "copy", issue, "--to", "who@example.com"), "no active reader")
    assert httpx.get(f"{url}/archive/daily/2026-10-26").status_code == 200
    code, _, err = stopped(program)
    assert (code, "Traceback" in err) == (0, False)


def test_a_bar_shows_how_far_it_is_on_a_terminal_only(shop: Shop, issue: str) -> None:
    main_, side = pty.openpty()
    sending = subprocess.Popen(
        [*COMMAND, "send", issue],
        env=shop.env | {"TERM": "xterm"},
        cwd=shop.folder,
        stdin=side,
        stdout=side,
        stderr=side,
    )
    os.close(side)
    seen = b""
    try:
        while b"no worker" not in seen and len(seen) < 1_000_000:
            seen += os.read(main_, 65_536)  # it says so where nobody delivers
        shop.start("worker")
        while chunk := read(main_):
            seen += chunk
    finally:
        os.close(main_)
        if sending.poll() is None:
            sending.kill()
        sending.wait()
    assert sending.returncode == 0
    assert "━" in seen.decode(errors="replace")
    assert b"Mailing 1 is finished: 3 sent." in seen


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side is closed
        return b""


def test_a_second_worker_on_one_sqlite_file_refuses_to_start(shop: Shop) -> None:
    first = shop.start("worker")
    until(lambda: (shop.folder / "worker-broadsheet.db-0.lock").exists() and one_works(shop))
    sentence_or_two = refused(shop.command("worker"), "Another worker")
    assert sentence_or_two.count("\n") == 1
    port = str(free_port())
    refused(shop.command("run", "--port", port), "Another worker")
    assert stopped(first)[0] == 0
    second = shop.start("worker")
    until(lambda: one_works(shop))
    assert stopped(second, signal.SIGINT)[0] == 0


def test_two_sqlite_files_in_one_folder_have_a_worker_each(shop: Shop) -> None:
    shutil.copy(shop.folder / "broadsheet.db", shop.folder / "other.db")
    shop.start("worker")
    until(lambda: one_works(shop))
    other = shop.start("worker", BROADSHEET_DATABASE_URL=f"sqlite:///{shop.folder}/other.db")
    until(lambda: other.poll() is not None or one_works(shop, "other.db"))
    assert stopped(other)[0] == 0


def one_works(shop: Shop, database: str = "broadsheet.db") -> bool:
    with sqlite3.connect(shop.folder / database) as file:
        return bool(file.execute("SELECT 1 FROM worker WHERE stopped_at IS NULL").fetchall())


def test_the_pages_alone_hold_their_port_and_stop_cleanly(shop: Shop) -> None:
    program, url = shop.serve("serve")
    for name in ("serve", "run"):
        said = sentence(refused(shop.command(name, "--port", url.rpartition(":")[2])))
        assert "in use" in said
    sentence(refused(shop.command("serve", "--host", "192.0.2.1", "--port", str(free_port()))))
    with httpx.Client(base_url=url) as client:  # a connection kept alive holds nothing up
        assert client.get("/").status_code == 200
        code, _, err = stopped(program)
    assert (code, "Traceback" in err) == (0, False)
    assert "127.0.0.1" in err


def test_a_database_of_a_newer_version_is_left_alone(shop: Shop) -> None:
    with sqlite3.connect(shop.folder / "broadsheet.db") as file:
        file.execute("UPDATE alembic_version SET version_num = '9999'")
    for args in (("run", "--port", str(free_port())), ("migrate",), ("issues", "list")):
        refused(shop.command(*args), "newer Broadsheet", "9999")
    with sqlite3.connect(shop.folder / "broadsheet.db") as file:
        assert file.execute("SELECT version_num FROM alembic_version").fetchone() == ("9999",)


def test_an_empty_database_is_migrated_by_run_and_asked_for_by_others(shop: Shop, tmp_path: Path) -> None:
    fresh = {"BROADSHEET_DATABASE_URL": f"sqlite:///{tmp_path}/fresh/new.db"}
    sentence(refused(shop.command("issues", "list", **fresh), "broadsheet migrate"))
    assert "was empty" in shop.command("migrate", **fresh).stdout
    assert rows(shop.command("issues", "list", "--json", **fresh)) == []
    assert "and is now" in shop.command("migrate", **fresh).stdout


@pytest.mark.parametrize(
    "place", ["/proc/nowhere/broadsheet.db", "{folder}/file/broadsheet.db", "{folder}/file"]
)
def test_a_place_that_cannot_be_written_is_said_in_one_sentence(shop: Shop, place: str) -> None:
    (shop.folder / "file").write_text("this is no database, and it is not a folder\n" * 100)
    settings = {"BROADSHEET_DATABASE_URL": f"sqlite:///{place.format(folder=shop.folder)}"}
    for args in (("issues", "list"), ("migrate",), ("run", "--port", str(free_port()))):
        sentence(refused(shop.command(*args, **settings)))


def test_all_faulty_settings_are_named_on_one_screen(shop: Shop) -> None:
    done = shop.command("issues", "list", BROADSHEET_DATABASE_URL="mysql://x", BROADSHEET_BASE_URL="nowhere")
    said = refused(done, "BROADSHEET_DATABASE_URL", "BROADSHEET_BASE_URL")
    assert len(said.splitlines()) < 12


def test_a_worker_or_pages_alone_need_a_relay(shop: Shop) -> None:
    for name in ("worker", "serve"):
        refused(shop.command(name, BROADSHEET_RELAYS="mailbox:"), "BROADSHEET_RELAYS")


def test_the_first_run_shows_where_to_look_and_stops_in_the_midst_of_it(shop: Shop, tmp_path: Path) -> None:
    fresh = {
        "BROADSHEET_DATABASE_URL": f"sqlite:///{tmp_path}/fresh/new.db",
        "BROADSHEET_RELAYS": "mailbox:",
        "PYTHONUNBUFFERED": "1",
    }
    program, url = shop.serve("run", "--demo", **fresh)
    seen = ""
    assert program.stdout is not None
    while "issues add" not in seen:
        line = program.stdout.readline()
        assert line
        seen += line
    key = re.search(r"bs_\w+-?[\w-]*", seen)
    assert key is not None
    headers = {"Authorization": f"Bearer {key[0]}"}
    mailings = httpx.get(f"{url}/api/v1/mailings", headers=headers).json()["items"]
    assert [(one["state"], one["sent"]) for one in mailings] == [("finished", 4), ("finished", 3)]
    assert httpx.get(f"{url}/mailbox").status_code == 200
    assert f'href="{url}/style.css' in httpx.get(url).text  # links follow the port that was chosen
    assert stopped(program, signal.SIGINT)[0] == 0
    again, _ = shop.serve("run", "--demo", **fresh)  # a second start sends nothing again
    assert stopped(again)[0] == 0
