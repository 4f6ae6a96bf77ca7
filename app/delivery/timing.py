"""When to try a mail again, and when to give up."""

from datetime import datetime, timedelta

LADDER = (5, 15, 45, 120, 240)  # minutes; the last step repeats
MOST_ATTEMPTS = 24
SPREAD = 0.2
LETTER_LIFE = timedelta(hours=24)


def next_try(attempts: int, now: datetime, jitter: float = 0.0) -> datetime | None:
    """Return when to try again after `attempts` tries, or None to give up; `jitter` from -1 to 1 spreads by 20 %."""
    if attempts >= MOST_ATTEMPTS:
        return None
    minutes = LADDER[min(max(attempts, 1), len(LADDER)) - 1]
    return now + timedelta(minutes=minutes * (1 + SPREAD * jitter))
