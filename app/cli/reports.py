"""What came back."""

import click

from app.cli.explain import explain


@click.group()
def reports() -> None:
    """Bounces, complaints and wishes to leave that came back."""


reports.add_command(explain)
