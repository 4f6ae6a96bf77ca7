"""How Broadsheet gets onto a machine: the locks, the Makefile, the container."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ;[^\\]*)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+$", re.MULTILINE)


def pins(lock: str) -> dict[str, str]:
    """Return name → version of every package that is pinned and has a hash."""
    return dict(PIN.findall((ROOT / lock).read_text()))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~; ]", each)[0].lower().replace("_", "-") for each in requirements}


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_locked_has_a_hash_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert len(pins(lock)) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE)) > 0
    assert "://" not in text


def test_the_locks_hold_all_that_is_asked_for() -> None:
    runtime = names(PROJECT["project"]["dependencies"])
    for extra in PROJECT["project"]["optional-dependencies"].values():
        runtime |= names(extra)
    assert runtime <= pins("requirements.lock").keys()
    assert runtime | names(PROJECT["dependency-groups"]["dev"]) <= pins("requirements-dev.lock").keys()
    assert names(PROJECT["build-system"]["requires"]) <= pins("requirements-build.lock").keys()


def test_what_is_tested_is_what_is_run() -> None:
    tested = pins("requirements-dev.lock")
    for lock in LOCKS:
        assert pins(lock).items() <= tested.items()


def test_make_help_lists_every_target() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"run", "test"} <= targets <= set(re.findall(r"^  ([a-z]+) ", told, re.MULTILINE))


def test_a_python_that_is_too_old_is_told_in_a_sentence(tmp_path: Path) -> None:
    for name in ("python3", "python3.13", "python3.12", "python3.11"):
        old = tmp_path / name
        old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2 && exit\nexit 1\n')
        old.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    make = ["make", "run", "PYTHON=python3"]
    done = subprocess.run(make, cwd=ROOT, env=path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Broadsheet needs Python 3.11 or newer; python3 is Python 3.9.2." in done.stderr


def test_the_container_runs_as_nobody_in_particular_and_says_how_it_is() -> None:
    text = (ROOT / "Dockerfile").read_text()
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!0|root)\S+", last, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*\\\n.*healthz", last, re.MULTILINE)
    assert "VOLUME /data" in last
    assert "--require-hashes -r requirements.lock" in text


def test_the_container_copies_only_what_is_there() -> None:
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert copies
    for name in " ".join(copies).split():
        assert (ROOT / name).exists(), name
