"""What a returned mail or a server's reply means, and what we would do: needs no database."""

from collections.abc import Sequence
from typing import Any, BinaryIO

import click

from app.cli.desk import as_json, show, show_all
from app.feedback import dsn
from app.feedback.mime import MAIL
from app.feedback.report import Action, Kind, Report
from app.mail import verdict
from app.mail.rules import SMTP_STAGES

ANY = "any"
_COLUMNS = ("address", "status", "action", "meaning", "text")
# The contract of this command knows five kinds; news of a mail that arrived asks for nothing, like all other.
_SHOWN = {Kind.DELIVERED: Kind.OTHER}


@click.command()
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--reply", help="Explain a server's reply instead, such as “550 5.1.1 User unknown”.")
@click.option("--stage", type=click.Choice([*SMTP_STAGES, ANY]), default=ANY, help="When it was said; any.")
@click.option("--provider", default="", help="Who said it: gmail, qq…, or a domain or an MX host.")
@as_json
def explain(files: Sequence[BinaryIO], reply: str | None, stage: str, provider: str, as_json: bool) -> None:
    """Say what returned mails mean, and what would be done. `-` reads one from standard input."""
    if bool(files) == (reply is not None):
        raise click.UsageError("Give files, or --reply and a server's words.")
    if reply is not None:
        show(_of_reply(reply, stage, provider), as_json)
        return
    found = [_of_mail(getattr(file, "name", "-"), dsn.read(file.read(MAIL), None)) for file in files]
    if as_json:
        show_all(found, (), as_json)
        return
    for each in found:
        click.echo(f"{each['file']}: {each['kind']}")
        if each["recipients"]:
            show_all(each["recipients"], _COLUMNS, as_json)


def _of_reply(words: str, stage: str, provider: str) -> dict[str, str]:
    known = provider if provider in verdict.table().providers else verdict.provider_of(provider)
    found = verdict.judge(verdict.reply_in(words), stage, known)
    return {"meaning": found.meaning, "action": found.action.value}


def _of_mail(name: str, reports: Sequence[Report]) -> dict[str, Any]:
    kinds = [_SHOWN.get(one.kind, one.kind) for one in reports]
    kind = next((one for one in kinds if one is not Kind.OTHER), Kind.OTHER)
    told = [one for one in reports if one.address or one.action is not Action.NONE]
    return {"file": name, "kind": kind.value, "recipients": [_of_recipient(one) for one in told]}


def _of_recipient(report: Report) -> dict[str, Any]:
    return {
        "address": report.address,
        "status": report.status,
        "action": report.action.value,
        "meaning": report.meaning,
        "text": report.text,
    }
