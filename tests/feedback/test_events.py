"""Every kind of event that the six providers document has the effect it should, and an unknown one has none."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from app.feedback.providers import PROVIDERS
from app.feedback.providers.call import Config
from tests.feedback import hooks

NOW = datetime(2026, 10, 26, 8, 0, tzinfo=UTC)

# Provider, what the event's own words are (see `event`), the server's words or -, and kind and action.
EVENTS = """
ses Bounce Permanent General | - | bounce suppress
ses Bounce Permanent NoEmail | - | bounce suppress
ses Bounce Permanent Suppressed | - | bounce suppress
ses Bounce Permanent OnAccountSuppressionList | - | bounce suppress
ses Bounce Permanent UnsubscribedRecipient | - | unsubscribe suppress
ses Bounce Permanent General | 550 5.7.1 blocked by a block list | bounce none
ses Bounce Undetermined Undetermined | - | bounce count
ses Bounce Transient General | - | bounce count
ses Bounce Transient MailboxFull | 552 5.2.2 mailbox full | bounce count
ses Bounce Transient CustomTimeoutExceeded | - | bounce count
ses Bounce Transient MessageTooLarge | - | bounce none
ses Bounce Transient ContentRejected | - | bounce none
ses Bounce Transient AttachmentRejected | - | bounce none
ses Bounce Transient General | 421 4.7.0 too many messages from your IP | bounce none
ses DeliveryDelay TransientCommunicationFailure - | - | other none
ses Reject - - | - | other none
ses Rendering_Failure - - | - | other none
ses Subscription - - | - | other none
ses Send - - | - | other none
ses Click - - | - | other none
sendgrid bounce bounce Invalid_Address | 550 5.1.1 no such user | bounce suppress
sendgrid bounce bounce - | 550 5.1.1 no such user | bounce suppress
sendgrid bounce bounce Mailbox_Unavailable | 552 5.2.2 mailbox full | bounce count
sendgrid bounce bounce Technical | 554 5.4.7 message expired | bounce count
sendgrid bounce bounce Unclassified | 550 cannot be accepted today | bounce count
sendgrid bounce blocked Reputation | 554 5.7.1 poor reputation | bounce none
sendgrid bounce blocked Content | 550 looks like spam | bounce none
sendgrid bounce blocked Frequency_or_Volume_Too_High | 421 4.7.28 unusual rate | bounce none
sendgrid bounce blocked - | 550 not today | bounce none
sendgrid deferred - - | 451 4.7.1 try again later | other none
sendgrid dropped - - | Bounced Address | bounce suppress
sendgrid dropped - - | Invalid | bounce suppress
sendgrid dropped - - | Spam Reporting Address | complaint suppress
sendgrid dropped - - | Unsubscribed Address | unsubscribe suppress
sendgrid dropped - - | Spam Content (if Spam Checker app is enabled) | other none
sendgrid dropped - - | Recipient List over Package Quota | other none
sendgrid spamreport - - | - | complaint suppress
sendgrid unsubscribe - - | - | unsubscribe suppress
sendgrid group_unsubscribe - - | - | unsubscribe suppress
sendgrid group_resubscribe - - | - | other none
sendgrid processed - - | - | other none
mailgun failed permanent bounce | 550 5.1.1 no such user | bounce suppress
mailgun failed permanent suppress-bounce | - | bounce suppress
mailgun failed permanent suppress-complaint | - | complaint suppress
mailgun failed permanent suppress-unsubscribe | - | unsubscribe suppress
mailgun failed permanent espblock | 550 5.7.1 blocked | bounce none
mailgun failed permanent blacklisted | 550 5.7.1 your IP is blacklisted | bounce none
mailgun failed permanent old | 498 too old, gave up | bounce count
mailgun failed permanent generic | 550 5.1.1 user unknown | bounce count
mailgun failed temporary generic | 452 4.2.2 mailbox full | bounce count
mailgun failed temporary greylisted | 451 4.7.1 greylisted | bounce none
mailgun complained - - | - | complaint suppress
mailgun unsubscribed - - | - | unsubscribe suppress
mailgun rejected - - | - | other none
mailgun accepted - - | - | other none
postmark Bounce HardBounce - | smtp;550 5.1.1 no such user | bounce suppress
postmark Bounce BadEmailAddress - | - | bounce suppress
postmark Bounce SoftBounce - | smtp;552 5.2.2 mailbox full | bounce count
postmark Bounce Transient - | - | bounce count
postmark Bounce DnsError - | - | bounce count
postmark Bounce Unknown - | - | bounce count
postmark Bounce SpamNotification - | - | bounce none
postmark Bounce VirusNotification - | - | bounce none
postmark Bounce Blocked - | smtp;550 5.1.1 user unknown | bounce none
postmark Bounce SMTPApiError - | - | bounce none
postmark Bounce DMARCPolicy - | - | bounce none
postmark Bounce AutoResponder - | - | auto-reply none
postmark Bounce ChallengeVerification - | - | auto-reply none
postmark Bounce AddressChange - | - | other none
postmark Bounce Subscribe - | - | other none
postmark Bounce Unsubscribe - | - | unsubscribe suppress
postmark Bounce ManuallyDeactivated - | - | other none
postmark Bounce Unconfirmed - | - | other none
postmark Bounce OpenRelayTest - | - | other none
postmark Bounce TemplateRenderingFailed - | - | other none
postmark SpamComplaint SpamComplaint - | - | complaint suppress
postmark Open - - | - | other none
brevo hard_bounce - - | 550 5.1.1 no such user | bounce suppress
brevo hardBounce - - | 550 5.1.1 no such user | bounce suppress
brevo soft_bounce - - | 452 4.2.2 mailbox full | bounce count
brevo invalid_email - - | - | bounce suppress
brevo blocked - - | - | bounce none
brevo deferred - - | 451 later | other none
brevo error - - | - | other none
brevo spam - - | - | complaint suppress
brevo unsubscribed - - | - | unsubscribe suppress
brevo request - - | - | other none
brevo listAddition - - | - | other none
resend email.bounced Permanent General | 550 5.1.1 no such user | bounce suppress
resend email.bounced Permanent Suppressed | - | bounce suppress
resend email.bounced Transient MailboxFull | 552 5.2.2 mailbox full | bounce count
resend email.bounced Transient ContentRejected | - | bounce none
resend email.bounced Undetermined Undetermined | - | bounce count
resend email.suppressed - - | - | bounce suppress
resend email.complained - - | - | complaint suppress
resend email.delivery_delayed - - | - | other none
resend email.failed - - | - | other none
resend email.received - - | - | other none
resend contact.updated - - | - | other none
""".strip().splitlines()


def event(provider: str, what: str, kind: str, sub: str, words: str) -> Any:
    """The provider's bounce with its event's name, its two words for what happened, and the server's words put in."""
    content = deepcopy(hooks.payload(provider, "hard_bounce")[0])
    match provider:
        case "ses":
            content["notificationType"] = what.replace("_", " ")
            content["bounce"] |= {"bounceType": kind, "bounceSubType": sub}
            (one,) = content["bounce"]["bouncedRecipients"]
            one |= {"diagnosticCode": words, "status": ""}
        case "sendgrid":
            classified = {"bounce_classification": sub.replace("_", " ")} if sub else {}
            content[0] |= {"event": what, "type": kind, "reason": words, "status": ""} | classified
        case "mailgun":
            code, _, said = words.partition(" ")
            told = {"code": int(code), "message": said} if words else {}
            content["event-data"] |= {
                "event": what,
                "severity": kind,
                "reason": sub,
                "delivery-status": told,
            }
        case "postmark":
            content |= {"RecordType": what, "Type": kind, "Details": words}
        case "brevo":
            content |= {"event": what, "reason": words}
        case "resend":
            content["type"] = what
            content["data"]["bounce"] = {"type": kind, "subType": sub, "message": words}
    return content


@pytest.mark.parametrize("line", EVENTS)
def test_every_documented_event_means_what_its_provider_says_it_does(line: str) -> None:
    told, words, expected = (one.strip() for one in line.split("|"))
    provider, what, kind, sub = ("" if one == "-" else one for one in told.split())
    content = event(provider, what, kind, sub, "" if words == "-" else words)
    posted = hooks.post(provider, content, NOW)
    config = Config((hooks.SECRETS[provider],), hooks.certificate())
    (found,) = PROVIDERS[provider](posted.headers, posted.body, config, NOW).reports
    assert f"{found.kind.value} {found.action.value}" == expected, found
