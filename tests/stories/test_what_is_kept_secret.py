"""Keys, passwords, addresses and tokens are in no log and in no dump, whatever happens to a story."""

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from app.core.log import Masking
from app.delivery import workers
from tests.sink import Sink, at, reply
from tests.web import reading
from tests.web.reading import ask, ask_and_confirm, link
from tests.world import World, house_at

SECRET, SUPPRESSION, PASSWORD = (
    "planted-secret-key-" + "x" * 30,
    "planted-suppression-" + "y" * 30,
    "planted-pass",
)
TOKEN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{32}(?![A-Za-z0-9_-])")


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Everything that any logger says at INFO and above, as the programs would write it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Masking("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


async def everything_happens(world: World, sink: Sink) -> tuple[set[str], set[str]]:
    """Live a story full of mishaps; return the addresses and the tokens that were in it."""
    addresses = await world.readers(97, prefix="planted")
    addresses += [f"planted{number}@example.com" for number in (97, 98, 99)]
    preferences = await ask_and_confirm(world, "planted97@example.com")
    await ask(world, "planted98@example.com")
    await ask(world, "planted99@exa mple.com")
    sink.script = at(
        "rcpt", reply("550 5.1.1 <planted@example.com>: no such user planted3@example.com"), times=5
    )
    await world.deliver(await world.send(await world.issue("daily")))
    urls = {url for mail in sink.mails for url in reading.links(mail.data) if "127.0.0.1" in url} | {
        preferences
    }
    for url in sorted(urls)[::10]:
        await world.web.get(url)
    issue = next(mail.data for mail in reversed(sink.mails) if b"List-Unsubscribe" in mail.data)
    await world.web.post(link(issue, "u"), data={"List-Unsubscribe": "One-Click"})
    await world.web.post(preferences, data={"editions": "hourly"})
    await world.web.get(preferences[:-1])
    await world.api.get("/issues", headers={"Authorization": f"Bearer {world.key[:-1]}"})
    async with world.db.transaction() as session:
        await workers.register(session, "planted-worker", world.clock())
    async with world.db.engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE edition SET language = 'unheard'")
    assert (await world.web.get("/feeds/daily.atom")).status_code == 500
    assert (await world.web.get(preferences)).status_code < 500
    return set(addresses), {token for url in urls for token in TOKEN.findall(url)}


async def test_no_log_holds_a_secret_an_address_or_a_token(
    tmp_path: Path, empty_database: Path, sink: Sink, lines: io.StringIO
) -> None:
    keys = {"secret_key": SECRET, "suppression_key": SUPPRESSION, "contact": "editors@example.com"}
    sink.auth = ("planted-user", PASSWORD)
    relay = f"smtp+plain://planted-user:{PASSWORD}@127.0.0.1:{sink.port}?connections=5"
    async with house_at(tmp_path, empty_database, sink, relays=relay, **keys) as world:
        addresses, tokens = await everything_happens(world, sink)
        key = world.key
    written = lines.getvalue()
    assert "Traceback" in written, "the story has its mishap"
    assert "is finished" in written
    assert len(tokens) > 100
    for planted in (SECRET, SUPPRESSION, PASSWORD, key, key.rpartition("_")[2], *addresses, *tokens):
        assert planted not in written


async def test_a_dump_of_the_database_holds_no_key_no_token_and_no_password(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    async with house_at(
        tmp_path, empty_database, sink, secret_key=SECRET, suppression_key=SUPPRESSION
    ) as world:
        preferences = await ask_and_confirm(world, "r@example.com")
        await world.deliver(await world.send(await world.issue("daily")))
        tokens = {
            token for mail in sink.mails for url in reading.links(mail.data) for token in TOKEN.findall(url)
        }
        dump = repr(await reading.everything(world))
        raw = b"".join(path.read_bytes() for path in tmp_path.glob("broadsheet.db*"))
    assert preferences.rpartition("/")[2] in tokens | {preferences.rpartition("/")[2]}
    handle, secret = world.key.split("_", 2)[1:]
    assert handle in dump
    for planted in (secret, SECRET, SUPPRESSION, *tokens):
        assert planted not in dump
        assert planted.encode() not in raw


async def test_a_wrong_handle_and_a_wrong_secret_cost_the_same_work_and_say_the_same(world: World) -> None:
    handle, secret = world.key.split("_", 2)[1:]
    asked: list[str] = []
    event.listen(
        world.db.engine.sync_engine, "before_cursor_execute", lambda _c, _k, sql, *_: asked.append(sql)
    )
    seen = []
    for presented in (f"bs_{'0' * 12}_{secret}", f"bs_{handle}_{'A' * 43}"):
        asked.clear()
        answer = await world.api.get("/issues", headers={"Authorization": f"Bearer {presented}"})
        seen.append((answer.status_code, answer.text, tuple(asked)))
    assert seen[0] == seen[1]
    assert seen[0][0] == 401
