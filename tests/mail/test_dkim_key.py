"""A key that can sign is read, any other is refused in a sentence, and only its public half is shown."""

import re
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from app.mail import dkim

DOMAIN = "news.example.com"
PUBLIC = (pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
NEW_FORM, OLD_FORM = pem.PrivateFormat.PKCS8, pem.PrivateFormat.TraditionalOpenSSL


def written(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
    password: bytes = b"",
    form: pem.PrivateFormat = NEW_FORM,
) -> bytes:
    lock = pem.BestAvailableEncryption(password) if password else pem.NoEncryption()
    return key.private_bytes(pem.Encoding.PEM, form, lock)


KEY = rsa.generate_private_key(65537, 1024)
PEM = written(KEY)
SIGNER = dkim.Signer.load(PEM, "s2026", DOMAIN)


@pytest.mark.parametrize("form", [NEW_FORM, OLD_FORM])
def test_a_key_read_again_signs_with_the_same_bytes(form: pem.PrivateFormat) -> None:
    message = b"From: a@example.com\r\n\r\naGVsbG8=\r\n"
    moment = datetime(2026, 10, 26, tzinfo=UTC)
    again = dkim.Signer.load(written(KEY, form=form), "s2026", DOMAIN)
    assert again.sign(message, moment) == SIGNER.sign(message, moment)


def test_the_record_holds_the_public_key_alone() -> None:
    record = dkim.public_record(SIGNER)
    assert record.startswith("v=DKIM1; k=rsa; p=")
    public = pem.load_der_public_key(b64decode(record.partition("p=")[2], validate=True))
    assert public == KEY.public_key()
    assert SIGNER.record_name == f"s2026._domainkey.{DOMAIN}"


HALF = (2**255 - 19, 2**256 - 189)  # two primes
TINY = rsa.RSAPrivateNumbers(
    p=HALF[0],
    q=HALF[1],
    d=(d := pow(65537, -1, (HALF[0] - 1) * (HALF[1] - 1))),
    dmp1=d % (HALF[0] - 1),
    dmq1=d % (HALF[1] - 1),
    iqmp=pow(HALF[1], -1, HALF[0]),
    public_numbers=rsa.RSAPublicNumbers(65537, HALF[0] * HALF[1]),
)


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (lambda: b" \n", "is missing"),
        (lambda: b"not a key", "no private key in PEM"),
        (lambda: PEM.replace(b"M", b"*"), "no private key in PEM"),
        (lambda: KEY.public_key().public_bytes(*PUBLIC), "no private key in PEM"),
        (lambda: written(KEY, b"secret"), "encrypted"),
        (lambda: written(KEY, b"secret", OLD_FORM), "encrypted"),
        (lambda: written(ec.generate_private_key(ec.SECP256R1())), "not an RSA key"),
        (lambda: written(TINY.private_key()), "has 511 bits"),
    ],
)
def test_a_key_that_cannot_sign_is_refused_in_a_sentence(made: Callable[[], bytes], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong) as refusal:
        dkim.Signer.load(made(), "s2026", DOMAIN)
    assert re.fullmatch(r"The DKIM key [ -~]+\.", str(refusal.value))


@pytest.mark.parametrize(
    ("selector", "domain"), [("", DOMAIN), ("a b", DOMAIN), ("s;", DOMAIN), ("s", "-.x")]
)
def test_a_selector_or_domain_that_no_dns_holds_is_refused(selector: str, domain: str) -> None:
    with pytest.raises(ValueError, match="no name for the DNS"):
        dkim.Signer.load(PEM, selector, domain)


def test_a_domain_becomes_a_labels_and_the_key_is_never_shown() -> None:
    signer = dkim.Signer.load(PEM, "S2026", "新闻.Example.com")
    assert signer.record_name == "s2026._domainkey.xn--efvy88h.example.com"
    assert signer.bits == 1024
    assert "key" not in repr(signer).replace("_domainkey", "")
