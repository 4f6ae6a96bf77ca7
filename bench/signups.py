"""How many requests from the form one `broadsheet serve` takes a second, and whether each of them becomes a letter."""

import asyncio
import os
import re
import sqlite3
import time
from urllib.parse import urlencode

from bench.place import Place, free_port, place, wait_for

ROUNDS = 3
WANTED = int(os.environ.get("BENCH_SIGNUPS", "2000"))
CALLERS = 16
PATIENCE = 120.0  # seconds
LIMITS = ("LETTERS_A_DAY", "LETTERS_A_MONTH", "SIGNUPS_A_NETWORK", "LETTERS_A_MINUTE", "FORM_SECONDS")


def signups() -> dict[str, list[float]]:
    """Requests a second at the door of one process with the limits lifted, and letters a second that they become."""
    found: dict[str, list[float]] = {
        "POST /subscribe, requests/s": [],
        "answered with a letter owed, letters/s": [],
    }
    for _ in range(ROUNDS):
        with place() as here:
            lifted = "".join(f"BROADSHEET_{name}=0\n" for name in LIMITS)
            (here.folder / ".env").write_text(lifted, encoding="utf-8")
            port = free_port()
            with here.running("serve", "--port", str(port)):
                wait_for(port)
                taken = asyncio.run(_sign_up(port))
            began = time.perf_counter()
            with here.running("worker"):
                _wait_for_letters(here, began)
            answered = time.perf_counter() - began
            for values, seconds in zip(found.values(), (taken, answered), strict=True):
                values.append(WANTED / seconds)
    return found


def _wait_for_letters(here: Place, began: float) -> None:
    """Wait until every request has become a letter; the worker's start is counted in."""
    while True:
        with sqlite3.connect(f"file:{here.database}?mode=ro", uri=True) as connection:
            owed = connection.execute("SELECT count(DISTINCT address) FROM letter").fetchone()[0]
        connection.close()
        if owed == WANTED:
            return
        if time.perf_counter() - began > PATIENCE:
            raise RuntimeError(f"{owed} of {WANTED} requests became letters")
        time.sleep(0.1)


async def _sign_up(port: int) -> float:
    """Send the form for as many addresses as are wanted, sixteen at a time; return the seconds. Every answer is 200."""
    stamp = re.findall(
        rb'name="stamp" value="([^"]+)"', (await _ask(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))[1]
    )[0]
    numbers = iter(range(WANTED))
    began = time.perf_counter()

    async def caller() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            form = {
                "email": f"r{number}@example.com",
                "editions": "daily",
                "language": "zh",
                "stamp": stamp.decode(),
            }
            body = urlencode(form).encode()
            kind = b"Content-Type: application/x-www-form-urlencoded\r\n"
            head = (
                b"POST /subscribe HTTP/1.1\r\nHost: x\r\n" + kind + b"Content-Length: %d\r\n\r\n" % len(body)
            )
            writer.write(head + body)
            status, _ = await _answer(reader)
            if status != 200:
                raise RuntimeError(f"the form answered {status}")
        writer.close()

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return time.perf_counter() - began


async def _ask(port: int, request: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await _answer(reader)
    writer.close()
    return answer


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(length)
