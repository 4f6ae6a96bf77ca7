"""Asks the DNS which hosts take a domain's mail."""

from collections.abc import Sequence

import dns.asyncresolver
import dns.exception
import dns.resolver

TIMEOUT = 3.0  # seconds for one look-up
# Names that nobody has, or that are for examples only (RFC 2606, RFC 6761).
_NOBODYS = (".test", ".example", ".invalid", ".localhost", ".example.com", ".example.net", ".example.org")


async def exchangers(domain: str) -> Sequence[str]:
    """Return the hosts that take a domain's mail, the preferred first (RFC 5321 §5.1); none where there are none.

    Raises OSError where nobody could tell.
    """
    if f".{domain}".endswith(_NOBODYS):
        return ()
    try:
        resolver = dns.asyncresolver.Resolver()
        resolver.lifetime = TIMEOUT
        answer = await resolver.resolve(domain, "MX")
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return ()
    except dns.exception.DNSException as error:
        raise OSError(f"no answer from the DNS ({type(error).__name__})") from error
    return [
        each.exchange.to_text(omit_final_dot=True) for each in sorted(answer, key=lambda one: one.preference)
    ]
