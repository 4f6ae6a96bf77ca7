"""Clocks that jump, and two machines whose clocks differ."""

import time
from datetime import timedelta

from chaos import program
from chaos.fault import POSTGRES, Fault, enter
from chaos.place import Broken, until
from chaos.scene import Scene

APART = 90.0  # seconds; a lease is 30
HOUR, DAY = 3600.0, 86_400.0


def jumped(scene: Scene) -> None:
    """F17: an hour back and forth before the time of a mailing and in its middle, and a day on near its end."""
    scene.slowly()
    scene.send(at=f"{scene.now() + timedelta(minutes=60):%Y-%m-%d %H:%M}", tz="UTC")
    worker = scene.worker()
    until(lambda: scene.place.one("SELECT count(*) FROM worker"), "a worker")
    for jump in (-HOUR, HOUR, 0.9 * HOUR, -HOUR, 0.1 * HOUR):
        scene.forward(jump)
        time.sleep(1.5)
        if scene.came:
            raise Broken("a mailing went before its time")
    scene.forward(HOUR + 60)
    third = len(scene.addresses) // 3
    scene.arrive(third)
    scene.forward(-HOUR)
    scene.arrive(third // 2)
    scene.forward(HOUR)
    scene.arrive(third // 2)
    scene.forward(DAY)
    scene.finished()
    worker.stop()
    scene.note(f"{scene.count('sent')} sent, {scene.count('expired')} expired when the day was over")


def apart(scene: Scene) -> None:
    """F17: the clocks of two machines are further apart than a lease is long."""
    other = scene.place.folder / "other-clock"
    program.write(other, APART)
    scene.slowly(10 * 45 / len(scene.addresses))  # longer than the first look at who is gone
    scene.send()
    workers = [scene.worker(), scene.worker(CHAOS_CLOCK=str(other))]
    scene.finished(240)
    for worker in workers:
        worker.stop()
    scene.note(f"two workers whose clocks are {APART:.0f} s apart")


enter(
    Fault("F17-jumps", "the clock jumps by an hour and a day", jumped, is_turned=True),
    Fault("F17-apart", "two clocks 90 s apart", apart, (POSTGRES,), is_turned=True),
)
