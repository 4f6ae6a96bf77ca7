"""Relay addresses: what they may say, and that no complaint about one shows its password."""

import dataclasses
from datetime import date

import pytest

from app.core import relay_url
from app.core.relay_url import RelayUrl


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("smtp://relay.example", 587),
        ("smtps://relay.example", 465),
        ("smtp+plain://relay.example", 25),
        ("SMTP://Relay.Example/", 587),
        ("smtp://relay.example:2525", 2525),
    ],
)
def test_each_scheme_has_the_port_of_its_trade(text: str, port: int) -> None:
    relay = relay_url.parse(text)
    assert (relay.host, relay.port) == ("relay.example", port)


def test_what_is_not_said_has_a_default() -> None:
    assert relay_url.parse("smtp://relay.example") == RelayUrl(
        "smtp",
        "relay.example",
        587,
        connections=20,
        per_connection=500,
        rate=None,
        weight=1,
        lane=None,
        sender=None,
        hook=None,
    )


def test_all_options_are_read() -> None:
    relay = relay_url.parse(
        "smtps://relay.example?connections=5&per_connection=50&rate=100/s&weight=3"
        "&lane=letters&sender=news@example.com&hook=ses&quota=2000&warmup=2026-10-26"
    )
    assert (relay.quota, relay.warmup) == (2000, date(2026, 10, 26))
    assert (relay.connections, relay.per_connection, relay.rate, relay.weight) == (5, 50, 100.0, 3)
    assert (relay.lane, relay.sender, relay.hook) == ("letters", "news@example.com", "ses")


def test_a_warm_up_may_begin_by_itself() -> None:
    assert relay_url.parse("smtp://relay.example?warmup=yes").warmup is True
    assert relay_url.parse("smtp://relay.example").warmup is False


@pytest.mark.parametrize(
    ("written", "per_second"), [("100/s", 100), ("6000/m", 100), ("3600/h", 1), ("0.5/s", 0.5)]
)
def test_a_rate_becomes_mails_per_second(written: str, per_second: float) -> None:
    assert relay_url.parse(f"smtp://relay.example?rate={written}").rate == per_second


def test_an_option_of_words_left_empty_is_not_set() -> None:
    relay = relay_url.parse("smtp://relay.example?lane=&sender=&hook=")
    assert (relay.lane, relay.sender, relay.hook) == (None, None, None)


def test_user_and_password_are_percent_decoded() -> None:
    relay = relay_url.parse("smtp://us%40er:p%2F%3A%23%25+%E4%B8%AD@relay.example")
    assert (relay.username, relay.password) == ("us@er", "p/:#%+中")


def test_an_at_sign_left_bare_in_a_password_is_understood() -> None:
    assert relay_url.parse("smtp://user:p@ss@relay.example").password == "p@ss"


def test_an_ipv6_host_stands_in_brackets_and_in_the_name_too() -> None:
    relay = relay_url.parse("smtps://[2001:DB8:0:0::1]:2465")
    assert (relay.host, relay.port) == ("2001:db8::1", 2465)
    assert relay.name == "[2001:db8::1]:2465"


def test_the_embedded_mailbox_is_on_loopback() -> None:
    relay = relay_url.parse("mailbox:")
    assert (relay.scheme, relay.name) == ("mailbox", "127.0.0.1:0")
    assert relay_url.parse("mailbox:2025?connections=2").port == 2025


def test_neither_name_nor_repr_shows_a_password() -> None:
    relay = relay_url.parse("smtp://user:hunter2@relay.example")
    assert relay.name == "relay.example:587"
    assert "hunter2" not in repr(relay) + str(relay)


def test_a_relay_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        relay_url.parse("mailbox:").port = 1  # type: ignore[misc]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]"])
def test_a_login_without_tls_is_allowed_on_loopback(host: str) -> None:
    assert relay_url.parse(f"smtp+plain://user:secret@{host}").username == "user"


@pytest.mark.parametrize(
    "host", ["relay.example", "10.0.0.1", "[2001:db8::1]", "localhost.example", "128.0.0.1"]
)
def test_a_login_without_tls_is_refused_anywhere_else(host: str) -> None:
    with pytest.raises(ValueError, match="unencrypted"):
        relay_url.parse(f"smtp+plain://user:secret@{host}")


def test_an_unknown_option_is_named_and_the_known_ones_listed() -> None:
    with pytest.raises(ValueError, match="no option conections; the known ones are connections, per_connec"):
        relay_url.parse("smtp://relay.example?conections=3")


def test_an_option_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="rate is given twice"):
        relay_url.parse("smtp://relay.example?rate=1/s&rate=2/s")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "relay.example",
        "http://relay.example",
        "smtp:relay.example",
        "smtp://",
        "smtp://:587",
        "smtp://relay.example:0",
        "smtp://relay.example:65536",
        "smtp://relay.example:port",
        "smtp://relay.example/path",
        "smtp://relay.example#part",
        "smtp://re lay.example",
        "smtp://relay.example\r\nx",
        "smtp://-relay.example",
        "smtp://relay..example",
        f"smtp://{'a' * 64}.example",
        "smtp://中.example",
        "smtp://[::1",
        "smtp://[::g]",
        "smtp://2001:db8::1",
        "smtp://user@relay.example",
        "smtp://user:@relay.example",
        "smtp://:secret@relay.example",
        "smtp://user:a%0d%0ab@relay.example",
        "smtp://user:100%@relay.example",
        "smtp://user:%ff@relay.example",
        "smtp://relay.example?&",
        "smtp://relay.example?connections=0",
        "smtp://relay.example?connections=201",
        "smtp://relay.example?connections=many",
        "smtp://relay.example?connections=",
        "smtp://relay.example?rate=100",
        "smtp://relay.example?rate=0/s",
        "smtp://relay.example?rate=1/y",
        "smtp://relay.example?weight=-1",
        "smtp://relay.example?lane=issues",
        "smtp://relay.example?hook=two words",
        "smtp://relay.example?quota=0",
        "smtp://relay.example?quota=100/s",
        "smtp://relay.example?warmup=no",
        "smtp://relay.example?warmup=2026-02-30",
        "smtp://relay.example?warmup=20261026",
        "smtp://relay.example?sender=nobody",
        "smtp://relay.example?sender=a%3Eb@example.com",
        "mailbox://relay.example",
        "mailbox:x",
    ],
)
def test_what_is_not_a_relay_address_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$"):
        relay_url.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "smtp+plain://user:hunter2@relay.example",
        "smtp://user:hunter2?x@relay.example",
        "smtp://user:1?hunter2=4@relay.example",
        "smtp://user:1?hunter2@relay.example",
        "smtp://user:hunter2@relay.example:port",
        "smtp://user:hunter2%0a@relay.example",
        "smtp://user:hunter2%@relay.example",
        "smtp://user:hunter2@relay.example?speed=1",
        "smtp://user:hunter2@relay.example/x",
        "smtp:user:hunter2@relay.example",
        "http://user:hunter2@relay.example",
        "user:hunter2@relay.example",
        "smtp://:hunter2@relay.example",
        "mailbox:user:hunter2@x",
    ],
)
def test_no_complaint_shows_a_password(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as caught:
        relay_url.parse(text)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None
