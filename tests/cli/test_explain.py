"""`reports explain` says what a returned mail or a reply means, with no database in reach."""

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from app.cli.explain import explain
from app.feedback.report import Action
from app.mail import verdict
from tests import needs
from tests.house.manual import section
from tests.mail.test_verdict import REPLIES
from tests.programs import COMMAND

MAILS = Path(__file__).resolve().parents[1] / "feedback" / "mails"


def said(*words: str, given: bytes = b"") -> list[dict[str, Any]]:
    """Return the objects that the command prints."""
    done = CliRunner().invoke(explain, [*words, "--json"], input=given)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def test_it_needs_neither_a_database_nor_settings(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "BROADSHEET_DATABASE_URL": "sqlite:////nowhere/at/all.db"}
    done = subprocess.run(
        [*COMMAND, "reports", "explain", str(MAILS / "exim-two.eml")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert "exim-two.eml: bounce" in done.stdout
    assert "second@else.example" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_each_file_is_one_object_with_its_recipients() -> None:
    first, second = said(str(MAILS / "exim-two.eml"), str(MAILS / "vacation.eml"))
    assert (first["file"], first["kind"]) == (str(MAILS / "exim-two.eml"), "bounce")
    assert {one["address"]: one["action"] for one in first["recipients"]} == {
        "second@else.example": "none",
        "reader@there.example": "suppress",
    }
    assert (second["kind"], [one["action"] for one in second["recipients"]]) == ("auto-reply", ["none"])


def test_kinds_are_those_of_the_manual_and_a_delivery_is_other() -> None:
    kinds = {one["kind"] for one in said(*map(str, sorted(MAILS.glob("*.eml"))))}
    assert kinds == {"bounce", "complaint", "unsubscribe", "auto-reply", "other"}
    assert said(str(MAILS / "postfix-delivered.eml"))[0]["kind"] == "other"


def test_a_mail_may_come_by_standard_input() -> None:
    (one,) = said("-", given=(MAILS / "exim-user.eml").read_bytes())
    assert one["recipients"][0]["status"] == "5.1.1"
    (nothing,) = said("-", given=b"")
    assert (nothing["kind"], nothing["recipients"]) == ("other", [])


def test_a_reply_is_explained_by_stage_and_provider() -> None:
    assert said("--reply", "550 5.1.1 No such user") == [{"meaning": "bad-mailbox", "action": "suppress"}]
    unknown = ("--reply", "550 Unknown user reader@docomo.ne.jp")
    assert said(*unknown, "--stage", "rcpt")[0]["action"] == "suppress"
    assert (
        said(*unknown, "--stage", "dot", "--provider", "mfsmax.docomo.ne.jp")[0]["action"] == "fail-message"
    )


def test_the_known_replies_are_explained_rightly() -> None:
    if not REPLIES.exists():
        needs.give_up("The corpus of server replies does not lie beside this repository.")
    with REPLIES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        words = " ".join(filter(None, (row["code"], row["enhanced"], row["text"])))
        (found,) = said("--reply", words, "--stage", row["stage"], "--provider", row["provider"])
        assert found["action"] == row["action"], row


def test_files_and_a_reply_exclude_each_other() -> None:
    for words in ([], [str(MAILS / "exim-user.eml"), "--reply", "550 no"]):
        done = CliRunner().invoke(explain, words)
        assert done.exit_code == 2
        assert "Give files, or --reply" in done.output


def test_every_meaning_and_action_is_in_the_manual() -> None:
    told = section("docs/returned-mail.md", "What a reason means")
    assert {word for word in verdict.table().meanings if f"| `{word}` |" not in told} == set()
    asked = section("docs/returned-mail.md", "Ask what a mail means")
    assert all(f"- `{action.value}`:" in asked for action in Action)
