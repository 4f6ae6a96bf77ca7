"""A PostgreSQL server of our own, durable as in production, that may be stopped, frozen and started again."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg import sql

from tests.ports import free_port
from tests.postgres import find_programs, initialise, log_in, run_alone, unprivileged

PATIENCE = 60.0  # seconds until a server answers


@dataclass
class Server:
    """The programs, the folder and the port of a server, which runs from `start` to `stop`."""

    programs: Path
    folder: Path
    who: dict[str, Any]
    password: str = field(repr=False)
    port: int
    _process: "subprocess.Popen[bytes] | None" = None

    def url(self, database: str) -> str:
        """Return the address of a database on this server."""
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and return when it answers; raise TimeoutError with the end of its log."""
        options = ["listen_addresses=127.0.0.1", "unix_socket_directories=", f"port={self.port}"]
        command: list[str | Path] = [self.programs / "postgres", "-D", self.folder / "data"]
        command += [part for option in options for part in ("-c", option)]
        log = self.folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdout=output, stderr=output, start_new_session=True, **self.who
            )
        end = time.monotonic() + PATIENCE
        while not log_in(self.url("postgres")):
            if time.monotonic() > end or self._process.poll() is not None:
                raise TimeoutError(log.read_text(errors="replace")[-500:])
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it: SIGINT is `-m fast`, SIGQUIT is `-m immediate`, which is a crash that writes nothing more."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE)

    def freeze(self) -> None:
        """Stop every process of the server where it stands."""
        for pid in self._pids():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them all go on."""
        for pid in self._pids():
            os.kill(pid, signal.SIGCONT)

    def copy(self, template: str, name: str) -> str:
        """Make a database as a copy of another and return its address."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        run_alone(self.url("postgres"), statement.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    def drop(self, name: str) -> None:
        """Drop a database, whoever still uses it."""
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        run_alone(self.url("postgres"), statement.format(sql.Identifier(name)))

    def _pids(self) -> list[int]:
        """Return the first process and its children, which is all there are."""
        assert self._process is not None
        first = self._process.pid
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]


@contextmanager
def server() -> Iterator[Server]:
    """Start a server in a temporary folder until the block ends; raise RuntimeError where none can be made."""
    programs = find_programs()
    if programs is None:
        raise RuntimeError("There is no initdb on this machine, so nothing was tried on PostgreSQL.")
    folder = Path(tempfile.mkdtemp(prefix="broadsheet-chaos-postgres-"))
    password = secrets.token_hex(8)
    one = Server(programs, folder, unprivileged(folder), password, free_port())
    try:
        initialise(programs, folder, password, one.who)
        one.start()
        yield one
    finally:
        one.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)
