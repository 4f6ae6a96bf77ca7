"""Processes that die or stand still: kill -9 of the API and of workers, deploys, races, frozen workers, no memory."""

import resource
import signal
import time
from datetime import date, timedelta
from pathlib import Path

from chaos.fault import AUDIENCE, CONNECTIONS, POSTGRES, READERS, Fault, enter
from chaos.place import Broken, Program, until
from chaos.scene import Scene
from chaos.stage import ISSUE

KILLS, DEPLOYS, ORDERS = 15, 10, 20
LEASE = 30.0  # seconds for which a worker that is not seen keeps its claims
SOON = 5.0  # seconds in which a worker that was started anew has to go on


def answered_and_dead(scene: Scene) -> None:
    """F1: kill -9 of the API in the moment of each 202."""
    first = date(2030, 2, 4)
    with scene.serving() as (_, api):
        for number in range(1, ORDERS):
            day = str(first + timedelta(days=number))
            answer = api.post(
                "/api/v1/issues", params={"edition": "daily", "date": day}, content=ISSUE.read_bytes(),
                headers={"content-type": "text/plain"},
            )  # fmt: skip
            answer.raise_for_status()
    for number in range(1, ORDERS + 1):
        with scene.serving() as (program, api):
            code = api.post(f"/api/v1/issues/{number}/send").status_code
            program.kill()
        if code != 202:
            raise Broken(f"order {number} was answered {code}")
    kept = scene.place.one("SELECT count(DISTINCT issue_id) FROM mailing")
    last = scene.worker()
    scene.finished()
    last.stop()
    audiences = {size for (size,) in scene.place.rows("SELECT audience FROM mailing")}
    if kept != ORDERS or audiences != {len(scene.addresses)}:
        raise Broken(f"{kept} of {ORDERS} mailings are there, their audiences are {audiences}")
    scene.note(f"{kept}/{ORDERS} orders kept")


def killed(scene: Scene) -> None:
    """F3: kill -9 of the worker at random moments of one run."""
    scene.slowly()
    scene.send()
    scene.bound = KILLS * CONNECTIONS
    slowest = 0.0
    for _ in range(KILLS):
        began, worker = time.monotonic(), scene.worker()
        scene.arrive(1)
        slowest = max(slowest, time.monotonic() - began)
        scene.arrive(scene.rolls.randrange(len(scene.addresses) // 60, len(scene.addresses) // 25))
        time.sleep(scene.rolls.random() * 0.02)
        worker.kill()
    last = scene.worker()
    scene.finished()
    last.stop()
    scene.note(f"{KILLS} kills, at work again within {slowest:.1f} s")


def deployed(scene: Scene) -> None:
    """F4: SIGTERM again and again."""
    scene.slowly()
    scene.send()
    slowest = 0.0
    for _ in range(DEPLOYS):
        worker = scene.worker()
        scene.arrive(scene.rolls.randrange(len(scene.addresses) // 40, len(scene.addresses) // 15))
        slowest = max(slowest, worker.stop())
        if held := scene.count("in_flight"):
            raise Broken(f"{held} rows were still claimed after SIGTERM")
    last = scene.worker()
    scene.finished()
    last.stop()
    if slowest > 30:
        raise Broken(f"it took {slowest:.0f} s to stop")
    scene.note(f"{DEPLOYS} deploys, the slowest {slowest:.1f} s")


def raced(scene: Scene) -> None:
    """F16: several workers started in the same second."""
    workers = racing(scene, 0.02)
    scene.finished()
    shares = [many for (many,) in scene.place.rows("SELECT sum(sent) FROM tally GROUP BY worker_id") if many]
    for worker in workers:
        worker.stop()
    scene.note(f"{len(workers)} workers sent {' + '.join(map(str, shares))}")


def frozen(scene: Scene) -> None:
    """F16: one of several stands still for twice its lease, and goes on."""
    scene.bound = CONNECTIONS
    pause = 15 * 2.3 * LEASE / len(scene.addresses)  # so that there is something left when it wakes
    workers = racing(scene, pause)
    victim = scene.rolls.choice(workers)
    victim.send(signal.SIGSTOP)
    stood = time.monotonic()
    while time.monotonic() - stood < 2 * LEASE and not scene.is_over():
        time.sleep(0.2)
    victim.send(signal.SIGCONT)
    scene.finished(240)
    for worker in workers:
        worker.stop()
    scene.note(f"one of {len(workers)} stood still for {2 * LEASE:.0f} s")


def racing(scene: Scene, seconds: float) -> list[Program]:
    """Start two to four workers at once on a relay that takes so many seconds a mail, and let them all begin."""
    scene.slowly(seconds)
    scene.send()
    workers = [scene.worker() for _ in range(scene.rolls.randrange(2, 5))]
    scene.arrive(len(scene.addresses) // 20)
    until(lambda: scene.place.one("SELECT count(*) FROM worker") == len(workers), "the last worker's start")
    return workers


def starved(scene: Scene) -> None:
    """F19: no more memory in the middle of a large mailing, and then the kernel's kill."""
    scene.send()
    scene.bound = CONNECTIONS
    worker = scene.worker()
    scene.arrive(len(scene.addresses) // 10)
    early = memory(worker, "VmRSS")
    scene.arrive(len(scene.addresses) // 3, 600)
    late = memory(worker, "VmRSS")
    held = memory(worker, "VmSize") * 1024
    resource.prlimit(worker.pid, resource.RLIMIT_AS, (held, held))
    time.sleep(3)
    if worker.alive:
        worker.kill()
    last = scene.worker()
    scene.finished(900)
    last.stop()
    if late > early * 1.2 + 10_000:
        raise Broken(f"its memory grew from {early / 1024:.0f} to {late / 1024:.0f} MB")
    scene.note(f"{early / 1024:.0f} MB at a tenth of the mailing, {late / 1024:.0f} MB at a half")


def memory(program: Program, name: str) -> int:
    """Return how many KB of memory a program has, by a name of /proc/PID/status."""
    status = Path(f"/proc/{program.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:"))


enter(
    Fault(
        "F1",
        "kill -9 of the API in the moment of its 202, 20 times",
        answered_and_dead,
        readers=READERS // ORDERS,
    ),
    Fault("F3", "kill -9 of the worker, 15 times in one run", killed),
    Fault("F4", "SIGTERM of the worker, 10 times in one run", deployed),
    Fault("F16-race", "two to four workers started in the same second", raced, (POSTGRES,)),
    Fault("F16-frozen", "one of several workers stands still for twice its lease", frozen, (POSTGRES,)),
    Fault("F19", "no more memory, then kill -9, with a large audience", starved, readers=AUDIENCE),
)
