"""A database that goes away, stands still, is cut off from a worker, or is full."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from psycopg import sql

from chaos.fault import CONNECTIONS, POSTGRES, Fault, enter
from chaos.place import Broken, until
from chaos.proxy import wire
from chaos.scene import Scene
from tests.postgres import run_alone

DOWN = float(os.environ.get("CHAOS_DOWN", "30"))  # seconds
FROZEN = float(os.environ.get("CHAOS_FROZEN", "90"))  # seconds; a lease is 30
ROOM = 60_000_000  # bytes of the small disk
CUT = {"short": 15.0, "long": 45.0}  # seconds


def crashed(scene: Scene) -> None:
    """F5: the server stops as in a crash, stays away, and comes back."""
    server = scene.server
    assert server is not None
    scene.slowly()
    scene.send()
    scene.bound = CONNECTIONS
    worker = scene.worker()
    scene.arrive(len(scene.addresses) // 4)
    server.stop(signal.SIGQUIT)
    time.sleep(1)
    before = scene.came
    time.sleep(DOWN)
    beyond = scene.came - before
    server.start()
    began = time.monotonic()
    scene.arrive(1)
    again = time.monotonic() - began
    scene.finished()
    worker.stop()
    if beyond or again > 60:
        raise Broken(f"{beyond} mails went out while nothing could be saved; it took {again:.0f} s to go on")
    scene.note(f"{DOWN:.0f} s down, at work again after {again:.1f} s")


def stood_still(scene: Scene) -> None:
    """F6: every process of the server is stopped, and goes on later."""
    server = scene.server
    assert server is not None
    scene.slowly()
    scene.send()
    worker = scene.worker()
    scene.bound = CONNECTIONS if FROZEN > 30 else 0
    scene.arrive(len(scene.addresses) // 4)
    server.freeze()
    before = scene.came
    time.sleep(FROZEN)
    beyond = scene.came - before
    server.thaw()
    scene.finished()
    worker.stop()
    if beyond > CONNECTIONS:
        raise Broken(f"{beyond} mails went out while nothing could be saved")
    scene.note(f"{FROZEN:.0f} s frozen, {beyond} mails meanwhile")


def cut_off(scene: Scene, seconds: float) -> None:
    """F6: of two workers one is cut off from the database."""
    server = scene.server
    assert server is not None
    scene.slowly(10 * (seconds + 20) / len(scene.addresses))
    scene.send()
    with wire(server.port) as between:
        cut = scene.worker(
            BROADSHEET_DATABASE_URL=scene.place.url.replace(f":{server.port}/", f":{between.port}/")
        )
        other = scene.worker()
        scene.arrive(len(scene.addresses) // 10)
        between.cut()
        time.sleep(seconds)
        between.mend()
        scene.finished(240)
        other.stop()
        cut.stop()
    scene.note(f"one of two cut off for {seconds:.0f} s")


def cut_short(scene: Scene) -> None:
    """F6: for less than a lease, so nobody may be doubled."""
    cut_off(scene, CUT["short"])


def cut_long(scene: Scene) -> None:
    """F6: for longer than a lease."""
    scene.bound = CONNECTIONS
    cut_off(scene, CUT["long"])


@contextmanager
def small_disk(scene: Scene) -> Iterator[Path]:
    """Move the database to a disk of its own with little room, and give its folder."""
    disk = (scene.server.folder if scene.server and not scene.is_sqlite else scene.place.folder) / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=777", "tmpfs", disk], check=True)
    try:
        with moved_file(scene, disk) if scene.is_sqlite else moved_database(scene, disk):
            yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        disk.rmdir()


@contextmanager
def moved_file(scene: Scene, disk: Path) -> Iterator[None]:
    """Have an SQLite file on a disk of its own while the block runs."""
    home, away = scene.place.folder / "broadsheet.db", disk / "broadsheet.db"
    shutil.move(home, away)
    scene.place.url = f"sqlite:///{away}"
    try:
        yield
    finally:
        scene.place.end()
        for file in disk.glob("broadsheet.db*"):
            shutil.move(file, home.with_name(file.name))
        scene.place.url = f"sqlite:///{home}"


@contextmanager
def moved_database(scene: Scene, disk: Path) -> Iterator[None]:
    """Have a database of the server on a disk of its own while the block runs."""
    assert scene.server is not None
    space, name = disk / "space", scene.place.url.rpartition("/")[2]
    space.mkdir()
    if scene.server.who:
        os.chown(space, scene.server.who["user"], scene.server.who["group"])
    base, made, whole = scene.server.url("postgres"), sql.Identifier(f"small_{name}"), sql.Identifier(name)
    run_alone(base, sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(made, sql.Literal(str(space))))
    run_alone(base, sql.SQL("ALTER DATABASE {} SET TABLESPACE {}").format(whole, made))
    try:
        yield
    finally:
        scene.place.end()
        run_alone(base, sql.SQL("ALTER DATABASE {} SET TABLESPACE pg_default").format(whole))
        run_alone(base, sql.SQL("DROP TABLESPACE {}").format(made))


def full(scene: Scene) -> None:
    """F7: the disk fills up in mid-run, and is given room again."""
    with small_disk(scene) as disk:
        scene.slowly()
        scene.send()
        with scene.serving() as (_, api):
            worker = scene.worker()
            scene.arrive(len(scene.addresses) // 5)
            ballast = disk / "ballast"
            fill(ballast)
            saved = scene.count("sent")
            until(lambda: refuses(api), "a 503 of the API", 60)
            time.sleep(8)
            unsaved = scene.came - scene.count("sent")
            ballast.unlink()
            scene.finished(240)
        worker.stop()
        if unsaved > CONNECTIONS:
            raise Broken(f"{unsaved} mails went out that could not be saved")
        scene.note(f"{saved} saved when it was full, {unsaved} unsaved at most, then all")


def refuses(api: httpx.Client) -> bool:
    """Tell whether the API answers 503 to something that changes the database."""
    answer = api.post("/api/v1/suppressions", json={"address": f"{time.time_ns()}@example.com"})
    return answer.status_code == 503


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


enter(
    Fault("F5", "the server crashes and stays away", crashed, (POSTGRES,)),
    Fault("F6-frozen", "the server stands still", stood_still, (POSTGRES,)),
    Fault("F6-short", "a worker is cut off for less than a lease", cut_short, (POSTGRES,)),
    Fault("F6-long", "a worker is cut off for longer than a lease", cut_long, (POSTGRES,)),
    Fault("F7", "the disk is full", full),
)
