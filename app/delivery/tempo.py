"""What a provider's replies make of its lane: slower at each, then a pause, then one mail to try, then faster again."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

LEAST = 1 / 60  # mails a second, below which a lane is not slowed
RISE = 1.1  # times as fast, for each minute without a reply of the kind
ENOUGH = 3  # replies with one meaning
WITHIN = timedelta(minutes=10)
PAUSE, LONGEST = 900, 7200  # seconds
PROBING = timedelta(minutes=1)  # for which a lane waits for the mail that tries it


@dataclass(frozen=True, slots=True)
class Tempo:
    """How fast a lane may go: `rate` (mails a second) since `slowed_at`, rising to `top`; None is no limit.

    `strikes` are the replies with one `meaning` since `first_at`, the last at `struck_at`. While `paused_until` is
    set the lane is closed; from then on one mail tries it. `pause` is how long the last pause was, in seconds.
    """

    rate: float | None = None
    top: float | None = None
    slowed_at: datetime | None = None
    meaning: str | None = None
    strikes: int = 0
    first_at: datetime | None = None
    struck_at: datetime | None = None
    paused_until: datetime | None = None
    pause: int = 0


@dataclass(frozen=True, slots=True)
class Strike:
    """A reply that asks for less: to a mail handed over at `since`, while we sent `measured` mails a second.

    `stops` is one that wants no more for now, `is_probe` the answer to the mail that tries a paused lane.
    """

    meaning: str
    stops: bool
    since: datetime
    measured: float
    is_probe: bool = False


def rate_at(tempo: Tempo, now: datetime) -> float | None:
    """Return how many mails a second may go now; None where there is no limit (any more)."""
    if tempo.rate is None or tempo.slowed_at is None:
        return None
    minutes = (now - tempo.slowed_at).total_seconds() / 60
    risen = tempo.rate * RISE ** min(max(0.0, minutes), 1000)
    return None if tempo.top is None or risen >= tempo.top else risen


def struck(tempo: Tempo, strike: Strike, now: datetime) -> Tempo:
    """Return the tempo after a reply that asks for less; replies to mails of one burst count once."""
    is_paused = tempo.paused_until is not None
    is_old = tempo.struck_at is not None and strike.since <= tempo.struck_at
    if not strike.is_probe and (is_paused or (is_old and not strike.stops)):
        return tempo
    limit = rate_at(tempo, now)
    was = limit or max(strike.measured, LEAST)
    again = tempo.meaning == strike.meaning and tempo.first_at is not None and now - tempo.first_at <= WITHIN
    count = tempo.strikes + 1 if again else 1
    after = replace(
        tempo,
        rate=max(was / 2, LEAST),
        top=tempo.top if limit else was,
        slowed_at=now,
        meaning=strike.meaning,
        strikes=count,
        first_at=tempo.first_at if again else now,
        struck_at=now,
    )
    if not (strike.stops or strike.is_probe or count >= ENOUGH):
        return after
    pause = min(2 * tempo.pause, LONGEST) if strike.is_probe and tempo.pause else PAUSE
    return replace(after, pause=pause, paused_until=now + timedelta(seconds=pause))


def passed(tempo: Tempo, now: datetime) -> Tempo:
    """Return the tempo after the mail that tried a paused lane was taken: it goes on slowly, and faster by and by."""
    return replace(tempo, paused_until=None, pause=0, strikes=0, meaning=None, slowed_at=now)
