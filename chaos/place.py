"""A folder with a database, the commands that a person would type in it, and the programs that run there."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parents[1]
KEY = "0123456789abcdef" * 4
PATIENCE = 120.0  # seconds


class Broken(Exception):
    """A promise was not kept; the text says which."""


@dataclass
class Program:
    """A program of ours that goes on; what it says is in `out` and `err`, `exit` is there when it has ended."""

    pid: int
    out: Path
    err: Path
    exit: Path

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return not self.exit.exists()

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for its end and return its exit code, or the negative number of the signal that ended it."""
        until(lambda: not self.alive, "the end of a program", seconds)
        return int(self.exit.read_text())

    def kill(self) -> None:
        """End it as the kernel does, without a word."""
        self.send(signal.SIGKILL)
        self.wait()

    def stop(self) -> float:
        """Ask it to end, and return how many seconds that took; raise Broken when its exit code is not 0."""
        began = time.monotonic()
        self.send(signal.SIGTERM)
        if code := self.wait():
            raise Broken(f"SIGTERM ended it with {code}: {self.said()[-300:]}")
        return time.monotonic() - began

    def said(self) -> str:
        """Return what it has logged."""
        return self.err.read_text(errors="replace")


class Cradle:
    """The process that all programs are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.program"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._hear()

    def fork(self, order: dict[str, Any]) -> int:
        """Start a program and return its pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._hear())

    def close(self) -> None:
        """End it; the programs have ended before."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return next(self._process.stdout)


@dataclass
class Place:
    """A folder, the address of its database, where its mail goes, and its clock file if it has one."""

    cradle: Cradle
    folder: Path
    url: str
    relay: str = "smtp+plain://127.0.0.1:1"
    clock: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Ours without the settings of somebody's own Broadsheet."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("BROADSHEET_")}
        given = {
            "BROADSHEET_DATABASE_URL": self.url,
            "BROADSHEET_RELAYS": self.relay,
            "BROADSHEET_SECRET_KEY": KEY,
            "BROADSHEET_SUPPRESSION_KEY": KEY,
            "BROADSHEET_POSTAL_ADDRESS": "1 Example Street",
            "BROADSHEET_CONTACT": "editor@example.com",
        }
        turned = {"CHAOS_CLOCK": str(self.clock)} if self.clock else {}
        return plain | given | turned | self.settings

    def run(self, *words: str, **settings: str) -> str:
        """Run a command to its end and return what it printed."""
        one = self.start(*words, **settings)
        if one.wait():
            raise Broken(f"broadsheet {' '.join(words)}: {worst(one.said())}")
        return one.out.read_text()

    def ask(self, *words: str) -> Any:
        """Run a command with --json and return what it said."""
        return json.loads(self.run(*words, "--json"))

    def start(self, *words: str, **settings: str) -> Program:
        """Start a program that goes on."""
        name = f"{words[0]}-{len(self.programs)}"
        out, err, ended = (self.folder / f"{name}.{kind}" for kind in ("out", "err", "exit"))
        order = {
            "words": words, "folder": str(self.folder), "environment": self.environment | settings,
            "out": str(out), "err": str(err), "exit": str(ended),
        }  # fmt: skip
        self.programs.append(Program(self.cradle.fork(order), out, err, ended))
        return self.programs[-1]

    def end(self) -> None:
        """End every program that still runs, frozen ones too."""
        for program in self.programs:
            program.kill()

    def rows(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Look into the database from outside; an instant comes as `moment` reads it."""
        url = url or self.url
        if url.startswith("sqlite"):
            with sqlite3.connect(
                f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True, timeout=30
            ) as one:
                found = one.execute(statement).fetchall()
            one.close()
            return found
        with psycopg.connect(url, connect_timeout=10) as other:
            return other.execute(statement.encode()).fetchall()

    def one(self, statement: str) -> Any:
        """Return the one value that a statement finds."""
        return self.rows(statement)[0][0]


def worst(said: str) -> str:
    """Return the part of what a failed program printed that names the cause."""
    lines = [line for line in said.splitlines() if line and not line[0].isspace()]
    return " | ".join(line for line in lines if "rror" in line or "rong" in line)[-400:] or said[-300:]


def moment(value: str | datetime) -> datetime:
    """Return an instant as either database tells it."""
    told = datetime.fromisoformat(value) if isinstance(value, str) else value
    return told.replace(tzinfo=UTC) if told.tzinfo is None else told


def until(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until a call gives something true; raise Broken with `what` was waited for."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Broken(f"{what} did not come about within {seconds:.0f} s")
        time.sleep(0.05)


def written(folder: Path, addresses: Sequence[str]) -> Path:
    """Write a file of readers of the daily edition and return its path."""
    path = folder / "readers.csv"
    rows = (f"{address},Reader,zh,daily\n" for address in addresses)
    path.write_text("email,name,language,editions\n" + "".join(rows))
    return path


def copied(database: Path, folder: Path) -> str:
    """Copy an SQLite file that nobody has open, and return the copy's address."""
    shutil.copy(database, folder / "broadsheet.db")
    return f"sqlite:///{folder}/broadsheet.db"
