"""Handing mail to a relay: what arrives, what is refused, and what may not be said at all."""

import asyncio
from dataclasses import replace

import pytest

from app.mail.outcome import Deferred, Refused, Reply, Sent
from app.mail.smtp import Timeouts
from tests import sink as does
from tests.mail.lines import BRIEF, MESSAGE, QUICK, hand, large, once, open_line, soon
from tests.sink import Action, Event, Sink, Stage


async def test_a_mail_arrives_byte_for_byte_with_its_envelope() -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            outcome = await hand(connection)
        assert outcome == Sent(Reply(250, "2.0.0 Ok: queued as SINK1"), "SINK1")
        [mail] = sink.mails
        assert (mail.sender, mail.recipient, mail.data) == ("news@a.example", "reader1@b.example", MESSAGE)
        assert sink.commands[0] == (1, "EHLO client.example")
        assert sink.parsed()[0]["Subject"] == "One"


async def test_a_mail_may_have_no_sender() -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            assert isinstance(await connection.hand_over("", "reader@b.example", MESSAGE), Sent)
        assert (1, "MAIL FROM:<>") in sink.commands


async def test_where_pipelining_is_offered_a_mail_takes_one_write_before_its_body() -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            for number in range(3):
                assert isinstance(await hand(connection, number), Sent)
        assert sink.groups == [("EHLO",), *[("MAIL", "RCPT", "DATA")] * 3, ("QUIT",)]
        assert sink.connections == 1


async def test_a_message_is_begun_when_it_may_leave_and_not_before() -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            leaves = asyncio.Event()

            async def permit() -> None:
                await leaves.wait()

            handing = asyncio.create_task(
                connection.hand_over("news@a.example", "reader@b.example", MESSAGE, permit=permit)
            )
            await soon(lambda: "DATA" in sink.verbs())
            assert not sink.mails
            leaves.set()
            assert isinstance(await handing, Sent)
        assert sink.mails[0].data == MESSAGE


async def test_a_message_that_may_not_leave_is_nobodys_and_ends_the_connection() -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:

            async def permit() -> None:
                raise LookupError("stopped")

            with pytest.raises(LookupError):
                await connection.hand_over("news@a.example", "reader@b.example", MESSAGE, permit=permit)
            assert not connection.usable
        await soon(lambda: not sink.open)
        assert sink.mails == []


async def test_where_pipelining_is_not_offered_each_command_waits_for_its_answer() -> None:
    with Sink(pipelining=False) as sink:
        async with open_line(sink) as connection:
            assert isinstance(await hand(connection), Sent)
        assert sink.groups == [("EHLO",), ("MAIL",), ("RCPT",), ("DATA",), ("QUIT",)]


@pytest.mark.parametrize("pipelining", [True, False])
async def test_a_thousand_mails_over_twenty_connections_all_arrive_once(pipelining: bool) -> None:
    with Sink(pipelining=pipelining) as sink:
        numbers = iter(range(1000))

        async def send() -> None:
            async with open_line(sink, Timeouts()) as connection:
                for number in numbers:
                    assert isinstance(await hand(connection, number), Sent)

        await asyncio.gather(*(send() for _ in range(20)))
        assert sorted(sink.recipients()) == sorted(f"reader{n}@b.example" for n in range(1000))


async def test_a_connection_says_what_it_is_fit_for() -> None:
    with Sink() as sink:
        async with open_line(sink, options="?per_connection=2") as connection:
            seen = [(connection.fresh, connection.usable)]
            for number in range(2):
                await hand(connection, number)
                seen.append((connection.fresh, connection.usable))
            assert seen == [(True, True), (False, True), (False, False)]
            assert not connection.smtputf8


async def test_smtputf8_is_reported_where_it_is_offered() -> None:
    with Sink(does.at("ehlo", does.reply("250 sink.example\nSMTPUTF8"))) as sink:
        async with open_line(sink) as connection:
            assert connection.smtputf8
            assert isinstance(await hand(connection), Sent)
        assert ("MAIL", "RCPT", "DATA") not in sink.groups


async def test_an_old_connection_takes_no_new_mail() -> None:
    with Sink() as sink:
        async with open_line(sink, replace(QUICK, age=0)) as connection:
            assert not connection.usable


async def test_thirty_megabytes_pass_without_being_kept_twice() -> None:
    message = large(30)
    with Sink(does.at("body", does.delay(0.2))) as sink:
        async with open_line(sink, Timeouts()) as connection:
            task = asyncio.create_task(hand(connection, message=message))
            transport = connection._queue._transport
            largest = 0
            while not task.done():
                largest = max(largest, transport.get_write_buffer_size())
                await asyncio.sleep(0.001)
            assert isinstance(task.result(), Sent)
            assert 0 < largest <= 262_144
        assert sink.mails[0].data == message


async def test_the_size_is_said_where_the_relay_asks_for_it() -> None:
    with Sink(size=0) as sink:
        async with open_line(sink) as connection:
            assert isinstance(await hand(connection), Sent)
        assert (1, f"MAIL FROM:<news@a.example> SIZE={len(MESSAGE)}") in sink.commands


async def test_a_mail_larger_than_the_relay_takes_is_refused_without_asking() -> None:
    with Sink(size=100) as sink:
        async with open_line(sink) as connection:
            outcome = await hand(connection, message=large(1))
            assert isinstance(outcome, Refused)
            assert (outcome.reply.code, outcome.reply.enhanced, outcome.stage) == (552, "5.3.4", "mail")
            assert connection.usable
            assert isinstance(await hand(connection), Sent)
        assert sink.verbs() == ["EHLO", "MAIL", "RCPT", "DATA", "QUIT"]


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data", "dot"])
@pytest.mark.parametrize("pipelining", [True, False])
async def test_a_refusal_is_told_with_its_stage_and_the_next_mail_passes(
    stage: Stage, pipelining: bool
) -> None:
    for text, kind in (("450 4.2.1 Later", Deferred), ("550 5.1.1 Never", Refused)):
        script = does.at(stage, does.reply(text), times=1)
        with Sink(script, pipelining=pipelining) as sink:
            async with open_line(sink) as connection:
                outcome = await hand(connection, 1)
                assert outcome == kind(Reply(int(text[:3]), text[4:]), stage)
                assert connection.usable
                assert isinstance(await hand(connection, 2), Sent)
                assert isinstance(await hand(connection, 3), Sent)
            assert sink.recipients() == ["reader2@b.example", "reader3@b.example"]
            assert sink.connections == 1
            assert sink.verbs().count("RSET") == (0 if stage == "dot" else 1)
            assert "NOOP" not in sink.verbs()


async def test_a_reset_shares_the_write_of_the_next_mail() -> None:
    with Sink(does.at("rcpt", does.reply("550 5.1.1 Never"), times=1)) as sink:
        async with open_line(sink) as connection:
            await hand(connection, 1)
            await hand(connection, 2)
        assert sink.groups[1:3] == [("MAIL", "RCPT", "DATA"), ("RSET", "MAIL", "RCPT", "DATA")]


async def test_a_relay_that_wants_data_for_nobody_gets_the_lone_dot_and_the_next_mail_passes() -> None:
    def script(event: Event) -> Action | None:
        if event.recipient == "reader1@b.example" and event.stage == "rcpt":
            return does.reply("550 5.1.1 No such user")
        return does.reply("354 Go on") if event.stage == "data" else None

    with Sink(script) as sink:
        async with open_line(sink) as connection:
            assert await hand(connection, 1) == Refused(Reply(550, "5.1.1 No such user"), "rcpt")
            assert connection.usable
            assert isinstance(await hand(connection, 2), Sent)
        assert (sink.lone_dots, sink.recipients()) == (1, ["reader2@b.example"])
        assert "RSET" not in sink.verbs()


@pytest.mark.parametrize(
    "action", [does.reply("421 4.3.2 Bye"), does.reset(), does.hang(), does.reply("250 Ok")]
)
async def test_what_is_said_to_a_lone_dot_is_never_the_outcome(action: Action) -> None:
    def script(event: Event) -> Action | None:
        answers = {"rcpt": does.reply("450 4.2.1 Later"), "data": does.reply("354 Go on"), "dot": action}
        return answers.get(event.stage)

    with Sink(script) as sink:
        async with open_line(sink, BRIEF) as connection:
            assert await hand(connection) == Deferred(Reply(450, "4.2.1 Later"), "rcpt")
            assert connection.usable == (action.text == "250 Ok")
        assert sink.mails == []


async def test_a_refusal_stands_though_the_connection_ends_in_the_same_group() -> None:
    def script(event: Event) -> Action | None:
        answers = {"mail": does.reply("550 5.7.1 Not you"), "rcpt": does.reply("421 4.3.2 Bye")}
        return answers.get(event.stage)

    assert await once(script) == (Refused(Reply(550, "5.7.1 Not you"), "mail"), False)
    assert (await once(lambda e: does.close() if e.stage == "rcpt" else script(e)))[0] == Refused(
        Reply(550, "5.7.1 Not you"), "mail"
    )


@pytest.mark.parametrize(
    "address",
    [
        "r@exa mple.org",
        "r\n@example.org",
        "r\r\nRCPT TO:<x@example.org",
        "r@example.org>\r\nDATA",
        "<r@example.org>",
        "r@example.org> SIZE=1",
        "r\t@example.org",
        "r\0@example.org",
        "r\x7f@example.org",
        "ré@example.org",
        "r@例え.example",
        "r\u2028@example.org",
        "r" * 250 + "@a.org",
    ],
)
async def test_an_address_that_would_be_another_on_the_wire_is_never_sent(address: str) -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            with pytest.raises(ValueError, match="envelope address"):
                await connection.hand_over("news@a.example", address, MESSAGE)
            with pytest.raises(ValueError, match="envelope address"):
                await connection.hand_over(address, "reader@b.example", MESSAGE)
            assert connection.usable
        assert sink.verbs() == ["EHLO", "QUIT"]


async def test_a_mail_needs_a_recipient() -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            with pytest.raises(ValueError, match="envelope address"):
                await connection.hand_over("news@a.example", "", MESSAGE)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"A: b",
        b"A: b\n",
        b"A: b\r",
        b"A: b\r\n\r\nx\n.\n",
        b"A: b\r\n\r\nx\r\n.\nMAIL FROM:<x@y>\r\n",
        b"A: b\r\n\r\nx\n.\r\nMAIL FROM:<x@y>\r\n",
        b"A: b\r\n\r\nx\r.\rMAIL FROM:<x@y>\r\n",
        b"A: b\r\n\r\nx\r.\r\nMAIL FROM:<x@y>\r\n",
        b"A: b\r\n\r\nx\r\n.\rMAIL FROM:<x@y>\r\n",
        b"A: b\r\n\r\nx\r\n.\r\nMAIL FROM:<x@y>\r\n",
        b"A: b\r\n\r\nx\r\r\n.\r\r\n",
        b"A: b\r\n\r\nx\n\r.\n\r\n",
        b"A: b\r\n\r\nlone\rone, lone\nother\r\n",
        b"A: b\r\n\r\nlone\none, lone\rother\r\n",
        b".A: b\r\n\r\nx\r\n",
        b"A: b\r\n\r\n.x\r\n",
        b"A: b\r\n\r\n..\r\n",
        b".\r\n",
        b"A: b\r\n\r\nx\0\r\n",
        "A: b\r\n\r\né\r\n".encode(),
    ],
)
async def test_a_message_that_could_end_early_is_never_sent(message: bytes) -> None:
    with Sink() as sink:
        async with open_line(sink) as connection:
            with pytest.raises(ValueError, match="essage"):
                await hand(connection, message=message)
            assert isinstance(await hand(connection), Sent)
        assert sink.verbs() == ["EHLO", "MAIL", "RCPT", "DATA", "QUIT"]
