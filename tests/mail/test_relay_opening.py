"""Opening a connection: greeting, EHLO, TLS and login, and whose fault it is when they fail."""

import asyncio
from typing import Literal

import pytest

from app.core import relay_url
from app.core.relay_url import RelayUrl
from app.mail.outcome import Reply, Sent, Uncertain, Unreached
from app.mail.relay import Relay, RelayDown
from app.mail.smtp import Timeouts
from tests import sink as does
from tests.mail.lines import BRIEF, MESSAGE, QUICK, hand, large, relay_to
from tests.sink import Action, Certificate, Sink, Stage

Tls = Literal["starttls", "implicit"]


async def down(sink: Sink, timeouts: Timeouts = QUICK) -> RelayDown:
    with pytest.raises(RelayDown) as caught:
        await relay_to(sink, timeouts).connect()
    return caught.value


@pytest.mark.parametrize("stage", ["connect", "ehlo"])
@pytest.mark.parametrize("text", ["421 4.3.2 Busy", "554 5.7.1 Not you"])
async def test_a_relay_that_refuses_the_connection_is_down(stage: Stage, text: str) -> None:
    with Sink(does.at(stage, does.reply(text))) as sink:
        error = await down(sink)
        assert error.reply == Reply(int(text[:3]), text[4:])
        assert not error.ours


@pytest.mark.parametrize("stage", ["connect", "ehlo"])
@pytest.mark.parametrize(
    "action", [does.reset(), does.close(), does.hang(), does.raw(b"what?\r\n"), does.raw(b"x" * 40_000)]
)
async def test_a_relay_that_says_nothing_sensible_is_down(stage: Stage, action: Action) -> None:
    with Sink(does.at(stage, action)) as sink:
        error = await down(sink, BRIEF)
        assert (error.reply, error.ours) == (None, False)
        assert error.sentence.startswith("The relay 127.0.0.1:")
        assert error.sentence.endswith(".")


async def test_a_relay_that_is_not_there_is_down() -> None:
    with Sink() as sink:
        pass
    error = await down(sink)
    assert error.sentence == f"The relay 127.0.0.1:{sink.port} cannot be reached: Connection refused."
    assert not error.ours


async def test_a_name_that_cannot_be_resolved_is_a_relay_down() -> None:
    relay = Relay(RelayUrl("smtp+plain", "[no name]", 25), "client.example", timeouts=QUICK)
    with pytest.raises(RelayDown, match="cannot be reached") as caught:
        await relay.connect()
    assert not caught.value.ours


async def test_the_embedded_mailbox_is_a_relay_on_loopback() -> None:
    with Sink() as sink:
        connection = await Relay(relay_url.parse(f"mailbox:{sink.port}"), "client.example").connect()
        assert isinstance(await hand(connection), Sent)
        await connection.close()
        assert len(sink.mails) == 1


# TLS and login

LOGIN = ("user", "hunter2")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate for localhost and 127.0.0.1 that only we trust."""
    return does.certificate(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate for another host."""
    return does.certificate(tmp_path_factory.mktemp("others"), "DNS:other.example")


def secure_relay_to(sink: Sink, trusted: Certificate | None, password: str = "hunter2") -> Relay:
    scheme = "smtps" if sink.implicit else "smtp"
    url = relay_url.parse(f"{scheme}://user:{password}@127.0.0.1:{sink.port}")
    return Relay(url, "client.example", trusted.trusted() if trusted else None, QUICK)


async def refused(relay: Relay) -> RelayDown:
    with pytest.raises(RelayDown) as caught:
        await relay.connect()
    assert "hunter2" not in caught.value.sentence
    return caught.value


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_a_relay_whose_certificate_is_trusted_takes_login_and_mail(tls: Tls, ours: Certificate) -> None:
    with Sink(auth=LOGIN, tls=tls, certificate=ours) as sink:
        connection = await secure_relay_to(sink, ours).connect()
        for message in (MESSAGE, large(3)):
            assert isinstance(await hand(connection, message=message), Sent)
        assert connection.usable
        await connection.close()
        assert [mail.data for mail in sink.mails] == [MESSAGE, large(3)]
        assert [verb for verb in sink.verbs() if verb in ("STARTTLS", "AUTH", "QUIT")][-2:] == [
            "AUTH",
            "QUIT",
        ]


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_faults_inside_tls_are_told_apart_too(tls: Tls, ours: Certificate) -> None:
    with Sink(auth=LOGIN, tls=tls, certificate=ours) as sink:
        for script, kind in (
            (does.at("dot", does.accept_then("reset")), Uncertain),
            (does.at("dot", does.accept_then("close")), Uncertain),
            (does.at("rcpt", does.reset()), Unreached),
            (does.at("rcpt", does.close()), Unreached),
        ):
            connection = await secure_relay_to(sink, ours).connect()
            sink.script = script
            assert isinstance(await hand(connection), kind)
            assert not connection.usable
            await connection.close()
            sink.script = None
        assert len(sink.mails) == 2


async def test_where_starttls_is_stripped_nothing_is_said_not_even_the_password() -> None:
    with Sink(auth=LOGIN) as sink:
        error = await refused(secure_relay_to(sink, None))
        assert error.ours
        assert error.sentence.endswith("offers no STARTTLS.")
        assert set(sink.verbs()) <= {"EHLO", "QUIT"}


@pytest.mark.parametrize(("text", "is_ours"), [("454 4.7.0 Not now", False), ("502 5.5.1 Never", True)])
async def test_where_starttls_is_refused_nothing_more_is_said(text: str, is_ours: bool) -> None:
    with Sink(does.at("starttls", does.reply(text)), auth=LOGIN, tls="starttls") as sink:
        error = await refused(secure_relay_to(sink, None))
        assert (error.reply, error.ours) == (Reply(int(text[:3]), text[4:]), is_ours)
        assert set(sink.verbs()) <= {"EHLO", "STARTTLS", "QUIT"}


@pytest.mark.parametrize("action", [does.reset(), does.close(), does.hang()])
async def test_a_handshake_that_fails_is_a_relay_down(action: Action, ours: Certificate) -> None:
    with Sink(does.at("starttls", action), auth=LOGIN, tls="starttls", certificate=ours) as sink:
        relay = secure_relay_to(sink, ours)
        relay.timeouts = BRIEF
        error = await refused(relay)
        assert not error.ours
        assert "AUTH" not in sink.verbs()


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_a_certificate_nobody_vouches_for_is_refused(tls: Tls, ours: Certificate) -> None:
    with Sink(auth=LOGIN, tls=tls, certificate=ours) as sink:
        error = await refused(secure_relay_to(sink, None))
        assert error.ours
        assert "certificate" in error.sentence
        assert "AUTH" not in sink.verbs()


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_a_certificate_of_another_host_is_refused(tls: Tls, others: Certificate) -> None:
    with Sink(auth=LOGIN, tls=tls, certificate=others) as sink:
        error = await refused(secure_relay_to(sink, others))
        assert error.ours
        assert "127.0.0.1" in error.sentence
        assert "AUTH" not in sink.verbs()


async def test_tls_spoken_to_a_relay_without_it_is_a_relay_down() -> None:
    with Sink() as sink:
        relay = Relay(relay_url.parse(f"smtps://127.0.0.1:{sink.port}"), "client.example", timeouts=BRIEF)
        assert not (await refused(relay)).ours


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_a_refused_login_is_our_own_fault(tls: Tls, ours: Certificate) -> None:
    with Sink(auth=("user", "another"), tls=tls, certificate=ours) as sink:
        error = await refused(secure_relay_to(sink, ours))
        assert error.ours
        assert error.reply == Reply(535, "5.7.8 Authentication credentials invalid")


async def test_a_login_that_cannot_be_checked_now_is_not_our_fault(ours: Certificate) -> None:
    script = does.at("auth", does.reply("454 4.7.0 Try later"))
    with Sink(script, auth=LOGIN, tls="starttls", certificate=ours) as sink:
        error = await refused(secure_relay_to(sink, ours))
        assert (error.reply, error.ours) == (Reply(454, "4.7.0 Try later"), False)


async def test_a_relay_that_offers_no_login_is_our_own_fault(ours: Certificate) -> None:
    with Sink(tls="starttls", certificate=ours) as sink:
        assert (await refused(secure_relay_to(sink, ours))).ours


async def test_on_loopback_a_login_needs_no_tls() -> None:
    with Sink(auth=LOGIN) as sink:
        url = relay_url.parse(f"smtp+plain://user:hunter2@127.0.0.1:{sink.port}")
        connection = await Relay(url, "client.example").connect()
        assert isinstance(await hand(connection), Sent)
        await connection.close()


async def test_a_caller_that_gives_up_opening_leaves_no_connection_behind() -> None:
    with Sink(does.at("ehlo", does.hang())) as sink:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(relay_to(sink).connect(), 0.1)
        assert sink.connections == 1
