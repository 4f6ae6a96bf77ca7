"""One connection's place: what it hears of its relay, and what that says of the relay, of us, and of the mail."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from app.mail.connection import Connection, Line
from app.mail.outcome import Outcome, Refused, Sent, Uncertain, Unreached
from app.mail.relay import Relay, RelayDown
from app.sending import deliver
from app.sending.gate import Gate, Patience, pause
from app.sending.lane import Lane

log = logging.getLogger(__name__)


class Halted(Exception):
    """A mail's message must not be begun any more."""


@dataclass
class Post:
    """One connection's place: which relay and lane it serves, the line it has open, and its own bad luck."""

    relay: Relay
    lane: Lane
    line: Line | None = None
    in_hand: bool = False  # whether a mail may have been handed over whose outcome is not known yet
    saved: asyncio.Future[None] | None = None  # done when the outcome of its last mail is committed
    refused: int = 0  # failures of this connection in a row, while others may get through
    name: str = field(init=False)  # of the relay
    gate: Gate = field(init=False)  # what all connections to this relay know of it

    def __post_init__(self) -> None:
        self.name, self.gate = self.relay.url.name, self.lane.gates[id(self.relay)]

    @property
    def ready(self) -> bool:
        """Whether a line is open that may take another mail."""
        return self.line is not None and self.line.usable

    async def in_turn(self, serve: Callable[["Post"], Awaitable[None]]) -> None:
        """Serve once it is our turn: while nobody gets through, one connection tries and the others wait for that."""
        if self.gate.failures:
            async with self.gate.probing:
                await asyncio.sleep(max(0.0, self.gate.until - monotonic()))
                if self.gate.failures:
                    await serve(self)
            return
        if self.refused:
            await asyncio.sleep(pause(self.refused))
        await serve(self)

    async def settled(self, newer: asyncio.Future[None] | None = None) -> None:
        """Return when the outcome of its last mail is committed; `newer` is done when that of a newer one is."""
        if self.saved is not None:
            await self.saved
        self.saved = newer

    def heard(self, outcome: Outcome, was_fresh: bool, at: float) -> str | None:
        """Note what an outcome at loop time `at` says of the relay; returns why the mail is to wait, if it is."""
        if isinstance(outcome, Refused) and deliver.is_about_us(outcome):
            sentence = f"The relay {self.name} refuses our sender: {outcome.reply.code} {outcome.reply.text}"
            self.failed(sentence, at, fault=sentence)
        elif not isinstance(outcome, Uncertain | Unreached):
            self.refused = 0
            self.lane.answered(self.gate, at)
            self.gate.proven |= isinstance(outcome, Sent)
        elif was_fresh or isinstance(outcome, Uncertain):  # any other connection is simply replaced
            self.failed(f"The relay {self.name} takes no mail: {outcome.reason}", at)
            if isinstance(outcome, Unreached) and outcome.reply is None:
                return outcome.reason  # it broke off without a word, so this very mail may be why
        return None

    def failed(self, problem: str, at: float, fault: str | None = None) -> None:
        """Note a failure at loop time `at`: this connection waits, or all do where nobody gets through."""
        self.gate.shut(problem, at, fault)
        self.refused = 0 if self.gate.failures else self.refused + 1

    async def gave_up(self, outcome: Outcome) -> bool:
        """Leave a line whose relay takes no more mails on it; returns whether it did, and so has not tried this one."""
        if has_enough := deliver.is_enough(outcome):
            self.in_hand = False
            await self.hang_up()
        return has_enough

    async def connect(self, patience: Patience) -> None:
        """Open the line, or note why that failed; a worker that stops waits no longer."""
        try:
            self.line = await patience.lasting(self.relay.connect(), Connection.abort)
        except RelayDown as down:
            fault = down.sentence if down.ours else None
            self.failed(down.sentence, monotonic(), fault)
            log.warning("%s", down.sentence)
        except TimeoutError:
            log.info("stopping, so a relay that has not answered is left alone")

    async def hang_up(self) -> None:
        """Close the line, if there is one."""
        line, self.line = self.line, None
        if line is not None:
            await line.close()
