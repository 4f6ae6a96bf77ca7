"""A real PostgreSQL for tests that ask: the one named, the one on this machine, or one of our own for now.

`postgres_url` gives each test an empty database of its own name, dropped afterwards.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from tests.needs import give_up
from tests.ports import free_port

NAMED = "BROADSHEET_TEST_POSTGRES"
LOGINS = ("127.0.0.1:5432", "postgres@127.0.0.1:5432", "postgres:postgres@127.0.0.1:5432")
PATIENCE = 30.0
# What is lost in a crash of a temporary server is no loss, and the tests are twice as fast.
CARELESS = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")


@dataclass(frozen=True, slots=True)
class Server:
    """A server where `url` may create databases; `stop` ends it when it is ours, else does nothing."""

    url: str
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Missing:
    """There is none, and `reason` says so in a sentence."""

    reason: str


def find_or_start() -> Server | Missing:
    """Find a server to log in to, else start one from the machine's own initdb in a temporary folder."""
    if named := os.environ.get(NAMED):
        found = log_in(named)
        return Server(found, stop=lambda: None) if found else Missing(f"{NAMED} names no server we may use.")
    for login in LOGINS:
        if found := log_in(f"postgresql://{login}/postgres"):
            return Server(found, stop=lambda: None)
    return start()


def log_in(url: str) -> str | None:
    """Return the URL with user and password filled in (PGUSER and the like count), or None."""
    try:
        with psycopg.connect(url, connect_timeout=3) as connection:
            row = connection.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            login = quote(connection.info.user, safe="")
            if connection.info.password:
                login += ":" + quote(connection.info.password, safe="")
    except psycopg.Error:
        return None
    parts = urlsplit(url)
    netloc = f"{login}@{parts.netloc.rpartition('@')[2]}"
    return urlunsplit(parts._replace(netloc=netloc)) if row and row[0] else None


def start() -> Server | Missing:
    """Start a server that dies with us, on a free port of the loopback, as a user without privileges."""
    programs = find_programs()
    if programs is None:
        return Missing(f"No PostgreSQL: {NAMED} is unset, 127.0.0.1:5432 is closed to us, initdb is missing.")
    folder = Path(tempfile.mkdtemp(prefix="broadsheet-postgres-"))
    who = unprivileged(folder)
    password = secrets.token_hex(8)
    try:
        initialise(programs, folder, password, who)
        process, url = serve(programs, folder, password, who)
    except (OSError, subprocess.SubprocessError, TimeoutError) as fault:
        shutil.rmtree(folder, ignore_errors=True)
        return Missing(f"PostgreSQL's initdb is there, but no server would start: {fault}")

    def stop() -> None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    return Server(url, stop)


def find_programs() -> Path | None:
    """Return the folder that holds initdb and postgres, the one in PATH before Debian's newest."""
    in_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda bin_: bin_.parent.name.zfill(4))
    places = [Path(in_path).resolve().parent] if in_path else []
    for place in [*places, *reversed(debian)]:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    return None


def unprivileged(folder: Path) -> dict[str, Any]:
    """Give the folder to a user who is not root, and return how to run a program as that user."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def initialise(programs: Path, folder: Path, password: str, who: dict[str, Any]) -> None:
    """Run initdb: user postgres with this password, UTF-8."""
    secret = folder / "password"
    secret.write_text(password)
    if who:
        os.chown(secret, who["user"], who["group"])
    command: list[str | Path] = [programs / "initdb", "-D", folder / "data", "-U", "postgres"]
    flags = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    done = subprocess.run(
        [*command, "--pwfile", secret, *flags],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **who,
    )
    if done.returncode:
        raise OSError(done.stderr.strip() or done.stdout.strip())


def serve(
    programs: Path, folder: Path, password: str, who: dict[str, Any]
) -> tuple[subprocess.Popen[bytes], str]:
    """Start the server and return it with its URL once it answers; raise TimeoutError when it does not."""
    port = free_port()
    options = [*CARELESS, "listen_addresses=127.0.0.1", "unix_socket_directories=", f"port={port}"]
    command: list[str | Path] = [programs / "postgres", "-D", folder / "data"]
    command += [part for option in options for part in ("-c", option)]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, start_new_session=True, **who
        )
    url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        if log_in(url):
            return process, url
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise TimeoutError(log.read_text(errors="replace")[-500:])


def run_alone(server: str, statement: sql.Composed) -> None:
    """Run one statement outside a transaction, as CREATE and DROP DATABASE need."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server where databases may be created; found or started once a session."""
    found = find_or_start()
    if isinstance(found, Missing):
        give_up(found.reason)
    yield found.url
    found.stop()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty database that only this test knows: `postgresql://user:password@host:port/name`."""
    name = f"broadsheet_test_{os.getpid()}_{secrets.token_hex(4)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'")
    run_alone(postgres_server, create.format(sql.Identifier(name)))
    yield urlunsplit(urlsplit(postgres_server)._replace(path=f"/{name}"))
    run_alone(postgres_server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
