"""What `make bench` tells is right: ratios, targets, tables; and its smallest form runs from end to end."""

import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest

from bench import postfix, sizes, table
from bench.measures import MEASURES, NEED_SINK
from bench.sizes import QUICK, Sizes
from bench.table import Figure, Target
from bench.wire import wire
from tests import needs
from tests.house.manual import ROOT, headings, page


def test_a_round_is_compared_with_the_rounds_of_the_peer_on_either_side() -> None:
    assert table.beside([50, 80], [90, 110, 50]) == [0.5, 1.0]
    with pytest.raises(ValueError, match="zip"):
        table.beside([50, 80], [90, 110])


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert table.percentile(values, 0.5) == 50
    assert table.percentile(values, 0.99) == 99
    assert table.percentile([7.0], 0.99) == 7


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("a", [1, 9, 8]), ""),
        (Figure("a", [149, 150, 900], target=Target(150)), "met"),
        (Figure("a", [151.0], target=Target(150)), "missed"),
        (Figure("a", [1.0], [0.7, 0.69, 0.71], Target(0.7, at_least=True, of_ratio=True)), "met"),
        (Figure("a", [9.0], [0.69], Target(0.7, at_least=True, of_ratio=True)), "missed"),
    ],
)
def test_the_median_is_held_against_the_target(figure: Figure, verdict: str) -> None:
    assert figure.verdict() == verdict


def test_a_table_shows_the_noise_and_the_target() -> None:
    ratio = Target(0.7, at_least=True, of_ratio=True)
    figures = [Figure("ours, mails/s", [1000, 1100, 900], [0.5, 0.6, 0.4], ratio), Figure("theirs", [2000.0])]
    head, ours, theirs = table.plain(figures)
    assert head.split() == ["median", "least", "most", "spread", "ratio", "target"]
    wanted = "ours, mails/s 1,000 900 1,100 20% 0.50 (0.40–0.60) ratio ≥ 0.70 missed"
    assert ours.split() == wanted.split()
    assert theirs.split() == ["theirs", "2,000"]
    assert [line.count("|") for line in table.markdown(figures)] == [9] * 4


def test_a_size_may_come_from_the_environment() -> None:
    assert sizes.chosen(QUICK, {"BENCH_MAILS": "70", "BENCH_ASKS": "2.5"}) == replace(
        QUICK, mails=70, asks=2.5
    )
    for wrong in ("many", "0", "-1"):
        with pytest.raises(ValueError, match="BENCH_MAILS must be"):
            sizes.chosen(Sizes(), {"BENCH_MAILS": wrong})


def test_what_there_is_to_measure_is_told_wherever_it_is_named() -> None:
    assert set(MEASURES) >= NEED_SINK
    assert set(MEASURES) <= {heading for _, heading in headings("docs/performance.md")}
    rows = re.findall(r"^\| `([a-z]+)` \|", page("docs/performance.md"), re.MULTILINE)
    assert rows == list(MEASURES)
    (named,) = re.findall(r"^bench:.* of ([a-z, ]+)\)", page("Makefile"), re.MULTILINE)
    assert named.split(", ") == list(MEASURES)


def test_every_size_is_in_the_manual_as_it_is() -> None:
    rows = re.findall(r"^\| `BENCH_(\w+)` \| (\S+) \| (\S+) \|", page("docs/performance.md"), re.MULTILINE)
    full, quick = asdict(Sizes()), asdict(QUICK)
    assert rows == [(name.upper(), f"{full[name]:,.10g}", f"{quick[name]:,.10g}") for name in full]


def test_a_name_that_is_none_is_refused_with_those_that_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "speed"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no measure speed; there are: startup, rendering" in done.stdout


def test_a_wire_is_as_long_as_it_says_and_loses_nothing() -> None:
    sent = bytes(range(256)) * 4_000

    def echo(server: socket.socket) -> None:
        server.accept()[0].close()  # who looked whether the wire listens
        there, _ = server.accept()
        with there:
            while data := there.recv(65536):
                there.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(2) as aside:
        echoing = aside.submit(echo, server)
        with (
            wire(server.getsockname()[1], 0.04) as port,
            socket.create_connection(("127.0.0.1", port)) as here,
        ):
            began = time.monotonic()
            aside.submit(here.sendall, sent)
            heard = b""
            while len(heard) < len(sent):
                heard += here.recv(65536)
            assert time.monotonic() - began >= 0.04
            here.shutdown(socket.SHUT_RDWR)
            echoing.result()
    assert heard == sent


def test_the_smallest_form_of_a_measure_runs_to_its_table() -> None:
    if not postfix.is_here():
        needs.give_up(postfix.MISSING)
    small = {"BENCH_ROUNDS": "1", "BENCH_DISTANT": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "bench", "distance", "--database", "SQLite", "--markdown"],
        cwd=ROOT, env=os.environ | small, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row[-2:] for row in rows if "SQLite" in row[0]] in (
        [["ratio ≥ 1.90", "met"]],
        [["ratio ≥ 1.90", "missed"]],
    )
    assert sum("waits for each reply" in row[0] for row in rows) == 1
