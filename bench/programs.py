"""The programs one by one: start-up, import, and the calls that the API answers."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable

from bench.place import BROADSHEET, wait_for
from bench.sizes import Sizes
from bench.stock import SQLITE, Stock
from bench.table import Figure, beside
from bench.web import Client
from tests.ports import free_port

STARTS = 7
CALLERS = 8


def startup(sizes: Sizes, stock: Stock) -> list[Figure]:  # noqa: ARG001 (every measure is given both)
    """Milliseconds of `broadsheet --help`, and of a Python that does nothing, in turn."""
    nothing = [sys.executable, "-c", "pass"]
    ours, peers = list[float](), [_command(nothing)]
    for _ in range(STARTS):
        ours.append(_command([str(BROADSHEET), "--help"]))
        peers.append(_command(nothing))
    return [
        Figure("broadsheet --help, ms", ours, beside(ours, peers)),
        Figure("  python -c pass beside it, ms", peers),
    ]


def imports(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Rows a second of `broadsheet subscribers import` into an empty database, the command's start included."""
    found = []
    for _ in range(sizes.rounds):
        with stock.place(SQLITE, 0) as here:
            file = here.readers(sizes.rows)
            seconds = _timed(lambda: here.run("subscribers", "import", str(file)))  # noqa: B023
            taken = here.one("SELECT count(*) FROM subscriber WHERE state = 'active'")
            if taken != sizes.rows:
                raise RuntimeError(f"{taken} of {sizes.rows} rows were taken")
            found.append(sizes.rows / seconds)
    return [Figure(f"import of {sizes.rows:,} rows, rows/s", found)]


def api(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Calls a second that one `broadsheet serve` answers to eight callers at once on loopback."""
    port = free_port()
    with stock.place(SQLITE, 1) as here:
        here.run("send", str(here.hand_in(0)), "--detach")
        key = here.key()
        with here.running("serve", "--port", str(port)):
            wait_for(port)
            asyncio.run(_call(port, key, min(1.0, sizes.calling)))
            found = [asyncio.run(_call(port, key, sizes.calling)) for _ in range(sizes.rounds)]
    return [Figure(f"GET /mailings/1, {CALLERS} callers, calls/s", found)]


async def _call(port: int, key: str, seconds: float) -> float:
    """Return how many calls a second were answered."""
    began = time.perf_counter()

    async def caller() -> int:
        answered = 0
        async with Client(port, key) as client:
            while time.perf_counter() - began < seconds:
                if (await client.call("GET /api/v1/mailings/1"))["id"] != 1:
                    raise RuntimeError("the API answered with another mailing")
                answered += 1
        return answered

    answered = await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return sum(answered) / (time.perf_counter() - began)


def _command(words: list[str]) -> float:
    return 1000 * _timed(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
