"""Takes the port of the pages and the API."""

import socket

from app.core.errors import Misconfigured

BACKLOG = 2048  # connections that wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """Take the port before anything else is begun; raise Misconfigured when it cannot be had."""
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.create_server(where[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        cause = (error.strerror or str(error)).lower()
        raise Misconfigured(f"Port {port} on {host} cannot be taken: {cause}. Choose with --port.") from None
    # What it accepts inherits this; asyncio sets it only on sockets that were named TCP when they were made.
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server
