"""How long a reader waits for the form while a mailing goes out, in the one-command form on SQLite."""

import asyncio
import itertools
import time

from bench import postfix, watch
from bench.place import Place, wait_for
from bench.signups import LIFTED, stamped
from bench.signups import subscribe as sign_up
from bench.sizes import Sizes
from bench.steady import Steady
from bench.stock import SQLITE, Stock
from bench.table import Figure, Target, percentile
from tests.ports import free_port

RATE = 2_000  # mails a second that the relay is told to take
QUIET = 5.0  # seconds of asking while no mailing goes out
OPEN = LIFTED | {"letters_a_minute": "60"}  # as it is by itself: requests beyond it wait for their letter


def subscribe(sizes: Sizes, stock: Stock) -> list[Figure]:
    """Milliseconds until `broadsheet run` answers POST /subscribe, while a mailing goes out and while none does.

    The letters that the requests become, at most sixty a minute, go through the same relay.
    """
    busy, quiet, rates = list[list[float]](), list[list[float]](), list[float]()
    with postfix.sink() as sink:
        relay = f"smtp+plain://127.0.0.1:{sink.port}?connections={sizes.connections}&rate={RATE}/s"
        with stock.place(SQLITE, sizes.busy, relay, **OPEN) as here:
            issues = [here.hand_in(number) for number in range(sizes.rounds)]
            port = free_port()
            with here.running("run", "--port", str(port)):
                wait_for(port)
                form = Form(port, sizes.asks)
                for issue in issues:
                    with form.asking() as asking:
                        time.sleep(QUIET)
                    quiet.append([one.took for one in asking.answers])
                    rate, times = _while_sending(here, sink, issue, sizes.busy, form)
                    rates.append(rate)
                    busy.append(times)
    return [
        Figure(
            f"p99 while a mailing goes out, {len(busy[0]):,} requests or so, ms",
            _p99(busy),
            target=Target(150),
        ),
        Figure("  median, ms", [percentile(each, 0.5) for each in busy]),
        Figure("  the longest, ms", [max(each) for each in busy]),
        Figure(f"  mails/s meanwhile, of {RATE:,}", rates),
        Figure("  p99 while none does, ms", _p99(quiet)),
    ]


class Form:
    """The form on a port, which is sent for another address each time."""

    def __init__(self, port: int, a_second: float) -> None:
        self._port, self._a_second = port, a_second
        self._stamp, self._numbers = asyncio.run(stamped(port)), itertools.count()

    def asking(self) -> Steady:
        """Send it so often while a block runs."""
        return Steady(
            self._port, self._a_second,
            lambda client: sign_up(client, f"new{next(self._numbers)}@example.com", self._stamp),
        )  # fmt: skip


def _while_sending(
    here: Place, sink: postfix.Sink, issue: int, recipients: int, form: Form
) -> tuple[float, list[float]]:
    """Send an issue and use the form; return mails a second, and the times from the first mail to the last."""
    sink.expect()
    with form.asking() as asking:
        seen = watch.mailing(here, sink, issue, recipients)
    first, last = sink.came_at(1), next(one.at for one in seen if one.mails >= recipients)
    return watch.rate(seen), [one.took for one in asking.answers if first <= one.at <= last]


def _p99(rounds: list[list[float]]) -> list[float]:
    """Return what 99 % of the requests of each round did not exceed."""
    return [percentile(each, 0.99) for each in rounds]
