"""The providers whose webhooks are read: each verifies a call on its raw bytes and says what it means."""

from collections.abc import Callable, Mapping
from datetime import datetime

from app.feedback.providers import brevo, mailgun, postmark, resend, sendgrid, ses
from app.feedback.providers.call import Call, Config

Parser = Callable[[Mapping[str, str], bytes, Config, datetime], Call]

PROVIDERS: dict[str, Parser] = {
    "ses": ses.parse,
    "sendgrid": sendgrid.parse,
    "mailgun": mailgun.parse,
    "postmark": postmark.parse,
    "brevo": brevo.parse,
    "resend": resend.parse,
}
