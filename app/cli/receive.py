"""A returned mail on standard input, as a mail server hands it to a program."""

import os
import sys

import click

from app.cli.desk import in_house
from app.core.errors import BroadsheetError
from app.edge import House
from app.flows import returns

TRY_LATER = os.EX_TEMPFAIL  # 75: the mail server keeps the mail and tries again


@click.command()
@click.option(
    "--to",
    envvar=["ORIGINAL_RECIPIENT", "RECIPIENT"],
    help="The address it was delivered to; from the mail server's environment, if not given.",
)
def receive(to: str | None) -> None:
    """Take a returned mail from standard input; exit code 75 asks the mail server to try again."""
    raw = sys.stdin.buffer.read(returns.LARGEST)
    if not raw.strip():
        raise click.UsageError("There is no mail on standard input.")
    try:
        _take(raw, to)
    except BroadsheetError as error:  # whatever keeps us from taking it, the mail itself is not at fault
        click.echo(error.detail, err=True)
        sys.exit(TRY_LATER)


@in_house
async def _take(at: House, raw: bytes, to: str | None) -> None:
    found = await returns.take_mail(at.db, raw, to, at.now())
    click.echo(", ".join(one.kind for one in found) or "nothing")
