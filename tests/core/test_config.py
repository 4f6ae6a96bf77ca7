"""Every setting is read from three places, checked at start, and what is wrong is said at once and without secrets."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.core import config
from app.core.config import PREFIX, SECRETS, Settings
from app.core.errors import Misconfigured

KEY, OTHER = "k" * 40, "s" * 40
PUBLIC: dict[str, object] = {
    "base_url": "https://news.example.com",
    "secret_key": KEY,
    "suppression_key": OTHER,
    "relays": "smtp://relay.example.net",
    "postal_address": "1 Street, Town",
    "contact": "editors@example.com",
}
# One value that is not the default for each setting, as the environment gives it and as it is read.
GIVEN: dict[str, tuple[str, object]] = {
    "name": ("The Daily Build", "The Daily Build"),
    "database_url": ("postgresql://u@localhost/d", "postgresql://u@localhost/d"),
    "base_url": ("https://news.example.com/", "https://news.example.com"),
    "secret_key": (f"{KEY} {OTHER}", (KEY, OTHER)),
    "suppression_key": (OTHER, OTHER),
    "relays": ("smtp://a.example smtps://b.example", ("smtp://a.example", "smtps://b.example")),
    "mail_domain": ("mail.example.com", "mail.example.com"),
    "bounce_domain": ("bounce.example.com", "bounce.example.com"),
    "postal_address": ("1 Street", "1 Street"),
    "contact": ("editors@example.com", "editors@example.com"),
    "dkim_key": ("dkim.pem", Path("dkim.pem")),
    "dkim_selector": ("s1", "s1"),
    "dkim_domain": ("example.com", "example.com"),
    "templates": ("overlay", Path("overlay")),
    "trusted_proxies": ("10.0.0.0/8 ::1", ("10.0.0.0/8", "::1")),
    "letters_a_day": ("2", 2),
    "letters_a_month": ("0", 0),
    "signups_a_network": ("20", 20),
    "letters_a_minute": ("600", 600),
    "form_seconds": ("0", 0),
    "hook_ses": ("arn:aws:sns:eu-west-1:000000000001:news", ("arn:aws:sns:eu-west-1:000000000001:news",)),
    "hook_sendgrid": ("MFkwEwYHKoZI", ("MFkwEwYHKoZI",)),
    "hook_mailgun": (
        "an-older-signing-key a-newer-signing-key",
        ("an-older-signing-key", "a-newer-signing-key"),
    ),
    "hook_postmark": ("hooks:a-password", ("hooks:a-password",)),
    "hook_brevo": ("a-bearer-token", ("a-bearer-token",)),
    "hook_resend": ("whsec_c2VjcmV0c2VjcmV0c2VjcmV0", ("whsec_c2VjcmV0c2VjcmV0c2VjcmV0",)),
    "inbox": ("imaps://b:p%40ss@imap.example.com", "imaps://b:p%40ss@imap.example.com"),
}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An all but empty folder and an environment without settings of ours."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "overlay").mkdir()


def faults(**given: Any) -> list[str]:
    """Return the lines of the one screen that these settings bring up."""
    with pytest.raises(Misconfigured) as refused:
        config.load(**given)
    first, *lines = refused.value.detail.splitlines()
    assert first == "These settings need a change:"
    return [line.strip() for line in lines]


def test_every_setting_has_its_example_here() -> None:
    extra = set(Settings.model_fields) - set(GIVEN)
    assert not extra, f"{extra} came in; give each a value above, and a rule below where it has one"


def test_everything_has_a_default_that_runs_on_this_machine() -> None:
    found = config.load()
    assert found.name == "Broadsheet"
    assert found.base_url == "http://127.0.0.1:8000"
    assert found.relays == ("mailbox:",)
    assert found.on_loopback
    assert found.domain == "broadsheet.example"


@pytest.mark.parametrize("name", GIVEN)
def test_each_setting_comes_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other, value in PUBLIC.items():
        monkeypatch.setenv(PREFIX + other.upper(), str(value))
    written, read = GIVEN[name]
    monkeypatch.setenv(PREFIX + "DKIM_SELECTOR", "any")  # a key asks for one
    monkeypatch.setenv(PREFIX + name.upper(), written)
    assert getattr(config.load(), name) == read


def test_settings_come_from_a_dotenv_and_a_toml_file_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text(f"{PREFIX}NAME=Dotenv\n{PREFIX}CONTACT=dotenv@example.com\n")
    (tmp_path / "broadsheet.toml").write_text(
        'name = "Toml"\ncontact = "toml@example.com"\npostal_address = "Toml Street"\nrelays = ["mailbox:"]\n'
    )
    monkeypatch.setenv(f"{PREFIX}NAME", "Environment")
    found = config.load()
    assert (found.name, found.contact) == ("Environment", "dotenv@example.com")
    assert found.postal_address == "Toml Street"


def test_keys_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    first, second = config.load(), config.load()
    assert first.secret_key == second.secret_key
    assert first.suppression_key == second.suppression_key != first.secret_key[0]
    for name in ("secret_key", "suppression_key"):
        file = tmp_path / "var" / name
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(file.read_text().strip()) == 64


def test_keys_that_are_given_are_not_made(tmp_path: Path) -> None:
    config.load(secret_key=KEY, suppression_key=OTHER)
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_may_come_from_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for other, value in PUBLIC.items():
        if other != name:
            monkeypatch.setenv(PREFIX + other.upper(), str(value))
    written, read = GIVEN[name]
    (tmp_path / "secret").write_text(f"{written}\n")
    monkeypatch.setenv(f"{PREFIX}{name.upper()}_FILE", str(tmp_path / "secret"))
    assert getattr(config.load(), name) == read


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_secrets_file_that_cannot_be_read_is_named(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "absent"
    if content:
        file.write_bytes(content)
    monkeypatch.setenv(f"{PREFIX}SECRET_KEY_FILE", str(file))
    with pytest.raises(Misconfigured, match="absent"):
        config.load()


@pytest.mark.parametrize("field", ["secret_key", "suppression_key", "postal_address", "contact"])
def test_off_this_machine_nothing_that_readers_rely_on_may_be_missing(field: str) -> None:
    assert [line.split()[0] for line in faults(**(PUBLIC | {field: ""}))] == [PREFIX + field.upper()]


def test_off_this_machine_links_must_be_https() -> None:
    assert "https" in faults(**(PUBLIC | {"base_url": "http://news.example.com"}))[0]
    for loopback in ("http://localhost:8000", "http://127.0.0.2", "http://[::1]:8000"):
        assert config.load(**(PUBLIC | {"base_url": loopback})).on_loopback


def test_a_relay_on_this_machine_asks_for_no_postal_address() -> None:
    config.load(relays="smtp+plain://127.0.0.1:2525 mailbox:")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 81),
        ("database_url", "mysql://u:hunter2@db/d"),
        ("database_url", "postgresql://u:hunter2@db:port/d"),
        ("base_url", "news.example.com"),
        ("base_url", "ftp://news.example.com"),
        ("base_url", "https://"),
        ("base_url", "https://news.example.com/?a"),
        ("base_url", "https://news.example.com:port"),
        ("base_url", "https://[::1"),
        ("base_url", "https://user:hunter2@news.example.com"),
        ("relays", ""),
        ("relays", "https://relay.example"),
        ("relays", "smtp://user@relay.example"),
        ("relays", "smtp+plain://user:hunter2@relay.example"),
        ("trusted_proxies", "10.0.0.0/99"),
        ("trusted_proxies", "everybody"),
        ("mail_domain", "two words"),
        ("mail_domain", "nodot"),
        ("bounce_domain", "a b.example"),
        ("contact", "https://example.com/contact"),
        ("contact", "not an address"),
        ("contact", "a@example.com\nBcc: b@example.com"),
        ("templates", "nowhere"),
        ("secret_key", "short"),
        ("suppression_key", "hunter2"),
    ],
)
def test_a_value_that_cannot_be_right_is_named_and_never_shown(field: str, value: str) -> None:
    lines = faults(**(PUBLIC | {field: value}))
    assert len(lines) == 1
    assert PREFIX + field.upper() in lines[0] or field.upper() in lines[0]
    assert "hunter2" not in lines[0]
    assert "Traceback" not in lines[0]


def test_all_faults_are_on_one_screen() -> None:
    lines = faults(
        base_url="http://news.example.com",
        relays="smtp://relay.example.net",
        name="",
        trusted_proxies="everybody",
        secret_key="short",
        database_url="oracle://x",
    )
    named = (
        "NAME",
        "TRUSTED_PROXIES",
        "DATABASE_URL",
        "BASE_URL",
        "SUPPRESSION_KEY",
        "POSTAL_ADDRESS",
        "CONTACT",
    )
    for name in named:
        assert any(line.startswith(PREFIX + name) for line in lines), name
    assert any("SECRET_KEY and" in line for line in lines)
    assert len(lines) <= 20
    assert len(lines) == len(set(lines))


def test_an_empty_bounce_domain_is_none() -> None:
    assert config.load(bounce_domain="").bounce_domain is None


@pytest.mark.parametrize(
    ("given", "domain"),
    [
        ({"mail_domain": "mail.example.org"}, "mail.example.org"),
        ({}, "news.example.com"),
        ({"base_url": "https://news.example.com:8443/letters"}, "news.example.com"),
    ],
)
def test_the_mail_domain_is_the_host_of_the_pages_unless_it_is_named(
    given: dict[str, object], domain: str
) -> None:
    assert config.load(**(PUBLIC | given)).domain == domain


def test_pages_on_a_bare_host_need_a_mail_domain_named() -> None:
    for host in ("https://intranet", "https://192.0.2.1", "https://[2001:db8::1]"):
        assert faults(**(PUBLIC | {"base_url": host}))[0].startswith(f"{PREFIX}MAIL_DOMAIN")
        config.load(**(PUBLIC | {"base_url": host, "mail_domain": "example.com"}))


def test_settings_are_frozen_and_show_no_secret() -> None:
    secret = {"database_url": "postgresql://u:hunter2@db/d", "relays": "smtps://u:hunter2@relay.example"}
    found = config.load(**(PUBLIC | secret))
    with pytest.raises(ValidationError):
        found.name = "Other"
    for shown in (repr(found), str(found)):
        assert "hunter2" not in shown
        assert KEY not in shown
        assert OTHER not in shown


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("hook_ses", "arn:aws:sqs:eu-west-1:000000000001:news", "ARN of your SNS topic"),
        ("hook_sendgrid", "not base64", "verification key"),
        ("hook_mailgun", "short", "signing key"),
        ("hook_postmark", "a-token-without-a-name", "name:password"),
        ("hook_brevo", "short", "a token"),
        ("hook_resend", "whsec_c2hvcnQ=", "signing secret"),
        ("inbox", "imap://b:p@imap.example.com", "by TLS only"),
        ("inbox", "imaps://imap.example.com", "imaps://user:password@"),
        ("inbox", "imaps://b:p@imap.example.com:x", "imaps://user:password@"),
    ],
)
def test_a_door_for_returned_mail_is_checked_at_the_start(name: str, value: str, wanted: str) -> None:
    (line,) = faults(**{name: value})
    assert line.startswith(PREFIX + name.upper())
    assert wanted in line
    assert value not in line


def test_a_provider_without_a_secret_has_its_door_closed() -> None:
    found = config.load(hook_mailgun="a-long-signing-key")
    assert found.hook("mailgun") == ("a-long-signing-key",)
    assert found.hook("ses") == found.hook("nobody") == ()
