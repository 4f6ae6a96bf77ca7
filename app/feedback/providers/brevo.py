"""Brevo's webhooks: one object, unsigned, let in by a name and password in the URL or by a bearer token."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.feedback.providers import call
from app.feedback.providers.call import Call, Config, Says
from app.feedback.report import Kind, Report

ORIGIN = "brevo"

# Transactional and marketing webhooks spell the same events differently: here without _ and in small letters.
EVENTS: dict[str, Says | Kind] = {
    "hardbounce": Says.HARD,
    "invalidemail": Says.GONE,
    "invalid": Says.GONE,
    "softbounce": Says.SOFT,
    "blocked": Says.OURS,
    "spam": Kind.COMPLAINT,
    "complaint": Kind.COMPLAINT,
    "unsubscribe": Kind.UNSUBSCRIBE,
    "unsubscribed": Kind.UNSUBSCRIBE,
    "delivered": Kind.DELIVERED,
}
TIMES = ("ts_epoch", "ts_event", "ts")


def parse(
    headers: Mapping[str, str],
    body: bytes,
    config: Config,
    now: datetime,  # noqa: ARG001 (nothing here says when it was signed)
) -> Call:
    """Let a call in and return what it says; raise Unauthorized or Invalid."""
    return call.unsigned(headers, body, config, _report)


def _report(event: dict[str, Any]) -> Report:
    what = call.text(event, "event").replace("_", "").lower()
    mail, address = call.name(event, "message-id"), call.name(event, "email")
    words = call.text(event, "reason")
    when = next((found for each in TIMES if (found := call.moment(event.get(each)))), None)
    own = hashlib.sha256(f"{mail}|{address}|{what}|{when}".encode("utf-8", "replace")).hexdigest()
    known: dict[str, Any] = {
        "address": address,
        "message_id": mail,
        "relay_id": mail,
        "event_id": own,
        "happened_at": when,
        "origin": ORIGIN,
    }
    return call.report(EVENTS.get(what, Kind.OTHER), words, what, **known)
