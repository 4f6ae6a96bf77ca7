"""Ports of the loopback for the servers of a test."""

import socket
from contextlib import suppress
from random import SystemRandom

# Below those that a kernel gives to connections: one of those may be taken before its server has started.
_PORTS = iter(SystemRandom().sample(range(20_000, 32_000), 12_000))


def free_port() -> int:
    """Return a port where nobody listens; none is returned twice."""
    for port in _PORTS:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("Every port has been given away.")
