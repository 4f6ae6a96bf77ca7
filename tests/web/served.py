"""A whole house whose pages a browser can open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn

from app import main
from tests.ports import free_port
from tests.sink import Sink
from tests.world import World, house_at


@asynccontextmanager
async def serving(folder: Path, empty_database: Path, sink: Sink) -> AsyncIterator[World]:
    """Serve a new house on a free port while the block runs."""
    port = free_port()
    async with house_at(folder, empty_database, sink, base_url=f"http://127.0.0.1:{port}") as world:
        server = uvicorn.Server(
            uvicorn.Config(main.build(world.house), port=port, log_config=None, ws="none")
        )
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        yield world
        server.should_exit = True
        await task
