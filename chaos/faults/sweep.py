"""F2, the crash sweep: the process dies at its n-th fault point, for n = 1, 2, … until a run passes without dying."""

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos import accounts
from chaos.fault import Fault, enter
from chaos.place import Broken
from chaos.scene import Scene
from tests.mortal import DEAD, Graveyard, graveyard
from tests.stories.test_crash_sweep import Assassin

MAILS = 3


@contextmanager
def copies(scene: Scene) -> Iterator[Callable[[], None]]:
    """Give what puts the scene on a fresh copy of its database, and put it back on the last one at the end."""
    origin, numbers = scene.place.url, iter(range(1, 1000))
    made: list[str] = []

    def fresh() -> None:
        name = f"{origin.rpartition('/')[2].removesuffix('.db')}_{next(numbers)}"
        if scene.is_sqlite:
            target = scene.place.folder / f"{name}.db"
            shutil.copy(Path(origin.removeprefix("sqlite:///")), target)
            scene.place.url = f"sqlite:///{target}"
            return
        assert scene.server is not None
        scene.place.url = scene.server.copy(origin.rpartition("/")[2], name)
        made.append(name)

    try:
        yield fresh
    finally:
        scene.leftovers += made


def swept(scene: Scene) -> None:
    """F2: at each commit, then at each step of a mail before the relay took it, then right after it took it."""
    scene.send()
    with graveyard() as ground, copies(scene) as fresh:
        commits, doubled = at_commits(scene, ground, fresh)
        before, _ = at_steps(scene, ground, fresh, accepts=False)
        after, _ = at_steps(scene, ground, fresh, accepts=True)
    scene.bound = 1
    scene.note(
        f"{commits} deaths at commits ({doubled} doubled one), {before} before and {after} after a dot"
    )


def at_commits(scene: Scene, ground: Graveyard, fresh: Callable[[], None]) -> tuple[int, int]:
    """Die at each commit; return how often that was, and how many of the deaths doubled a mail."""
    point, ended, doubled = 0, DEAD, 0
    while ended == DEAD:
        point += 1
        start_over(scene, fresh)
        ended = ground.start(scene.place.url, scene.sink.port, dies_at=point).ended()
        if ended == DEAD:
            ground.start(scene.place.url, scene.sink.port).ended()
        doubled += judged(scene, f"commit {point}", 1)
    if ended or point <= 3 * MAILS:
        raise Broken(f"the sweep ended with {ended} after {point} points")
    return point - 1, doubled


def at_steps(scene: Scene, ground: Graveyard, fresh: Callable[[], None], *, accepts: bool) -> tuple[int, int]:
    """Die at each step of a mail, before the relay takes it or (`accepts`) right after; return as `at_commits`."""
    point, ended, doubled = 0, -signal.SIGKILL, 0
    while ended == -signal.SIGKILL:
        point += 1
        start_over(scene, fresh)
        scene.sink.script = assassin = Assassin(point, accepts)
        assassin.child = ground.start(scene.place.url, scene.sink.port)
        ended = assassin.child.ended()
        scene.sink.script = None
        if ended:
            ground.start(scene.place.url, scene.sink.port).ended()
        doubled += judged(scene, f"step {point}", assassin.bound)
    if ended or point <= MAILS * (1 if accepts else 5):
        raise Broken(f"the sweep ended with {ended} after {point} points")
    return point - 1, doubled


def start_over(scene: Scene, fresh: Callable[[], None]) -> None:
    """Take a fresh copy and an empty relay."""
    fresh()
    scene.sink.forget()


def judged(scene: Scene, where: str, bound: int) -> int:
    """Draw up the accounts of one death, raise Broken when they are not as promised; return the doubles."""
    found = accounts.drawn_up(scene.place, scene.sink.mails.copy(), scene.readers)
    if (
        found.lost
        or found.foreign
        or found.unfounded
        or found.faults
        or found.doubled > bound
        or not scene.is_over()
    ):
        raise Broken(f"a death at {where}: {found}")
    return found.doubled


enter(Fault("F2", "the crash sweep, three mails", swept, readers=MAILS))
