"""Reads one relay address, such as smtp://user:secret@relay.example?rate=100/s, into a checked value."""

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.parse import unquote_to_bytes

DEFAULT_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25, "mailbox": 0}  # 0: a free one
MOST_CONNECTIONS = 200

_LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\.?")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(:(?P<port>[0-9]{1,5}))?")
_RATE = re.compile(r"(?P<mails>[0-9]+(\.[0-9]+)?)/(?P<unit>[smh])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ADDRESS = re.compile(r"[^\s<>@\x00-\x20\x7f]+@[^\s<>@\x00-\x20\x7f]+")


@dataclass(frozen=True, slots=True)
class RelayUrl:
    """Where a relay is and how hard it may be used; `rate` is in mails per second, None is no limit of ours.

    `lane` keeps the relay to one kind of mail ("letters"), `sender` replaces every envelope sender,
    `hook` names the provider whose webhooks speak for this relay, `quota` is how many mails it takes in a day of UTC,
    `warmup` since when it warms up (True: since its first use with this option). `password` never shows in the repr.
    """

    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    connections: int = 20
    per_connection: int = 500
    rate: float | None = None
    weight: int = 1
    lane: str | None = None
    sender: str | None = None
    hook: str | None = None
    quota: int | None = None
    warmup: date | bool = False

    @property
    def name(self) -> str:
        """host:port, without secrets; fit for logs, pages and the `relay` column."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(text: str) -> RelayUrl:
    """One relay address as a RelayUrl. Raises ValueError with one sentence that shows no part of a password.

    smtp:// is STARTTLS that must succeed (port 587, RFC 6409), smtps:// is TLS from the first byte (465,
    RFC 8314 §3.3), smtp+plain:// has no TLS (25), `mailbox:` is the embedded mailbox on a free port of
    loopback (`mailbox:PORT` on that one). User name and password are percent-encoded, an IPv6 host stands
    in brackets.
    """
    scheme, colon, rest = text.strip().partition(":")
    scheme = scheme.lower()
    if not colon or scheme not in DEFAULT_PORTS:
        raise ValueError("A relay address begins with smtp://, smtps://, smtp+plain:// or is mailbox:.")
    place, _, query = rest.partition("?")
    if scheme == "mailbox":
        return RelayUrl(scheme, "127.0.0.1", _mailbox_port(place), **_options(query))
    if not place.startswith("//"):
        raise ValueError(f"A relay address has two slashes after {scheme}:, as in {scheme}://relay.example.")
    userinfo, at, authority = place.removeprefix("//").removesuffix("/").rpartition("@")
    host, port = _host_and_port(authority, DEFAULT_PORTS[scheme])
    username, password = _credentials(userinfo) if at else (None, None)
    if username is not None and scheme == "smtp+plain" and not is_loopback(host):
        raise ValueError(
            f"The relay {host} would be sent its password unencrypted; use smtp:// or smtps:// instead of smtp+plain://."
        )
    return RelayUrl(scheme, host, port, username, password, **_options(query))


def is_loopback(host: str) -> bool:
    """Whether a host can only be this machine: localhost, 127.0.0.0/8 or ::1; no name is looked up."""
    if host.rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _mailbox_port(place: str) -> int:
    if not place:
        return DEFAULT_PORTS["mailbox"]
    if not re.fullmatch(r"[0-9]{1,5}", place):
        raise ValueError("The embedded mailbox is mailbox: or mailbox:PORT, and only options may follow.")
    return _checked_port(place)


def _checked_port(digits: str) -> int:
    if not 0 < int(digits) < 65536:
        raise ValueError("A relay's port is a number from 1 to 65535.")
    return int(digits)


def _host_and_port(authority: str, default: int) -> tuple[str, int]:
    # No part is quoted: a password with a bare / or ? in it ends up here in pieces.
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise ValueError(
            "After a relay's host only :port and ?options may follow; in a password write / as %2F, ? as %3F"
            " and # as %23, and put an IPv6 host in brackets."
        )
    host = found["host"].lower()
    if host.startswith("["):
        host = _ipv6(host[1:-1])
    elif not _HOST.fullmatch(host):
        raise ValueError("A relay's host is a name in ASCII, an IPv4 address or an IPv6 address in brackets.")
    return host, _checked_port(found["port"]) if found["port"] else default


def _ipv6(text: str) -> str:
    try:
        return ipaddress.IPv6Address(text).compressed
    except ValueError:
        pass
    raise ValueError("What stands in brackets as a relay's host is not an IPv6 address.")


def _credentials(userinfo: str) -> tuple[str, str]:
    name, colon, secret = userinfo.partition(":")
    username, password = _decoded(name), _decoded(secret)
    if not colon or not username or not password:
        raise ValueError("A relay that wants a login needs a user name and a password: //user:password@host.")
    return username, password


def _decoded(text: str) -> str:
    """Percent-decoded UTF-8; + stays +. Raises ValueError without the text."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(
            "A relay address holds a % that begins no code like %40; write the sign itself as %25."
        )
    decoded = unquote_to_bytes(text).decode("utf-8", "replace")
    if "\ufffd" in decoded or any(ord(character) < 32 or ord(character) == 127 for character in decoded):
        raise ValueError("A relay address holds a control character or percent codes that are not UTF-8.")
    return decoded


def _options(query: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for pair in query.split("&") if query else ():
        name, _, raw = pair.partition("=")
        if name not in _OPTIONS:
            raise ValueError(f"{_unknown(name, raw)}; the known ones are {', '.join(_OPTIONS)}.")
        if name in options:
            raise ValueError(f"The relay option {name} is given twice.")
        options[name] = _OPTIONS[name](name, _decoded(raw))
    return options


def _unknown(name: str, raw: str) -> str:
    # What looks like an option may be the rest of a password with a bare ? in it.
    if _NAME.fullmatch(name) and "@" not in raw:
        return f"A relay has no option {name}"
    return "A relay has no such option"


def _count(name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < 1:
        raise ValueError(f"The relay option {name} is a whole number from 1.")
    return int(value)


def _connections(name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", value) or not 1 <= int(value) <= MOST_CONNECTIONS:
        raise ValueError(f"The relay option {name} is a whole number from 1 to {MOST_CONNECTIONS}.")
    return int(value)


def _per_second(name: str, value: str) -> float:
    found = _RATE.fullmatch(value)
    if found is None or float(found["mails"]) <= 0:
        raise ValueError(f"The relay option {name} is written as 100/s, 6000/m or 3600/h.")
    return float(found["mails"]) / _SECONDS[found["unit"]]


def _first_day(name: str, value: str) -> date | bool:
    if value == "yes":
        return True
    if _DAY.fullmatch(value):
        with suppress(ValueError):
            return date.fromisoformat(value)
    raise ValueError(f"The relay option {name} is yes, or the relay's first day as in 2026-10-26.")


def _word(name: str, value: str) -> str | None:
    if not value:
        return None
    if not _NAME.fullmatch(value):
        raise ValueError(f"The relay option {name} is one word of small letters, digits, - and _.")
    return value


def _lane(name: str, value: str) -> str | None:
    if value not in ("", "letters"):
        raise ValueError(f"The relay option {name} is letters, or is left out.")
    return value or None


def _address(name: str, value: str) -> str | None:
    if not value:
        return None
    if not _ADDRESS.fullmatch(value) or not value.isascii():
        raise ValueError(f"The relay option {name} is one plain address, such as news@example.com.")
    return value


_OPTIONS: dict[str, Callable[[str, str], int | float | str | date | None]] = {
    "connections": _connections,
    "per_connection": _count,
    "rate": _per_second,
    "weight": _count,
    "lane": _lane,
    "sender": _address,
    "hook": _word,
    "quota": _count,
    "warmup": _first_day,
}
