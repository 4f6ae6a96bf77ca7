"""The house keeps its own rules: short files and functions, plain words, floors, nothing left lying about."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "app"
FILES = sorted(APP.rglob("*.py"))
REGISTRIES = {"sources", "imports", "providers"}
WORDS = {"campaign", "blast", "manager", "helper", "helpers", "util", "utils", "service", "services"}
PURE = {
    "cadence",
    "consent",
    "dkim",
    "document",
    "dsn",
    "policy",
    "preflight",
    "report",
    "timing",
    "verdict",
    "verp",
}
OURS = ("app", "tests", "alembic", "templates", "docs", ".ci", "Makefile", "Dockerfile", "pyproject.toml")
# Written so that neither pattern finds itself.
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
SOMEONES_MACHINE = re.compile(r"(?<![\w.:/-])/(?:root|work|home/[a-z]|Users/[A-Za-z])[\w./-]*/")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=name_of(path))


def functions_in(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def names_given_in(tree: ast.AST) -> Iterator[str]:
    """Yield what we name ourselves: functions, classes, arguments, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def words_of(name: str) -> set[str]:
    """Return the words of a snake_case or CamelCase name, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def texts() -> Iterator[tuple[str, str]]:
    """Yield every text of ours with its name; captured payloads are others' words."""
    for top in OURS:
        place = ROOT / top
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if (
                path.is_file()
                and "payloads" not in path.parts
                and path.suffix
                in {
                    "",
                    ".py",
                    ".md",
                    ".toml",
                    ".html",
                    ".txt",
                    ".css",
                    ".po",
                    ".mako",
                    ".ini",
                    ".yaml",
                }
            ):
                yield name_of(path), path.read_text(encoding="utf-8")


def test_no_file_is_longer_than_three_hundred_lines() -> None:
    long = {name_of(path): count for path in FILES if (count := len(path.read_text().splitlines())) > 300}
    assert not long


def test_no_function_is_longer_than_forty_lines() -> None:
    long = [
        f"{name_of(path)}:{function.lineno} {function.name}"
        for path in FILES
        for function in functions_in(tree_of(path))
        if (function.end_lineno or 0) - function.lineno + 1 > 40
    ]
    assert not long


def test_no_function_takes_more_than_six_arguments() -> None:
    greedy = []
    for path in FILES:
        for function in functions_in(tree_of(path)):
            given = function.args
            names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            if len([name for name in names if name not in ("self", "cls")]) > 6:
                greedy.append(f"{name_of(path)}:{function.lineno} {function.name}")
    assert not greedy


def test_every_file_opens_with_a_sentence() -> None:
    silent = []
    for path in FILES:
        first = (ast.get_docstring(tree_of(path)) or "").split("\n\n")[0]
        if not first.endswith((".", "?", ".)")):
            silent.append(name_of(path))
    assert not silent


def test_a_package_opens_with_one_sentence_and_holds_nothing_else() -> None:
    full = [
        name_of(path)
        for path in APP.rglob("__init__.py")
        if path.parent.name not in REGISTRIES
        and path.parent != APP / "cli"
        and (len(tree_of(path).body) != 1 or "\n" in (ast.get_docstring(tree_of(path)) or "\n"))
    ]
    assert not full


def test_nothing_is_named_by_a_word_we_do_not_use() -> None:
    found = []
    for path in FILES:
        names = {*names_given_in(tree_of(path)), path.stem, path.parent.name}
        found += [f"{name_of(path)}: {name}" for name in sorted(names) if words_of(name) & WORDS]
    assert not found


@pytest.mark.parametrize("name", ["MailManager", "send_blast", "utils", "SMTPService", "do_HELPER"])
def test_the_words_are_found_however_they_are_joined(name: str) -> None:
    assert words_of(name) & WORDS


def test_the_rules_never_ask_what_time_it_is() -> None:
    asking = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        if path.stem in PURE or REGISTRIES & set(path.parts)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
    ]
    assert not asking


def test_each_floor_stands_on_those_beneath_it() -> None:
    """Run import-linter with the contracts of pyproject.toml."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_nothing_is_left_for_later() -> None:
    left = [name for name, text in texts() if LEFTOVER.search(text)]
    assert not left


def test_no_path_of_somebodys_machine_is_written_down() -> None:
    found = {name: match[0] for name, text in texts() if (match := SOMEONES_MACHINE.search(text))}
    assert not found
