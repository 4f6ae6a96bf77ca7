"""The faults by number: what is done to the programs, on which databases, and to how many readers."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from chaos.scene import Scene

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
BOTH = (SQLITE, POSTGRES)
READERS = int(os.environ.get("CHAOS_READERS", "2000"))
AUDIENCE = int(os.environ.get("CHAOS_AUDIENCE", "100000"))
CONNECTIONS = 5  # to the relay, of one worker


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: `play` does it to a scene, says what may be doubled, and raises Broken where a promise is not kept.

    `number` is F1 to F23, with a word behind it where it is done in several ways; `is_turned` gives the
    programs a clock that `play` turns.
    """

    number: str
    what: str
    play: Callable[[Scene], None]
    databases: tuple[str, ...] = BOTH
    readers: int = READERS
    is_turned: bool = False


FAULTS: dict[str, Fault] = {}


def enter(*faults: Fault) -> None:
    """Put faults on the list."""
    FAULTS.update({one.number: one for one in faults})


def order(number: str) -> tuple[int, str]:
    """Return what sorts F2 before F11."""
    digits, _, word = number.removeprefix("F").partition("-")
    return int(digits), word
