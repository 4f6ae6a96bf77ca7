"""What wakes a loop: a commit in the same process at once, one in another process at the next tick."""

import asyncio


class Ear:
    """One loop's ear: it hears a call made before it listens, and being called in vain costs it one look."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def call(self) -> None:
        """Wake the loop."""
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Return when called, or after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()


class Wake:
    """Calls every loop of this process: somebody may have been owed something."""

    def __init__(self) -> None:
        self._ears: list[Ear] = []

    def ear(self) -> Ear:
        """Return a new ear that hears every call from now on."""
        self._ears.append(Ear())
        return self._ears[-1]

    def call(self) -> None:
        """Wake every loop."""
        for ear in self._ears:
            ear.call()
