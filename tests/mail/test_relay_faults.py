"""A relay that fails at any stage: whether the mail may be tried again is never guessed."""

import asyncio
from typing import Literal

import pytest

from app.mail.outcome import Deferred, Outcome, Refused, Reply, Sent, Uncertain, Unreached
from tests import sink as does
from tests.mail.lines import BRIEF, hand, large, once, open_line, relay_to, soon
from tests.sink import Action, Ending, Sink, Stage


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data"])
@pytest.mark.parametrize("pipelining", [True, False])
async def test_a_421_before_the_dot_is_about_the_connection(stage: Stage, pipelining: bool) -> None:
    script = does.at(stage, does.reply("421 4.7.0 Too many"))
    with Sink(script, pipelining=pipelining) as sink:
        async with open_line(sink) as connection:
            outcome = await hand(connection)
            assert isinstance(outcome, Unreached)
            assert outcome.reply == Reply(421, "4.7.0 Too many")
            assert not connection.usable
        assert sink.mails == []


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data"])
@pytest.mark.parametrize("action", [does.reset(), does.close(), does.hang()])
async def test_a_connection_lost_before_the_dot_is_safe_to_try_again(stage: Stage, action: Action) -> None:
    with Sink(does.at(stage, action)) as sink:
        async with open_line(sink, BRIEF) as connection:
            outcome = await hand(connection)
            assert isinstance(outcome, Unreached)
            assert outcome.reply is None
            assert not connection.usable
            assert isinstance(await hand(connection), Unreached)
        assert sink.mails == []


@pytest.mark.parametrize("action", [does.reset(), does.close(), does.hang()])
async def test_a_connection_lost_in_the_body_is_safe_to_try_again(action: Action) -> None:
    with Sink(does.at("body", action)) as sink:
        async with open_line(sink, BRIEF) as connection:
            assert isinstance(await hand(connection, message=large(30)), Unreached)
            assert not connection.usable
        assert sink.mails == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("421 4.3.2 Bye", Unreached),
        ("451 4.3.1 Full", Deferred),
        ("552 5.3.4 Too big", Refused),
        ("250 Ok", Unreached),
    ],
)
async def test_an_answer_in_the_middle_of_the_body_ends_it(text: str, kind: type[Outcome]) -> None:
    with Sink(does.at("body", does.raw(f"{text}\r\n".encode(), then=does.hang()))) as sink:
        async with open_line(sink) as connection:
            outcome = await hand(connection, message=large(30))
            assert isinstance(outcome, kind)
            assert not connection.usable
        assert sink.mails == []


@pytest.mark.parametrize("ending", ["reset", "close", "hang"])
async def test_silence_after_the_dot_is_uncertain(ending: Ending) -> None:
    with Sink(does.at("dot", does.accept_then(ending))) as sink:
        async with open_line(sink, BRIEF) as connection:
            assert isinstance(await hand(connection), Uncertain)
            assert not connection.usable
        assert sink.recipients() == ["reader1@b.example"]


@pytest.mark.parametrize("answer", [b"354 Go on\r\n", b"what?\r\n", b"250-Ok\r\n550 No\r\n", b"099 No\r\n"])
async def test_nonsense_after_the_dot_is_uncertain(answer: bytes) -> None:
    outcome, usable = await once(does.at("dot", does.raw(answer)))
    assert (type(outcome), usable) == (Uncertain, False)


async def test_a_421_after_the_dot_is_an_answer_and_ends_the_connection() -> None:
    outcome, usable = await once(does.at("dot", does.reply("421 4.7.28 Slow down")))
    assert (outcome, usable) == (Deferred(Reply(421, "4.7.28 Slow down"), "dot"), False)


async def test_an_answer_followed_by_the_end_of_the_connection_is_still_an_answer() -> None:
    outcome, _ = await once(does.at("dot", does.raw(b"250 Ok id=1a-2B\r\n", then=does.close())))
    assert outcome == Sent(Reply(250, "Ok id=1a-2B"), "1a-2B")


async def test_a_slow_answer_is_waited_for() -> None:
    outcome, usable = await once(does.at("dot", does.delay(0.3)))
    assert (type(outcome), usable) == (Sent, True)


async def test_a_caller_that_gives_up_cuts_the_connection_before_the_dot() -> None:
    with Sink(does.at("rcpt", does.hang())) as sink:
        async with open_line(sink) as connection:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(hand(connection), 0.1)
            assert not connection.usable
        assert sink.mails == []


@pytest.mark.parametrize(
    "chunks",
    [
        (b"2", b"50", b" 2.1", b".0 Ok\r", b"\n"),
        (b"250-first\r\n", b"250-second\r\n250 third\r\n"),
        (b"250\r\n",),
        (b"250 bare line feed\n",),
    ],
)
async def test_an_answer_may_come_in_pieces_or_lines(chunks: tuple[bytes, ...]) -> None:
    assert await once(does.at("mail", does.raw(*chunks))) == (
        Sent(Reply(250, "2.0.0 Ok: queued as SINK1"), "SINK1"),
        True,
    )


async def test_lines_of_one_answer_become_one_and_repeat_no_code() -> None:
    text = "550 5.1.1 The account does not exist.\n5.1.1 Try \x1b[31mchecking\n5.1.1 it."
    outcome, _ = await once(does.at("rcpt", does.reply(text)))
    assert isinstance(outcome, Refused)
    assert outcome.reply.text == "5.1.1 The account does not exist. Try  [31mchecking it."


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\r\n",
        b"\xff\xfe\r\n",
        b"999 what\r\n",
        b"250-a\r\n251 b\r\n",
        b"250 " + b"x" * 9000 + b"\r\n",
        b"250 " + b"x" * 9000,
        b"250-x\r\n" * 2000,
        b"250 Ok\r\n" * 40,
    ],
)
async def test_nonsense_before_the_dot_ends_the_connection_and_nothing_else(answer: bytes) -> None:
    with Sink(does.at("mail", does.raw(answer))) as sink:
        async with open_line(sink, BRIEF) as connection:
            assert isinstance(await hand(connection), Unreached)
            assert not connection.usable
        assert sink.mails == []


async def test_an_answer_out_of_step_ends_the_connection() -> None:
    outcome, usable = await once(does.at("data", does.raw(b"250 Ok\r\n")))
    assert isinstance(outcome, Unreached)
    assert not usable


async def test_a_421_while_idle_makes_a_connection_unusable() -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            await hand(connection)
            sink.say("421 4.4.2 Idle too long")
            await soon(lambda: not connection.usable)
            outcome = await hand(connection)
            assert isinstance(outcome, Unreached)
            assert outcome.reply == Reply(421, "4.4.2 Idle too long")
        assert len(sink.mails) == 1


@pytest.mark.parametrize("ending", ["reset", "close"])
async def test_a_connection_lost_while_idle_is_unusable(ending: Literal["reset", "close"]) -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            sink.hang_up(ending)
            await soon(lambda: not connection.usable)
            assert isinstance(await hand(connection), Unreached)
        assert sink.mails == []


@pytest.mark.parametrize("ending", ["reset", "close"])
async def test_taking_leave_of_a_lost_connection_does_not_fail(ending: Literal["reset", "close"]) -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            sink.hang_up(ending)
        await connection.close()
        assert not connection.usable


async def test_a_relay_that_does_not_answer_quit_is_left_alone() -> None:
    with Sink() as sink:
        connection = await relay_to(sink, BRIEF).connect()
        for transport in sink.open:
            transport.pause_reading()
        await connection.close()
        assert not connection.usable
