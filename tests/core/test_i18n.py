"""Every language says everything that the templates and the code ask for, and nothing nobody asks for."""

import ast
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from jinja2 import Environment, nodes

from app.core import i18n, paths

APP = Path(i18n.__file__).parents[1]
CALLS = {"_", "gettext", "ngettext", "say"}
KEY = re.compile(r"[a-z]+(\.[a-z0-9_-]+)+")
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]")


def entries(language: str) -> dict[str, list[str]]:
    with (i18n.LOCALES / f"{language}.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    forms = {m.id if isinstance(m.id, str) else m.id[0]: m.string or "" for m in catalogue if m.id}
    return {key: [form] if isinstance(form, str) else list(form) for key, form in forms.items()}


def constants_in_python() -> Iterator[tuple[str, bool]]:
    """Yield each literal that may be a key, as a pattern, with whether it is handed to a catalogue."""
    for file in APP.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        asked = {id(call.args[0]) for call in ast.walk(tree) if isinstance(call, ast.Call) and asks(call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEY.fullmatch(node.value):
                yield re.escape(node.value), id(node) in asked
            elif isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
                yield from pattern(parts)


def asks(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return bool(call.args) and name in CALLS


def constants_in_templates() -> Iterator[tuple[str, bool]]:
    environment = Environment(extensions=["jinja2.ext.i18n"])
    for file in paths.templates().rglob("*.*"):
        if file.suffix not in (".html", ".txt", ".xml"):
            continue
        tree = environment.parse(file.read_text(encoding="utf-8"))
        calls = [call for call in tree.find_all(nodes.Call) if getattr(call.node, "name", "") in CALLS]
        asked = {id(call.args[0]) for call in calls if call.args}
        for constant in tree.find_all(nodes.Const):
            if isinstance(constant.value, str) and KEY.fullmatch(constant.value):
                yield re.escape(constant.value), id(constant) in asked
        for joined in tree.find_all(nodes.Concat):
            yield from pattern([getattr(part, "value", None) for part in joined.nodes])


def pattern(parts: Sequence[object]) -> Iterator[tuple[str, bool]]:
    """Yield what a key put together from literals and gaps looks like, when it starts as a key does."""
    if parts and isinstance(parts[0], str) and re.match(r"[a-z]+\.", parts[0]):
        yield "".join(re.escape(part) if isinstance(part, str) else r"[^.]+" for part in parts), False


def literals() -> list[tuple[str, bool]]:
    return [*constants_in_python(), *constants_in_templates()]


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_every_language_has_the_keys_of_the_first(language: str) -> None:
    assert entries(language).keys() == entries(i18n.LANGUAGES[0]).keys()


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_no_message_is_empty(language: str) -> None:
    assert [key for key, forms in entries(language).items() if not all(forms)] == []


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_a_message_has_the_same_placeholders_in_every_language(language: str) -> None:
    first, other = entries(i18n.LANGUAGES[0]), entries(language)

    def placeholders(forms: list[str]) -> set[str]:
        return {found for form in forms for found in PLACEHOLDER.findall(form)}

    assert [key for key in first if placeholders(first[key]) != placeholders(other[key])] == []


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_a_percent_sign_is_doubled_where_it_is_no_placeholder(language: str) -> None:
    forms = [form for several in entries(language).values() for form in several]
    assert [form for form in forms if "%" in PLACEHOLDER.sub("", form).replace("%%", "")] == []


def test_every_key_that_is_asked_for_exists() -> None:
    asked_for = {literal.replace("\\", "") for literal, asked in literals() if asked}
    assert asked_for - entries(i18n.LANGUAGES[0]).keys() == set()


def test_every_key_is_asked_for() -> None:
    wanted = re.compile("|".join({literal for literal, _ in literals()}))
    assert [key for key in entries(i18n.LANGUAGES[0]) if not wanted.fullmatch(key)] == []


def test_a_key_without_a_message_is_an_error_and_not_shown() -> None:
    with pytest.raises(LookupError, match=r"no\.such\.key"):
        i18n.catalogue("en").gettext("no.such.key")
    with pytest.raises(LookupError, match=r"no\.such\.key"):
        i18n.catalogue("en").ngettext("no.such.key", "no.such.keys", 2)


def test_a_language_without_a_catalogue_is_an_error() -> None:
    with pytest.raises(LookupError, match="there are zh, en"):
        i18n.catalogue("../zh")


def test_a_catalogue_is_read_once_and_knows_its_tag() -> None:
    assert i18n.catalogue("zh") is i18n.catalogue("zh")
    assert [i18n.catalogue(language).tag for language in ("zh", "en")] == ["zh-CN", "en"]


def test_a_message_is_said_with_its_values() -> None:
    assert i18n.catalogue("zh").say("mail.until", date=date(2026, 10, 25)) == "至 2026-10-25"


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "zh"),
        ("", "zh"),
        ("*", "zh"),
        ("en", "en"),
        ("en-GB,en;q=0.9", "en"),
        ("ZH-Hant-TW", "zh"),
        ("fr, en;q=0.4, zh;q=0.6", "zh"),
        ("fr-CH, de;q=0.9", "zh"),
        ("zh;q=0, en;q=0.1", "en"),
        ("en;q=much, zh-CN;q=0.1", "zh"),
        ("en; q=0.9 , zh; q=0.8", "en"),
        (";;;,,,=", "zh"),
    ],
)
def test_a_browser_gets_the_language_it_asks_for_most(header: str | None, language: str) -> None:
    assert i18n.negotiate(header) == language


def test_a_browser_that_asks_for_nothing_of_ours_gets_the_default() -> None:
    assert i18n.negotiate("fr", default="en") == "en"


def test_days_are_named_in_the_language() -> None:
    day = date(2026, 10, 26)
    assert (i18n.weekday(day, "zh"), i18n.weekday(day, "en")) == ("星期一", "Monday")
    assert i18n.format_date(day, "zh") == "2026年10月26日"
    assert i18n.format_date(day, "en") == "October 26, 2026"
