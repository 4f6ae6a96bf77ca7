"""What every test may ask for, and the loop that it runs on."""

from collections.abc import Callable, Mapping

import uvloop

pytest_plugins = ["tests.postgres", "tests.browser", "tests.world", "tests.programs"]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], uvloop.Loop]]:
    """Return what makes the loop: the programs run on such a one, too."""
    return {"uvloop": uvloop.new_event_loop}
