"""Figures and how they are shown: median, the least and the most, the ratio to what ran beside, and the target."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean, median

HEAD = ("", "median", "least", "most", "spread", "ratio", "target", "")


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure, or its ratio where `of_ratio`, shall be: at least or at most so much."""

    bound: float
    at_least: bool = False
    of_ratio: bool = False

    def __str__(self) -> str:
        """Return it as the table shows it."""
        told = f"{self.bound:.2f}" if self.of_ratio else f"{self.bound:,g}"
        return f"{'ratio ' if self.of_ratio else ''}{'≥' if self.at_least else '≤'} {told}"

    def is_met(self, value: float) -> bool:
        """Whether a value is as it shall be."""
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: a value for each round and, where something ran beside it, the ratio of each round to that."""

    name: str
    values: Sequence[float]
    ratios: Sequence[float] = field(default=())
    target: Target | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row as the table shows it; a ratio is followed by its least and most."""
        middle, least, most = median(self.values), min(self.values), max(self.values)
        several = len(self.values) > 1
        return (
            self.name,
            number(middle),
            number(least) if several else "",
            number(most) if several else "",
            f"{(most - least) / middle:.0%}" if several and middle else "",
            told(self.ratios),
            str(self.target or ""),
            self.verdict(),
        )

    def verdict(self) -> str:
        """Return whether the median is as it shall be."""
        if self.target is None:
            return ""
        value = median(self.ratios if self.target.of_ratio else self.values)
        return "met" if self.target.is_met(value) else "missed"


def beside(ours: Sequence[float], peers: Sequence[float]) -> list[float]:
    """Return the ratio of each round to the mean of the peer's rounds just before and just after it."""
    pairs = itertools.pairwise(peers)
    return [one / mean(pair) for one, pair in zip(ours, pairs, strict=True)]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least of the values that so large a share of them does not exceed."""
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]


def number(value: float) -> str:
    """Return a figure with three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def told(ratios: Sequence[float]) -> str:
    """Return the median of some ratios, with the least and the most where there are several."""
    if not ratios:
        return ""
    middle = f"{median(ratios):.2f}"
    return f"{middle} ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else middle


def plain(figures: Sequence[Figure]) -> list[str]:
    """Return the lines of a table for a terminal."""
    rows = [HEAD, *(figure.cells() for figure in figures)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    aligned = (
        [
            cell.rjust(width) if 0 < place < 5 else cell.ljust(width)
            for place, (cell, width) in enumerate(pairs)
        ]
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    )
    return ["  ".join(cells).rstrip() for cells in aligned]


def markdown(figures: Sequence[Figure]) -> list[str]:
    """Return the lines of a table for docs/performance.md."""
    rows: list[tuple[str, ...]] = [HEAD, ("---", "--:", "--:", "--:", "--:", "---", "---", "---")]
    rows += [figure.cells() for figure in figures]
    return [f"| {' | '.join(row)} |" for row in rows]
