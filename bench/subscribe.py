"""How long a reader waits for the form while a mailing goes out, in the one-command form on SQLite."""

import asyncio
import itertools
import time

from bench import postfix, watch
from bench.place import Place, free_port, wait_for
from bench.signups import LIFTED, stamped
from bench.signups import subscribe as sign_up
from bench.sizes import Sizes
from bench.stock import SQLITE, Stock
from bench.table import Figure, Target, percentile
from bench.web import Client

RATE = 2_000  # mails a second that the relay is told to take
QUIET = 5.0  # seconds of asking while no mailing goes out
SPARE = 64  # connections: a request waits for no other


def subscribe(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Milliseconds until POST /subscribe of `broadsheet run` is answered, while a mailing goes out and while none does.

    A request is sent when its time has come, however long the last one takes, and is timed from then.
    """
    busy, quiet, rates = list[list[float]](), list[list[float]](), list[float]()
    with postfix.sink() as sink:
        relay = f"smtp+plain://127.0.0.1:{sink.port}?connections={sizes.connections}&rate={RATE}/s"
        with stock.place(SQLITE, sizes.busy, relay, **LIFTED) as here:
            issues = [here.hand_in(number) for number in range(sizes.rounds)]
            port, names = free_port(), itertools.count()
            with here.running("run", "--port", str(port)):
                wait_for(port)
                stamp = asyncio.run(stamped(port))
                for issue in issues:
                    quiet.append(asyncio.run(_ask_while(port, stamp, names, sizes.asks, _for_a_while())))
                    seen, waits = asyncio.run(_ask_while_sending(here, sink, issue, sizes, (port, stamp, names)))
                    busy.append(waits)
                    rates.append(watch.rate(seen))
    return [
        Figure(f"while a mailing goes out, p99 of {len(busy[0])} or so, ms", p99(busy), target=Target(150)),
        Figure("  median, ms", [percentile(each, 0.5) for each in busy]),
        Figure("  the longest, ms", [max(each) for each in busy]),
        Figure(f"  mails/s meanwhile, of {RATE:,}", rates),
        Figure("  while none does, p99, ms", p99(quiet)),
    ]


def p99(rounds: list[list[float]]) -> list[float]:
    """Return what 99 % of the requests of each round did not exceed."""
    return [percentile(each, 0.99) for each in rounds]


async def _for_a_while() -> None:
    await asyncio.sleep(QUIET)


async def _ask_while_sending(
    here: Place, sink: postfix.Sink, issue: int, sizes: Sizes, form: tuple[int, str, "itertools.count[int]"]
) -> tuple[list[watch.Sample], list[float]]:
    """Send an issue and use the form from the first mail to the last."""
    seen = list[list[watch.Sample]]()
    before = sink.mails
    going = asyncio.ensure_future(
        asyncio.to_thread(lambda: seen.append(watch.mailing(here, sink, issue, sizes.busy, [])))
    )
    while sink.mails == before and not going.done():
        await asyncio.sleep(0.01)
    waits = await _ask_while(*form, sizes.asks, _until_taken(sink, before + sizes.busy, going))
    await going
    return seen[0], waits


