"""Postfix's two programs: smtp-sink, which takes mail and forgets it, and smtp-source, which sends it from C."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import wait_for
from tests.ports import free_port

OWN_HEADERS = 220  # bytes that smtp-source puts before what -l asks for
MISSING = "smtp-sink and smtp-source are not here, so this was not measured: they come with Postfix."
COUNT = re.compile(rb"mesg=(\d+)\r")
PAUSE = 0.01  # seconds between two looks at what the sink says


class Sink:
    """An smtp-sink on `port`; `mails` is how many it has taken."""

    def __init__(self) -> None:
        self.port, self.mails = free_port(), 0
        self._came, self._came_at = (
            threading.Event(),
            0.0,
        )  # the mail that is waited for, and when it was there
        rights = ["-u", "nobody"] if os.geteuid() == 0 else []
        command = [program("smtp-sink"), "-c", *rights, f"127.0.0.1:{self.port}", "1000"]
        self._program = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._listening = threading.Thread(target=self._listen, name="sink", daemon=True)
        self._listening.start()

    def expect(self) -> None:
        """Note when the next mail comes."""
        self._came.clear()

    def came_at(self, patience: float) -> float:
        """Wait for the first mail since `expect`, and return when it came, by time.perf_counter."""
        if not self._came.wait(patience):
            raise RuntimeError(f"no mail came within {patience:.0f} s")
        return self._came_at

    def settle(self) -> None:
        """Wait until it has told all that it has taken."""
        before = -1
        while before != self.mails:
            before = self.mails
            time.sleep(5 * PAUSE)

    def end(self) -> None:
        """End it."""
        self._program.terminate()
        self._program.wait()
        self._listening.join()

    def _listen(self) -> None:
        assert self._program.stdout is not None
        rest = b""
        while said := os.read(self._program.stdout.fileno(), 1 << 16):
            now = time.perf_counter()
            rest += said
            if counts := COUNT.findall(rest):
                if (taken := int(counts[-1])) > self.mails and not self._came.is_set():
                    self._came_at = now
                    self._came.set()
                self.mails = taken
            rest = rest[rest.rfind(b"\r") + 1 :]
            time.sleep(PAUSE)


@contextmanager
def sink() -> Iterator[Sink]:
    """Give a sink that listens."""
    one = Sink()
    try:
        wait_for(one.port)
        yield one
    finally:
        one.end()


def source(port: int, connections: int, mails: int, size: int) -> float:
    """Send mails of so many bytes with smtp-source; return mails a second."""
    command = [
        program("smtp-source"), "-d", "-s", str(connections), "-m", str(mails), "-l", str(max(1, size - OWN_HEADERS)),
        "-f", "from@example.com", "-t", "to@example.com", f"127.0.0.1:{port}",
    ]  # fmt: skip
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return mails / (time.perf_counter() - began)


def is_here() -> bool:
    """Whether both programs are on this machine."""
    return all(map(found, ("smtp-sink", "smtp-source")))


def program(name: str) -> str:
    """Return where a program is; raise RuntimeError where it is not."""
    if where := found(name):
        return where
    raise RuntimeError(MISSING)


def found(name: str) -> str | None:
    """Return where a program is, or None."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/lib/postfix/sbin")
