"""SendGrid's Event Webhook: a list of events, signed with ECDSA over the time and the raw body."""

import hashlib
from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from app.core.errors import Invalid
from app.feedback.providers import call
from app.feedback.providers.call import Call, Config, Says
from app.feedback.report import Kind, Report

SIGNATURE = "x-twilio-email-event-webhook-signature"
TIMESTAMP = "x-twilio-email-event-webhook-timestamp"
ORIGIN = "sendgrid"

KINDS: dict[str, Says | Kind] = {
    "delivered": Kind.DELIVERED,
    "spamreport": Kind.COMPLAINT,
    "unsubscribe": Kind.UNSUBSCRIBE,
    "group_unsubscribe": Kind.UNSUBSCRIBE,
}
# https://www.twilio.com/docs/sendgrid/ui/analytics-and-reporting/bounce-and-block-classifications
CLASSES: dict[str, Says | Kind] = {
    "Invalid Address": Says.HARD,
    "Mailbox Unavailable": Says.SOFT,
    "Technical": Says.SOFT,
    "Unclassified": Says.SOFT,
    "Reputation": Says.OURS,
    "Content": Says.OURS,
    "Frequency or Volume Too High": Says.OURS,
}
DROPPED: dict[str, Says | Kind] = {
    "Bounced Address": Says.GONE,
    "Invalid": Says.GONE,
    "Spam Reporting Address": Kind.COMPLAINT,
    "Unsubscribed Address": Kind.UNSUBSCRIBE,
}


def parse(headers: Mapping[str, str], body: bytes, config: Config, now: datetime) -> Call:
    """Verify a call and return what it says; raise Forbidden, Stale or Invalid.

    Each event has an id of its own, so one that comes twice, in one call or in two, is known again.
    """
    signed_at = headers.get(TIMESTAMP, "")
    call.require(any(is_signed(headers.get(SIGNATURE, ""), signed_at, body, key) for key in config.secrets))
    call.require_fresh(call.seconds(signed_at), now)
    events = call.read(body)
    if not isinstance(events, list):
        raise Invalid("The body is not a list of events.")
    reports = [_report(event) for event in events if isinstance(event, dict)]
    return Call(hashlib.sha256(body).hexdigest(), tuple(reports))


def is_signed(signature: str, timestamp: str, body: bytes, key: str) -> bool:
    """Tell whether a key (DER in base64) signed the time with the body as it came, line end and all."""
    try:
        public = load_der_public_key(b64decode(key))
    except (ValueError, UnsupportedAlgorithm):
        return False
    if not signature or not isinstance(public, ec.EllipticCurvePublicKey):
        return False
    try:
        public.verify(call.from_base64(signature), timestamp.encode() + body, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _report(event: dict[str, Any]) -> Report:
    what, words = call.text(event, "event"), call.text(event, "reason", "response")
    known: dict[str, Any] = {
        "address": call.name(event, "email"),
        "message_id": call.name(event, "smtp-id"),
        "relay_id": call.named(call.text(event, "sg_message_id").partition(".")[0]),
        "event_id": call.name(event, "sg_event_id"),
        "happened_at": call.moment(event.get("timestamp")),
        "origin": ORIGIN,
    }
    return call.report(_meant(what, event), words, what, status=call.text(event, "status"), **known)


def _meant(what: str, event: dict[str, Any]) -> Says | Kind:
    if what == "dropped":
        return DROPPED.get(call.text(event, "reason"), Kind.OTHER)
    if what != "bounce":
        return KINDS.get(what, Kind.OTHER)
    by_type = Says.OURS if call.text(event, "type") == "blocked" else Says.HARD
    return CLASSES.get(call.text(event, "bounce_classification"), by_type)
