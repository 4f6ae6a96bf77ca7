"""Databases with readers in them, made once for a run and copied for each measurement; PostgreSQL is our own."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from bench.place import NOWHERE, ROOT, Place
from chaos.servers import Server, server
from tests.postgres import find_programs, run_alone

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
# Copies of the first reader, whom the import took, under other numbers and addresses.
NUMBERS = {
    SQLITE: "(WITH RECURSIVE n(i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n)",
    POSTGRES: "(SELECT i FROM generate_series(2, {count}) AS i)",
}
HASH = {SQLITE: "randomblob(32)", POSTGRES: "sha256(numbers.i::text::bytea)"}


class Stock:
    """A folder on the disk of this checkout, the server if one is needed, and what has been made."""

    def __init__(self, folder: Path, ends: ExitStack, wanted: tuple[str, ...] = (SQLITE, POSTGRES)) -> None:
        self.folder, self._ends = folder, ends
        is_here = find_programs() is not None
        self.databases = tuple(name for name in wanted if name == SQLITE or is_here)
        self._made: dict[tuple[str, int], Place] = {}
        self._server: Server | None = None
        self._copies = 0

    @contextmanager
    def place(self, database: str, readers: int, relay: str = NOWHERE, **settings: str) -> Iterator[Place]:
        """Give a copy of a database with so many readers of the daily edition, in a folder of its own."""
        origin = self._origin(database, readers)
        self._copies += 1
        name = f"copy_{self._copies}"
        folder = self._folder(name)
        named = {f"BROADSHEET_{each.upper()}": value for each, value in settings.items()}
        url = self._copy(origin, folder, name)
        try:
            yield Place(folder, url, relay, named)
        finally:
            if self._server is not None and database == POSTGRES:
                self._server.drop(name)
            shutil.rmtree(folder)

    def _copy(self, origin: Place, folder: Path, name: str) -> str:
        if origin.url.startswith("sqlite"):
            shutil.copy(_file_of(origin), folder / "bench.db")
            return f"sqlite:///{folder}/bench.db"
        assert self._server is not None
        url = self._server.copy(origin.folder.name, name)
        run_alone(url, sql.SQL("CHECKPOINT").format())  # else it comes in the middle of what is measured
        return url

    def _origin(self, database: str, readers: int) -> Place:
        if (database, readers) not in self._made:
            name = f"{database.lower()}_{readers}"
            folder = self._folder(name)
            url = f"sqlite:///{folder}/bench.db"
            if database == POSTGRES:
                if self._server is None:
                    self._server = self._ends.enter_context(server())
                url = self._server.copy("template0", name)
            empty = Place(folder, url)
            empty.run("migrate")
            if readers:
                empty.run("subscribers", "import", str(empty.readers(1)))
                multiply(empty, database, readers)
            self._made[database, readers] = empty
        return self._made[database, readers]

    def _folder(self, name: str) -> Path:
        made = self.folder / name
        made.mkdir()
        return made


def multiply(place: Place, database: str, readers: int) -> None:
    """Make as many readers of the one that is there."""
    if readers == 1:
        return
    numbers, hashed = NUMBERS[database].format(count=readers), HASH[database]
    address = "'reader' || numbers.i || '@example.com'"
    columns = _columns(place, database)
    new = {"id": "numbers.i", "address": address, "address_key": address, "address_hash": hashed}
    taken = ", ".join(new.get(name, name) for name in columns)
    place.change(
        f"INSERT INTO subscriber ({', '.join(columns)}) SELECT {taken} FROM subscriber, {numbers} AS numbers",
        "INSERT INTO subscription (subscriber_id, edition_id, since) SELECT s.id, c.edition_id, c.since"
        " FROM subscriber AS s, subscription AS c WHERE s.id > 1 AND c.subscriber_id = 1",
    )
    if database == POSTGRES:
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute(
                "SELECT setval(pg_get_serial_sequence('subscriber', 'id'), max(id)) FROM subscriber"
            )
            connection.execute("VACUUM ANALYZE")  # as the server does by itself, sooner or later


def _columns(place: Place, database: str) -> list[str]:
    told = {
        SQLITE: "SELECT name FROM pragma_table_info('subscriber')",
        POSTGRES: "SELECT attname FROM pg_attribute WHERE attrelid = 'subscriber'::regclass"
        " AND attnum > 0 AND NOT attisdropped",
    }
    return [row[0] for row in place.rows(told[database])]


def _file_of(place: Place) -> Path:
    return Path(place.url.removeprefix("sqlite:///"))


@contextmanager
def stock(wanted: tuple[str, ...] = (SQLITE, POSTGRES)) -> Iterator[Stock]:
    """Give a stock beside the database that `make run` uses, so on the same disk."""
    (ROOT / "var").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "var"))
    with ExitStack() as ends:
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        yield Stock(folder, ends, wanted)
