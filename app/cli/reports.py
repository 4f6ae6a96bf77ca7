"""What came back: list the reports, show one, and the numbers made of them."""

from typing import Any

import click

from app.cli.desk import as_json, dumped, in_house, number, show, show_all
from app.cli.explain import explain
from app.edge import House
from app.feedback import store
from app.feedback.models import ReportState
from app.feedback.report import Kind
from app.flows import numbers as counting

LISTED = ("id", "received_at", "origin", "kind", "state", "meaning", "issue_id", "subscriber_id", "text")
RATED = ("sent", "bounced_hard", "bounced_soft", "complained", "bounce_rate", "complaint_rate", "level")


@click.group()
def reports() -> None:
    """Bounces, complaints and wishes to leave that came back."""


reports.add_command(explain)


@reports.command("list")
@click.option("--state", type=click.Choice([state.value for state in ReportState]), help="Only those.")
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Only those.")
@as_json
@in_house
async def list_reports(at: House, state: str | None, kind: str | None, as_json: bool) -> None:
    """List what came back, in order."""
    after, rows = 0, []
    while True:
        async with at.db.reading() as session:
            page = await store.page(session, after, 500, state, kind)
        rows += [one.model_dump(exclude={"received_id", "event_id"}) for one in page]
        if len(page) < 500:
            break
        after = page[-1].id or 0
    show_all(rows, LISTED, as_json)


@reports.command("show")
@click.argument("report_id", type=number)
@as_json
@in_house
async def show_report(at: House, report_id: int, as_json: bool) -> None:
    """Show a report, and the mail or the call it came from while that is kept."""
    async with at.db.reading() as session:
        told = await counting.detail(session, await store.get(session, report_id))
    show(told, as_json)


@reports.command("numbers")
@click.option("--days", type=click.IntRange(1, 365), default=30, help="How far to look back; 30.")
@as_json
@in_house
async def show_numbers(at: House, days: int, as_json: bool) -> None:
    """Count what came back lately, by edition and by mailbox provider, against the limits."""
    async with at.db.reading() as session:
        told = await counting.lately(session, days, at.now())
    if as_json:
        click.echo(dumped(told))
        return
    whys = [row | {"reasons": _spoken(row["reasons"])} for row in told["editions"]]
    _table(whys, ("edition", *RATED, "left", "reasons"))
    _table(told["providers"], ("provider", *RATED))
    _table(told["stale"], ("origin", "calls", "last_at"))
    for warning in told["warnings"]:
        click.echo(warning)
    if told["stray"]:
        click.echo(f"Reports that are nobody's: {told['stray']:,}; `broadsheet reports list --state stray`.")


def _spoken(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} {many:,}" for reason, many in reasons.items())


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    if rows:
        show_all(rows, columns, False)
        click.echo()
