"""The command line: one file a noun, each loaded only when it is asked for."""

import importlib
import sys

import click

from app.core.errors import BroadsheetError

NOUNS = {
    "run": ("run", "Pages, API, worker and mailbox in one process."),
    "serve": ("run", "Pages and API only."),
    "worker": ("run", "The worker only."),
    "migrate": ("run", "Bring the database to this version."),
    "keys": ("keys", "API keys."),
    "editions": ("editions", "The series that readers choose from."),
    "issues": ("issues", "Hand in, look at, and test an issue."),
    "send": ("mailings", "Send an issue to its readers."),
    "mailings": ("mailings", "Watch and steer what is being sent."),
    "why": ("mailings", "Did she get it, and why not?"),
    "subscribers": ("subscribers", "Readers: add, list, import, export, erase."),
    "suppressions": ("suppressions", "Addresses that must not be mailed."),
    "reports": ("reports", "What came back, what it means, and in numbers."),
    "receive": ("receive", "Take a returned mail from standard input."),
    "dns": ("dns", "The DNS records to set, and what is wrong with those that are."),
}


class Nouns(click.Group):
    """Knows every noun by name, and imports its file only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the nouns in the order in which they are of use."""
        return list(NOUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a noun's command."""
        if cmd_name not in NOUNS:
            return None
        module = importlib.import_module(f"app.cli.{NOUNS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the nouns without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in NOUNS.items()])


@click.command(cls=Nouns, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="broadsheet", message="broadsheet %(version)s")
def broadsheet() -> None:
    """Deliver newsletters: each reader gets what they chose, once."""


def main() -> None:
    """Run a command; a refusal is one sentence on standard error and exit code 1."""
    try:
        broadsheet()
    except BroadsheetError as error:
        click.echo(error.detail, err=True)
        for fault in error.faults:
            where = f"line {fault.line}: " if fault.line else f"{fault.field}: " if fault.field else ""
            click.echo(f"  {where}{fault.message}", err=True)
        sys.exit(1)
    except OSError as error:
        click.echo(
            f"{error.filename or 'A file'} cannot be used: {(error.strerror or str(error)).lower()}.",
            err=True,
        )
        sys.exit(1)
