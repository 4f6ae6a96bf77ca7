"""What there is to measure, by name, and which of it needs Postfix's two programs."""

from collections.abc import Callable

from bench.distance import distance
from bench.memory import memory
from bench.million import million
from bench.pace import pace
from bench.programs import api, imports, startup
from bench.rendering import rendering
from bench.sending import sending
from bench.signups import signups
from bench.sizes import Sizes
from bench.stock import Stock
from bench.subscribe import subscribe
from bench.table import Figure

Measure = Callable[[Sizes, Stock], list[Figure]]
MEASURES: dict[str, Measure] = {
    "startup": startup,
    "rendering": rendering,
    "imports": imports,
    "api": api,
    "signups": signups,
    "sending": sending,
    "distance": distance,
    "pace": pace,
    "subscribe": subscribe,
    "memory": memory,
    "million": million,
}
NEED_SINK = {"sending", "distance", "subscribe", "memory", "million"}
