"""The port that pages and API are served on."""

import socket

from app.cli.listening import listen


def test_what_is_answered_leaves_at_once_and_waits_for_no_acknowledgement() -> None:
    with listen("127.0.0.1", 0) as server, socket.create_connection(server.getsockname()):
        accepted, _ = server.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
