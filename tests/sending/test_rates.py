"""The rates of a worker: smoothed, each mail counted once, and a mailing that stands still is let go of."""

import asyncio
from collections import Counter

import pytest

from app.sending import rates
from app.sending.rates import Rates


async def test_two_looks_at_once_count_a_mail_once() -> None:
    found, sent = Rates(), Counter({1: 10})
    found.note(sent)
    assert (set(found.by_mailing), sent) == ({1}, Counter())
    sent[1] += 5
    before = dict(found.by_mailing)
    found.note(sent)
    assert (found.by_mailing, sent) == (before, Counter({1: 5}))


async def test_a_mailing_of_which_nothing_is_sent_slows_down_and_is_told_of_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rates, "TICK", 0.0005)
    found, seen = Rates(), list[float]()
    found.note(Counter({1: 100}))
    while 1 in found.by_mailing:
        seen.append(found.by_mailing[1])
        await asyncio.sleep(0.001)
        found.note(Counter())
    assert len(seen) > 2
    assert seen == sorted(seen, reverse=True)
