"""Amazon SES by way of SNS: an envelope signed with RSA, around a notification as text."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1, SHA256

from app.core.errors import Forbidden
from app.feedback.providers import call
from app.feedback.providers.call import Call, Config, Says
from app.feedback.report import Kind, Report

ORIGIN = "ses"

# docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html: what is signed, and in this order.
NOTE = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
SIGNED = {
    "Notification": NOTE,
    "SubscriptionConfirmation": CONFIRMATION,
    "UnsubscribeConfirmation": CONFIRMATION,
}
HASHES = {"1": SHA1, "2": SHA256}
HOST = re.compile(r"sns\.[a-z0-9-]{1,40}\.amazonaws\.com(?:\.cn)?")
CERTIFICATE = re.compile(r"/SimpleNotificationService-[A-Za-z0-9]{1,64}\.pem")

# docs.aws.amazon.com/ses/latest/dg/notification-contents.html#bounce-types
BOUNCES: dict[tuple[str, str], Says | Kind] = {
    ("Permanent", "Suppressed"): Says.GONE,
    ("Permanent", "OnAccountSuppressionList"): Says.GONE,
    ("Permanent", "UnsubscribedRecipient"): Kind.UNSUBSCRIBE,
    ("Permanent", "NoEmail"): Says.GONE,
    ("Permanent", "General"): Says.HARD,
    ("Transient", "MessageTooLarge"): Says.OURS,
    ("Transient", "ContentRejected"): Says.OURS,
    ("Transient", "AttachmentRejected"): Says.OURS,
}
KINDS = {"Complaint": Kind.COMPLAINT, "Delivery": Kind.DELIVERED}
RECIPIENTS = {
    "Bounce": ("bounce", "bouncedRecipients"),
    "Complaint": ("complaint", "complainedRecipients"),
    "Delivery": ("delivery", "recipients"),
}
NOT_ABUSE = frozenset({"not-spam", "auth-failure", "virus"})  # RFC 5965 §7.3, RFC 6430, RFC 6591


def said_of_bounce(kind: str, sub: str) -> Says | Kind:
    """What SES's two words for a bounce are worth; Resend uses the same."""
    return BOUNCES.get((kind, sub), Says.HARD if kind == "Permanent" else Says.SOFT)


def certificate_url(body: bytes, topics: tuple[str, ...], now: datetime) -> str:
    """Where the certificate of a call lies, once all is looked at that can be without it.

    Raises Forbidden for a foreign topic and for any address that is not SNS's own, Stale, or Invalid: nothing
    is fetched for such a call.
    """
    told = call.read_object(body)
    kind, url = call.text(told, "Type"), call.text(told, "SigningCertURL")
    # Everybody's topics are signed by the same key: only one's own is believed.
    if call.text(told, "TopicArn") not in topics or kind not in SIGNED:
        raise Forbidden("This event is not of the topic that was set.")
    if not _is_of_sns(url) or not CERTIFICATE.fullmatch(urlsplit(url).path) or urlsplit(url).query:
        raise Forbidden("The certificate's address is not one of SNS.")
    if kind != "Notification" and not _is_of_sns(call.text(told, "SubscribeURL")):
        raise Forbidden("The address to confirm at is not one of SNS.")
    call.require_fresh(call.moment(call.text(told, "Timestamp")), now)
    return url


def parse(
    headers: Mapping[str, str],  # noqa: ARG001 (what counts is signed, and so in the body)
    body: bytes,
    config: Config,
    now: datetime,
) -> Call:
    """Verify a call and return what it says; raise Forbidden, Stale or Invalid.

    `config` has the topics, and the certificate that `certificate_url` named.
    """
    certificate_url(body, config.secrets, now)
    told = call.read_object(body)
    call.require(_is_signed(told, config.certificate, now))
    own = call.name(told, "MessageId") or ""
    call.require(own != "")
    if call.text(told, "Type") == "SubscriptionConfirmation":
        return Call(own, (), confirm=call.text(told, "SubscribeURL"))
    if call.text(told, "Type") != "Notification":
        return Call(own, ())
    return Call(
        own, tuple(reports(call.read_object(call.text(told, "Message").encode("utf-8", "replace")), own))
    )


def _is_of_sns(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and HOST.fullmatch(parts.netloc) is not None
    except ValueError:
        return False


def _is_signed(told: dict[str, Any], certificate: bytes, now: datetime) -> bool:
    kind, version = call.text(told, "Type"), call.text(told, "SignatureVersion")
    lines = [f"{name}\n{told[name]}\n" for name in SIGNED[kind] if isinstance(told.get(name), str)]
    signature = call.from_base64(call.text(told, "Signature"))
    try:
        found = x509.load_pem_x509_certificate(certificate)
        key = found.public_key()
        if version not in HASHES or not isinstance(key, rsa.RSAPublicKey):
            return False
        if not found.not_valid_before_utc <= now <= found.not_valid_after_utc:
            return False
        said = "".join(lines).encode("utf-8", "replace")
        key.verify(signature, said, padding.PKCS1v15(), HASHES[version]())
    except (ValueError, InvalidSignature):
        return False
    return True


def reports(note: dict[str, Any], own: str) -> list[Report]:
    """What a notification of SES says, one report a recipient; `own` is the id of the call it came in."""
    what = call.text(note, "notificationType", "eventType")
    if what not in RECIPIENTS:
        return [call.plain(Kind.OTHER, what, event_id=own, origin=ORIGIN)]
    section, listed = RECIPIENTS[what]
    about, mail = call.part(note, section), call.part(note, "mail")
    who = [
        each if isinstance(each, dict) else {"emailAddress": each} for each in call.items(about.get(listed))
    ]
    # With several recipients a complaint names all who might have complained: then it is nobody's.
    if what == "Complaint" and len(who) > 1:
        return [call.plain(Kind.OTHER, "a complaint that names several", event_id=own, origin=ORIGIN)]
    found = []
    for place, one in enumerate(who):
        known: dict[str, Any] = {
            "address": call.name(one, "emailAddress"),
            "message_id": _message_id(mail),
            "relay_id": call.name(mail, "messageId"),
            "event_id": f"{own}:{place}",
            "happened_at": call.moment(about.get("timestamp")),
            "origin": ORIGIN,
        }
        found.append(_report(what, about, one, known))
    return found


def _report(what: str, about: dict[str, Any], one: dict[str, Any], known: dict[str, Any]) -> Report:
    words = call.text(one, "diagnosticCode") or call.text(about, "smtpResponse")
    meant: Says | Kind = KINDS.get(what, Kind.OTHER)
    if what == "Bounce":
        meant = said_of_bounce(call.text(about, "bounceType"), call.text(about, "bounceSubType"))
    if what == "Complaint" and call.text(about, "complaintFeedbackType") in NOT_ABUSE:
        meant = Kind.OTHER
    otherwise = call.text(about, "complaintFeedbackType") or what
    return call.report(meant, words, otherwise, status=call.text(one, "status"), **known)


def _message_id(mail: dict[str, Any]) -> str | None:
    """The Message-ID that we gave, which SES replaces on the way and repeats among the headers."""
    given = [each for each in call.items(mail.get("headers")) if isinstance(each, dict)]
    ours = (each for each in given if call.text(each, "name").lower() == "message-id")
    return call.name(next(ours, {}), "value") or call.name(call.part(mail, "commonHeaders"), "messageId")
