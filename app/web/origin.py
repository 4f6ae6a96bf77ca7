"""Where a request came from: the source, and the keyed hash of the network; never the network itself."""

import hmac
import ipaddress
import logging

from fastapi import Request

from app.edge import House
from app.subscribers.store import Origin

log = logging.getLogger(__name__)

FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip")
MOST_WARNINGS = 8
_warned: set[str] = set()  # each peer once a process


def origin(request: Request, at: House, source: str) -> Origin:
    """Return where a request came from; a proxy that nobody told us of hides the network, so there is none.

    Behind such a proxy all readers look like one network, and five of them would shut the door to the rest. That is
    believed of a proxy on this machine or its own network; from the open internet the header may be forged by
    anybody, so there the peer's network counts.
    """
    peer = request.client.host if request.client else ""
    if not at.settings.trusted_proxies and any(name in request.headers for name in FORWARDED):
        _warn(peer)
        if (address := _address(peer)) is not None and address.is_private:
            return Origin(source)
    return Origin(source, network_hash(peer, at))


def network_hash(host: str, at: House) -> bytes | None:
    """Return the keyed hash (32 bytes) of the network (/24, or /64) that an address is in; None where there is none."""
    if (address := _address(host)) is None:
        return None
    network = ipaddress.ip_network(f"{address}/{24 if address.version == 4 else 64}", strict=False)
    return hmac.digest(at.settings.suppression_key.encode(), f"network:{network}".encode(), "sha256")


def _warn(peer: str) -> None:
    if peer not in _warned and len(_warned) < MOST_WARNINGS:
        _warned.add(peer)
        log.warning(
            "%s passes requests on, and BROADSHEET_TRUSTED_PROXIES names no proxy: name it, or sign-ups cannot be "
            "limited by network",
            peer,
        )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address
