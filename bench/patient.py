"""A client that waits for every reply: MAIL, RCPT, DATA and the dot are one round trip each (RFC 5321 without 2920).

`python -m bench.patient PORT CONNECTIONS MAILS BYTES` sends so many mails over each of its connections.
"""

import smtplib
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

LINE = b"x" * 70 + b"\r\n"
HEAD = b"From: from@example.com\r\nTo: to@example.com\r\nSubject: patience\r\n\r\n"


def send(port: int, mails: int, size: int) -> None:
    """Send mails of about so many bytes over one connection."""
    message = HEAD + LINE * max(1, (size - len(HEAD)) // len(LINE))
    with smtplib.SMTP("127.0.0.1", port) as client:
        assert client.sock is not None
        client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(mails):
            client.sendmail("from@example.com", ["to@example.com"], message)


def main(port: int, connections: int, mails: int, size: int) -> None:
    """Send over all connections at once."""
    with ThreadPoolExecutor(connections) as pool:
        for sent in [pool.submit(send, port, mails, size) for _ in range(connections)]:
            sent.result()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
