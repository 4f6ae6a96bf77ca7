"""`python -m chaos [F3 F11 …] [--seed N]`: does the faults, and exits 1 when a promise was not kept."""

import argparse
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import httpx

from chaos import accounts
from chaos.accounts import Accounts
from chaos.fault import POSTGRES, Fault
from chaos.faults import load
from chaos.place import Broken
from chaos.servers import server
from chaos.stage import Stage, stage

SEEDS = 2
HEAD = ("fault", "database", "seed", "mails", "lost", "doubled", "bound", "seconds", "verdict")
WIDTHS = (14, 10, 10, 6, 4, 7, 5, 7, 0)


@dataclass(frozen=True)
class Line:
    """One run's line of the table."""

    fault: Fault
    database: str
    seed: int
    found: Accounts
    bound: int
    seconds: float
    notes: str

    @property
    def is_kept(self) -> bool:
        """Whether every promise was kept."""
        wrong = (self.found.lost, self.found.foreign, self.found.unfounded, len(self.found.faults))
        return not any(wrong) and self.found.doubled <= self.bound

    def cells(self) -> tuple[str, ...]:
        """Return the line as the table shows it."""
        told = [*self.found.faults]
        told += [f"{self.found.foreign} foreign"] * bool(self.found.foreign)
        told += [f"{self.found.unfounded} said to be sent are not there"] * bool(self.found.unfounded)
        verdict = "; ".join([("kept" if self.is_kept else "BROKEN"), *told, *filter(None, [self.notes])])
        numbers = (self.found.mails, self.found.lost, self.found.doubled, self.bound)
        return (
            self.fault.number, self.database, str(self.seed), *map(str, numbers), f"{self.seconds:.0f}", verdict
        )  # fmt: skip


def main(words: list[str]) -> int:
    """Do the faults that are named, or all; exit status 2 for one that is none."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the programs and the server end, too
    order = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    order.add_argument(
        "faults", nargs="*", metavar="F", help="F3 is all ways of F3, F11-hold is one; none: all"
    )
    order.add_argument(
        "--seed", type=int, action="append", help="repeat a run by its seed; may be given again"
    )
    order.add_argument("--database", choices=["SQLite", "PostgreSQL"], help="only on this one")
    given = order.parse_args(words)
    known = load()
    chosen = [one for one in known.values() if not given.faults or wanted(one, given.faults)]
    if unknown := [word for word in given.faults if not any(wanted(one, [word]) for one in known.values())]:
        say(f"There is no fault {', '.join(unknown)}; there are: {', '.join(known)}.")
        return 2
    seeds = given.seed or [random.SystemRandom().randrange(1 << 31) for _ in range(SEEDS)]
    runs = [
        (one, database, seed)
        for one in chosen
        for database in one.databases
        if given.database in (None, database)
        for seed in seeds
    ]
    say(row(HEAD))
    broken = 0
    for line in played(runs):
        say(row(line.cells()))
        broken += not line.is_kept
    say(f"\n{len(runs)} runs, {broken} broken." if broken else f"\n{len(runs)} runs, every promise kept.")
    return int(bool(broken))


def wanted(fault: Fault, words: list[str]) -> bool:
    """Tell whether a fault is among those named: by its number, or by number and way."""
    return fault.number in words or fault.number.partition("-")[0] in words


def played(runs: list[tuple[Fault, str, int]]) -> Iterator[Line]:
    """Do the runs, one after another."""
    with ExitStack() as stack:
        is_needed = any(database == POSTGRES for _, database, _ in runs)
        ours = stack.enter_context(server()) if is_needed else None
        on = stack.enter_context(stage(ours))
        for fault, database, seed in runs:
            yield play(on, fault, database, seed)


def play(on: Stage, fault: Fault, database: str, seed: int) -> Line:
    """Do one fault and draw up the accounts."""
    with on.scene(fault, database, seed) as scene:
        began = time.monotonic()
        fault_of_ours: list[str] = []
        found = Accounts()
        try:
            fault.play(scene)
        except (Broken, TimeoutError, subprocess.SubprocessError, httpx.HTTPError) as error:
            fault_of_ours = [str(error)[:300] or type(error).__name__]
        except Exception as error:
            traceback.print_exc()
            fault_of_ours = [f"the fault itself failed: {error!r}"[:300]]
        seconds = time.monotonic() - began
        scene.place.end()
        try:
            found = accounts.drawn_up(scene.place, scene.sink.mails.copy(), scene.readers)
            found.faults += accounts.reconciled(scene.place)
        except Exception as error:
            fault_of_ours.append(f"no accounts: {error!r}"[:300])
        found.faults[:0] = fault_of_ours
        return Line(fault, database, seed, found, scene.bound, seconds, "; ".join(scene.notes))


def row(cells: tuple[str, ...]) -> str:
    """Return a line of the table: numbers to the right, words to the left."""
    aligned = [
        cell.rjust(width) if 2 < place < 8 else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ]
    return "  ".join(aligned).rstrip()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
