"""The DNS records that mail needs, and what is wrong with those that are set; looked up within a few seconds."""

import asyncio
import re
from dataclasses import dataclass

import dns.asyncresolver
import dns.exception
import dns.resolver

from app.mail import dkim

_KEY = re.compile(r"(?:^|;)p=([^;]*)")

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


def key_record(signer: dkim.Signer) -> Record:
    """Return the record of the public key that our signatures are checked with (RFC 6376 §3.6)."""
    return Record(
        signer.record_name,
        "TXT",
        dkim.public_record(signer),
        "DKIM: the key that our signatures are checked with",
    )


async def looked_up(records: list[Record]) -> list[Record]:
    """Return the records with what the DNS says of each, asked all at once."""
    return list(await asyncio.gather(*(_look_up(record) for record in records)))


async def _look_up(record: Record) -> Record:
    try:
        resolver = dns.asyncresolver.Resolver()
        resolver.lifetime = TIMEOUT
        answer = await resolver.resolve(record.name, record.type)
        found = tuple(str(each).strip('"').replace('" "', "") for each in answer)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        found = ()
    except (dns.exception.DNSException, OSError) as error:
        return _with(record, (), f"could not be looked up ({type(error).__name__})")
    return _with(record, found, judged(record, found))


def judged(record: Record, found: tuple[str, ...]) -> str | None:
    """Say what is wrong with what was found for a record, or None."""
    if record.type == "MX":
        if not found:
            return "missing: returned mail has nowhere to go"
        takes_none = [text.split() for text in found] == [["0", "."]]
        return "the domain says that it takes no mail (RFC 7505)" if takes_none else None
    kind = _terms(record.value)[0]
    if kind == "v=dkim1":
        return _judged_key(record.value, found)
    those = [terms for terms in map(_terms, found) if terms[:1] == [kind]]
    if not those:
        return "missing"
    if len(those) > 1:
        return f"there are {len(those)}, and only one may be"
    if kind == "v=spf1" and {"+all", "all"} & set(those[0]):  # RFC 7208 §4.6.2: a bare mechanism is a pass
        return "+all lets everybody send for this domain"
    if kind == "v=dmarc1" and not any(term.startswith("p=") for term in those[0]):
        return "it names no policy (p=)"
    return None


def _judged_key(wanted_value: str, found: tuple[str, ...]) -> str | None:
    """Compare public keys only: `v=` may be absent and blanks may stand anywhere in `p=` (RFC 6376 §3.6.1)."""
    keys = [key for key in map(_public_key, found) if key is not None]
    if not keys:
        return "missing"
    if len(keys) > 1:
        return f"there are {len(keys)}, and only one may be"
    return None if keys[0] == _public_key(wanted_value) else "it holds another key than DKIM_KEY"


def _public_key(text: str) -> str | None:
    tags = (tag.partition("=") for tag in text.split(";"))
    keys = ["".join(value.split()) for name, _, value in tags if name.strip() == "p"]
    return keys[0] if keys else None


def _terms(text: str) -> list[str]:
    """Return the parts of an SPF or DMARC record, in small letters: the one has spaces between, the other `;`."""
    return text.lower().replace(";", " ").split()


def _with(record: Record, found: tuple[str, ...], problem: str | None) -> Record:
    return Record(record.name, record.type, record.value, record.why, found, problem)


def _is_number(host: str) -> bool:
    return host.replace(".", "").isdecimal() or ":" in host or host == "localhost"
