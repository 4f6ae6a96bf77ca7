"""Where programs are forked from one that has imported everything, so that hundreds may start and die in a run.

`python -m chaos.program` reads one order a line (JSON), forks a child that runs the command line on it, and
writes the child's pid; when a child has ended, its exit code is in the file `exit` of its order. A child's clock
may be turned from outside: the file CHAOS_CLOCK holds the seconds to add. CHAOS_PATIENCE shortens how long a
relay is waited for.
"""

import importlib
import json
import mmap
import os
import pkgutil
import signal
import struct
import sys
import traceback
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

FORM = struct.Struct("d")
added: mmap.mmap | None = None  # of this child


def read(path: Path) -> float:
    """Return how many seconds a clock file adds."""
    seconds: float = FORM.unpack(path.read_bytes())[0]
    return seconds


def write(path: Path, seconds: float) -> None:
    """Make a clock file add so many seconds; who has it open sees it at once."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        file.write(FORM.pack(seconds))


def turned() -> datetime:
    """Return the time as this child has it."""
    return datetime.now(UTC) + timedelta(seconds=FORM.unpack(added[:])[0] if added else 0.0)


def prepare() -> None:
    """Put our clock in before anything takes the real one by name, then import all that a program needs."""
    from app.core import clock

    clock.clock = turned
    import app

    for found in pkgutil.walk_packages(app.__path__, "app."):
        importlib.import_module(found.name)
    for name in (
        "aiosqlite",
        "psycopg",
        "psycopg_binary",
        "procrastinate",
        "rich.console",
        "rich.table",
        "sqlalchemy.dialects.postgresql.psycopg",
    ):
        importlib.import_module(name)
    from sqlalchemy.orm import configure_mappers

    configure_mappers()


def become(order: dict[str, Any]) -> None:
    """Take the folder, the environment and the output of an order."""
    global added
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for number, name in ((0, "/dev/null"), (1, order["out"]), (2, order["err"])):
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["broadsheet", *order["words"]]
    if path := os.environ.get("CHAOS_CLOCK"):
        with Path(path).open("rb") as file:
            added = mmap.mmap(file.fileno(), FORM.size, access=mmap.ACCESS_READ)
    if seconds := os.environ.get("CHAOS_PATIENCE"):
        hurry(float(seconds))


def hurry(seconds: float) -> None:
    """Let this child wait for a relay no longer than so many seconds."""
    from app.cli import run
    from app.mail.relay import Relay
    from app.mail.smtp import Timeouts

    short = Timeouts(opening=seconds, command=seconds, data=seconds, block=seconds, dot=seconds)
    vars(run)["Relay"] = partial(Relay, timeouts=short)


def obey(order: dict[str, Any]) -> NoReturn:
    """Run an order to its end in this child, and end with its exit code."""
    code: object = 70
    try:
        become(order)
        from app import cli

        cli.main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
        if isinstance(code, str):
            sys.stderr.write(code)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def serve() -> None:
    """Fork a child for each order that comes, and note the exit code of each that ends."""
    exits: dict[int, Path] = {}

    def reap(*_: object) -> None:
        while exits:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            path = exits.pop(pid)
            path.with_suffix(".part").write_text(str(os.waitstatus_to_exitcode(status)))
            path.with_suffix(".part").rename(path)

    signal.signal(signal.SIGCHLD, reap)
    say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            obey(order)
        exits[child] = Path(order["exit"])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        say(child)


def say(word: object) -> None:
    """Write one line to whoever gives the orders."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # A child pickles nothing and imports nothing of us: it must see this very module's clock.
    sys.modules["chaos.program"] = sys.modules["__main__"]
    prepare()
    serve()
