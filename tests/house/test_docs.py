"""The manual keeps up with the program: it names all there is, its links lead somewhere, its examples run."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from app import main
from app.cli import broadsheet
from app.core import relay_url
from app.core.config import PREFIX, SECRETS, Settings
from app.core.errors import BroadsheetError
from app.delivery.models import MailingState, State
from app.issues import sources
from app.issues.models import IssueState
from app.issues.sources import SourceError
from app.subscribers import consent
from app.subscribers.models import ImportState
from tests import needs
from tests.house import walk
from tests.house.manual import PAGES, ROOT, Block, anchors, blocks, headings, page, prose, section
from tests.issues.test_markdown import REFUSED as REFUSED_MARKDOWN
from tests.issues.test_plaintext import REFUSED
from tests.world import World

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
CELL = re.compile(r"^\| (`[^|]+`(?:, `[^|]+`)*) +\|", re.MULTILINE)
ELSEWHERE = ("http://", "https://", "mailto:")


def first_cells(text: str) -> set[str]:
    """Return the words in code marks of the first column of the tables of a text."""
    return {word for cell in CELL.findall(text) for word in re.findall(r"`([^`]+)`", cell)}


def calls_told() -> set[str]:
    return {heading for level, heading in headings("docs/api.md") if level == 3}


# -- settings


def test_every_setting_is_in_the_table_and_no_other() -> None:
    told = {cell for cell in first_cells(page("docs/settings.md")) if cell.startswith(PREFIX)}
    assert told == {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}


def test_every_secret_that_may_come_from_a_file_is_told() -> None:
    told = set(re.findall(r"`BROADSHEET_(\w+)_FILE`", page("docs/settings.md")))
    assert told == {name.upper() for name in SECRETS}


def test_every_kind_of_relay_and_every_option_of_one_is_told() -> None:
    told = first_cells(section("docs/settings.md", "Relays"))
    kinds = {cell.partition(":")[0] for cell in told if ":" in cell}
    assert kinds == set(relay_url.DEFAULT_PORTS)
    assert {cell for cell in told if ":" not in cell} == set(relay_url._OPTIONS)


# -- commands


def walked(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below one, with its words."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command, info_name=words)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None, f"{words} {name} is listed and not there"
        yield from walked(f"{words} {name}", found)


COMMANDS = dict(walked("broadsheet", broadsheet))


def test_every_command_has_a_heading_and_every_heading_is_a_command() -> None:
    told = [heading for level, heading in headings("docs/commands.md") if level == 3]
    assert sorted(told) == sorted(COMMANDS)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_of_a_command_is_told_and_no_other(words: str) -> None:
    given = [each for each in COMMANDS[words].params if isinstance(each, click.Option)]
    told = {cell for cell in first_cells(section("docs/commands.md", words)) if cell.startswith("--")}
    assert told == {name for each in given for name in each.opts if name.startswith("--")}


# -- the API


async def test_every_call_has_a_heading_and_every_heading_is_a_call(world: World) -> None:
    paths = (await world.api.get("/openapi.json")).json()["paths"]
    assert calls_told() == {f"{method.upper()} {path}" for path, found in paths.items() for method in found}


async def test_every_parameter_and_field_that_a_call_takes_is_told(world: World) -> None:
    document = (await world.api.get("/openapi.json")).json()
    told = page("docs/api.md") + page("docs/import.md")
    silent = []
    for path, found in document["paths"].items():
        for method, call in found.items():
            names = {each["name"] for each in call.get("parameters", ()) if each["in"] == "query"}
            for content in call.get("requestBody", {}).get("content", {}).values():
                named = content["schema"].get("$ref", "").rpartition("/")[2]
                schema = document["components"]["schemas"].get(named, content["schema"])
                names |= set(schema.get("properties", ()))
            silent += [
                f"{method.upper()} {path}: {name}" for name in names if not re.search(rf"\b{name}\b", told)
            ]
    assert not silent


def kinds(above: type[BroadsheetError]) -> Iterator[type[BroadsheetError]]:
    """Yield an error and those that are of its kind."""
    yield above
    for each in above.__subclasses__():
        yield from kinds(each)


def test_every_error_is_in_the_table_with_its_status() -> None:
    known = {each.type: each.status for each in kinds(BroadsheetError) if each.__module__.startswith("app.")}
    assert callable(main.build)  # importing it has brought every error into being
    text = section("docs/api.md", "Errors")
    assert first_cells(text) == known.keys() | {"bug"}
    for name, status in known.items():
        assert f"| `{name}` | {'–' if name == 'misconfigured' else status} |" in text


# -- states


@pytest.mark.parametrize(
    ("name", "heading", "states"),
    [
        ("docs/sending.md", "States of an issue", set(IssueState)),
        ("docs/sending.md", "States of a mailing", set(MailingState)),
        ("docs/sending.md", "States of a delivery", set(State)),
        ("docs/readers.md", "States of a reader", {*consent.State, *consent.Reason}),
    ],
)
def test_every_state_is_told_and_no_other(name: str, heading: str, states: set[str]) -> None:
    assert first_cells(section(name, heading)) == {str(state) for state in states}


def test_every_state_of_an_import_is_told() -> None:
    told = section("docs/api.md", "GET /imports/{import_id}") + page("docs/import.md")
    assert all(f"`{state}`" in told for state in ImportState)


# -- the text format


def refusals(name: str) -> list[str]:
    return re.findall(r"^\| `(.+?)` \|", section(name, "What is refused"), re.MULTILINE)


def pattern_of(told: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, told.split("…"))), re.DOTALL)


def messages_of(source: str | bytes, format: str = "text") -> list[str]:
    with pytest.raises(SourceError) as refused:
        sources.parse(source, format)
    return [fault.message for fault in refused.value.faults]


def test_every_refusal_of_a_text_is_told_and_no_other() -> None:
    patterns = {told: pattern_of(told) for told in refusals("docs/house-text.md")}
    said = {message for _, source, _, _ in REFUSED for message in messages_of(source)}
    untold = [message for message in said if not any(each.fullmatch(message) for each in patterns.values())]
    unheard = [told for told, each in patterns.items() if not any(map(each.fullmatch, said))]
    assert not untold
    assert unheard == ["The word “__BS_…” stands for a reader's own links and cannot be part of a text."]


def test_every_refusal_of_markdown_is_told_and_no_other() -> None:
    told = {row: pattern_of(row) for row in refusals("docs/markdown.md")}
    shared = [pattern_of(row) for row in refusals("docs/house-text.md")]
    said = {message for source, _, _ in REFUSED_MARKDOWN for message in messages_of(source, "markdown")}
    assert not [
        message for message in said if not any(each.fullmatch(message) for each in [*told.values(), *shared])
    ]
    assert not [row for row, each in told.items() if not any(map(each.fullmatch, said))]


def test_the_sample_of_markdown_is_one() -> None:
    sample = re.search(r"````text\n(.*?)````", page("docs/markdown.md"), re.DOTALL)
    assert sample is not None
    document = sources.parse(sample[1], "markdown")
    assert [len(item.sources) for item in document.items] == [2, 0]
    assert document.question is not None


def test_the_sample_of_the_text_format_is_one() -> None:
    sample = next(block.code for block in blocks("docs/house-text.md") if block.language == "text")
    document = sources.parse(sample)
    assert [section.name for section in document.sections] == ["News", "Looking back"]
    assert document.question is not None


# -- links and pictures


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(path: Path) -> None:
    dead = []
    for link in LINK.findall(prose(path.read_text(encoding="utf-8"))):
        if link.startswith(ELSEWHERE):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


def test_every_page_can_be_reached_from_both_front_pages() -> None:
    for front in ("README.md", "README.zh.md"):
        linked = {link.partition("#")[0] for link in LINK.findall(page(front))}
        told = {str(path.relative_to(ROOT)) for path in PAGES if path.parent == ROOT / "docs"}
        assert told <= linked


def test_pictures_are_small_enough_to_look_at() -> None:
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs/gallery").glob("*.png")}
    assert sizes
    assert max(sizes.values()) <= 400_000, sizes
    assert sum(sizes.values()) <= 4_000_000, sizes


# -- examples


def _name(found: tuple[str, Block]) -> str:
    return f"{found[0]}:{found[1].line}"


EXAMPLES = [
    (str(path.relative_to(ROOT)), block)
    for path in PAGES
    for block in blocks(str(path.relative_to(ROOT)))
    if (block.language, block.word) == ("python", "test")
]


@pytest.mark.parametrize("found", EXAMPLES, ids=_name)
def test_an_example_in_python_holds(found: tuple[str, Block]) -> None:
    name, block = found
    assert "assert" in block.code
    exec(compile("\n" * block.line + block.code, name, "exec"), {})


@pytest.mark.parametrize("name", ["docs/first-issue.md", "README.md", "README.zh.md"])
def test_a_walk_through_the_page_works_as_it_is_written(name: str, tmp_path: Path) -> None:
    steps = blocks(name)
    if any("curl" in step.code for step in steps) and shutil.which("curl") is None:
        needs.give_up("There is no curl to try the examples with.")
    typed = 0
    with walk.serving([str(walk.BROADSHEET), "run", "--demo"], tmp_path, "Ctrl-C") as place:
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if step.word != "run":
                continue
            printed, typed = place.type(step), typed + 1
            if following is not None and following.language == "text":
                assert walk.is_as_written(printed, following.code), printed
        assert "2030-01-02" in walk.fetch(f"{place.base}/archive/daily")
        assert walk.fetch(f"{place.base}/mailbox").count("example.com") >= 4 + 3 + 4
    assert typed > 0
