"""Resend's webhooks: one event, signed with HMAC-SHA256 over id, time and raw body, as Svix does it."""

import hmac
from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from app.feedback.providers import call
from app.feedback.providers.call import Call, Config, Says
from app.feedback.providers.ses import said_of_bounce
from app.feedback.report import Kind, Report

ORIGIN = "resend"
LIFE = timedelta(minutes=5)

EVENTS: dict[str, Says | Kind] = {
    "email.delivered": Kind.DELIVERED,
    "email.complained": Kind.COMPLAINT,
    "email.suppressed": Says.GONE,
}


def parse(headers: Mapping[str, str], body: bytes, config: Config, now: datetime) -> Call:
    """Verify a call and return what it says; raise Forbidden, Stale or Invalid."""
    number, stamp = headers.get("svix-id", ""), headers.get("svix-timestamp", "")
    said = f"{number}.{stamp}.".encode() + body
    given = [each.partition(",") for each in headers.get("svix-signature", "").split()]
    signatures = [call.from_base64(word) for version, _, word in given if version == "v1"]
    call.require(any(_signs(secret, said, one) for secret in config.secrets for one in signatures))
    call.require_fresh(call.seconds(stamp), now, LIFE)
    own = call.named(number)
    call.require(own is not None)
    event = call.read_object(body)
    mails = [each for each in call.items(call.part(event, "data").get("to")) if isinstance(each, str)]
    reports = [_report(event, address, f"{own}:{place}") for place, address in enumerate(mails)]
    return Call(own or "", tuple(reports))


def _signs(secret: str, said: bytes, signature: bytes) -> bool:
    key = b64decode(secret.removeprefix("whsec_"))
    return hmac.compare_digest(hmac.digest(key, said, "sha256"), signature)


def _report(event: dict[str, Any], address: str, event_id: str) -> Report:
    what, data = call.text(event, "type"), call.part(event, "data")
    bounced = call.part(data, "bounce")
    words = call.text(bounced, "message") or call.text(call.part(data, "suppressed"), "message")
    known: dict[str, Any] = {
        "address": call.named(address.rpartition("<")[2]),
        "message_id": call.name(data, "message_id"),
        "relay_id": call.name(data, "email_id"),
        "event_id": event_id,
        "happened_at": call.moment(event.get("created_at")),
        "origin": ORIGIN,
    }
    return call.report(_meant(what, bounced), words, what, **known)


def _meant(what: str, bounced: dict[str, Any]) -> Says | Kind:
    if what != "email.bounced":
        return EVENTS.get(what, Kind.OTHER)
    kind = call.text(bounced, "type")
    # An older event says no type: then it is of those that Resend gives up on, and its words are Resend's own.
    return said_of_bounce(kind, call.text(bounced, "subType")) if kind else Says.GONE
