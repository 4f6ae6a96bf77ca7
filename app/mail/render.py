"""Templates and their context become a Rendition: subject, html with its styles inlined, and plain text."""

import logging
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from babel.lists import format_list
from jinja2 import BaseLoader, ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup, escape

from app.core import i18n, paths
from app.core.errors import Fault, Invalid, Misconfigured

SLOT = re.compile(r"__BS_[A-Z]+__")
FORBIDDEN = ("@import", "<link", "<script")

_DATE = r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)"
_NOWRAP = Markup('<span style="white-space:nowrap">{}</span>')
_LINK = Markup('<a class="acc" href="{}">{}</a>')
_CLAUSE = re.compile(r"[^：，]+[：，]?")
_HAN = re.compile(r"[\u3400-\u9fff]")
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
        folders = [folder for folder in (overlay, paths.templates()) if folder]
        loader = ChoiceLoader([_CheckedLoader(folder / "email") for folder in folders])
        self._environments = {language: _environment(loader, language) for language in i18n.LANGUAGES}

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


def _environment(loader: BaseLoader, language: str) -> Environment:
    catalogue = i18n.catalogue(language)
    environment = ImmutableSandboxedEnvironment(
        loader=loader,
        undefined=StrictUndefined,
        autoescape=lambda name: bool(name and name.endswith(".html")),
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["ext.i18n.trimmed"] = True
    environment.globals["lang"] = catalogue.tag
    # The extension adds this method at run time, where no type checker sees it.
    install: Callable[..., None] = getattr(environment, "install_gettext_callables")  # noqa: B009
    install(catalogue.gettext, catalogue.ngettext, newstyle=True)
    environment.filters |= {
        "breaks_at_clauses": breaks_at_clauses,
        "hex": hex_colour,
        "listed": partial(listed, catalogue),
        "number": partial(numbered, catalogue, "mail.topic.numbers"),
        "prose": prose,
        "shown": shown,
        "tab": partial(numbered, catalogue, "mail.topic.tabs"),
        "titled": partial(titled, catalogue),
        "weekday": partial(i18n.weekday, language=language),
    }
    return environment


def breaks_at_clauses(title: str, widest: float = 14) -> bool:
    """Say whether each clause of a Chinese line fits `widest` em, so that it may break at ：and ，alone."""
    return bool(_HAN.search(title)) and all(_ems(clause) <= widest for clause in _CLAUSE.findall(title))


def hex_colour(colour: str) -> str:
    """Return the colour when it is #rrggbb, the one form that every client reads; Invalid otherwise."""
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
        raise Invalid(f"The colour {colour!r} must be written #rrggbb.")
    return colour


def listed(catalogue: i18n.Catalogue, keys: Iterable[str], widest: float = 70) -> str:
    """Return the keys of an issue in a line of about `widest` em, each short one kept whole."""
    shown_keys: list[str] = []
    width = 0.0
    for key in keys:
        width += _ems(key) + 1
        if shown_keys and width > widest:
            shown_keys.append("…")
            break
        shown_keys.append(key.replace(" ", "\u00a0") if len(key) <= 20 else key)
    return catalogue.gettext("mail.joiner").join(shown_keys)


def titled(catalogue: i18n.Catalogue, names: Iterable[str]) -> str:
    """Return names of editions as the language lists titles: 《AI 技术日报》和《AI 技术周报》."""
    return format_list([catalogue.say("mail.title", name=name) for name in names], locale=catalogue.language)


def numbered(catalogue: i18n.Catalogue, key: str, number: int) -> str:
    """Return the words for the `number`th thing from a list parted by |, and past its end plain figures."""
    words = catalogue.gettext(key).split("|")
    return words[number - 1] if number <= len(words) else f"{number}. "


def prose(paragraph: str, references: Mapping[str, str]) -> Markup:
    """Return a paragraph as html: dates unbroken, and texts of `references` (“2026-10-22 日报”) as links.

    The text may stand in the paragraph with its spaces or without; the values are URLs.
    """
    links = {text.replace(" ", ""): url for text, url in references.items()}
    wanted = "|".join([*(re.escape(text).replace(r"\ ", " ?") for text in references), _DATE])
    parts, end = [], 0
    for match in re.finditer(wanted, paragraph):
        parts += [escape(paragraph[end : match.start()]), _unbroken(match.group(), links)]
        end = match.end()
    return Markup("").join([*parts, escape(paragraph[end:])])


def shown(url: str) -> str:
    """Return host, path and query of a URL: what a reader sees of a link, so that it says where it leads."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return (host + parts.path).rstrip("/") + (f"?{parts.query}" if parts.query else "")


def _unbroken(text: str, links: Mapping[str, str]) -> Markup:
    url = links.get(text.replace(" ", ""))
    return _NOWRAP.format(_LINK.format(url, text) if url else text)


def _ems(text: str) -> float:
    return sum(_em(character) for character in text)


def _em(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WFA":
        return 1
    if character.isspace():
        return 0.26
    return 0.68 if character.isupper() else 0.55


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
