"""Runs the measures that are named, or all, and prints a table: median, the least and the most, and the ratio."""

import os
import platform
import sys
from statistics import median

from bench.measures import MEASURES, MISSING, Measured, can_send


def main(names: list[str]) -> int:
    """Measure and print; exit status 2 for a name that is none."""
    if unknown := set(names) - set(MEASURES):
        say(f"There is no measure {', '.join(sorted(unknown))}; there are: {', '.join(MEASURES)}.")
        return 2
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    say(f"Python {platform.python_version()}, {os.cpu_count()} processors, load {load} before the start.")
    say("One machine, loopback: compare ratios, and figures only with those of the same minute.\n")
    for name in names or list(MEASURES):
        say(name)
        if name == "sending" and not can_send():
            say(f"  {MISSING}\n")
            continue
        for line in table(MEASURES[name]()):
            say(f"  {line}")
        say("")
    return 0


def table(found: Measured) -> list[str]:
    """Return the lines of a table; the last column is the ratio to the last row."""
    width = max(map(len, found))
    base = median(list(found.values())[-1])
    lines = [
        f"{'':<{width}}  {'median':>10}  {'least':>10}  {'most':>10}  {'spread':>7}  {'ratio':>6}  rounds"
    ]
    for name, values in found.items():
        middle = median(values)
        spread = (max(values) - min(values)) / middle
        rounds = " ".join(f"{each:,.0f}" for each in values)
        lines.append(
            f"{name:<{width}}  {middle:>10,.0f}  {min(values):>10,.0f}  {max(values):>10,.0f}"
            f"  {spread:>6.0%}  {middle / base:>6.2f}  {rounds}"
        )
    return lines


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
