"""How much of everything is measured: the full form, the quick one, and what the environment says instead."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts, unless a comment says otherwise; each may be given as BENCH_ and its name in capitals."""

    rounds: int = 3  # of everything that is repeated
    connections: int = 20  # of a worker, and of the client beside it
    rows: int = 20_000  # of the file that is imported
    calling: float = 5.0  # seconds of calls to the API in a round
    signups: int = 2_000  # from the form in a round
    mails: int = 20_000  # of one mailing of `sending`, and of smtp-source beside it
    distant: int = 2_000  # mails of one mailing of `distance`
    distant_connections: int = 10
    paced: int = 6_000  # mails of one mailing of `pace`
    few: int = 10_000  # recipients that `memory` compares with the many
    many: int = 1_000_000  # recipients in `memory` and `million`
    watched: int = 20_000  # mails that `memory` waits for
    edge: int = 100_000  # mails at either end of the million whose speed is told
    busy: int = 40_000  # mails that go out while `subscribe` asks, in a round
    asks: float = 20.0  # requests a second from its form


QUICK = Sizes(
    rounds=2, rows=2_000, calling=0.5, signups=200, mails=1_000, distant=200, paced=1_000, few=500, many=5_000,
    watched=500, edge=1_000, busy=2_000, asks=40.0,
)  # fmt: skip


def chosen(base: Sizes, environment: Mapping[str, str] = os.environ) -> Sizes:
    """Return the sizes with those that the environment names; raise ValueError with a sentence for no number."""
    given: dict[str, float] = {}
    for field in fields(Sizes):
        name = f"BENCH_{field.name.upper()}"
        if name in environment:
            kind = type(getattr(base, field.name))
            try:
                given[field.name] = kind(environment[name])
            except ValueError:
                raise ValueError(f"{name} must be a number, not {environment[name]!r}.") from None
            if given[field.name] <= 0:
                raise ValueError(f"{name} must be more than 0.")
    return replace(base, **given)  # type: ignore[arg-type]
