"""The moves a reader's consent may make, written down once."""

from enum import StrEnum


class State(StrEnum):
    """A subscriber's consent: pending → active ⇄ paused; any → ended; ended → active by a new confirmation."""

    PENDING = "pending"
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Reason(StrEnum):
    """Why a subscriber ended, or an address is suppressed."""

    LEFT = "left"
    BOUNCED = "bounced"
    COMPLAINED = "complained"
    ERASED = "erased"
    EDITOR = "editor"
    REFUSED = "refused"


WORDING = "2026-12"  # changes with the words of the form and the confirmation letter

MOVES: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.ACTIVE, State.ENDED}),
    State.ACTIVE: frozenset({State.PAUSED, State.ENDED}),
    State.PAUSED: frozenset({State.ACTIVE, State.ENDED}),
    State.ENDED: frozenset({State.ACTIVE, State.PENDING}),
}


def may_move(current: str, wanted: str) -> bool:
    """Tell whether a reader may go from one state to another; staying is always allowed."""
    return current == wanted or State(wanted) in MOVES[State(current)]
