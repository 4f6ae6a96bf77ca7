"""A database that is taken to an older version and back, or restored from a copy, or loses its power."""

import os
import shutil
import signal
import subprocess
import sys
import time

from chaos.fault import POSTGRES, SQLITE, Fault, enter
from chaos.place import ROOT, Broken
from chaos.scene import Scene


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
    """Start a worker on a copy twelve hours later: it must wait to be told."""
    copy, name = scene.place.folder / "copy.db", f"copy_{os.getpid()}"
    url = f"sqlite:///{copy}"
    if scene.is_sqlite:
        shutil.copy(scene.place.folder / "broadsheet.db", copy)
    else:
        assert scene.server is not None
        url = scene.server.copy(scene.place.url.rpartition("/")[2], name)
    came = scene.came
    scene.forward(12 * 3_600)
    worker = scene.worker(BROADSHEET_DATABASE_URL=url)
    time.sleep(8)
    worker.stop()
    scene.forward(-12 * 3_600)
    (state, problem), *_ = scene.place.rows("SELECT state, problem FROM mailing", url)
    if scene.server is not None and not scene.is_sqlite:
        scene.server.drop(name)
    if scene.came != came:
        raise Broken(f"a restored copy sent {scene.came - came} mails by itself")
    scene.note(f"the copy of twelve hours ago: {state}, {str(problem)[:50]}")
    if state != "paused":
        raise Broken(f"a restored copy is {state}, not paused")


def traced(scene: Scene) -> None:
    """F23: what is written to the disk before the 202 is said."""
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
    Fault("F22", "an older schema and back; a restored copy", moved, is_turned=True),
    Fault("F23-file", "order of writing, by strace", traced, (SQLITE,)),
    Fault("F23-server", "synchronous commits, and a crash at the 202", committed, (POSTGRES,)),
)
