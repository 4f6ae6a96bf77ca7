"""A mailbox of returned mail is emptied into folders, whatever its server can and cannot do."""

import re
import smtplib
from pathlib import Path

import pytest

from app.flows.watch import Watch
from tests import mailhost
from tests.feedback import desk
from tests.mailhost import MailHost
from tests.sink import Sink
from tests.world import World, house_at

BOUNCES = "bounce.example.com"
BOX = f"b@{BOUNCES}"
PATH = f"b+{'a' * 40}@{BOUNCES}"
LOOP = re.compile(
    rb"^Delivered-To: .*\r\n", re.MULTILINE
)  # Postfix writes its own, and takes another one for a loop
PERSON = b"From: someone@example.com\r\nTo: b@bounce.example.com\r\nSubject: a question\r\n\r\nIs anybody there?\r\n"


def drop(mx: MailHost, *mails: bytes) -> None:
    """Let mails come to the mailbox of returned mail, and wait until they lie there."""
    before = len(mx.mails(BOX))
    with smtplib.SMTP("127.0.0.1", mx.smtp) as server:
        for mail in mails:
            server.sendmail("", [PATH], LOOP.sub(b"", mail))
    mx.wait_for(BOX, before + len(mails))


async def steps(watch: Watch, count: int) -> None:
    for _ in range(count):
        await watch.step()


def watch_of(world: World) -> Watch:
    return Watch(world.db, world.house.settings, world.house.wake, world.clock)


@pytest.mark.parametrize(
    ("knows", "gone"),
    [
        ("IMAP4rev1 IDLE MOVE UIDPLUS NAMESPACE", True),
        ("IMAP4rev1 UIDPLUS", True),
        ("IMAP4rev1", False),  # only marked as deleted: to expunge could take what others have marked
    ],
)
async def test_mails_are_taken_in_once_and_moved_by_whatever_the_server_knows(
    knows: str, gone: bool, tmp_path: Path, empty_database: Path, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mailhost.running(BOUNCES, [BOX], knows) as mx:
        monkeypatch.setenv("SSL_CERT_FILE", str(mx.certificate))
        async with house_at(tmp_path, empty_database, sink, inbox=mx.inbox(BOX)) as world:
            drop(mx, desk.returned(PATH), PERSON)
            watch = watch_of(world)
            await steps(watch, 2)
            await watch.close()
            again = watch_of(world)
            await steps(again, 1)
            await again.close()
            assert sorted(one.kind for one in await desk.reports(world)) == ["bounce", "other"]
            assert len(mx.mails(BOX, "Broadsheet reports")) == 1
            assert len(mx.mails(BOX, "Broadsheet other")) == 1
            assert (len(mx.mails(BOX)) == 0) is gone


async def test_a_mailbox_that_is_away_is_tried_again_later_and_told_once(
    tmp_path: Path, empty_database: Path, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"inbox": "imaps://b:a-password@127.0.0.1:1"}
    async with house_at(tmp_path, empty_database, sink, **given) as world:
        watch = watch_of(world)
        await steps(watch, 3)
        await watch.close()
    told = [one.getMessage() for one in caplog.records if "mailbox of returned mail" in one.getMessage()]
    assert len(told) == 1
    assert "next try in 15 s" in told[0]
    assert "a-password" not in told[0]
