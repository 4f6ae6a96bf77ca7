"""Templates and their context become a Rendition: subject, html with its styles inlined, and plain text."""

import logging
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, TemplateError

from app.core import i18n, templates
from app.core.errors import Fault, Invalid, Misconfigured
from app.mail import typeset

SLOT = re.compile(r"__BS_[A-Z]+__")
FORBIDDEN = ("@import", "<link", "<script")

_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
_STYLE = re.compile(r'(?<= style=")[^"]*')
# Python's \s takes U+00A0 and U+3000 too, which are content.
_BETWEEN_TAGS = re.compile(r"(?<=>)[ \t\r]*\n[ \t\r\n]*(?=<)")
_BLANK_LINES = re.compile(r"\n{3,}")
_inlining = threading.Lock()


@dataclass(frozen=True, slots=True)
class Rendition:
    """One mail as every reader gets it; in html and text the words of SLOT wait for a reader's values."""

    subject: str
    html: str
    text: str


class Renderer:
    """Writes mails from templates; a file of `overlay`, laid out as `templates`, goes before ours."""

    def __init__(self, overlay: Path | None = None) -> None:
        loader = _CheckedLoader(templates.folders("email", overlay))
        self._environments = {
            language: templates.environment(loader, speaking, typeset.filters(speaking))
            for language in i18n.LANGUAGES
            if (speaking := i18n.catalogue(language))
        }

    def render(self, kind: str, context: Mapping[str, object]) -> Rendition:
        """Return the mail of the folder `kind`, in the language that `context["language"]` names.

        It computes for some 30 ms, so it belongs in a thread. Raises Invalid when the content holds a slot
        word, Misconfigured when a template cannot be read or is not allowed.
        """
        _refuse_slots(context)
        environment = self._environments[str(context["language"])]
        try:
            subject = _line(environment.get_template(f"{kind}/subject.txt").render(context))
            filled = {**context, "subject": subject}
            html = environment.get_template(f"{kind}/body.html").render(filled)
            text = environment.get_template(f"{kind}/body.txt").render(filled)
        except TemplateError as fault:
            raise Misconfigured(f"The template of {kind} fails: {fault}") from fault
        return Rendition(subject, _composed(_squeezed(_inlined(html))), _composed(_paragraphs(text)))


class _CheckedLoader(FileSystemLoader):
    """Refuses what would make the inliner fetch something, or what no mail client runs."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, file, fresh = super().get_source(environment, template)
        for word in FORBIDDEN:
            if word in source.lower():
                raise Misconfigured(f"The template {template} ({file}) holds {word}, which no mail may hold.")
        return source, file, fresh


def _refuse_slots(context: Mapping[str, object]) -> None:
    # A slot word in the content would be replaced like ours, with one reader's private link.
    for name, value in context.items():
        found = SLOT.search(repr(value))
        if found and value != found.group():
            raise Invalid(
                f"The content holds {found.group()}, a word kept for readers' links.",
                [Fault(f"holds {found.group()}", field=name)],
            )


def _line(subject: str) -> str:
    return _composed(re.sub(r"[ \t\r\n]+", " ", subject).strip(" "))


def _paragraphs(text: str) -> str:
    return _BLANK_LINES.sub("\n\n", text).strip("\n") + "\n"


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _inlined(html: str) -> str:
    # Imported late: premailer reads the size of its cache from the environment while it is imported.
    os.environ.setdefault("PREMAILER_CACHE_MAXSIZE", "1024")
    from premailer import Premailer

    premailer = Premailer(
        html,
        method="html",
        allow_network=False,
        disable_validation=True,
        strip_important=False,
        disable_basic_attributes=["width", "height"],
        align_floating_images=False,
        keep_style_tags=False,
        remove_classes=False,
        disable_link_rewrites=True,
        cssutils_logging_level=logging.CRITICAL,
    )
    with _inlining:
        inlined: str = premailer.transform(pretty_print=False)
    return inlined


def _squeezed(html: str) -> str:
    return _TAG.sub(_squeezed_tag, _BETWEEN_TAGS.sub("", html)).strip() + "\n"


def _squeezed_tag(tag: re.Match[str]) -> str:
    return _STYLE.sub(lambda style: re.sub(r"(?<=[;:,]) +", "", style.group()).rstrip("; "), tag.group())
