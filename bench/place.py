"""A folder for one measurement, with a database of its own and the commands that a person would type."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parent.parent
BROADSHEET = Path(sys.executable).with_name("broadsheet")
SAMPLE = ROOT / "app" / "cli" / "samples" / "daily.txt"
KEY = "0123456789abcdef" * 4
NOWHERE = "smtp+plain://127.0.0.1:1"  # nobody listens there
PATIENCE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, the address of its database, and where its mail goes."""

    folder: Path
    url: str
    relay: str = NOWHERE
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Ours without the settings of somebody's own Broadsheet."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("BROADSHEET_")}
        return (
            plain
            | {
                "BROADSHEET_DATABASE_URL": self.url,
                "BROADSHEET_RELAYS": self.relay,
                "BROADSHEET_SECRET_KEY": KEY,
                "BROADSHEET_SUPPRESSION_KEY": KEY,
            }
            | self.settings
        )

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
    def running(self, *words: str) -> Iterator[int]:
        """Keep a program running while the block runs; give its process id."""
        with (self.folder / f"{words[0]}.log").open("ab") as log:
            program = subprocess.Popen(
                [BROADSHEET, *words], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        try:
            yield program.pid
        finally:
            program.terminate()
            program.wait(PATIENCE)

    def hand_in(self, number: int) -> int:
        """Hand in the sample daily as the issue of a day and return its id."""
        day = str(date(2030, 1, 1) + timedelta(days=number))
        made: int = self.ask("issues", "add", str(SAMPLE), "--edition", "daily", "--date", day)["id"]
        return made

    def key(self) -> str:
        """Make a key for its API and return it."""
        made: str = self.ask("keys", "create", "bench", "--scope", "admin")["key"]
        return made

    def size_of(self, issue: int) -> int:
        """Return how many bytes a reader's copy of an issue has."""
        return len(self.run("issues", "preview", str(issue), "--part", "message").encode())

    def readers(self, count: int) -> Path:
        """Write a file of so many readers and return its path."""
        path = self.folder / "readers.csv"
        rows = (f"reader{number}@example.com,Reader {number},zh,daily\n" for number in range(count))
        path.write_text("email,name,language,editions\n" + "".join(rows))
        return path

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Look into the database from outside."""
        if not self.url.startswith("sqlite"):
            with psycopg.connect(self.url) as other:
                return other.execute(statement.encode()).fetchall()
        path = self.url.removeprefix("sqlite:///")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE) as connection:
            found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        connection.close()
        return found

    def one(self, statement: str) -> Any:
        """Return the one value that a statement finds."""
        return self.rows(statement)[0][0]

    def change(self, *statements: str) -> None:
        """Run statements in one transaction."""
        if not self.url.startswith("sqlite"):
            with psycopg.connect(self.url) as other:
                for each in statements:
                    other.execute(each.encode())
            return
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=PATIENCE)
        with connection:
            for each in statements:
                connection.execute(each)
        connection.close()


def moment(value: str | datetime) -> datetime:
    """Return an instant as either database tells it."""
    instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


def wait_for(port: int) -> None:
    """Wait until somebody listens on a port."""

    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    until(listens, f"somebody to listen on port {port}")


def until(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until a call gives something true; raise RuntimeError with what was waited for."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"after {seconds:.0f} s there was not {what}")
        time.sleep(0.05)
