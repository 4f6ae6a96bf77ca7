"""Readers that come from a file: one entry a system, known by its header row; any other is asked by its names."""

from collections.abc import Iterator
from typing import BinaryIO

from app.subscribers.imports.candidate import Preset

NAMES = {"first name": "first_name", "last name": "last_name"}


def _preset(signature: str, columns: dict[str, str], **other: object) -> Preset:
    return Preset(frozenset(signature.split(",")), columns, **other)  # type: ignore[arg-type]


_MAILCHIMP = {
    "email address": "email", **NAMES, "optin time": "created_at", "confirm time": "confirmed_at",
    "timezone": "timezone", "unsub time": "left", "unsub reason": "why_left", "clean time": "bounced",
}  # fmt: skip
_BEEHIIV_STATUSES = {
    "active": "active", "inactive": "left", "pending": "pending", "validating": "pending", "invalid": "bounced",
}  # fmt: skip
_BEEHIIV = {
    "email": "email", **NAMES, "status": "status", "created at": "created_at", "unsubscribed at": "left",
}  # fmt: skip

# The more particular stand first: Mailchimp's three files differ by one column.
PRESETS: dict[str, Preset] = {
    "mailchimp-cleaned": _preset("email address,leid,euid,clean time", _MAILCHIMP, standing="bounced"),
    "mailchimp-unsubscribed": _preset("email address,leid,euid,unsub time", _MAILCHIMP, standing="left"),
    "mailchimp": _preset("email address,leid,euid", _MAILCHIMP),
    "substack": _preset(
        "email,active subscription,expiry,email disabled,created at",
        {"email": "email", "name": "name", "created at": "created_at", "email disabled": "left"},
    ),
    "substack-paid": _preset(
        "email,expiry,email disabled,stripe connected customer id,type",
        {"email": "email", "name": "name", "email disabled": "left"},
    ),
    "ghost": _preset(
        "email,subscribed to emails,complimentary plan,labels",
        {"email": "email", "name": "name", "subscribed to emails": "subscribed", "created at": "created_at",
         "deleted at": "left"},
    ),
    "listmonk": _preset(
        "uuid,email,name,attributes,status",
        {"email": "email", "name": "name", "status": "status", "created at": "created_at"},
        statuses={"enabled": "active", "disabled": "paused", "blocklisted": "left"},
    ),
    "buttondown": _preset(
        "subscriber type,secondary id,creation date",
        {"email": "email", "email address": "email", "subscriber type": "status", "creation date": "created_at",
         "unsubscription date": "left", "unsubscription reason": "why_left"},
        one_of=(frozenset({"email", "email address"}),),
        statuses={
            **dict.fromkeys(["regular", "premium", "gifted", "trialed", "churning", "churned", "paused"], "active"),
            "past due": "active", "unactivated": "pending", "unpaid": "pending", "unsubscribed": "left",
            "removed": "left", "undeliverable": "bounced", "complained": "complained", "blocked": "editor",
        },
    ),
    "beehiiv": _preset("email,status,tier,created at", _BEEHIIV, statuses=_BEEHIIV_STATUSES),
    "beehiiv-custom": _preset(
        "email,status,created at,subscription tier", _BEEHIIV, statuses=_BEEHIIV_STATUSES, is_sure=False
    ),
    "keila": _preset(
        "email,data,status,external id",
        {"email": "email", **NAMES, "status": "status"},
        statuses={"active": "active", "unsubscribed": "left", "unreachable": "bounced"},
    ),
    "brevo": _preset(
        "email,email blacklisted,added time",
        {"email": "email", "firstname": "first_name", "lastname": "last_name", "email blacklisted": "left",
         "added time": "created_at"},
        is_sure=False,
    ),
    "kit": _preset(
        "first name,created at",
        {"email": "email", "email address": "email", "first name": "first_name", "last name": "last_name",
         "status": "status", "state": "status", "created at": "created_at", "timezone": "timezone"},
        one_of=(frozenset({"email", "email address"}), frozenset({"status", "state"})),
        statuses={"active": "active", "inactive": "pending", "cancelled": "left", "bounced": "bounced",
                  "complained": "complained"},
        is_sure=False,
    ),
}  # fmt: skip


def lines_of(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a file in UTF-8, ended by LF alone, so that a quoted CR stays where it is."""
    for line in file:
        yield line.decode()
