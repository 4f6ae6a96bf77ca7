"""The pace of one relay that several workers share: how many mails are at the sink in each second."""

from collections.abc import Sequence
from contextlib import ExitStack

from bench import watch
from bench.place import Place, until
from bench.sizes import Sizes
from bench.stock import POSTGRES, Stock
from bench.table import Figure, Target
from tests.sink import Sink

WORKERS = 3
RATE = 200  # mails a second that the relay is told to take
LEAST, MOST = 195, 205  # of them in any second


def pace(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Mails in each second of three `broadsheet worker` on one PostgreSQL database, which keep one rate together."""
    if POSTGRES not in stock.databases:
        return []
    counts: list[float] = []
    with Sink() as sink, ExitStack() as ends:
        relay = f"{sink.url}?connections={sizes.connections}&rate={RATE}/s"
        here = ends.enter_context(stock.place(POSTGRES, sizes.paced, relay))
        issues = [here.hand_in(number) for number in range(sizes.rounds)]
        for _ in range(WORKERS):
            ends.enter_context(here.running("worker"))
        until(
            lambda: here.one("SELECT count(*) FROM worker WHERE stopped_at IS NULL") == WORKERS,
            "three workers",
        )
        for issue in issues:
            counts += seconds(_arrivals(here, sink, issue, sizes.paced))
    told = f"PostgreSQL, three workers at {RATE}/s, {len(counts)} seconds, mails in each"
    return [
        Figure(told, counts),
        Figure("  the least of them", [min(counts)], target=Target(LEAST, at_least=True)),
        Figure("  the most of them", [max(counts)], target=Target(MOST)),
    ]


def seconds(arrivals: Sequence[float]) -> list[int]:
    """Return how many mails came in each full second between the first tenth of the mails and the last."""
    times = sorted(arrivals)
    first, last = times[len(times) // 10], times[len(times) * 9 // 10]
    counts = [0] * int(last - first)
    for time in times:
        if first <= time < first + len(counts):
            counts[int(time - first)] += 1
    return counts


def _arrivals(here: Place, sink: Sink, issue: int, recipients: int) -> list[float]:
    """Send an issue to everybody and return when each mail was at the sink, in seconds."""
    sink.forget()
    here.run("send", str(issue), "--detach")
    sink.wait(recipients, watch.PATIENCE)
    until(lambda: here.one(f"SELECT state FROM mailing WHERE issue_id = {issue}") == "finished", "its end")
    return [mail.at for mail in sink.mails]
