"""A folder for one measurement, with a database of its own and the commands that a person would type."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BROADSHEET = Path(sys.executable).with_name("broadsheet")
PATIENCE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with an SQLite file in it; `relay` is where its mail goes."""

    folder: Path
    relay: str

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.folder / "bench.db"

    @property
    def environment(self) -> dict[str, str]:
        """Ours without the settings of somebody's own Broadsheet."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("BROADSHEET_")}
        return plain | {
            "BROADSHEET_DATABASE_URL": f"sqlite:///{self.database}",
            "BROADSHEET_RELAYS": self.relay,
        }

    def run(self, *words: str) -> str:
        """Run a command to its end and return what it printed."""
        done = subprocess.run(
            [BROADSHEET, *words], cwd=self.folder, env=self.environment, capture_output=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"broadsheet {' '.join(words)}: {done.stderr.decode()}")
        return done.stdout.decode()

    def ask(self, *words: str) -> Any:
        """Run a command with --json and return what it said."""
        return json.loads(self.run(*words, "--json"))

    @contextmanager
    def running(self, *words: str) -> Iterator[None]:
        """Keep a program running while the block runs."""
        with (self.folder / f"{words[0]}.log").open("wb") as log:
            program = subprocess.Popen(
                [BROADSHEET, *words], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        try:
            yield
        finally:
            program.terminate()
            program.wait(PATIENCE)

    def readers(self, count: int) -> Path:
        """Write a file of so many readers and return its path."""
        path = self.folder / "readers.csv"
        rows = (f"reader{number}@example.com,Reader {number},zh,daily\n" for number in range(count))
        path.write_text("email,name,language,editions\n" + "".join(rows))
        return path


@contextmanager
def place(relay: str = "smtp+plain://127.0.0.1:1") -> Iterator[Place]:
    """Give a migrated database in a folder beside the one that `make run` uses, so on the same disk."""
    (ROOT / "var").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "var"))
    try:
        made = Place(folder, relay)
        made.run("migrate")
        yield made
    finally:
        shutil.rmtree(folder)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Wait until somebody listens on a port."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nobody listens on port {port}")
