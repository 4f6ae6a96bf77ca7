"""A server of a test gets a port that nobody else is given."""

from pathlib import Path

from tests.ports import free_port

KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_no_port_is_given_twice_and_none_that_a_connection_may_be_given() -> None:
    ports = [free_port() for _ in range(1_000)]
    assert len(set(ports)) == 1_000
    first_of_the_kernel = int(KERNEL.read_text().split()[0]) if KERNEL.exists() else 49_152
    assert max(ports) < first_of_the_kernel
