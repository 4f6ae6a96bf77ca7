"""What the six providers say is verified on the bytes as they came, and means no more than it says."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.errors import BroadsheetError, Forbidden, Invalid, Unauthorized
from app.feedback.providers import PROVIDERS, ses
from app.feedback.providers.call import Call, Config, Stale
from tests.feedback import hooks
from tests.feedback.hooks import Posted

NOW = datetime(2026, 10, 26, 8, 0, tzinfo=UTC)
SIGNING = ("ses", "sendgrid", "mailgun", "resend")


def read(provider: str, posted: Posted, now: datetime = NOW, secret: str | None = None) -> Call:
    config = Config((secret or hooks.SECRETS[provider],), hooks.certificate())
    return PROVIDERS[provider](posted.headers, posted.body, config, now)


def some(provider: str, now: datetime = NOW) -> Posted:
    return hooks.post(provider, hooks.payload(provider, "hard_bounce")[0], now)


@pytest.mark.parametrize(("provider", "name"), hooks.payloads())
def test_every_payload_is_read_as_what_it_is(provider: str, name: str) -> None:
    content, expected = hooks.payload(provider, name)
    call = read(provider, hooks.post(provider, content, NOW))
    assert [[each.kind.value, each.action.value] for each in call.reports] == expected
    assert call.id
    assert all(each.origin == provider and each.event_id for each in call.reports)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_bounce_says_whose_it_was(provider: str) -> None:
    (report,) = read(provider, some(provider)).reports
    assert report.address == "lin@example.com"
    assert (report.meaning, report.status, report.code) == ("bad-mailbox", "5.1.1", 550)
    assert report.relay_id or report.message_id == "daily-20261026.AAAA@news.example.com"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_event_without_the_secret_is_refused(provider: str) -> None:
    error = Forbidden if provider in SIGNING else Unauthorized
    posted = some(provider)
    with pytest.raises(error):
        read(
            provider, Posted({}, posted.body.replace(b'"signature"', b'"s"').replace(b'"Signature"', b'"S"'))
        )


@pytest.mark.parametrize("provider", ["mailgun", "postmark", "brevo", "resend"])
def test_an_event_with_another_secret_is_refused(provider: str) -> None:
    other = "whsec_" + base64.b64encode(bytes(24)).decode() if provider == "resend" else "hooks:another-one"
    with pytest.raises((Forbidden, Unauthorized)):
        read(provider, some(provider), secret=other)


@pytest.mark.parametrize("provider", ["ses", "sendgrid", "resend"])
def test_a_signed_body_cannot_be_changed(provider: str) -> None:
    posted = some(provider)
    with pytest.raises(Forbidden):
        read(provider, Posted(posted.headers, posted.body.replace(b"lin@", b"wei@")))


@pytest.mark.parametrize("provider", SIGNING)
@pytest.mark.parametrize("way", [1, -1])
def test_an_old_event_is_refused_and_so_is_one_of_tomorrow(provider: str, way: int) -> None:
    posted = some(provider, NOW - way * hooks.LATE[provider])
    with pytest.raises(Stale):
        read(provider, posted)


def test_both_of_sns_s_signatures_are_taken_and_no_third() -> None:
    told = hooks.note(hooks.payload("ses", "hard_bounce")[0], NOW)
    assert read("ses", hooks.sns(told, "1")).reports == read("ses", hooks.sns(told, "2")).reports
    third = json.loads(hooks.sns(told).body) | {"SignatureVersion": "3"}
    with pytest.raises(Forbidden):
        read("ses", Posted({}, json.dumps(third).encode()))


def test_a_topic_of_somebody_else_is_refused_though_sns_signed_it() -> None:
    told = hooks.note({}, NOW) | {"TopicArn": hooks.TOPIC.replace("000001:", "000002:")}
    with pytest.raises(Forbidden, match="topic"):
        read("ses", hooks.sns(told))


@pytest.mark.parametrize(
    "url",
    [
        "http://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.eu-west-1.amazonaws.com.example/SimpleNotificationService-1.pem",
        "https://sns.eu-west-1.amazonaws.com@127.0.0.1/SimpleNotificationService-1.pem",
        "https://sns.eu-west-1.amazonaws.com:8443/SimpleNotificationService-1.pem",
        "https://s3.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.eu-west-1.amazonaws.com/../SimpleNotificationService-1.pem",
        "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem?x=1",
        "https://[::1]/SimpleNotificationService-1.pem",
        "https://[/SimpleNotificationService-1.pem",
        "file:///SimpleNotificationService-1.pem",
        "",
    ],
)
def test_a_certificate_is_fetched_from_sns_alone(url: str) -> None:
    posted = hooks.sns(hooks.note({}, NOW) | {"SigningCertURL": url})
    with pytest.raises(Forbidden):
        ses.certificate_url(posted.body, (hooks.TOPIC,), NOW)


def test_a_confirmation_names_what_to_visit_and_only_at_sns() -> None:
    assert read("ses", hooks.sns(hooks.confirmation(NOW))).confirm == hooks.CONFIRM_URL
    with pytest.raises(Forbidden):
        read("ses", hooks.sns(hooks.confirmation(NOW, "http://169.254.169.254/latest/")))


def test_a_certificate_that_has_run_out_signs_nothing() -> None:
    then = datetime(2100, 1, 1, tzinfo=UTC)
    with pytest.raises(Forbidden):
        read("ses", some("ses", then), then)


def test_a_subaccount_s_event_is_signed_by_the_main_account() -> None:
    told = json.loads(some("mailgun").body)
    told["parent-signature"], told["signature"] = told["signature"], {"signature": "0"}
    assert read("mailgun", Posted({}, json.dumps(told).encode())).reports


def test_brevo_may_bring_a_token_instead() -> None:
    posted = Posted({"authorization": "Bearer a-long-token-of-ours"}, some("brevo").body)
    assert read("brevo", posted, secret="a-long-token-of-ours").reports
    with pytest.raises(Unauthorized):
        read("brevo", posted, secret="a-long-token-of-theirs")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def garbled(content: Any, draw: st.DataObject) -> Any:
    """Return a payload of which any part may be anything."""
    if draw.draw(st.integers(0, 9)) == 0:
        return draw.draw(JSON)
    if isinstance(content, dict):
        return {name: garbled(value, draw) for name, value in content.items()}
    if isinstance(content, list):
        return [garbled(value, draw) for value in content]
    return content


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(hooks.payloads()), st.data())
def test_nothing_that_is_signed_breaks_the_reading(which: tuple[str, str], draw: st.DataObject) -> None:
    provider, name = which
    content = garbled(hooks.payload(provider, name)[0], draw)
    try:
        call = read(provider, hooks.post(provider, content, NOW))
    except BroadsheetError:
        return
    except (AttributeError, TypeError):
        if isinstance(content, dict):
            raise
        return  # the test's own signing needs an object
    for each in call.reports:
        assert len(each.text) <= 200
        assert all(sign.isprintable() for sign in (each.address or "") + (each.event_id or ""))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000], ids=str)
def test_what_is_no_event_is_refused_in_a_word(body: bytes) -> None:
    login = some("postmark").headers
    with pytest.raises(Invalid):
        read("postmark", Posted(login, body))
    for provider in ("ses", "mailgun", "sendgrid", "resend"):
        with pytest.raises((Invalid, Forbidden)):
            read(provider, Posted({}, body))


def test_a_signature_that_is_no_base64_is_a_refusal() -> None:
    headers = dict(some("sendgrid").headers) | {"x-twilio-email-event-webhook-signature": "é"}
    with pytest.raises(Forbidden):
        read("sendgrid", Posted(headers, b"[]"))


def test_an_event_a_little_late_is_taken() -> None:
    assert read("sendgrid", some("sendgrid", NOW - timedelta(minutes=50))).reports
