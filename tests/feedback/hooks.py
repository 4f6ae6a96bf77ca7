"""Calls as the six providers would make them, signed with keys that are made for the tests."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

PAYLOADS = Path(__file__).parents[1] / "payloads"
TOPIC = "arn:aws:sns:eu-west-1:000000000001:broadsheet"
CERTIFICATE_URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0a1b2c.pem"
CONFIRM_URL = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"
MAILGUN_KEY = "a-signing-key-of-mailgun"
LOGIN = "hooks:correct horse battery".replace(" ", "-")
SVIX = "whsec_" + base64.b64encode(b"a secret of twenty-four b").decode()
EC_KEY = ec.generate_private_key(ec.SECP256R1())
SENDGRID_KEY = base64.b64encode(
    EC_KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
).decode()
SECRETS = {
    "ses": TOPIC,
    "sendgrid": SENDGRID_KEY,
    "mailgun": MAILGUN_KEY,
    "postmark": LOGIN,
    "brevo": LOGIN,
    "resend": SVIX,
}
SETTINGS = {f"hook_{name}": secret for name, secret in SECRETS.items()}


@dataclass(frozen=True)
class Posted:
    """What a provider posts."""

    headers: Mapping[str, str]
    body: bytes


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def certificate() -> bytes:
    """A certificate in PEM, good for all of this century's tests."""
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    made = x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(rsa_key().public_key())
    made = made.serial_number(1).not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    signed = made.not_valid_after(datetime(2099, 1, 1, tzinfo=UTC)).sign(rsa_key(), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def payloads() -> list[tuple[str, str]]:
    """The provider and the name of every payload of ours."""
    return [(path.parent.name, path.stem) for path in sorted(PAYLOADS.glob("*/*.json"))]


def payload(provider: str, name: str) -> tuple[Any, list[list[str]]]:
    """A payload's content, and what it should be read as: kind and action of each report."""
    found = json.loads((PAYLOADS / provider / f"{name}.json").read_text(encoding="utf-8"))
    return found["body"], found["expect"]


def post(provider: str, content: Any, now: datetime, number: str = "1") -> Posted:
    """Return a call as the provider makes it at `now`; `number` is what its id is made from."""
    posted: Posted = _MAKERS[provider](content, now, number)
    return posted


def sns(told: dict[str, str], version: str = "2") -> Posted:
    """Return an SNS envelope, signed."""
    signed = [name for name in sorted(told) if name not in ("SigningCertURL", "SignatureVersion")]
    said = "".join(f"{name}\n{told[name]}\n" for name in signed).encode()
    digest = hashes.SHA256() if version == "2" else hashes.SHA1()
    signature = base64.b64encode(rsa_key().sign(said, padding.PKCS1v15(), digest)).decode()
    whole = {"SigningCertURL": CERTIFICATE_URL} | told | {"SignatureVersion": version, "Signature": signature}
    return Posted({"content-type": "text/plain; charset=UTF-8"}, json.dumps(whole).encode())


def note(content: Any, now: datetime, number: str = "1") -> dict[str, str]:
    """Return the fields of an SNS notification."""
    return {
        "Type": "Notification",
        "MessageId": f"note-{number}",
        "TopicArn": TOPIC,
        "Message": json.dumps(content),
        "Timestamp": f"{now:%Y-%m-%dT%H:%M:%S.000Z}",
    }


def confirmation(now: datetime, url: str = CONFIRM_URL) -> dict[str, str]:
    """Return the fields of SNS's question whether the topic is wanted."""
    return note("", now) | {"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": url}


def _ses(content: Any, now: datetime, number: str) -> Posted:
    return sns(note(content, now, number))


def has_id(event: Any) -> bool:
    """Tell whether a thing that should be an event has SendGrid's id; garbled ones need not."""
    return isinstance(event, dict) and "sg_event_id" in event


def _sendgrid(content: Any, now: datetime, number: str) -> Posted:
    if isinstance(content, list):
        content = [
            each | {"sg_event_id": f"{each['sg_event_id']}-{number}"} if has_id(each) else each
            for each in content
        ]
    body = json.dumps(content).encode() + b"\r\n"
    stamp = str(int(now.timestamp()))
    signature = EC_KEY.sign(stamp.encode() + body, ec.ECDSA(hashes.SHA256()))
    return Posted(
        {
            "x-twilio-email-event-webhook-signature": base64.b64encode(signature).decode(),
            "x-twilio-email-event-webhook-timestamp": stamp,
        },
        body,
    )


def _mailgun(content: Any, now: datetime, number: str) -> Posted:
    stamp, token = str(int(now.timestamp())), hashlib.sha256(number.encode()).hexdigest()[:50]
    signature = hmac.new(MAILGUN_KEY.encode(), (stamp + token).encode(), "sha256").hexdigest()
    signed = {"timestamp": stamp, "token": token, "signature": signature}
    whole = {**content, "signature": signed}
    if number != "1":
        whole["event-data"] = whole["event-data"] | {"id": f"mg-{number}"}
    return Posted({}, json.dumps(whole).encode())


def _basic(content: Any, now: datetime, number: str) -> Posted:
    login = base64.b64encode(LOGIN.encode()).decode()
    if number != "1":
        content = content | {"ID": number, "ts_epoch": int(now.timestamp()) + len(number)}
    return Posted({"authorization": f"Basic {login}"}, json.dumps(content).encode())


def _resend(content: Any, now: datetime, number: str) -> Posted:
    body, own, stamp = json.dumps(content).encode(), f"msg_{number}", str(int(now.timestamp()))
    key = base64.b64decode(SVIX.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.digest(key, f"{own}.{stamp}.".encode() + body, "sha256")).decode()
    wrong = base64.b64encode(bytes(32)).decode()  # of a key that was replaced
    return Posted(
        {"svix-id": own, "svix-timestamp": stamp, "svix-signature": f"v1,{wrong} v1,{signature}"}, body
    )


_MAKERS = {
    "ses": _ses,
    "sendgrid": _sendgrid,
    "mailgun": _mailgun,
    "postmark": _basic,
    "brevo": _basic,
    "resend": _resend,
}
LATE = {"ses": timedelta(hours=2), "sendgrid": timedelta(hours=2), "mailgun": timedelta(hours=2),
        "resend": timedelta(minutes=6)}  # fmt: skip
