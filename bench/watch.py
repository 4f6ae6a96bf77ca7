"""Watches a mailing go out: samples of how many mails the sink has, and what the worker has used so far."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench import machine
from bench.place import Place, moment, until
from bench.postfix import Sink

PAUSE = 0.05  # seconds between samples
PATIENCE = 600.0  # seconds without a single mail


@dataclass(frozen=True, slots=True)
class Sample:
    """How things stood at one moment (time.perf_counter): mails since the start, seconds of processor time, MB."""

    at: float
    mails: int
    cpu: float = 0.0
    resident: float = 0.0


def samples(sink: Sink, mails: int, go: Callable[[], object], pids: Sequence[int] = ()) -> list[Sample]:
    """Start something and watch from then on, until it is over and so many mails are at the sink."""
    sink.settle()
    before, found = sink.mails, list[Sample]()
    moved_at = time.perf_counter()
    with ThreadPoolExecutor(1) as aside:
        going = aside.submit(go)
        while not (going.done() and found and found[-1].mails >= mails):
            if going.done():
                going.result()  # what was wrong with it
            taken = sink.mails - before
            now = time.perf_counter()
            if found and taken > found[-1].mails:
                moved_at = now
            if now - moved_at > PATIENCE:
                raise RuntimeError(f"{taken} of {mails} mails came, and for {PATIENCE:.0f} s not one more")
            used = sum(map(machine.cpu, pids))
            found.append(Sample(now, taken, used, sum(map(machine.resident, pids))))
            time.sleep(PAUSE)
    return found


def middle(found: Sequence[Sample]) -> tuple[Sample, Sample]:
    """Return the samples between which the second to the ninth tenth of the mails came; all, if they came at once."""
    last = found[-1].mails
    first = next(one for one in found if one.mails >= last / 10)
    upto = next(one for one in found if one.mails >= last * 9 / 10)
    if upto.mails <= first.mails:
        return [one for one in found if one.mails == found[0].mails][-1], found[-1]
    return first, upto


def rate(found: Sequence[Sample]) -> float:
    """Return mails a second in the middle eight tenths, as the sink saw them."""
    first, upto = middle(found)
    return (upto.mails - first.mails) / (upto.at - first.at)


def cost(found: Sequence[Sample]) -> float:
    """Return microseconds of processor time a mail in the middle eight tenths, told in ticks of the kernel's clock."""
    first, upto = middle(found)
    return 1e6 * max(upto.cpu - first.cpu, 1 / machine.TICKS) / (upto.mails - first.mails)


def mailing(place: Place, sink: Sink, issue: int, recipients: int, pids: Sequence[int] = ()) -> list[Sample]:
    """Order an issue to be sent and watch to the end; raise RuntimeError unless everybody was sent it."""
    order = ("send", str(issue), "--detach")
    found = samples(sink, recipients, lambda: place.run(*order), pids)
    row = f"FROM mailing WHERE issue_id = {issue}"
    until(lambda: place.one(f"SELECT state {row}") == "finished", "an end of the mailing")
    sent = place.one(f"SELECT count(*) FROM delivery WHERE issue_id = {issue} AND state = 'sent'")
    if sent != recipients:
        raise RuntimeError(f"{sent} of {recipients} mails were sent")
    return found


def complete(place: Place, issue: int) -> float:
    """Wait until the audience of a mailing is complete; return how many seconds after its start it was."""
    times = f"SELECT started_at, enlisted_at FROM mailing WHERE issue_id = {issue}"
    until(lambda: place.rows(times)[0][1], "a complete audience", PATIENCE)
    began, ended = place.rows(times)[0]
    return (moment(ended) - moment(began)).total_seconds()
