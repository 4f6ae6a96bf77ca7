"""Serves the pages and the API: all that speaks HTTP, which a worker need not hold in its memory."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from app import mailbox, main
from app.cli.listening import BACKLOG
from app.cli.prompt import Prompt
from app.core.config import Settings
from app.edge import House

spoken = logging.getLogger(__name__)

CONNECTIONS = 2000  # at once; more are answered 503


async def serve(house: House, box: mailbox.Mailbox | None, taken: socket.socket) -> None:
    """Serve on a socket until the house stops."""
    app = main.build(house)
    if box is not None:
        app.include_router(mailbox.router(box))
    server = server_of(app, house.settings)
    serving = asyncio.create_task(server.serve([taken]))
    stopping = asyncio.create_task(house.stopping.wait())
    spoken.info("pages and API on http://%s:%d", *taken.getsockname()[:2])
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    house.stopping.set()
    await asyncio.gather(serving, stopping)


def server_of(app: Any, settings: Settings) -> uvicorn.Server:
    """Return a server that waits for nobody for ever and leaves the signals to us."""
    return _Server(
        uvicorn.Config(
            app,
            http=Prompt,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            limit_concurrency=CONNECTIONS,
            backlog=BACKLOG,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=5,
        )
    )


class _Server(uvicorn.Server):
    """Leaves the signals to us, who have more to stop than the server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
