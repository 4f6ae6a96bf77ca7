"""The faults themselves: each file enters its own on the list."""

from chaos.fault import FAULTS, Fault, order


def load() -> dict[str, Fault]:
    """Return all faults in the order of their numbers."""
    from chaos.faults import calls, clocks, deaths, moves, relays, stores, sweep  # noqa: F401 - each enters its own

    return dict(sorted(FAULTS.items(), key=lambda pair: order(pair[0])))
