"""SpamAssassin with its local rules finds nothing against an issue or a letter of ours."""

import re
import shutil
import subprocess
from pathlib import Path

from tests import needs
from tests.gallery import mails
from tests.issues.samples import SEEDS

SCORE = re.compile(rb"^X-Spam-Status: .*?score=(-?[0-9.]+)", re.MULTILINE)
FROM = b"From sender@example.com Mon Oct 26 00:00:00 2026\n"


def test_no_mail_of_ours_scores_above_nothing(tmp_path: Path) -> None:
    program = shutil.which("spamassassin")
    if program is None:
        needs.give_up("There is no spamassassin to ask.")
    sent = mails.every()
    if SEEDS.exists():
        sent |= {
            f"real {slug}": mails.issue(slug, "zh", mails.text(slug, "zh", SEEDS))
            for slug in ("daily", "weekly")
        }
    box = b"".join(FROM + raw.replace(b"\r\n", b"\n") + b"\n" for raw in sent.values())
    asked = [program, "--local", "--nocreate-prefs", "--mbox", "--siteconfigpath=/etc/spamassassin"]
    done = subprocess.run(
        asked,
        input=box,
        capture_output=True,
        check=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    scores = dict(zip(sent, map(float, SCORE.findall(done.stdout)), strict=True))
    assert max(scores.values()) <= 0, scores
