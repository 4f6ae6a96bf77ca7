"""A mail goes out by a real Postfix, a real Dovecot refuses its reader, and the bounce comes home by IMAP."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import mailhost
from tests.feedback import desk
from tests.mailhost import MailHost
from tests.sink import Sink
from tests.world import World, house_at

BOUNCES = "bounce.example.com"
HERE, GONE = "here@example.com", "gone@example.com"


@pytest.fixture
def mx(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailHost]:
    """A mail host that knows one reader, and the mailbox of returned mail."""
    with mailhost.running(BOUNCES, [HERE, f"b@{BOUNCES}"]) as host:
        monkeypatch.setenv("SSL_CERT_FILE", str(host.certificate))
        yield host


async def until_ended(world: World, address: str, seconds: float = 45) -> None:
    async with asyncio.timeout(seconds):
        while (await desk.standing(world, address))[0] != "ended":
            await asyncio.sleep(0.1)


async def test_a_bounce_comes_home_by_the_mailbox_and_its_reader_is_spared(
    mx: MailHost, tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    given = {
        "relays": f"smtp+plain://127.0.0.1:{mx.smtp}",
        "bounce_domain": BOUNCES,
        "inbox": mx.inbox(f"b@{BOUNCES}"),
    }
    async with house_at(tmp_path, empty_database, sink, **given) as world:
        for address in (HERE, GONE):
            await world.reader(address)
        issue = await world.issue()
        mailing = await world.send(issue)
        async with world.working():
            await world.until(mailing)
            await until_ended(world, GONE)
        assert await desk.standing(world, GONE) == ("ended", "bounced")
        assert await desk.standing(world, HERE) == ("active", None)
        assert await desk.barred(world) == [(GONE, "bounced")]
        said = await desk.why(world, issue, GONE)
        assert "took it on" in said
        assert "it came back" in said
        assert "(the mailbox does not exist), so the address is not mailed any more." in said
        shown = await world.mailing(mailing)
        assert (shown["sent"], shown["bounced_hard"]) == (2, 1)
        assert len(mx.mails(HERE)) == 1
        assert not mx.mails(f"b@{BOUNCES}")
        assert len(mx.mails(f"b@{BOUNCES}", "Broadsheet reports")) == 1
