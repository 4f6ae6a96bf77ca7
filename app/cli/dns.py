"""The DNS records to set, and what is wrong with those that are."""

from dataclasses import asdict

import click

from app.cli.desk import as_json, in_house, show_all
from app.edge import House
from app.issues import store
from app.mail import records


@click.command()
@click.option("--offline", is_flag=True, help="Only print what to set.")
@as_json
@in_house
async def dns(at: House, offline: bool, as_json: bool) -> None:
    """Print the SPF, DKIM, DMARC and MX records to set, and look up those that are."""
    async with at.db.reading() as session:
        senders = [at.composer.sender(one) for one in await store.editions(session)]
    domains = dict.fromkeys([at.settings.domain, *(sender.partition("@")[2] for sender in senders)])
    hosts = tuple(url.host for url in at.settings.relay_urls if url.scheme != "mailbox")
    if not hosts:
        click.echo(
            "No mail leaves this machine (RELAYS is the embedded mailbox), so there is nothing to set."
        )
        return
    bounces = at.settings.bounce_domain
    found = [
        record
        for number, domain in enumerate(domains)
        for record in records.wanted(domain, hosts, bounces if number == 0 else None)
    ]
    if (signer := at.composer.dkim) is not None:
        found.append(records.key_record(signer))
    if not offline:
        found = await records.looked_up(found)
    rows = [asdict(record) | {"found": list(record.found)} for record in found]
    if as_json:
        show_all(rows, (), as_json)
        return
    for record in found:
        state = "" if offline else f"  ✗ {record.problem}" if record.problem else "  ✓"
        click.echo(f"{record.name}  {record.type}  {record.value}{state}\n    {record.why}")
