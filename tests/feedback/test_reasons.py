"""A server's words mean the same, whichever mail system hands them on and whatever it says around them."""

import csv
from pathlib import Path

import pytest

from app.feedback import dsn

HERE = Path(__file__).parent
WORDS = HERE.parent / "mail" / "reported_words.csv"
READER = "reader@there.example"
_SAID = "{reason}"


def refusals() -> list[dict[str, str]]:
    """Replies that refuse for good, each with the actions that are right."""
    with WORDS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["words"][:1] == "5" and row["words"][:3].isdigit()]


@pytest.mark.parametrize("frame", sorted(HERE.glob("frames/*.eml")), ids=lambda path: path.stem)
def test_a_reason_means_the_same_in_the_mail_of_any_system(frame: Path) -> None:
    whole = frame.read_text(encoding="utf-8")
    assert _SAID in whole
    wrong = []
    for row in refusals():
        found = dsn.read(whole.replace(_SAID, row["words"]).encode(), None)
        named = [one.action.value for one in found if one.address == READER]
        if len(named) != 1 or named[0] not in row["action"].split("|"):
            wrong.append((row["action"], row["words"], found))
    assert wrong == []
