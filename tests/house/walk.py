"""Walks through a page of the manual as a reader would: starts the server in a folder, types what stands there."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.house.manual import Block
from tests.ports import free_port

BROADSHEET = Path(sys.executable).with_name("broadsheet")
WRITTEN = "http://127.0.0.1:8000"
PATIENCE = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, and the address at which a Broadsheet runs that was started there."""

    folder: Path
    base: str

    def type(self, block: Block) -> str:
        """Run a block in a shell or in Python and return what it printed; what fails is an AssertionError."""
        code = block.code.replace(WRITTEN, self.base)
        program = [sys.executable, "-c"] if block.language == "python" else ["bash", "-euo", "pipefail", "-c"]
        done = subprocess.run(
            [*program, code], cwd=self.folder, env=environment(self.base), capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"line {block.line}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def environment(base: str) -> dict[str, str]:
    """Return the environment of a fresh terminal, our commands in its path."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("BROADSHEET_")}
    path = f"{BROADSHEET.parent}:{plain['PATH']}"
    return plain | {"PATH": path, "BROADSHEET_BASE_URL": base, "COLUMNS": "200", "PYTHONUTF8": "1"}


@contextmanager
def serving(command: list[str], folder: Path, ready: str = "") -> Iterator[Place]:
    """Run a server in a folder on a free port until the block ends; SIGTERM must end it with exit code 0.

    It is ready when /healthz answers and, where `ready` is given, when it has printed that.
    """
    port = free_port()
    base, said = f"http://127.0.0.1:{port}", folder / "said.txt"
    with said.open("w") as output:
        program = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, env=environment(base), stdout=output, stderr=output
        )
    try:
        until(lambda: answers(f"{base}/healthz") and ready in said.read_text(), program, said)
        yield Place(folder, base)
    finally:
        program.terminate()
        try:
            code = program.wait(PATIENCE)
        finally:
            program.kill()
    assert code == 0, said.read_text()


def until(holds, program: subprocess.Popen[bytes], said: Path) -> None:  # type: ignore[no-untyped-def]
    """Wait until something holds; fail when the program ends before, or with patience."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert program.poll() is None and time.monotonic() < end, said.read_text()  # noqa: PT018
        time.sleep(0.1)


def answers(url: str) -> bool:
    """Whether something answers there."""
    try:
        return len(fetch(url)) > 0
    except (urllib.error.URLError, ConnectionError):
        return False


def fetch(url: str) -> str:
    """Return what an address answers."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        text: str = answer.read().decode()
    return text


def is_as_written(printed: str, written: str) -> bool:
    """Compare what was printed with what a page shows, where … stands for anything; order of streams aside."""
    lines = [line.rstrip() for line in printed.splitlines()]
    shown = [line.rstrip() for line in written.splitlines()]
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in shown]
    return len(lines) == len(shown) and all(
        any(re.fullmatch(pattern, line) for line in lines) for pattern in patterns
    )
