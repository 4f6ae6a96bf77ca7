"""The commands on readers say what became of each row, and end with the right code."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.cli import broadsheet

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `broadsheet subscribers …` on an empty database."""
    shutil.copy(empty_database, tmp_path / "broadsheet.db")
    monkeypatch.setenv("BROADSHEET_DATABASE_URL", f"sqlite:///{tmp_path}/broadsheet.db")
    monkeypatch.chdir(tmp_path)

    def one(*words: str) -> Result:
        return CliRunner().invoke(broadsheet, ["subscribers", *words])

    return one


def told(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "readers.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_is_taken_and_counted_and_bad_rows_named_by_line(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, "email,name,shoe size\na@example.com,安,41\nbad,b,42\na@example.com,安,41\n")
    done = run("import", file, "--editions", "daily")
    assert done.exit_code == 0, done.output
    assert "Read as a table: email ← email, name ← name" in done.stderr
    assert "Ignored: shoe size" in done.stderr
    assert "line 3: invalid: An address must have an @-sign." in done.stderr
    assert "line 4: doubled: " in done.stderr
    table = [line.split() for line in done.stdout.splitlines()]
    assert table == [["rows", "count"], ["new", "1"], ["doubled", "1"], ["invalid", "1"], ["in", "all", "3"]]


def test_a_file_with_square_brackets_in_its_name_is_taken_under_a_bar(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    file = Path(written(tmp_path, "email\na@example.com\n")).rename(tmp_path / "[bold]readers.csv")
    done = run("import", str(file), "--editions", "daily")
    assert done.exit_code == 0, done.output
    assert file.name in done.stderr


def test_a_dry_run_says_so_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, "email\na@example.com\n")
    done = run("import", file, "--editions", "daily", "--dry-run")
    assert "This was a dry run; nothing was changed." in done.stdout
    assert not run("list", "--json").stdout


def test_machines_are_told_in_one_object(run: Run, tmp_path: Path) -> None:
    found = told(
        run("import", written(tmp_path, "email\na@example.com\nbad\n"), "--editions", "daily", "--json")
    )
    assert (found["state"], found["counts"]["new"], found["source"]) == ("done", 1, "import:readers.csv")
    assert [row["line"] for row in found["rows"]] == [3]


@pytest.mark.parametrize("text", ["email\nbad\nworse\n", "email\n", "name\nAnn\n", ""])
def test_a_file_in_which_nothing_can_be_read_ends_with_1(run: Run, tmp_path: Path, text: str) -> None:
    assert run("import", written(tmp_path, text), "--editions", "daily").exit_code == 1


def test_a_file_that_is_not_there_is_a_slip_of_the_pen(run: Run) -> None:
    assert run("import", "nowhere.csv").exit_code == 2


def test_what_is_exported_comes_in_again(run: Run, tmp_path: Path, empty_database: Path) -> None:
    file = written(
        tmp_path, "email,name,editions,status\na@example.com,安,weekly,\nb@example.com,,daily,ended (left)\n"
    )
    run("import", file)
    out = tmp_path / "out.csv"
    assert run("export", "-o", str(out)).exit_code == 0
    assert out.read_bytes() == run("export").stdout_bytes
    assert run("export", "--state", "ended").stdout.count("\n") == 2
    assert run("export", "--edition", "monthly").exit_code == 1
    shutil.copy(empty_database, tmp_path / "broadsheet.db")
    assert told(run("import", str(out), "--json"))["counts"]["new"] == 1
    assert run("export").stdout_bytes == out.read_bytes()


def test_a_reader_is_shown_with_the_proof_of_their_consent(run: Run, tmp_path: Path) -> None:
    run("import", written(tmp_path, "email\na@example.com\n"), "--editions", "daily", "--source", "paper")
    found = told(run("show", "A@example.com", "--json"))
    assert (found["status"], found["suppressed"]) == ("active", None)
    assert [(one["kind"], one["source"]) for one in found["consent"]] == [("imported", "paper")]
    assert "imported" in run("show", "a@example.com").stdout
    assert run("show", "nobody@example.com").exit_code == 1


def test_a_reader_is_erased_for_good(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, "email\na@example.com\n")
    run("import", file, "--editions", "daily")
    assert run("erase", "a@example.com").stdout == "Erased.\n"
    assert told(run("import", file, "--editions", "daily", "--json"))["counts"]["suppressed"] == 1
    assert run("erase", "nobody@example.com").exit_code == 1


def test_a_reader_who_has_not_confirmed_is_asked_again_once_a_day(run: Run) -> None:
    told(run("add", "a@example.com", "--editions", "daily", "--confirm", "--json"))
    assert run("resend-confirmation", "a@example.com").exit_code == 1  # asked a moment ago
    told(run("add", "b@example.com", "--editions", "daily", "--json"))
    assert run("resend-confirmation", "b@example.com").exit_code == 1


def test_readers_of_an_edition_are_listed(run: Run) -> None:
    for address, edition in (("a@example.com", "daily"), ("b@example.com", "weekly")):
        told(run("add", address, "--editions", edition, "--json"))
    rows = [json.loads(line) for line in run("list", "--edition", "weekly", "--json").stdout.splitlines()]
    assert [row["email"] for row in rows] == ["b@example.com"]
