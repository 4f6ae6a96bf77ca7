"""The command line as an operator runs it: real processes on a database of their own, with the sink as relay."""

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app import cli
from tests.ports import free_port
from tests.sink import Sink

COMMAND = (sys.executable, "-c", "from app.cli import main; main()")
PROGRAMS = (("run",), ("serve",), ("worker",))
PATIENCE = 30.0  # seconds
ROOT = Path(__file__).resolve().parents[1]


class Shop:
    """A folder with a migrated database, the settings for it, and what runs there."""

    def __init__(self, folder: Path, relay: str) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[str]] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BROADSHEET_")}
        self.env = kept | {
            "BROADSHEET_DATABASE_URL": f"sqlite:///{folder}/broadsheet.db",
            "BROADSHEET_RELAYS": relay,
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
            "TZ": "UTC",
        }

    def command(self, *args: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, a program in a process of its own; `settings` are of the environment."""
        if args[:1] not in PROGRAMS:
            return self._here(args, self.env | settings)
        return subprocess.run(
            [*COMMAND, *args], env=self.env | settings, cwd=self.folder, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip

    def _here(self, args: tuple[str, ...], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, where everything is imported already."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name in os.environ.keys() - env.keys():
                patch.delenv(name)
            for name, value in env.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["broadsheet", *args])
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            try:
                cli.main()
                code: object = 0
            except SystemExit as ended:
                code = ended.code or 0
        assert isinstance(code, int)
        said = [each.buffer.getvalue().decode() for each in (out, err)]
        return subprocess.CompletedProcess(args, code, *said)

    def start(self, *args: str, **settings: str) -> subprocess.Popen[str]:
        """Start a program that goes on."""
        program = subprocess.Popen(
            [*COMMAND, *args], env=self.env | settings, cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.running.append(program)
        return program

    def serve(self, *args: str, **settings: str) -> tuple[subprocess.Popen[str], str]:
        """Start `serve` or `run` on a free port, and return it with its address once it answers."""
        port = free_port()
        program = self.start(*args, "--port", str(port), **settings)
        url = f"http://127.0.0.1:{port}"
        until(lambda: program.poll() is not None or answers(url))
        assert program.poll() is None, program.communicate()
        return program, url


def until(holds: object, seconds: float = PATIENCE) -> None:
    """Wait until a call gives something true; raise TimeoutError."""
    assert callable(holds)
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not come about within {seconds:g} s")
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Tell whether a server is ready."""
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def stopped(program: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str, str]:
    """Send a signal and return exit code and output."""
    program.send_signal(number)
    out, err = program.communicate(timeout=PATIENCE)
    return program.returncode, out, err


@pytest.fixture
def shop(tmp_path: Path, empty_database: Path, sink: Sink) -> Iterator[Shop]:
    """A place to run commands in; whatever still runs at the end is killed."""
    folder = tmp_path / "shop"
    folder.mkdir()
    shutil.copy(empty_database, folder / "broadsheet.db")
    one = Shop(folder, f"{sink.url}?connections=3")
    yield one
    for program in one.running:
        if program.poll() is None:
            program.kill()
        program.communicate()
