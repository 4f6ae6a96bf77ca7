"""Mailgun's webhooks: one event, whose time and token are signed with HMAC-SHA256, and whose body is not."""

import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.feedback.providers import call
from app.feedback.providers.call import Call, Config, Says
from app.feedback.report import Kind, Report

ORIGIN = "mailgun"
SIGNATURES = ("signature", "parent-signature")  # the second is the main account's, for a subaccount's event

KINDS: dict[str, Says | Kind] = {
    "delivered": Kind.DELIVERED,
    "complained": Kind.COMPLAINT,
    "unsubscribed": Kind.UNSUBSCRIBE,
}
PERMANENT: dict[str, Says | Kind] = {
    "bounce": Says.HARD,
    "suppress-bounce": Says.GONE,
    "suppress-complaint": Kind.COMPLAINT,
    "suppress-unsubscribe": Kind.UNSUBSCRIBE,
    "espblock": Says.OURS,
}


def parse(
    headers: Mapping[str, str],  # noqa: ARG001 (nothing of Mailgun's is there)
    body: bytes,
    config: Config,
    now: datetime,
) -> Call:
    """Verify a call and return what it says; raise Forbidden, Stale or Invalid.

    The token is the call's id: since the body is not signed, whoever sees one call could send another body with it.
    """
    told = call.read_object(body)
    found = [call.part(told, name) for name in SIGNATURES]
    signed = next((one for one in found if _is_signed(one, config.secrets)), None)
    call.require(signed is not None)
    stamp = call.text(signed or {}, "timestamp")
    call.require_fresh(call.seconds(stamp), now)
    token = call.named(call.text(signed or {}, "token"))
    call.require(token is not None)
    return Call(token or "", (_report(call.part(told, "event-data"), token),))


def _is_signed(signed: Mapping[str, Any], secrets: tuple[str, ...]) -> bool:
    said = (call.text(signed, "timestamp") + call.text(signed, "token")).encode("utf-8", "replace")
    given = call.text(signed, "signature").encode("utf-8", "replace")
    ours = [hmac.new(secret.encode(), said, "sha256").hexdigest().encode() for secret in secrets]
    return any(hmac.compare_digest(given, each) for each in ours)


def _report(event: dict[str, Any], token: str | None) -> Report:
    what, status = call.text(event, "event"), call.part(event, "delivery-status")
    words = " ".join(
        filter(None, (call.text(status, "code"), call.text(status, "message", "description")))
    ) or call.text(event, "reason")
    known: dict[str, Any] = {
        "address": call.name(event, "recipient"),
        "message_id": call.name(call.part(event, "message", "headers"), "message-id"),
        "event_id": call.name(event, "id") or token,
        "happened_at": call.moment(event.get("timestamp")),
        "origin": ORIGIN,
    }
    return call.report(_meant(what, event), words, what, **known)


def _meant(what: str, event: dict[str, Any]) -> Says | Kind:
    if what != "failed":
        return KINDS.get(what, Kind.OTHER)
    if call.text(event, "severity") == "permanent":
        return PERMANENT.get(call.text(event, "reason"), Says.SOFT)
    return Says.SOFT
