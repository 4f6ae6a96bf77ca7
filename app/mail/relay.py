"""The only socket to a relay: opens SMTP connections, past EHLO, TLS and AUTH."""

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import aiosmtplib

from app.core.relay_url import RelayUrl
from app.mail.connection import Connection
from app.mail.outcome import Reply
from app.mail.smtp import Timeouts


class RelayDown(Exception):
    """No connection to the relay; `ours` is True where only a change of our settings can help."""

    def __init__(self, sentence: str, reply: Reply | None = None, ours: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.reply = reply
        self.ours = ours


class Relay:
    """A relay to hand mail to. `helo` is our own host name; `tls` replaces the system's trusted roots."""

    def __init__(
        self, url: RelayUrl, helo: str, tls: ssl.SSLContext | None = None, timeouts: Timeouts | None = None
    ) -> None:
        self.url = url
        self.helo = helo
        self.timeouts = timeouts or Timeouts()
        self._tls = (tls or ssl.create_default_context()) if url.scheme in ("smtp", "smtps") else None

    async def connect(self) -> Connection:
        """A connection past EHLO, TLS and AUTH. Raises RelayDown.

        With smtp:// STARTTLS must be offered and succeed before anything else is said, AUTH above all
        (RFC 3207 §6); certificates are verified against the host of the URL.
        """
        client = aiosmtplib.SMTP(
            hostname=self.url.host,
            port=self.url.port,
            local_hostname=self.helo,
            timeout=self.timeouts.opening,
            use_tls=self.url.scheme == "smtps",
            start_tls=False,
            tls_context=self._tls,
        )
        try:
            with _told_plainly(self.url.name):
                await self._open(client)
            if client.transport is None:
                raise RelayDown(f"The relay {self.url.name} closed the connection.")
            transport = cast(asyncio.Transport, client.transport)
            return Connection(transport, client.esmtp_extensions, self.url.per_connection, self.timeouts)
        except BaseException:
            client.close()
            raise

    async def _open(self, client: aiosmtplib.SMTP) -> None:
        await client.connect()
        await client.ehlo()
        if self.url.scheme == "smtp":
            if not client.supports_extension("starttls"):
                raise RelayDown(f"The relay {self.url.name} offers no STARTTLS.", ours=True)
            await client.starttls()
            await client.ehlo()
        if self.url.username is not None and self.url.password is not None:
            if not client.supported_auth_methods:
                raise RelayDown(f"The relay {self.url.name} offers no login that is known here.", ours=True)
            await client.login(self.url.username, self.url.password)


@contextmanager
def _told_plainly(name: str) -> Iterator[None]:
    """Turns what aiosmtplib raises into RelayDown."""
    try:
        yield
    except aiosmtplib.SMTPResponseException as error:
        raise _refusal(name, error) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        cause = error.__cause__ or error
        if isinstance(cause, ssl.SSLCertVerificationError):
            sentence = f"The certificate of the relay {name} is not valid: {cause.verify_message}."
            raise RelayDown(sentence, ours=True) from error
        raise RelayDown(f"The relay {name} cannot be reached: {_reason(cause) or error}.") from error


def _reason(cause: BaseException) -> str:
    # asyncio's own text names addresses where the reason should stand; the number knows the reason.
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError | socket.gaierror) and cause.errno:
        return os.strerror(cause.errno)
    return str(cause)


def _refusal(name: str, error: aiosmtplib.SMTPResponseException) -> RelayDown:
    text = " ".join(error.message.split())
    if not 200 <= error.code <= 599:
        return RelayDown(f"The relay {name} answered what is not SMTP: {text[:80]}.")
    reply, permanent = Reply(error.code, text), error.code >= 500
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return RelayDown(f"The relay {name} refused the login: {reply.code} {text}", reply, permanent)
    if isinstance(error, aiosmtplib.SMTPConnectResponseError | aiosmtplib.SMTPHeloError):
        return RelayDown(f"The relay {name} refused the connection: {reply.code} {text}", reply)
    return RelayDown(f"The relay {name} refused STARTTLS: {reply.code} {text}", reply, permanent)
