"""How words are set in a line, on pages and in mails: where titles break, dates hold, what a link's text says."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from babel.lists import format_list
from markupsafe import Markup, escape

from app.core import i18n
from app.core.errors import Invalid
from app.mail.links import reference
from app.mail.links import shown as shown

_DATE = r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)"
_NOWRAP = Markup('<span class="nb">{}</span>')
_LINK = Markup('<a class="acc" href="{}">{}</a>')
_CLAUSE = re.compile(r"[^：，]+[：，]?")
_HAN = re.compile(r"[\u3400-\u9fff]")


def filters(catalogue: i18n.Catalogue) -> dict[str, Callable[..., Any]]:
    """Return the filters that a template of this language has."""
    return {
        "breaks_at_clauses": breaks_at_clauses,
        "day": partial(i18n.format_date, language=catalogue.language),
        "hex": hex_colour,
        "listed": partial(listed, catalogue),
        "number": partial(numbered, catalogue, "mail.topic.numbers"),
        "prose": prose,
        "reference": reference,
        "shown": shown,
        "tab": partial(numbered, catalogue, "mail.topic.tabs"),
        "titled": partial(titled, catalogue),
        "whole": whole,
        "weekday": partial(i18n.weekday, language=catalogue.language),
    }


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


def whole(line: str) -> str:
    """Return a Chinese line with spaces that do not break it, as its names are written; another one as it is.

    Spam filters take a plain space beside capitals and no small letters, 《AI 技术日报》, for shouting.
    """
    return line.replace(" ", "\u00a0") if _HAN.search(line) else line


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
