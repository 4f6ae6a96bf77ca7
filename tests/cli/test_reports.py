"""Operators list, show and count what came back, and a mail server hands in returned mail by a command."""

import os
import subprocess

import pytest

from app.feedback.models import ReportState
from tests.cli.test_commands import refused, rows, told
from tests.feedback import desk
from tests.programs import COMMAND, Shop

STRAY = "somebody@bounce.example.com"


def receive(shop: Shop, mail: bytes, *args: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Hand in a mail as a mail server does, by standard input."""
    return subprocess.run(
        [*COMMAND, "receive", *args], env=shop.env | environment, cwd=shop.folder, input=mail,
        capture_output=True, check=False,
    )  # fmt: skip


def test_a_mail_that_is_received_is_kept_listed_and_shown(shop: Shop) -> None:
    done = receive(shop, desk.returned(STRAY), "--to", STRAY)
    assert (done.returncode, done.stdout) == (0, b"bounce\n")
    (one,) = rows(shop.command("reports", "list", "--json"))
    assert (one["kind"], one["action"], one["meaning"]) == ("bounce", "suppress", "bad-mailbox")
    assert (one["state"], one["address"]) == (ReportState.WAITING, desk.READER)
    shown = told(shop.command("reports", "show", str(one["id"]), "--json"))
    assert shown["raw"].startswith("Return-Path: <>")
    assert shown["text"] == "550 5.1.1 no such user here"
    refused(shop.command("reports", "show", "99"), "There is no report 99")


def test_reports_are_narrowed_to_a_state_and_a_kind(shop: Shop) -> None:
    receive(shop, desk.returned(STRAY), "--to", STRAY)
    receive(shop, desk.complaint(STRAY), "--to", STRAY)
    assert len(rows(shop.command("reports", "list", "--json"))) == 2
    (one,) = rows(shop.command("reports", "list", "--kind", "complaint", "--state", "waiting", "--json"))
    assert one["kind"] == "complaint"
    assert rows(shop.command("reports", "list", "--state", "suppressed", "--json")) == []
    head, *lines = shop.command("reports", "list").stdout.splitlines()
    assert head.split()[:6] == ["id", "received_at", "origin", "kind", "state", "meaning"]
    assert len(lines) == 2
    assert shop.command("reports", "list", "--state", "lost").returncode == 2


def test_numbers_are_one_object_or_a_table_that_says_what_lies_there(shop: Shop) -> None:
    found = told(shop.command("reports", "numbers", "--json"))
    assert (found["days"], found["editions"], found["providers"], found["stray"]) == (30, [], [], 0)
    assert shop.command("reports", "numbers").stdout == ""
    assert shop.command("reports", "numbers", "--days", "0").returncode == 2


@pytest.mark.parametrize("name", ["ORIGINAL_RECIPIENT", "RECIPIENT"])
def test_the_mail_server_s_environment_says_whose_it_was(shop: Shop, name: str) -> None:
    path = f"b+{'a' * 40}@bounce.example.com"
    receive(shop, desk.returned("else@example.com"), **{name: path})
    (one,) = rows(shop.command("reports", "list", "--json"))
    assert one["token"] == path


def test_a_mail_that_cannot_be_kept_now_is_left_with_the_mail_server(shop: Shop) -> None:
    nowhere = {"BROADSHEET_DATABASE_URL": f"sqlite:///{shop.folder}/nothing/there.db"}
    for broken in (nowhere, {"BROADSHEET_RELAYS": "carrier-pigeon:"}):
        done = receive(shop, desk.returned(STRAY), **broken)
        assert done.returncode == os.EX_TEMPFAIL, done.stderr
        assert b"Traceback" not in done.stderr
        assert done.stderr.strip()


def test_nothing_on_standard_input_is_a_misuse(shop: Shop) -> None:
    done = receive(shop, b" \n")
    assert done.returncode == 2
    assert b"There is no mail on standard input." in done.stderr
