"""Settings: read from the environment, `.env` or `broadsheet.toml`, checked at start, frozen from then on."""

import ipaddress
import os
import re
import secrets
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from email_validator import EmailNotValidError, validate_email
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from app.core import inward
from app.core.errors import Misconfigured
from app.core.inward import Inward, Words
from app.core.relay_url import RelayUrl
from app.core.relay_url import parse as parse_relay

PREFIX = "BROADSHEET_"
DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]", re.IGNORECASE)
SECRETS = ("secret_key", "suppression_key", "database_url", "relays", *inward.SECRETS)


def _domain(value: str) -> str:
    if value and not DOMAIN.fullmatch(value):
        raise ValueError("must be a domain such as news.example.com")
    return value.lower()


Domain = Annotated[str, AfterValidator(_domain)]


class SecretFiles(PydanticBaseSettingsSource):
    """`BROADSHEET_X_FILE` names a file that holds the secret X."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        """Return the content of the file that the environment names for this field."""
        path = os.environ.get(f"{PREFIX}{field_name.upper()}_FILE")
        try:
            found = Path(path).read_text(encoding="utf-8").strip() if path else None
        except (OSError, UnicodeDecodeError):
            raise Misconfigured(f"A secret's file cannot be read: {path}") from None
        return found, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return every secret that comes from a file."""
        found = {name: self.get_field_value(None, name)[0] for name in SECRETS}
        return {name: value for name, value in found.items() if value is not None}


class Settings(Inward):
    """What an operator decides; each field is the setting of the same name with the prefix."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", toml_file="broadsheet.toml", frozen=True, extra="ignore"
    )

    name: str = Field("Broadsheet", min_length=1, max_length=80)
    database_url: str = Field("sqlite:///var/broadsheet.db", repr=False)
    base_url: str = "http://127.0.0.1:8000"
    secret_key: Words = Field((), repr=False)
    suppression_key: str = Field("", repr=False)
    relays: Words = Field(("mailbox:",), repr=False)
    mail_domain: Domain = ""
    bounce_domain: Domain | None = None
    postal_address: str = ""
    contact: str = ""
    dkim_key: Path | None = None
    dkim_selector: str = ""
    dkim_domain: str = ""
    templates: Path | None = None
    trusted_proxies: Words = ()
    letters_a_day: int = Field(1, ge=0, le=1_000)
    letters_a_month: int = Field(3, ge=0, le=10_000)
    signups_a_network: int = Field(5, ge=0, le=1_000_000)
    letters_a_minute: int = Field(60, ge=0, le=1_000_000)
    form_seconds: int = Field(2, ge=0, le=60)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, secrets from files, `.env`, and the TOML file."""
        return (
            init_settings,
            env_settings,
            SecretFiles(settings_cls),
            dotenv_settings,
            TomlConfigSettingsSource(settings_cls),
        )

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if not url.startswith(("sqlite:///", "postgresql://")):
            raise ValueError("must start with sqlite:/// or postgresql://")
        try:
            make_url(url)
        except (ValueError, ArgumentError):  # whose words quote the URL, password and all
            raise ValueError(
                "cannot be read; in a password write / as %2F, @ as %40, : as %3A and # as %23"
            ) from None
        return url

    @field_validator("base_url")
    @classmethod
    def _sound_base(cls, url: str) -> str:
        if not _is_web_address(url):
            raise ValueError("must be a web address such as https://news.example.com")
        return url.rstrip("/")

    @field_validator("bounce_domain")
    @classmethod
    def _perhaps_none(cls, domain: str | None) -> str | None:
        return domain or None

    @field_validator("contact")
    @classmethod
    def _sound_contact(cls, contact: str) -> str:
        try:
            if contact:
                validate_email(contact, check_deliverability=False, allow_smtputf8=False)
        except EmailNotValidError:
            raise ValueError("must be one address, such as editors@example.com") from None
        return contact

    @field_validator("templates")
    @classmethod
    def _there(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_dir():
            raise ValueError("must be a folder that is there")
        return folder

    @field_validator("relays")
    @classmethod
    def _sound_relays(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        if not urls:
            raise ValueError("must name at least one relay")
        for url in urls:
            parse_relay(url)
        return urls

    @field_validator("trusted_proxies")
    @classmethod
    def _sound_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            ipaddress.ip_network(network, strict=False)
        return networks

    @model_validator(mode="after")
    def _fit_for_the_world(self) -> "Settings":
        faults = []
        if not self.on_loopback:
            if not self.base_url.startswith("https://"):
                faults.append("BASE_URL must be https off this machine, since it carries readers' links")
            if not self.secret_key:
                faults.append("SECRET_KEY is needed: openssl rand -hex 32")
            if not self.suppression_key:
                faults.append("SUPPRESSION_KEY is needed, and never changes: openssl rand -hex 32")
            if not self.mail_domain and not DOMAIN.fullmatch(self.host):
                faults.append("MAIL_DOMAIN is needed, since the host of BASE_URL is no domain")
        if any(len(key) < 32 for key in (*self.secret_key, self.suppression_key) if key):
            faults.append("SECRET_KEY and SUPPRESSION_KEY need 32 characters or more: openssl rand -hex 32")
        if any(not is_loopback(relay.host) for relay in self.relay_urls if relay.scheme != "mailbox"):
            wanted = {"POSTAL_ADDRESS": self.postal_address, "CONTACT": self.contact}
            faults += [
                f"{name} is needed before mail leaves this machine" for name, v in wanted.items() if not v
            ]
        if self.dkim_key and not self.dkim_selector:
            faults.append("DKIM_SELECTOR is needed with DKIM_KEY: the name of the key in the DNS")
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @property
    def host(self) -> str:
        """The host of BASE_URL."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the pages."""
        return is_loopback(self.host)

    @cached_property
    def domain(self) -> str:
        """Domain of Message-ID, List-Id and senders that no edition names."""
        return self.mail_domain or ("broadsheet.example" if self.on_loopback else self.host)

    @cached_property
    def relay_urls(self) -> tuple[RelayUrl, ...]:
        """The relays, parsed."""
        return tuple(parse_relay(url) for url in self.relays)

    @property
    def data_dir(self) -> Path:
        """Where a first run keeps what it makes: beside the SQLite file, else `var/`."""
        url = make_url(self.database_url)
        is_file = url.get_backend_name() == "sqlite" and url.database
        return Path(url.database).parent if is_file and url.database else Path("var")

    @property
    def database_name(self) -> str:
        """What keeps the files of two databases apart in one `data_dir`."""
        return Path(make_url(self.database_url).database or "").name


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        return False
    return named and parts.username is None and not parts.query and not parts.fragment


def is_loopback(host: str) -> bool:
    """Tell whether a host names this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load(**given: object) -> Settings:
    """Read the settings, make missing keys on loopback, or raise Misconfigured naming every fault."""
    try:
        settings = Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [*_lines(error), *_beyond(error, given)]
        raise Misconfigured("\n".join(["These settings need a change:", *lines])) from None
    update: dict[str, object] = {}
    if not settings.secret_key:
        update["secret_key"] = (_kept(settings.data_dir / "secret_key"),)
    if not settings.suppression_key:
        update["suppression_key"] = _kept(settings.data_dir / "suppression_key")
    return settings.model_copy(update=update)


def _kept(path: Path) -> str:
    """Return the key in this file, made on the first call and readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass
    return path.read_text(encoding="ascii").strip()


def _beyond(error: ValidationError, given: dict[str, object]) -> list[str]:
    """Return what else is wrong: rules between settings are judged only once each setting is sound by itself."""
    faulty = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
    defaults = {name: Settings.model_fields[name].get_default() for name in faulty}
    named = tuple(f"  {PREFIX}{name.upper()} " for name in faulty)
    try:
        Settings(**(given | defaults))  # type: ignore[arg-type]
    except ValidationError as more:
        return [line for line in _lines(more) if named and not line.startswith(named)]
    return []


def _lines(error: ValidationError) -> list[str]:
    lines = []
    for fault in error.errors(include_url=False, include_input=False):
        name = f"{PREFIX}{str(fault['loc'][0]).upper()} " if fault["loc"] else PREFIX
        lines += [f"  {name}{line}" for line in fault["msg"].removeprefix("Value error, ").splitlines()]
    return lines
