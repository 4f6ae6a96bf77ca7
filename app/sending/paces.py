"""The paces of providers, by relay: what their replies ask for, and how many of their mails may go now.

A provider's lane is open, or has a rate or a day's number, or is paused; of one that is not open no more is claimed
than was reserved of it, by one short statement and before the claim. So no connection ever waits for a provider.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from time import monotonic

from app.core.clock import Clock
from app.core.db import Database
from app.core.relay_url import RelayUrl
from app.delivery import pace, tempo, warmup, workers
from app.delivery.claims import Claim
from app.delivery.pace import Allowance, Key
from app.delivery.tempo import Strike, Tempo
from app.mail import verdict
from app.mail.outcome import Deferred, Outcome, Refused, Sent, Unreached
from app.sending import deliver

MEASURED = 10.0  # seconds over which a lane's own speed is taken
SEEN = 2_000  # mails that are remembered for it
_OF_THE_READER = frozenset({"rcpt", "data", "body", "dot"})  # before RCPT no provider has been named


@dataclass
class Course:
    """What this worker knows of one lane: its tempo, and the `tokens` it has reserved and not used."""

    tempo: Tempo = field(default_factory=Tempo)
    version: int = -1
    day: date | None = None
    taken: int = 0
    tokens: int = 0
    token_day: date | None = None
    lease: datetime | None = None  # until when the token of the one mail that tries a paused lane is good
    trying: tuple[int, ...] | None = None  # that mail
    ask_at: float = 0.0  # loop time before which nothing more can be had
    is_known: bool = False  # whether the lane has a row


class Paces:
    """The lanes of a worker's relays, one for each provider; what is open costs nothing."""

    def __init__(
        self, db: Database, relays: Sequence[RelayUrl], now: Clock, call: Callable[[], None]
    ) -> None:
        self._db, self._now, self._call = db, now, call
        self._relays = {url.name: url for url in relays}
        self._warming = {url.name for url in relays if url.warmup}
        self._began: dict[str, date] = {}
        self._courses: dict[Key, Course] = {}
        self._seen: dict[Key, deque[float]] = {}  # loop times of the last mails
        self._heard: dict[Key, tuple[Strike | None, str]] = {}
        self._workers, self._turn = 1, 0
        self._timer: asyncio.TimerHandle | None = None
        self.restricted = bool(self._warming)

    async def look(self) -> None:
        """Know the lanes as all workers have made them."""
        for name in self._warming - self._began.keys():
            self._began[name] = await warmup.began(self._db, self._relays[name], self._now())
        rows = await self._db.told(pace.lanes)
        self._workers = await self._db.told(lambda session: workers.at_work(session, self._now()))
        for key, row in rows.items():
            if not key[1]:
                continue
            course = self._courses.setdefault(key, Course())
            if row.version < course.version:
                continue  # somebody else has looked later
            if row.version != course.version:
                course.tokens, course.ask_at = 0, 0.0
            course.tempo, course.version, course.is_known = pace.tempo_of(row), row.version, True
            course.day, course.taken = row.day, row.taken
        self.restricted = bool(self._warming) or not all(map(self._is_open, self._courses))

    async def settle(self) -> None:
        """Enter what providers asked for, before any more of theirs is claimed."""
        if not self._heard:
            return
        for key, told in list(self._heard.items()):
            await pace.note(self._db, key, *told, self._now())
            if self._heard[key] is told:  # else there is more to tell by now
                del self._heard[key]
        await self.look()

    async def limits(
        self, providers: Collection[str], relays: Collection[str], queued: Counter[str]
    ) -> dict[str, int | None]:
        """Return of which providers how many mails may be claimed for these relays now (None: any number).

        Another one stands first from call to call. `queued` are claimed and on no connection yet.
        """
        self._turn, order = self._turn + 1, sorted(providers)
        first = self._turn % len(order) if order else 0
        order = order[first:] + order[:first]
        if not self.restricted:
            return dict.fromkeys(order)
        found: dict[str, int | None] = {}
        for provider in order:
            if any(self._is_open((name, provider)) for name in relays):
                found[provider] = None
                continue
            tokens = sum([await self._tokens((name, provider)) for name in relays])
            if tokens > queued[provider]:
                found[provider] = tokens - queued[provider]
        return found

    def lets(self, relay: str, provider: str) -> bool:
        """Tell whether a provider's mail may go by a relay now."""
        return self._is_open((relay, provider)) or (
            (course := self._courses.get((relay, provider))) is not None and course.tokens > 0
        )

    def take(self, relay: str, claim: Claim) -> None:
        """Note that a mail goes by a relay."""
        key = relay, claim.provider
        if self.restricted and not self._is_open(key):
            course = self._courses[key]
            course.tokens -= 1
            if course.tempo.paused_until is not None:
                course.trying = claim.key

    def heard(self, relay: str, claim: Claim, outcome: Outcome, since: datetime) -> Outcome:
        """Note what became of a mail handed over at `since`, and return it as the ledger is to have it.

        A provider that closes the connection over its limits says nothing of the relay: the mail waits for later.
        """
        if not claim.provider:
            return outcome
        key = relay, claim.provider
        self._seen.setdefault(key, deque(maxlen=SEEN)).append(monotonic())
        course = self._courses.get(key)
        is_probe = course is not None and course.trying == claim.key
        if course is not None and is_probe:
            course.trying = None
        if isinstance(outcome, Deferred | Refused | Unreached) and outcome.stage in _OF_THE_READER:
            if outcome.reply is None:
                return outcome
            found = verdict.judge(outcome.reply, outcome.stage, claim.provider)
            if found.action in deliver.PACE:
                stops = found.action == verdict.Action.PAUSE_PROVIDER
                strike = Strike(found.meaning, stops, since, self._measured(key), is_probe)
                self._strike(key, strike, deliver.words(claim, f"{outcome.reply.code} {outcome.reply.text}"))
                is_lost = isinstance(outcome, Unreached)
                return Deferred(outcome.reply, outcome.stage) if is_lost else outcome
        if is_probe and isinstance(outcome, Sent | Deferred | Refused):
            self._heard.setdefault(key, (None, ""))
        return outcome

    def _strike(self, key: Key, strike: Strike, words: str) -> None:
        """Keep the first reply of a burst, and the one that says most."""
        before = self._heard.get(key, (None, ""))[0]
        if before is None or (strike.stops and not before.stops):
            self._heard[key] = strike, words
        self._courses.setdefault(key, Course()).tokens = 0
        self.restricted = True

    def _is_open(self, key: Key) -> bool:
        """Tell whether there is no limit of any kind."""
        if not key[1]:
            return True
        if key in self._heard or (key[0] in self._warming and self._cap(key[0]) is not None):
            return False
        course = self._courses.get(key)
        if course is None:
            return True
        return course.tempo.paused_until is None and tempo.rate_at(course.tempo, self._now()) is None

    def _cap(self, relay: str) -> int | None:
        """Return how many mails of a day a relay in its warm-up takes for one provider."""
        today = self._now().date()
        return warmup.cap(self._began.get(relay, today), today)

    async def _tokens(self, key: Key) -> int:
        """Return how many mails may go by a lane now, after reserving more where none is left."""
        course, now, at = self._courses.setdefault(key, Course()), self._now(), monotonic()
        if course.token_day != now.date() or (course.lease and course.lease <= now):
            course.tokens, course.lease, course.token_day = 0, None, now.date()
        if course.tokens <= 0 and at >= course.ask_at and (wanted := self._wanted(key, course, now)):
            if not course.is_known:
                await pace.put_down(self._db, key)
                course.is_known = True
            course.tokens = await pace.allow(self._db, key, wanted, now)
            course.ask_at = at + _pause(wanted, course.tokens)
            if wanted.cap is not None:
                course.taken = (course.taken if course.day == now.date() else 0) + course.tokens
                course.day = now.date()
            if wanted.tries:
                course.lease = now + tempo.PROBING
        self._call_at(course.ask_at)
        return course.tokens

    def _wanted(self, key: Key, course: Course, now: datetime) -> Allowance | None:
        """Return what to ask of a lane now, if there can be anything."""
        until, cap = course.tempo.paused_until, self._cap(key[0]) if key[0] in self._warming else None
        if key in self._heard or (until is not None and until > now):
            return None
        left = self._relays[key[0]].connections
        if cap is not None:
            left = min(left, cap - (course.taken if course.day == now.date() else 0))
        rate = tempo.rate_at(course.tempo, now) if until is None else None
        if rate is not None:
            left = min(left, max(1, int(rate * pace.AHEAD)))
        if until is not None:
            left = min(left, 1)
        return Allowance(left, rate, cap, until is not None) if left > 0 else None

    def _measured(self, key: Key) -> float:
        """Return how many mails a second go by a lane, as far as one worker can tell."""
        at = monotonic()
        recent = [one for one in self._seen[key] if one > at - MEASURED]
        return len(recent) / max(1.0, at - recent[0]) * self._workers

    def _call_at(self, moment: float) -> None:
        """Have the writer look again when more can be had."""
        loop = asyncio.get_running_loop()
        if moment > loop.time() and (self._timer is None or self._timer.when() <= loop.time()):
            self._timer = loop.call_at(moment, self._call)


def _pause(wanted: Allowance, tokens: int) -> float:
    """Return for how many seconds to ask nothing more of a lane that has given so many tokens."""
    if not tokens:
        return pace.AHEAD
    return max(pace.AHEAD, 1 / wanted.rate) if wanted.rate else 0.0
