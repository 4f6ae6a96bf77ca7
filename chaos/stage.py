"""Sets a scene for each run: a copy of a database with readers and an issue, and a relay of its own."""

import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from psycopg import sql

from chaos import program
from chaos.fault import CONNECTIONS, SQLITE, Fault
from chaos.place import ROOT, Cradle, Place, copied, written
from chaos.scene import Scene
from chaos.servers import Server
from tests.postgres import run_alone
from tests.sink import Sink

ISSUE = ROOT / "app" / "cli" / "samples" / "daily.txt"
DAY = "2030-01-01"


@dataclass
class Stage:
    """A folder for all runs, the server if one is needed, and what has been prepared."""

    cradle: Cradle
    folder: Path
    server: Server | None
    _prepared: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    _runs: int = 0

    @contextmanager
    def scene(self, fault: Fault, database: str, seed: int) -> Iterator[Scene]:
        """Set the scene of one run, and clear it away."""
        origin, key = self._prepare(database, fault.readers)
        self._runs += 1
        folder = self._folder(f"run-{self._runs}")
        clock = folder / "clock" if fault.is_turned else None
        if clock is not None:
            program.write(clock, 0.0)
        name = f"run_{self._runs}"
        with Sink() as sink:
            place = Place(self.cradle, folder, self._copy(database, origin, folder, name), clock=clock)
            place.relay = f"{sink.url}?connections={CONNECTIONS}"
            scene = Scene(place, sink, random.Random(seed), known(place), self.server, key)
            try:
                yield scene
            finally:
                place.end()
        if self.server is not None and database != SQLITE:
            for each in (name, *scene.leftovers):
                self.server.drop(each)
        shutil.rmtree(folder, ignore_errors=True)

    def _copy(self, database: str, origin: str, folder: Path, name: str) -> str:
        if database == SQLITE:
            return copied(Path(origin), folder)
        assert self.server is not None
        url = self.server.copy(origin, name)
        # Else a crash brings a copied sequence back to where it was copied: its next values are not in the log yet.
        run_alone(url, sql.SQL("CHECKPOINT").format())
        return url

    def _prepare(self, database: str, readers: int) -> tuple[str, str]:
        """Make a database with so many readers and one issue, once; return where it is and an editor's key."""
        if (database, readers) not in self._prepared:
            name = f"origin_{readers}"
            folder = self._folder(f"{database}-{readers}")
            url = f"sqlite:///{folder}/broadsheet.db"
            if database != SQLITE:
                assert self.server is not None
                url = self.server.copy("template0", name)
            key = filled(Place(self.cradle, folder, url), readers)
            origin = str(folder / "broadsheet.db") if database == SQLITE else name
            self._prepared[database, readers] = origin, key
        return self._prepared[database, readers]

    def _folder(self, name: str) -> Path:
        made = self.folder / name
        made.mkdir()
        made.chmod(0o755)
        return made


def filled(place: Place, readers: int) -> str:
    """Migrate, take readers in, hand an issue in, and return a key for the API."""
    place.run("migrate")
    place.run("subscribers", "import", str(written(place.folder, addresses(readers))))
    place.run("issues", "add", str(ISSUE), "--edition", "daily", "--date", DAY)
    key: str = json.loads(place.run("keys", "create", "chaos", "--scope", "admin", "--json"))["key"]
    return key


def known(place: Place) -> dict[int, str]:
    """Return the addresses of a database by id."""
    return dict(place.rows("SELECT id, address FROM subscriber ORDER BY id"))


def addresses(readers: int) -> list[str]:
    """Return whom a database of so many readers holds."""
    return [f"r{number}@example.com" for number in range(readers)]


@contextmanager
def stage(server: Server | None) -> Iterator[Stage]:
    """Give a stage in a folder on the disk of this checkout."""
    (ROOT / "var").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="chaos-", dir=ROOT / "var"))
    cradle = Cradle()
    try:
        yield Stage(cradle, folder, server)
    finally:
        cradle.close()
        shutil.rmtree(folder, ignore_errors=True)
