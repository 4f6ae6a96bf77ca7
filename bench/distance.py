"""Sending to a relay that is far away: what a second worker adds, and what pipelining saves."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench import postfix, watch
from bench.place import ROOT, Place, until
from bench.sizes import Sizes
from bench.stock import POSTGRES, Stock
from bench.table import Figure, Target, beside
from bench.wire import length, wire

NEAR, FAR = 0.020, 0.050  # seconds there and back


def distance(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Mails a second at 20 ms with one worker and two, and at 50 ms a connection, beside a client that waits."""
    found: list[Figure] = []
    if POSTGRES in stock.databases:
        found += _two_workers(sizes, stock)
    return found + _one_connection(sizes, stock)


def _two_workers(sizes: Sizes, stock: Stock) -> list[Figure]:
    alone, both = list[float](), list[float]()
    with _far_relay(sizes, NEAR) as (sink, port, relay), stock.place(POSTGRES, sizes.distant, relay) as here:
        issues = iter([here.hand_in(number) for number in range(2 * sizes.rounds + 1)])
        with here.running("worker") as first:
            trip = length(port)
            alone.append(watch.rate(watch.mailing(here, sink, next(issues), sizes.distant, [first])))
            for _ in range(sizes.rounds):
                with _second(here) as second:
                    both.append(
                        watch.rate(watch.mailing(here, sink, next(issues), sizes.distant, [first, second]))
                    )
                alone.append(watch.rate(watch.mailing(here, sink, next(issues), sizes.distant, [first])))
    told = f"{1000 * NEAR:.0f} ms (measured {1000 * trip:.1f}), PostgreSQL"
    return [
        Figure(f"{told}, two workers, mails/s", both, beside(both, alone), Target(1.8, True, True)),
        Figure("  one worker beside them, mails/s", alone),
    ]


def _one_connection(sizes: Sizes, stock: Stock) -> list[Figure]:
    ours, theirs, many = list[float](), list[float](), sizes.distant_connections
    database = stock.databases[0]
    with _far_relay(sizes, FAR) as (sink, port, relay), stock.place(database, sizes.distant, relay) as here:
        issues = [here.hand_in(number) for number in range(sizes.rounds)]
        size = here.size_of(issues[0])
        with here.running("worker") as pid:
            trip = length(port)
            theirs.append(_wait_for_each(sink, port, sizes, size) / many)
            for issue in issues:
                ours.append(watch.rate(watch.mailing(here, sink, issue, sizes.distant, [pid])) / many)
                theirs.append(_wait_for_each(sink, port, sizes, size) / many)
    told = f"{1000 * FAR:.0f} ms (measured {1000 * trip:.1f}), {database}"
    return [
        Figure(f"{told}, mails/s a connection", ours, beside(ours, theirs), Target(1.9, True, True)),
        Figure("  a client that waits for each reply, mails/s a connection", theirs),
    ]


@contextmanager
def _far_relay(sizes: Sizes, round_trip: float) -> Iterator[tuple[postfix.Sink, int, str]]:
    """Give a sink, the port of a wire to it, and how a worker is told of that."""
    with postfix.sink() as sink, wire(sink.port, round_trip) as port:
        yield sink, port, f"smtp+plain://127.0.0.1:{port}?connections={sizes.distant_connections}"


@contextmanager
def _second(here: Place) -> Iterator[int]:
    """Run another worker, and go on when it has registered."""
    count = "SELECT count(*) FROM worker WHERE stopped_at IS NULL"
    with here.running("worker") as pid:
        until(lambda: here.one(count) == 2, "a second worker")
        yield pid


def _wait_for_each(sink: postfix.Sink, port: int, sizes: Sizes, size: int) -> float:
    """Return mails a second of the client that waits; it sends half as many, for it takes twice as long."""
    each = max(1, sizes.distant // sizes.distant_connections // 2)
    numbers = (port, sizes.distant_connections, each, size)
    command = [sys.executable, "-m", "bench.patient", *map(str, numbers)]
    mails = each * sizes.distant_connections
    return watch.rate(watch.samples(sink, mails, lambda: subprocess.run(command, cwd=ROOT, check=True)))
