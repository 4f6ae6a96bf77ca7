"""HTTP connections that do not wait for ever: whoever opens one has ten seconds to send a request's head."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD = 10.0  # seconds


class Prompt(H11Protocol):
    """Uvicorn's protocol with a deadline for the head, which it has none for: half-open connections end."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD, self._late)

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a head is whole; start it when a next one has only begun."""
        super().data_received(data)
        if self._is_between_requests() and self._deadline is None:
            self._deadline = self.loop.call_later(HEAD, self._late)
        elif not self._is_between_requests():
            self._stop_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if self._is_between_requests():
            self.transport.close()
