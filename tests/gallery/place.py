"""A house whose pages a browser can open, with a daily and a weekly issue published in it."""

import asyncio
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TypeVar

import uvicorn

from app import main
from app.core import schema
from app.core.db import Database
from tests.gallery import mails, readers
from tests.ports import free_port
from tests.sink import Sink
from tests.world import World, house_at

Seen = TypeVar("Seen")
DAYS = ((date(2026, 10, 24), "daily"), (date(2026, 10, 25), "weekly"), (date(2026, 10, 26), "daily"))


async def opened(
    folder: Path, texts: Path | None, look: Callable[[str, dict[str, readers.Visit]], Seen]
) -> Seen:
    """Open the house, publish issues, and return what `look` sees, in a thread of its own.

    It is given the address of the house, and every page that readers come to.
    """
    empty = folder / "empty.db"
    db = Database(f"sqlite:///{empty}")
    await schema.upgrade(db)
    await db.close()
    port = free_port()
    name = mails.HOUSE["zh"]["name"]
    with Sink() as sink:
        async with house_at(folder, empty, sink, base_url=f"http://127.0.0.1:{port}", name=name) as world:
            await _publish(world, texts)
            visits = await readers.visits(world)
            server = uvicorn.Server(uvicorn.Config(main.build(world.house), port=port, log_config=None))
            serving = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            try:
                return await asyncio.to_thread(look, world.house.settings.base_url, visits)
            finally:
                server.should_exit = True
                await serving


async def _publish(world: World, texts: Path | None) -> None:
    written = {"edition": "daily", "date": "2026-10-23", "format": "markdown", "source": mails.markdown("zh")}
    made = (await world.api.post("/issues", json=written)).json()
    await world.deliver(await world.send(made["id"]))
    for day, slug in DAYS:
        source = mails.text(slug, "zh", texts)
        await world.deliver(await world.send(await world.issue(slug, day, source)))
