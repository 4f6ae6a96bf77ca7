"""A database that goes away, stands still, is cut off, is full, is moved to another version, or loses its power."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from psycopg import sql

from chaos.faults import CONNECTIONS, POSTGRES, SQLITE, Fault, enter
from chaos.place import ROOT, Broken, until
from chaos.proxy import wire
from chaos.scene import Scene
from tests.postgres import run_alone

DOWN = float(os.environ.get("CHAOS_DOWN", "30"))  # seconds
FROZEN = float(os.environ.get("CHAOS_FROZEN", "90"))  # seconds; a lease is 30
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
    disk = scene.place.folder / "disk"
    disk.mkdir()
    size = 60_000_000
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=777", "tmpfs", disk], check=True)
    name = scene.place.url.rpartition("/")[2]
    try:
        if scene.is_sqlite:
            shutil.move(scene.place.folder / "broadsheet.db", disk / "broadsheet.db")
            scene.place.url = f"sqlite:///{disk}/broadsheet.db"
        else:
            move_database(scene, name, disk)
        yield disk
    finally:
        scene.place.end()
        if scene.server is not None and not scene.is_sqlite:
            base = scene.server.url("postgres")
            run_alone(
                base, sql.SQL("ALTER DATABASE {} SET TABLESPACE pg_default").format(sql.Identifier(name))
            )
            run_alone(base, sql.SQL("DROP TABLESPACE {}").format(sql.Identifier(f"small_{name}")))
        else:
            shutil.copy(disk / "broadsheet.db", scene.place.folder / "broadsheet.db")
            scene.place.url = f"sqlite:///{scene.place.folder}/broadsheet.db"
        subprocess.run(["umount", "-l", disk], check=True)


def move_database(scene: Scene, name: str, disk: Path) -> None:
    """Put a database of the server on a disk of its own."""
    assert scene.server is not None
    space = disk / "space"
    space.mkdir()
    if scene.server.who:
        os.chown(space, scene.server.who["user"], scene.server.who["group"])
    base, made = scene.server.url("postgres"), sql.Identifier(f"small_{name}")
    run_alone(base, sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(made, sql.Literal(str(space))))
    run_alone(base, sql.SQL("ALTER DATABASE {} SET TABLESPACE {}").format(sql.Identifier(name), made))


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
            time.sleep(3)
            stuck = scene.came
            time.sleep(5)
            beyond = scene.came - stuck
            ballast.unlink()
            scene.finished(240)
        worker.stop()
        if beyond > CONNECTIONS:
            raise Broken(f"{beyond} mails went out while nothing could be saved")
        scene.note(f"{saved} saved when it was full, {beyond} mails meanwhile, then all")


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


def moved(scene: Scene) -> None:
    """F22: a paused run goes to an older schema and back; a copy from its middle does not send by itself."""
    scene.slowly()
    scene.send()
    worker = scene.worker()
    scene.arrive(len(scene.addresses) // 3)
    scene.place.run("mailings", "pause", "1")
    worker.stop()
    before = scene.count("sent")
    for direction, target in (("downgrade", "-1"), ("upgrade", "head")):
        code = (
            "from alembic import command; from app.core import schema; from sqlalchemy import create_engine;"
            f"e = create_engine({scene.place.url.replace('postgresql:', 'postgresql+psycopg:')!r});\n"
            f"with e.begin() as c: command.{direction}(schema.configure(c), {target!r})"
        )
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    if scene.count("sent") != before:
        raise Broken("rows were lost on the way to an older schema and back")
    scene.place.run("mailings", "resume", "1")
    restored(scene)
    last = scene.worker()
    scene.finished()
    last.stop()


def restored(scene: Scene) -> None:
    """Start a worker on a copy of two days later: it must wait to be told."""
    copy, name = scene.place.folder / "copy.db", f"copy_{os.getpid()}"
    url = f"sqlite:///{copy}"
    if scene.is_sqlite:
        shutil.copy(scene.place.folder / "broadsheet.db", copy)
    else:
        assert scene.server is not None
        url = scene.server.copy(scene.place.url.rpartition("/")[2], name)
    came = scene.came
    scene.forward(2 * 86_400)
    worker = scene.worker(BROADSHEET_DATABASE_URL=url)
    time.sleep(8)
    worker.stop()
    scene.forward(-2 * 86_400)
    (state, problem), *_ = scene.place.rows("SELECT state, problem FROM mailing", url)
    if scene.server is not None and not scene.is_sqlite:
        scene.server.drop(name)
    if scene.came != came:
        raise Broken(f"a restored copy sent {scene.came - came} mails by itself")
    scene.note(f"the copy of two days ago: {state}, {str(problem)[:50]}")
    if state != "paused":
        raise Broken(f"a restored copy is {state}, not paused")


def traced(scene: Scene) -> None:
    """F23: what is written to the disk before the 202 is said, and before the next mail of a connection."""
    trace = scene.place.folder / "trace"
    with scene.serving() as (program, api):
        calls = "fdatasync,fsync,pwrite64,write,sendto,sendmsg"
        tracer = subprocess.Popen(
            ["strace", "-f", "-y", "-s", "40", "-e", f"trace={calls}", "-o", trace, "-p", str(program.pid)],
            stderr=subprocess.DEVNULL,
        )
        time.sleep(3)
        answer = api.post("/api/v1/issues/1/send").status_code
        time.sleep(1)
        tracer.terminate()
        tracer.wait()
        program.kill()  # the cut itself
    lines = trace.read_text(errors="replace").splitlines()
    said = next((place for place, line in enumerate(lines) if "HTTP/1.1 202" in line), None)
    if answer != 202 or said is None:
        raise Broken(f"the trace shows no 202 (it was answered {answer})")
    logged = [n for n, line in enumerate(lines[:said]) if "-wal" in line and "pwrite64" in line]
    synced = [n for n, line in enumerate(lines[:said]) if "-wal" in line and "sync(" in line]
    if not logged or not synced or synced[-1] < logged[-1]:
        raise Broken("the 202 was said before what was accepted was on the disk")
    last = scene.worker()
    scene.finished()
    last.stop()
    scene.note("the log was synced before the 202")


def committed(scene: Scene) -> None:
    """F23: on PostgreSQL the commit waits for the disk in every session of ours."""
    code = (
        "import asyncio; from app.core.db import Database; from sqlalchemy import text\n"
        f"async def look():\n    db = Database({scene.place.url!r})\n    async with db.transaction() as s:\n"
        "        print((await s.execute(text('SHOW synchronous_commit'))).scalar_one(), "
        "(await s.execute(text('SHOW fsync'))).scalar_one())\n    await db.close()\nasyncio.run(look())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    if done.stdout.split() != ["on", "on"]:
        raise Broken(f"synchronous_commit and fsync are {done.stdout}")
    server = scene.server
    assert server is not None
    with scene.serving() as (program, api):
        answer = api.post("/api/v1/issues/1/send").status_code
        server.stop(signal.SIGQUIT)
        program.kill()
    server.start()
    if answer != 202:
        raise Broken(f"it was answered {answer}")
    last = scene.worker()
    scene.finished()
    last.stop()
    scene.note("synchronous_commit on; the server crashed at the 202 and kept it")


enter(
    Fault("F5", "the server crashes and stays away", crashed, (POSTGRES,)),
    Fault("F6-frozen", "the server stands still", stood_still, (POSTGRES,)),
    Fault("F6-short", "a worker is cut off for less than a lease", cut_short, (POSTGRES,)),
    Fault("F6-long", "a worker is cut off for longer than a lease", cut_long, (POSTGRES,)),
    Fault("F7", "the disk is full", full),
    Fault("F22", "an older schema and back; a restored copy", moved, is_turned=True),
    Fault("F23-file", "order of writing, by strace", traced, (SQLITE,)),
    Fault("F23-server", "synchronous commits, and a crash at the 202", committed, (POSTGRES,)),
)
