"""Postmark's webhooks: one object, unsigned, let in by the name and password in the webhook's URL."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.feedback.providers import call
from app.feedback.providers.call import Call, Config, Says
from app.feedback.report import Kind, Report

ORIGIN = "postmark"

RECORDS: dict[str, Says | Kind] = {"Delivery": Kind.DELIVERED, "SpamComplaint": Kind.COMPLAINT}
# https://postmarkapp.com/developer/api/bounce-api#bounce-types
TYPES: dict[str, Says | Kind] = {
    "HardBounce": Says.HARD,
    "BadEmailAddress": Says.GONE,
    "Transient": Says.SOFT,
    "SoftBounce": Says.SOFT,
    "DnsError": Says.SOFT,
    "Unknown": Says.SOFT,
    "SpamNotification": Says.OURS,
    "VirusNotification": Says.OURS,
    "Blocked": Says.OURS,
    "SMTPApiError": Says.OURS,
    "DMARCPolicy": Says.OURS,
    "AutoResponder": Kind.AUTO_REPLY,
    "ChallengeVerification": Kind.AUTO_REPLY,
    "Unsubscribe": Kind.UNSUBSCRIBE,
    "SpamComplaint": Kind.COMPLAINT,
}
SUPPRESSED: dict[str, Says | Kind] = {"HardBounce": Says.GONE, "SpamComplaint": Kind.COMPLAINT}


def parse(
    headers: Mapping[str, str],
    body: bytes,
    config: Config,
    now: datetime,  # noqa: ARG001 (nothing here says when it was signed)
) -> Call:
    """Let a call in and return what it says; raise Unauthorized or Invalid."""
    return call.unsigned(headers, body, config, _report)


def _report(event: dict[str, Any]) -> Report:
    what, mail = call.text(event, "RecordType"), call.name(event, "MessageID")
    words = call.text(event, "Details", "Description", "SuppressionReason")
    own = call.text(event, "ID", "ChangedAt", "DeliveredAt")
    known: dict[str, Any] = {
        "address": call.name(event, "Email", "Recipient"),
        "relay_id": mail,
        "event_id": call.named(f"{what}:{own}:{mail or ''}"),
        "happened_at": call.moment(call.text(event, "BouncedAt", "ChangedAt", "DeliveredAt")),
        "origin": ORIGIN,
    }
    return call.report(_meant(what, event), words, what, **known)


def _meant(what: str, event: dict[str, Any]) -> Says | Kind:
    if what == "Bounce":
        return TYPES.get(call.text(event, "Type"), Kind.OTHER)
    if what != "SubscriptionChange":
        return RECORDS.get(what, Kind.OTHER)
    if event.get("SuppressSending") is not True:
        return Kind.OTHER
    by_the_reader = call.text(event, "Origin") == "Recipient"
    return SUPPRESSED.get(
        call.text(event, "SuppressionReason"), Kind.UNSUBSCRIBE if by_the_reader else Kind.OTHER
    )
