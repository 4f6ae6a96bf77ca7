"""How many requests from the form one `broadsheet serve` takes a second, and whether each of them becomes a letter."""

import asyncio
import re
import time
from urllib.parse import urlencode

from bench.place import Place, wait_for
from bench.sizes import Sizes
from bench.stock import SQLITE, Stock
from bench.table import Figure
from bench.web import Client
from tests.ports import free_port

CALLERS = 16
PATIENCE = 120.0  # seconds
FORM = "application/x-www-form-urlencoded"
LIMITS = ("letters_a_day", "letters_a_month", "signups_a_network", "letters_a_minute", "form_seconds")
LIFTED = dict.fromkeys(LIMITS, "0")


def signups(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Requests a second at the door of one process with the limits lifted, and letters a second that they become."""
    requests, letters = list[float](), list[float]()
    for _ in range(sizes.rounds):
        with stock.place(SQLITE, 0, **LIFTED) as here:
            port = free_port()
            with here.running("serve", "--port", str(port)):
                wait_for(port)
                requests.append(sizes.signups / asyncio.run(_sign_up(port, sizes.signups)))
            began = time.perf_counter()
            with here.running("worker"):
                _wait_for_letters(here, sizes.signups, began)
            letters.append(sizes.signups / (time.perf_counter() - began))
    return [
        Figure("POST /subscribe, requests/s", requests),
        Figure("answered with a letter owed, letters/s", letters),
    ]


def _wait_for_letters(here: Place, wanted: int, began: float) -> None:
    """Wait until every request has become a letter; the worker's start is counted in."""
    while (owed := here.one("SELECT count(DISTINCT address) FROM letter")) != wanted:
        if time.perf_counter() - began > PATIENCE:
            raise RuntimeError(f"{owed} of {wanted} requests became letters")
        time.sleep(0.1)


async def _sign_up(port: int, wanted: int) -> float:
    """Send the form for as many addresses as are wanted, sixteen at a time; return the seconds."""
    stamp = await stamped(port)
    numbers = iter(range(wanted))
    began = time.perf_counter()

    async def caller() -> None:
        async with Client(port) as client:
            for number in numbers:
                await subscribe(client, f"r{number}@example.com", stamp)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return time.perf_counter() - began


async def stamped(port: int) -> str:
    """Return the stamp that the form carries."""
    async with Client(port) as client:
        _, page = await client.ask("GET /")
    stamp: bytes = re.findall(rb'name="stamp" value="([^"]+)"', page)[0]
    return stamp.decode()


async def subscribe(client: Client, address: str, stamp: str) -> None:
    """Send the form for one address; raise RuntimeError unless it is answered with 200."""
    form = {"email": address, "editions": "daily", "language": "zh", "stamp": stamp}
    status, _ = await client.ask("POST /subscribe", urlencode(form).encode(), FORM)
    if status != 200:
        raise RuntimeError(f"the form answered {status}")
