"""Several workers render one mailing at once: the first to have it done is believed, and the others see that."""

import asyncio
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from app.core.config import Settings
from app.core.db import Database
from app.delivery import mailings
from app.flows import manuscript, publish
from app.flows.compose import Composer
from app.issues.models import Edition, IssueText
from app.mail.render import Rendition
from tests.issues import samples
from tests.sink import Sink
from tests.world import DAY, house_at

WORKERS = 3


class InStep(Composer):
    """A composer that has a text done only when the others have it done, too."""

    def __init__(self, settings: Settings, all_done: threading.Barrier) -> None:
        super().__init__(settings)
        self._all_done = all_done

    def render_issue(self, edition: Edition, day: date, text: IssueText, *more: Any) -> Rendition:
        """Render a text, and wait for the others."""
        made = super().render_issue(edition, day, text, *more)
        self._all_done.wait(20)
        return made


@pytest.mark.parametrize("list_id", [None, "daily.example.com"], ids=["an edition's first", "a later one"])
async def test_workers_that_render_a_mailing_at_once_do_not_clash(
    tmp_path: Path, empty_database: Path, sink: Sink, postgres_url: str, list_id: str | None
) -> None:
    async with house_at(tmp_path, empty_database, sink, database_url=postgres_url) as world:
        await world.reader("lin@example.com")
        issue = await world.issue()
        english = manuscript.Manuscript(samples.ENGLISH, language="en")
        async with world.db.transaction() as session:
            await session.execute(update(Edition).values(list_id=list_id))
            await manuscript.hand_in(session, "daily", DAY, english, world.clock())
        mailing = await world.send(issue)
        all_done = threading.Barrier(WORKERS)
        databases = [Database(postgres_url) for _ in range(WORKERS)]
        composers = [InStep(world.house.settings, all_done) for _ in range(WORKERS)]
        await asyncio.gather(*map(publish.set_type, databases, composers))
        for one in databases:
            await one.close()
        async with world.db.reading() as session:
            made = await mailings.renditions(session, mailing)
            edition = (await session.scalars(select(Edition).where(Edition.slug == "daily"))).one()  # type: ignore[arg-type]
        assert {language: bool(one.html) for language, one in made.items()} == {"zh": True, "en": True}
        assert edition.list_id == world.house.composer.list_id(edition)
        await world.deliver(mailing)
    assert sink.recipients() == ["lin@example.com"]
