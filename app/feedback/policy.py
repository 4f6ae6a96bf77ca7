"""What follows from reports: when soft bounces are enough, when a mailing should stop, how near a limit is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

ENOUGH_ISSUES = 3
ENOUGH_TIME = timedelta(days=7)
LATEST = timedelta(days=30)  # after a mail was handed over, what comes back about it is too old to act on

STORM_BOUNCES, STORM_BOUNCES_OF = 0.05, 200
STORM_COMPLAINTS, STORM_COMPLAINTS_OF = 0.003, 1_000

# Gmail's and Yahoo's rules for senders: below 0.1 %, and never 0.3 %.
WISHED, HIGHEST = 0.001, 0.003
NEAR = 0.8 * WISHED
ENOUGH_TO_SAY = 1_000  # mails, of which one complaint is the wished share


class Fate(StrEnum):
    """What is known of one issue that a reader was sent."""

    BOUNCED = "bounced"
    DELIVERED = "delivered"
    SILENT = "silent"  # nothing came back: it was delivered, or the news is on its way


class Level(StrEnum):
    """How a share of complaints stands to the limits."""

    FEW = "too few mails to say"
    FINE = "fine"
    NEAR = "near 0.1 %"
    OVER = "over 0.1 %"
    TOO_HIGH = "over 0.3 %"


@dataclass(frozen=True, slots=True)
class Sent:
    """One issue that a reader was sent: when, and what became of it."""

    at: datetime
    fate: Fate


def is_worn_out(history: Sequence[Sent]) -> bool:
    """Tell whether the latest soft bounce is one too many: three issues on end over seven days or more.

    `history` is in any order. An issue between two bounced ones of which nothing came back was delivered; issues
    after the latest bounced one say nothing yet.
    """
    streak: list[datetime] = []
    for one in sorted(history, key=lambda sent: sent.at, reverse=True):
        if one.fate == Fate.BOUNCED:
            streak.append(one.at)
        elif streak or one.fate == Fate.DELIVERED:
            break
    return len(streak) >= ENOUGH_ISSUES and streak[0] - streak[-1] >= ENOUGH_TIME


def storm(sent: int, bounced_hard: int, complained: int) -> str | None:
    """Why a mailing should pause, in a sentence for its `problem`; None while all is well."""
    if sent >= STORM_BOUNCES_OF and bounced_hard > STORM_BOUNCES * sent:
        return f"bounces: {bounced_hard:,} of {sent:,} mails came back for good; look at the list before you resume"
    if sent >= STORM_COMPLAINTS_OF and complained > STORM_COMPLAINTS * sent:
        return f"complaints: {complained:,} of {sent:,} readers called it spam; look at the text before you resume"
    return None


def level(sent: int, complained: int) -> Level:
    """How the share of complaints stands to what Gmail and Yahoo ask for."""
    if sent < ENOUGH_TO_SAY:
        return Level.FEW
    share = complained / sent
    if share >= HIGHEST:
        return Level.TOO_HIGH
    if share >= WISHED:
        return Level.OVER
    return Level.NEAR if share >= NEAR else Level.FINE
