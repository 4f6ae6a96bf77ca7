"""The container gives nothing away: nobody runs it, from checked packages, on a root it need not write."""

import fnmatch
import json
import re
import sys
from pathlib import Path

import pytest

from tests.house import walk
from tests.house.manual import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
BUILD, _, LAST = TEXT.partition("\nFROM ")[2].rpartition("\nFROM ")
# What is in the container's file system outside /data and /tmp cannot be written in it.
WATCH = """
import json, os, sys
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
def hear(event, given):
    if event == "open" and isinstance(given[0], (str, bytes)) and given[2] & WRITING:
        note(given[0])
    elif event in ("os.mkdir", "os.rename", "os.remove", "sqlite3.connect", "shutil.copyfile"):
        note(given[0])
def note(path):
    found.add(os.path.abspath(os.fsdecode(path)))
found = set()
sys.addaudithook(hear)
sys.dont_write_bytecode = True
sys.argv[0] = "broadsheet"
from app.cli import main
try:
    main()
finally:
    print("WROTE " + json.dumps(sorted(found)), flush=True)
"""


def instructions(text: str, name: str) -> list[str]:
    """Return the arguments of an instruction, lines that continue joined."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return re.findall(rf"^{name} (.+)$", joined, re.MULTILINE)


def allowed() -> list[str]:
    """Return what .dockerignore lets into the build."""
    lines = (ROOT / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    return [line[1:] for line in lines if line.startswith("!")]


def test_it_runs_as_nobody_in_particular() -> None:
    (user,) = instructions(LAST, "USER")
    made = re.search(r"useradd --system --uid (\d+) .*--shell /usr/sbin/nologin (\S+)", LAST)
    assert made is not None
    assert int(made[1]) >= 10000
    assert user == made[2]
    after = LAST.partition("\nUSER ")[2]
    assert not instructions(after, "RUN")
    assert not instructions(after, "COPY")


def test_it_says_how_it_is_with_what_is_inside() -> None:
    (check,) = instructions(LAST, "HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    assert command[0] == "python"
    assert "/healthz" in command[2]
    compile(command[2], "HEALTHCHECK", "exec")
    assert {"--interval", "--timeout", "--start-period", "--retries"} <= set(re.findall(r"--[a-z-]+", check))


def test_nothing_is_installed_that_was_not_checked() -> None:
    for run in instructions(TEXT, "RUN"):
        for step in run.split("&&"):
            if re.search(r"\bpip install\b", step):
                assert "--require-hashes -r requirements" in step or "--no-deps --no-index" in step, step
            if re.search(r"\bpip wheel\b", step):
                assert "--no-deps --no-build-isolation" in step
    assert not instructions(TEXT, "ADD")
    assert "curl" not in TEXT
    assert "apt-get" not in TEXT


def test_nothing_secret_is_baked_in() -> None:
    assert not instructions(TEXT, "ARG")
    assert not re.search(r"^ENV .*(KEY|SECRET|PASSWORD|TOKEN|RELAYS)", TEXT, re.MULTILINE)


def test_every_copied_path_is_there_and_let_in() -> None:
    let_in = allowed()
    copied = [
        name
        for copy in instructions(TEXT, "COPY")
        if not copy.startswith("--from")
        for name in copy.split()[:-1]
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert any(fnmatch.fnmatch(name, each) for each in let_in), name
    for private in (".env", "var", ".git", ".venv", "tests"):
        assert private not in let_in


def test_what_the_package_needs_to_be_built_is_copied() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    needed = {"pyproject.toml", "README.md", "LICENSE", "app"}
    needed |= set(re.findall(r'^"([a-z]+)" = "app/', project, re.MULTILINE))
    copied = {word for copy in instructions(BUILD, "COPY") for word in copy.split()}
    assert needed <= copied


def test_all_it_keeps_is_in_its_volume() -> None:
    assert instructions(LAST, "VOLUME") == ["/data"]
    assert instructions(LAST, "WORKDIR") == ["/data"]
    assert "BROADSHEET_DATABASE_URL=sqlite:////data/" in LAST
    assert instructions(LAST, "STOPSIGNAL") == ["SIGTERM"]
    assert json.loads(instructions(LAST, "ENTRYPOINT")[0]) == ["broadsheet"]
    assert json.loads(instructions(LAST, "CMD")[0])[0] == "run"
    assert all(int(port) >= 1024 for port in instructions(LAST, "EXPOSE"))


def test_the_program_writes_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("HOME", str(data))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with walk.serving([sys.executable, "-c", WATCH, "run", "--demo"], data, "Ctrl-C") as place:
        walk.fetch(f"{place.base}/archive")
        walk.fetch(f"{place.base}/mailbox")
    (line,) = re.findall(r"^WROTE (.+)$", (data / "said.txt").read_text(), re.MULTILINE)
    wrote = json.loads(line)
    assert str(data / "var" / "broadsheet.db") in wrote
    elsewhere = [name for name in wrote if not name.startswith((f"{data}/", "/tmp/", "/dev/"))]
    assert elsewhere == []


def test_the_ways_to_run_it_that_are_told_give_it_no_rights() -> None:
    for name in ("Dockerfile", "docs/operate.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        run = re.search(r"docker run(?:.*\\\n)*.*", text)
        assert run is not None
        for flag in ("--read-only", "--tmpfs /tmp", "--cap-drop ALL", ":/data"):
            assert flag in run[0], f"{name}: {flag}"
        assert "--privileged" not in run[0]
