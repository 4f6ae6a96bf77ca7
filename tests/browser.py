"""A real Chromium for the tests that ask, driven from a thread of its own.

Playwright's plain calls leave an event loop running in the thread that uses them, and no asyncio test could
run there again. So they have a thread of their own, and a test holds stand-ins that pass each call on and
wait for its answer. A test with a server in its own event loop calls the browser through `asyncio.to_thread`.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

from tests.needs import give_up

NAMED = "BROADSHEET_TEST_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Desk:
    """The one thread in which everything of Playwright happens."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="browser")

    def ask(self, action: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Do it in that thread; what comes back is wrapped, what it raises is raised here."""
        plain = [unwrap(value) for value in args]
        plain_named = {name: unwrap(value) for name, value in named.items()}
        return self.wrap(self._thread.submit(action, *plain, **plain_named).result())

    def wrap(self, value: Any) -> Any:
        """Return a stand-in for an object or method of Playwright's, and anything else as it is."""
        if isinstance(value, list):
            return [self.wrap(item) for item in value]
        if callable(value):
            return lambda *args, **named: self.ask(value, *args, **named)
        ours = type(value).__module__.startswith("playwright.") and not isinstance(value, Exception)
        return StandIn(self, value) if ours else value

    def close(self) -> None:
        self._thread.shutdown()


class StandIn:
    """Stands for one object of Playwright's in any other thread."""

    def __init__(self, desk: Desk, target: Any) -> None:
        self._desk = desk
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return self._desk.ask(getattr, self._target, name)

    def __enter__(self) -> Any:
        return self._desk.ask(self._target.__enter__)

    def __exit__(self, *error: Any) -> Any:
        return self._desk.ask(self._target.__exit__, *error)

    def __repr__(self) -> str:
        return f"<in the browser's thread: {type(self._target).__name__}>"


def unwrap(value: Any) -> Any:
    return value._target if isinstance(value, StandIn) else value


def find() -> str | None:
    """Return the path of a Chromium: the one named, else the first of the usual names in PATH."""
    if named := os.environ.get(NAMED):
        return shutil.which(named)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium for one file of tests; take `browser.new_page()` or a context, and close it."""
    program = find()
    if program is None:
        give_up(f"No Chromium: {NAMED} names none and none of {', '.join(NAMES)} is in PATH.")
    desk = Desk()
    playwright = desk.ask(lambda: sync_playwright().start())
    try:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
    except Error as fault:
        playwright.stop()
        desk.close()
        give_up(f"{program} is there, but does not start: {fault.message.splitlines()[0]}")
    yield cast(Browser, chromium)
    chromium.close()
    playwright.stop()
    desk.close()
