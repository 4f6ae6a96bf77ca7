"""What is measured: start-up, import, the API, and one worker's sending beside Postfix's own load generator."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from bench.place import BROADSHEET, ROOT, Place, free_port, place, wait_for
from bench.rendering import rendering
from bench.signups import signups

ROUNDS = 3
ROWS = int(os.environ.get("BENCH_ROWS", "20000"))
MAILS = int(os.environ.get("BENCH_MAILS", "5000"))
CALLING = float(os.environ.get("BENCH_SECONDS", "5"))
CONNECTIONS = 20  # of our relay, and sessions of smtp-source
CALLERS = 8
SAMPLE = ROOT / "app" / "cli" / "samples" / "daily.txt"
OWN_HEADERS = 220  # bytes that smtp-source puts before what -l asks for
MISSING = "smtp-sink and smtp-source are not here, so sending was not measured: they come with Postfix."

Measured = dict[str, list[float]]


def startup() -> Measured:
    """Milliseconds of `broadsheet --help`, and of a Python that does nothing, for comparison."""
    ways = {
        "broadsheet --help, ms": [str(BROADSHEET), "--help"],
        "python -c pass, ms": [sys.executable, "-c", "pass"],
    }
    found: Measured = {name: [] for name in ways}
    for _ in range(7):
        for name, command in ways.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            found[name].append(1000 * (time.perf_counter() - began))
    return found


def imports() -> Measured:
    """Rows a second of `broadsheet subscribers import` into an empty database, the command's start included."""
    found: Measured = {f"import of {ROWS:,} rows, rows/s": []}
    for _ in range(ROUNDS):
        with place() as here:
            file = here.readers(ROWS)
            seconds = _timed(lambda: here.run("subscribers", "import", str(file)))  # noqa: B023
            taken = _one(here, "SELECT count(*) FROM subscriber WHERE state = 'active'")
            if taken != ROWS:
                raise RuntimeError(f"{taken} of {ROWS} rows were taken")
            found[f"import of {ROWS:,} rows, rows/s"].append(ROWS / seconds)
    return found


def api() -> Measured:
    """Calls a second that one `broadsheet serve` answers to eight callers at once on loopback."""
    found: Measured = {f"GET /mailings/1, {CALLERS} callers, calls/s": []}
    port = free_port()
    with place() as here:
        here.run("subscribers", "add", "reader@example.com", "--editions", "daily")
        here.run("issues", "add", str(SAMPLE), "--edition", "daily", "--date", "2030-01-01")
        here.ask("send", "1")
        key = here.ask("keys", "create", "bench")["key"]
        with here.running("serve", "--port", str(port)):
            wait_for(port)
            asyncio.run(_call(port, key, 1.0))
            for _ in range(ROUNDS):
                found[f"GET /mailings/1, {CALLERS} callers, calls/s"].append(
                    asyncio.run(_call(port, key, CALLING))
                )
    return found


def sending() -> Measured:
    """Mails a second of one `broadsheet worker` on SQLite and of smtp-source, in turn, into one smtp-sink."""
    ours, begun, theirs = (
        "broadsheet worker, mails/s",
        "  from start to finish, mails/s",
        "smtp-source, mails/s",
    )
    found: Measured = {ours: [], begun: [], theirs: []}
    with _sink() as port, place(f"smtp+plain://127.0.0.1:{port}?connections={CONNECTIONS}") as here:
        here.run("subscribers", "import", str(here.readers(MAILS)))
        issues = [_hand_in(here, number) for number in range(ROUNDS)]
        size = len(here.run("issues", "preview", str(issues[0]), "--part", "message").encode())
        with here.running("worker"):
            for issue in issues:
                steady, whole = _send(here, issue)
                found[ours].append(steady)
                found[begun].append(whole)
                found[theirs].append(_smtp_source(port, size))
    sys.stdout.write(f"  {MAILS:,} mails of {size:,} bytes a round over {CONNECTIONS} connections\n")
    return found


def can_send() -> bool:
    """Whether Postfix's two programs are here."""
    return all(_program(name) for name in ("smtp-sink", "smtp-source"))


def _hand_in(here: Place, number: int) -> int:
    day = date(2030, 1, 1) + timedelta(days=number)
    made: int = here.ask("issues", "add", str(SAMPLE), "--edition", "daily", "--date", str(day))["id"]
    return made


def _send(here: Place, issue: int) -> tuple[float, float]:
    """Return mails a second between the first and the last outcome, and between start and finish."""
    mailing = here.ask("send", str(issue))["id"]
    life = f"SELECT state, started_at, finished_at FROM mailing WHERE id = {mailing}"
    while (told := _row(here, life))[0] != "finished":
        time.sleep(0.2)
    sent_rows = f"FROM delivery WHERE mailing_id = {mailing} AND state = 'sent'"
    span = f"SELECT count(*), min(done_at), max(done_at) {sent_rows}"
    sent, first, last = _row(here, span)
    if sent != MAILS:
        raise RuntimeError(f"{sent} of {MAILS} mails were sent")
    return sent / _seconds(first, last), sent / _seconds(told[1], told[2])


def _smtp_source(port: int, size: int) -> float:
    command = [
        _program("smtp-source") or "", "-d", "-s", str(CONNECTIONS), "-m", str(MAILS), "-l", str(size - OWN_HEADERS),
        "-f", "from@example.com", "-t", "to@example.com", f"127.0.0.1:{port}",
    ]  # fmt: skip
    return MAILS / _timed(lambda: subprocess.run(command, check=True))


@contextmanager
def _sink() -> Iterator[int]:
    port = free_port()
    rights = ["-u", "nobody"] if os.geteuid() == 0 else []
    program = subprocess.Popen([_program("smtp-sink") or "", *rights, f"127.0.0.1:{port}", "1000"])
    try:
        wait_for(port)
        yield port
    finally:
        program.terminate()
        program.wait()


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/lib/postfix/sbin")


async def _call(port: int, key: str, seconds: float) -> float:
    """Return how many calls a second were answered with 200."""
    wanted = (
        f"GET /api/v1/mailings/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    )
    began = time.perf_counter()

    async def caller() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answered = 0
        while time.perf_counter() - began < seconds:
            writer.write(wanted)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            if not head.startswith(b"HTTP/1.1 200") or body["id"] != 1:
                raise RuntimeError(f"the API answered {head!r}")
            answered += 1
        writer.close()
        return answered

    answered = await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return sum(answered) / (time.perf_counter() - began)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _row(here: Place, statement: str) -> tuple[Any, ...]:
    with sqlite3.connect(f"file:{here.database}?mode=ro", uri=True) as connection:
        found: tuple[Any, ...] = connection.execute(statement).fetchone()
    connection.close()
    return found


def _one(here: Place, statement: str) -> int:
    return int(_row(here, statement)[0])


def _seconds(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


MEASURES: dict[str, Callable[[], Measured]] = {
    "startup": startup,
    "api": api,
    "imports": imports,
    "rendering": rendering,
    "sending": sending,
    "signups": signups,
}
