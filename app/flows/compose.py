"""An issue or a letter becomes the message that one reader gets; the same input gives the same bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from app.core import i18n
from app.core.config import Settings
from app.core.tokens import LENGTH, Purpose, Signer, day_number
from app.flows import greetings, signing
from app.issues import sources
from app.issues.document import CrossReference
from app.issues.models import Edition, IssueText
from app.mail import headers, message, verp
from app.mail.message import Body, ListLinks, Stencil
from app.mail.render import Renderer, Rendition

ADDRESS, MANAGE, UNSUBSCRIBE, ACTION = (
    f"__BS_{word}__" for word in ("ADDRESS", "MANAGE", "UNSUBSCRIBE", "ACTION")
)
RECIPIENT, MESSAGE, LEAVE = (f"__BS_{word}__" for word in ("RECIPIENT", "MESSAGE", "LEAVE"))  # in headers
LETTER_SLOTS = (ADDRESS, MANAGE, UNSUBSCRIBE, ACTION)
SAMPLE_ADDRESS = "reader@example.com"
FOLDERS = ("confirm", "welcome", "goodbye")  # letters with templates of their own; the others are notices
PAGES = {Purpose.CONFIRM: "c", Purpose.PREFERENCES: "p", Purpose.UNSUBSCRIBE: "u", Purpose.ERRAND: "e"}


class Reader(NamedTuple):
    """Whom a message is for: subscriber 0 is nobody, whose links open nothing; `slot` is their own hour."""

    subscriber_id: int
    address: str
    slot: datetime | None = None


class Envelope(NamedTuple):
    """What is handed to a relay: envelope sender, recipient, and the message in pieces of whole lines."""

    sender: str
    recipient: str
    pieces: tuple[bytes, ...]

    @property
    def message(self) -> bytes:
        """The message's bytes."""
        return b"".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Press:
    """An issue set in one language: everything that all its readers share, made once."""

    issue_id: int
    edition_id: int
    sender: str
    body: Body
    fixed: bytes
    personal: Stencil
    moment: datetime


class Composer:
    """Renders and composes with the operator's settings; holds nothing that changes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.signer = Signer(settings.secret_key)
        self.dkim = signing.signer(settings)
        self.renderer = Renderer(settings.templates)
        self._letter = lru_cache(maxsize=64)(self._render_letter)

    def link(self, purpose: Purpose, subscriber_id: int, scope: int = 0) -> str:
        """Return the absolute address of the page that a reader's token opens."""
        return self.url(f"/{PAGES[purpose]}/{self.signer.sign(purpose, subscriber_id, scope)}")

    def url(self, path: str) -> str:
        """Return the absolute address of a page of ours."""
        return f"{self.settings.base_url}{path}"

    def render_issue(
        self,
        edition: Edition,
        day: date,
        text: IssueText,
        others: tuple[str, ...] = (),
        pages: Mapping[CrossReference, str] = MappingProxyType({}),
    ) -> Rendition:
        """Return an issue's HTML and text in the language of `text`; takes some 30 ms, so not on the event loop.

        `others` are the labels of the editions that a reader could switch to, `pages` the paths of the issues
        that the text names.
        """
        context = {
            "language": text.language,
            "edition": self._shown(edition),
            "document": sources.parse(text.source, text.format),
            "references": {f"{named.date} {named.word}": self.url(path) for named, path in pages.items()},
            "issue_date": day,
            "subject": text.subject,
            "web_url": self.url(f"/archive/{edition.slug}/{day}"),
            "archive_url": self.url(f"/archive/{edition.slug}"),
            "home_url": self.url("/"),
            "postal_address": self.settings.postal_address,
            "contact": self.settings.contact,
            "other_edition_label": others[0] if len(others) == 1 else None,
        }
        rendered = self.renderer.render("issue", context)
        return Rendition(text.subject, rendered.html, rendered.text)

    def press(
        self,
        edition: Edition,
        issue_id: int,
        day: date,
        language: str,
        moment: datetime,
        rendition: Rendition,
    ) -> Press:
        """Set a rendition for all its readers; `moment` is the Date of who has no hour of their own."""
        sender = self.sender(edition)
        name = edition.sender_name or edition.name
        stamp = f"{edition.slug}{day:%Y%m%d}"
        fixed = (
            headers.mailbox("From", name, sender)
            + self._reply_to()
            + headers.unstructured("Subject", rendition.subject)
            + headers.structured("Content-Language", i18n.catalogue(language).tag)
            + message.list_headers(edition.name, self.list_id(edition), self._list_links(edition))
            + headers.feedback_id(stamp, edition.slug, "issue", self.settings.domain)
        )
        personal = message.stencil(
            headers.structured("To", f"<{RECIPIENT}>")
            + headers.structured(
                "Message-ID", f"<{edition.slug}-{day:%Y%m%d}.{MESSAGE}@{self.settings.domain}>"
            )
            + self._one_click(LEAVE)
        )
        body = message.prepare(rendition.html, rendition.text)
        return Press(issue_id, edition.id or 0, sender, body, fixed, personal, moment)

    def issue_message(self, press: Press, reader: Reader) -> Envelope:
        """Return one reader's copy of an issue, whose Date no retry changes.

        Raises ValueError when their address cannot be written.
        """
        recipient = headers.envelope_address(reader.address)
        who = reader.subscriber_id
        links = self.links(press, reader)
        token = self.signer.sign(Purpose.MESSAGE, who, press.edition_id)
        moment = reader.slot or press.moment
        named = {RECIPIENT: recipient, MESSAGE: token, LEAVE: links[UNSUBSCRIBE][-LENGTH:]}
        personal = headers.date(moment) + press.personal.fill(
            {slot: one.encode() for slot, one in named.items()}
        )
        pieces = message.compose(press.body, press.fixed, personal, links)
        path = self._return_path(press.sender, press.issue_id, who)
        return Envelope(path, recipient, self._signed(pieces, moment))

    def links(self, press: Press, reader: Reader) -> dict[str, str]:
        """Return what a reader's copy has in its slots."""
        return {
            ADDRESS: reader.address,
            MANAGE: self.link(Purpose.PREFERENCES, reader.subscriber_id),
            UNSUBSCRIBE: self.link(Purpose.UNSUBSCRIBE, reader.subscriber_id, press.edition_id),
        }

    def letter_message(self, letter: Mapping[str, Any]) -> Envelope:
        """Return a letter's message; one that carries its own rendition is sent as it is.

        `letter` has the columns of the table. Raises ValueError when the address cannot be written.
        """
        recipient = headers.envelope_address(letter["address"])
        data, language, made = letter["data"], letter["language"], letter["created_at"]
        who, edition_id = letter["subscriber_id"] or 0, data.get("edition_id", 0)
        if "html" in data:
            body, subject = message.prepare(data["html"], data["text"], LETTER_SLOTS), data["subject"]
        else:
            wishes = {name: value for name, value in data.items() if name not in ("action", "errand")}
            body, subject = self._letter(letter["kind"], language, json.dumps(wishes, sort_keys=True))
        values = {
            ADDRESS: letter["address"],
            MANAGE: self.link(Purpose.PREFERENCES, who),
            UNSUBSCRIBE: self.link(Purpose.UNSUBSCRIBE, who, edition_id),
            ACTION: self._action(data, who, made),
        }
        token = self.signer.sign(Purpose.MESSAGE, letter["id"])
        sender = self._letter_sender(data)
        fixed = (
            headers.mailbox("From", data.get("sender_name") or self.settings.name, sender)
            + self._reply_to()
            + headers.unstructured("Subject", subject)
            + headers.date(made)
            + headers.structured("Content-Language", i18n.catalogue(language).tag)
            + headers.structured("Auto-Submitted", "auto-generated")
            + headers.structured("X-Auto-Response-Suppress", "OOF, AutoReply")
            + headers.mailbox("To", "", recipient)
            + headers.structured("Message-ID", f"<letter-{letter['id']}.{token}@{self.settings.domain}>")
        )
        personal = self._one_click(values[UNSUBSCRIBE][-LENGTH:]) if edition_id else b""
        pieces = message.compose(body, fixed, personal, values)
        path = self._return_path(sender, letter["id"], who, verp.Kind.LETTER)
        return Envelope(path, recipient, self._signed(pieces, made))

    def sender(self, edition: Edition) -> str:
        """Return the address that an edition is from."""
        return edition.sender or f"{edition.slug}@{self.settings.domain}"

    def list_id(self, edition: Edition) -> str:
        """Return an edition's lasting name, fixed by its first mailing."""
        return edition.list_id or f"{edition.slug}.{self.settings.domain}"

    def _render_letter(self, kind: str, language: str, wishes: str) -> tuple[Body, str]:
        data = json.loads(wishes)
        names = data.get("editions", [])
        context: dict[str, object] = {
            "language": language,
            "publication": self.settings.name,
            "masthead": names[0] if len(names) == 1 else self.settings.name,
            "edition_names": names,
            "from_address": self._letter_sender(data),
            "home_url": self.url("/"),
            "postal_address": self.settings.postal_address,
            "accent": data["accent"],
            "accent_dark": data["accent_dark"],
            **greetings.wording(data.get("said", {}), language, self.settings.base_url),
        }
        if kind not in FOLDERS:
            say, words = i18n.catalogue(language).say, data.get("words", {})
            context |= {
                part: say(f"mail.{kind}.{part}", publication=self.settings.name, **words)
                for part in ("title", "paragraph", "button")
            }
            context["missed"] = data.get("missed", ())
        rendered = self.renderer.render(kind if kind in FOLDERS else "notice", context)
        return message.prepare(rendered.html, rendered.text, LETTER_SLOTS), rendered.subject

    def _action(self, data: Mapping[str, Any], subscriber_id: int, made: datetime) -> str:
        """Return where a letter's button leads."""
        match data.get("action"):
            case "confirm":
                return self.link(Purpose.CONFIRM, subscriber_id, day_number(made))
            case "errand":
                return self.link(Purpose.ERRAND, data["errand"])
            case "home":
                return self.url("/")
        return self.link(Purpose.PREFERENCES, subscriber_id)

    def _letter_sender(self, data: Mapping[str, Any]) -> str:
        """Return whom a letter is from: the edition that it names, else the house."""
        return data.get("sender") or f"{data.get('slug', 'newsletter')}@{self.settings.domain}"

    def _shown(self, edition: Edition) -> SimpleNamespace:
        """Return the part of an edition that a template may see."""
        seen = ("slug", "name", "label", "language", "accent", "accent_dark", "description", "footer")
        name = edition.sender_name or edition.name
        return SimpleNamespace(**{part: getattr(edition, part) for part in seen}, sender_name=name)

    def _list_links(self, edition: Edition) -> ListLinks:
        owner = f"mailto:{self.settings.contact}" if self.settings.contact else None
        home = self.url("/")
        return ListLinks(help=home, subscribe=home, owner=owner, archive=self.url(f"/archive/{edition.slug}"))

    def _reply_to(self) -> bytes:
        contact = self.settings.contact
        return headers.mailbox("Reply-To", "", contact) if contact else b""

    def _one_click(self, token: str) -> bytes:
        """Return the headers by which a reader leaves an edition with one press."""
        domain = self.settings.bounce_domain
        mailto = f"mailto:unsubscribe+{token}@{domain}" if domain else None
        return message.unsubscribe_headers(self.url(f"/{PAGES[Purpose.UNSUBSCRIBE]}/{token}"), mailto)

    def _signed(self, pieces: tuple[bytes, ...], moment: datetime) -> tuple[bytes, ...]:
        """Return a message with its signature in front; `moment` is its Date, so that a retry is the same."""
        return pieces if self.dkim is None else (self.dkim.sign(b"".join(pieces), moment), *pieces)

    def _return_path(
        self, sender: str, number: int, subscriber_id: int, kind: verp.Kind = verp.Kind.DELIVERY
    ) -> str:
        """Return where a mail comes back to: its sender, or where BOUNCE_DOMAIN is set an address of its own."""
        domain = self.settings.bounce_domain
        if domain is None:
            return sender
        return verp.return_path(self.signer.keys[0], number, subscriber_id, domain, kind)
