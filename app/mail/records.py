"""The DNS records that mail needs, and what is wrong with those that are set; looked up within a few seconds."""

import asyncio
from dataclasses import dataclass

import dns.asyncresolver
import dns.exception
import dns.resolver

TIMEOUT = 5.0  # seconds for one look-up


@dataclass(frozen=True, slots=True)
class Record:
    """A record to set, what is set now, and what is wrong with it (None: nothing, or it could not be looked up)."""

    name: str
    type: str
    value: str
    why: str
    found: tuple[str, ...] = ()
    problem: str | None = None


def wanted(domain: str, relay_hosts: tuple[str, ...], bounce_domain: str | None) -> list[Record]:
    """Return the records for a sending domain: SPF (RFC 7208), DMARC (RFC 7489), and MX for returned mail."""
    relays = " ".join(f"a:{host}" for host in relay_hosts if not _is_number(host))
    records = [
        Record(
            domain, "TXT", f"v=spf1 {relays} ~all".replace("  ", " "), "SPF: who may send for this domain"
        ),
        Record(f"_dmarc.{domain}", "TXT", "v=DMARC1; p=none", "DMARC: the big providers want one"),
    ]
    if bounce_domain:
        records += [
            Record(bounce_domain, "MX", f"10 {bounce_domain}.", "where returned mail goes"),
            Record(
                bounce_domain, "TXT", f"v=spf1 {relays} ~all".replace("  ", " "), "SPF of the envelope sender"
            ),
        ]
    return records


async def looked_up(records: list[Record]) -> list[Record]:
    """Return the records with what the DNS says of each, asked all at once."""
    return list(await asyncio.gather(*(_look_up(record) for record in records)))


async def _look_up(record: Record) -> Record:
    resolver = dns.asyncresolver.Resolver()
    resolver.lifetime = TIMEOUT
    try:
        answer = await resolver.resolve(record.name, record.type)
        found = tuple(str(each).strip('"').replace('" "', "") for each in answer)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        found = ()
    except (dns.exception.DNSException, OSError) as error:
        return _with(record, (), f"could not be looked up ({type(error).__name__})")
    return _with(record, found, judged(record, found))


def judged(record: Record, found: tuple[str, ...]) -> str | None:
    """Say what is wrong with what was found for a record, or None."""
    kind = record.value.split(" ")[0].rstrip(";")
    if record.type == "MX":
        return None if found else "missing: returned mail has nowhere to go"
    those = [text for text in found if text.lower().startswith(kind.lower())]
    if not those:
        return "missing"
    if len(those) > 1:
        return f"there are {len(those)}, and only one may be"
    if kind == "v=spf1" and those[0].endswith("+all"):
        return "+all lets everybody send for this domain"
    if kind == "v=DMARC1" and "p=" not in those[0]:
        return "it names no policy (p=)"
    return None


def _with(record: Record, found: tuple[str, ...], problem: str | None) -> Record:
    return Record(record.name, record.type, record.value, record.why, found, problem)


def _is_number(host: str) -> bool:
    return host.replace(".", "").isdecimal() or ":" in host or host == "localhost"
