"""`python -m bench [sending …] [--quick] [--markdown]`: measures what is named, or all, and prints a table each."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

from bench import machine, postfix, sizes, table
from bench.measures import MEASURES, NEED_SINK
from bench.stock import POSTGRES, SQLITE, stock
from bench.table import Figure

Draw = Callable[[Sequence[Figure]], list[str]]
NO_PROCESSES = "This system has no /proc, so what the worker uses cannot be told and this was not measured."


def main(words: list[str]) -> int:
    """Measure and print; exit status 2 for a name that is none or a size that is no number."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the programs and the server end, too
    order = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    order.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}; none: all")
    order.add_argument("--quick", action="store_true", help="a small form that takes a minute or two")
    order.add_argument("--markdown", action="store_true", help="tables as docs/performance.md has them")
    order.add_argument("--database", choices=[SQLITE, POSTGRES], help="only on this one")
    given = order.parse_args(words)
    if unknown := set(given.measures) - set(MEASURES):
        say(f"There is no measure {', '.join(sorted(unknown))}; there are: {', '.join(MEASURES)}.")
        return 2
    try:
        chosen = sizes.chosen(sizes.QUICK if given.quick else sizes.Sizes())
    except ValueError as error:
        say(str(error))
        return 2
    say(f"{machine.described()} Load {machine.load()} before the start.")
    say(f"Sizes: {', '.join(f'{name} {value:,}' for name, value in asdict(chosen).items())}.\n")
    draw = table.markdown if given.markdown else table.plain
    with stock((given.database,) if given.database else (SQLITE, POSTGRES)) as made:
        for name in given.measures or MEASURES:
            say(f"### {name}\n" if given.markdown else f"{name} (load {machine.load()})")
            for line in measured(name, lambda: MEASURES[name](chosen, made), draw):  # noqa: B023
                say(line if given.markdown else f"  {line}")
            say("")
    return 0


def measured(name: str, measure: Callable[[], list[Figure]], draw: Draw) -> list[str]:
    """Return the lines of a measure's table, or why it was not measured."""
    if name in NEED_SINK and not postfix.is_here():
        return [postfix.MISSING]
    if name in NEED_SINK and not machine.can_look_into_processes():
        return [NO_PROCESSES]
    return draw(measure())


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
