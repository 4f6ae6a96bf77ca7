"""What is known of a relay: whether it takes mail, when to try it again, and whether its refusals are our own fault."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

Found = TypeVar("Found")

OUT_AFTER = 5  # failures in a row after which a relay is looked at once a minute only
LONGEST_WAIT = 60.0  # seconds between two tries at a relay that is down
RECENT = 5.0  # seconds for which an answer shows that a relay takes mail, whatever one connection meets
SURE = 3  # failures in a row that are our own fault, before mailings are stopped for it
TRIALS = 5  # mails in the air at a relay that has taken none yet: a fault of our own costs no more


class Patience:
    """Waits that a worker breaks off when it stops."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def lasting(
        self, wait: Coroutine[Any, Any, Found], late: Callable[[Found], object] = lambda _: None
    ) -> Found:
        """Return what a wait returns. Raises TimeoutError as soon as `end` is called, now or before.

        The wait is a task of its own, and nobody waits for its end: `asyncio.wait_for` in Python 3.11 forgets
        that it was cancelled where its result comes at that moment, and goes on. What comes then is given to `late`.
        """
        waiting, over = asyncio.ensure_future(wait), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({waiting, over}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise TimeoutError
        except BaseException:
            waiting.add_done_callback(
                lambda done: done.cancelled() or done.exception() or late(done.result())
            )
            raise
        finally:
            waiting.cancel()
            over.cancel()
        return waiting.result()

    def end(self) -> None:
        """Break off every wait, now and from now on."""
        self._over.set()


@dataclass
class Gate:
    """Whether a relay can be reached, and when to try again: after 1 s, 2 s, 4 s, 8 s, then each minute."""

    name: str = ""
    connections: int = 1
    weight: int = 1
    turn: float = 0.0  # mails taken, each counted as 1/weight: the relay with the least is next
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: int = 0
    until: float = 0.0
    problem: str | None = None
    spent: str | None = None  # what says that its day's mails are used up
    fault: str | None = None  # the problem, where only a change of ours can help
    answered: float = float("-inf")  # loop time of the last answer to a mail
    proven: bool = False  # whether it has taken a mail since somebody last had reason to doubt
    active: float = float("-inf")  # loop time of the last job taken or answer heard
    in_hand: int = 0  # jobs taken since, not answered yet
    _trials: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TRIALS))

    @property
    def trouble(self) -> str | None:
        """What keeps it from taking mail, if something does."""
        return self.problem or self.spent

    @property
    def is_our_fault(self) -> bool:
        """Whether it has failed often enough, for a reason that lies with us."""
        return self.fault is not None and self.failures >= SURE

    def is_well(self, at: float) -> bool:
        """Whether it takes its share at loop time `at`: nothing is wrong, and it does not sit on what it has."""
        return not self.failures and (not self.in_hand or at - self.active < RECENT)

    def take(self, at: float) -> None:
        """Note that a connection of this relay took a job at loop time `at`."""
        self.turn += 1 / self.weight
        self.in_hand += 1
        self.active = at

    def put_down(self, at: float) -> None:
        """Note that a job is over, however it ended."""
        self.in_hand -= 1
        self.active = at

    def shut(self, problem: str, at: float, fault: str | None = None) -> None:
        """Note a failure at loop time `at`: those of one burst count once, none while other mails get through."""
        if at >= self.until and at - self.answered > RECENT:
            self.failures += 1
            self.until = at + pause(self.failures)
            self.problem, self.fault, self.proven = problem, fault, False

    def open(self, at: float) -> None:
        """Note that the relay answered to a mail at loop time `at`; a connection alone proves nothing."""
        self.failures, self.until, self.problem, self.fault, self.answered = 0, 0.0, None, None, at

    def doubt(self) -> None:
        """Begin with few mails again, and at once where the relay is left alone for a fault of ours."""
        self.proven = False
        if self.fault:
            self.until = 0.0

    @asynccontextmanager
    async def trial(self, patience: Patience) -> AsyncIterator[None]:
        """Give a block in which a mail goes to a relay not `proven` yet. Raises TimeoutError when the worker stops."""
        await patience.lasting(self._trials.acquire())
        try:
            yield
        finally:
            self._trials.release()


def pause(failures: int) -> float:
    """Return how many seconds to wait after so many failures in a row."""
    return LONGEST_WAIT if failures >= OUT_AFTER else 2.0 ** (failures - 1)
