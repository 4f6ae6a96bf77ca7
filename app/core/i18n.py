"""Message catalogues: what we say to readers, in each language that has a file in `app/locales`."""

import gettext
from datetime import date
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NoReturn

from babel import Locale
from babel.dates import format_date as _format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALES = Path(__file__).resolve().parents[1] / "locales"
# Chinese leads: it is what a reader gets when nothing is known of them.
LANGUAGES = tuple(sorted((file.stem for file in LOCALES.glob("*.po")), key=lambda name: (name != "zh", name)))


class _Missing(gettext.NullTranslations):
    """Keys are symbols, so an absent one must never be shown in place of words."""

    def gettext(self, message: str) -> NoReturn:
        raise LookupError(f"no catalogue entry for {message!r}")

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> NoReturn:  # noqa: ARG002
        raise LookupError(f"no catalogue entry for {msgid1!r}")


class Catalogue:
    """The messages of one language; `tag` is what `lang=""` and Content-Language say, such as zh-CN."""

    def __init__(self, language: str) -> None:
        with (LOCALES / f"{language}.po").open("rb") as file:
            messages = read_po(file, locale=language)
        binary = BytesIO()
        write_mo(binary, messages)
        binary.seek(0)
        self._translations = gettext.GNUTranslations(binary)
        self._translations.add_fallback(_Missing())
        self.language = language
        self.tag = self._translations.info()["language"].replace("_", "-")

    def gettext(self, key: str) -> str:
        """Return the message as it stands, placeholders and doubled `%` included; LookupError for no key."""
        return self._translations.gettext(key)

    def ngettext(self, one: str, many: str, count: int) -> str:
        """Return the form that fits `count` of the entry with msgid `one` and msgid_plural `many`."""
        return self._translations.ngettext(one, many, count)

    def say(self, key: str, **values: object) -> str:
        """Return the message with its `%(name)s` filled in; for a caller that is no template."""
        return self.gettext(key) % values


@cache
def catalogue(language: str) -> Catalogue:
    """Return the catalogue of one of LANGUAGES, read once a process; LookupError for another."""
    if language not in LANGUAGES:
        raise LookupError(f"no catalogue for {language!r}; there are {', '.join(LANGUAGES)}")
    return Catalogue(language)


def negotiate(accept_language: str | None, default: str = LANGUAGES[0]) -> str:
    """Return the language of ours that an Accept-Language header asks for most (RFC 9110 section 12.5.4)."""
    wishes = [_wish(part) for part in (accept_language or "").split(",")]
    for quality, tag in sorted(wishes, key=lambda wish: -wish[0]):
        language = tag.split("-")[0].lower()
        if quality > 0 and language in LANGUAGES:
            return language
    return default


def _wish(part: str) -> tuple[float, str]:
    tag, _, parameter = part.partition(";")
    name, _, value = parameter.partition("=")
    try:
        quality = float(value) if name.strip().lower() == "q" else 1.0
    except ValueError:
        quality = 0.0
    return quality, tag.strip()


def format_date(day: date, language: str) -> str:
    """Return the day in words: 2026年10月26日, October 26, 2026."""
    return _format_date(day, format="long", locale=Locale.parse(language))


def weekday(day: date, language: str) -> str:
    """Return the name of the day: 星期一, Monday."""
    return _format_date(day, format="EEEE", locale=Locale.parse(language))
