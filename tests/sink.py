"""A real SMTP server for tests: it keeps what it accepts, and misbehaves where a script says so."""

import asyncio
import ssl
import subprocess
import threading
import time
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.sink_session import Action, Ending, Event, Mail, Script, Session, Stage, end

__all__ = [
    "Action",
    "Certificate",
    "Ending",
    "Event",
    "Mail",
    "Script",
    "Sink",
    "Stage",
    "accept_then",
    "at",
    "certificate",
    "close",
    "delay",
    "hang",
    "raw",
    "reply",
    "reset",
]


def reply(text: str) -> Action:
    """Answer this; "\\n" makes it multiline. 2xx and 3xx take effect as usual, 421 also closes."""
    return Action("reply", text=text)


def raw(*chunks: bytes, then: Action | None = None) -> Action:
    """Answer with these bytes, each in a packet of its own; a first byte 2 or 3 takes effect as usual."""
    return Action("raw", chunks=chunks, then=then)


def reset() -> Action:
    """Tear the connection down with RST."""
    return Action("reset")


def close() -> Action:
    """Close the connection with FIN, without a word."""
    return Action("close")


def hang() -> Action:
    """Keep the connection open and never read or answer again."""
    return Action("hang")


def delay(seconds: float, then: Action | None = None) -> Action:
    """Wait, then go on as usual or do `then`."""
    return Action("delay", seconds=seconds, then=then)


def accept_then(ending: Ending) -> Action:
    """At the stage "dot": keep the mail, never say so, and end the connection."""
    return Action("accept_then", then=Action(ending))


def at(stage: Stage, action: Action, times: int | None = None) -> Script:
    """A script that acts at one stage, the first `times` times it is reached (None: always)."""
    seen = 0

    def script(event: Event) -> Action | None:
        nonlocal seen
        seen += event.stage == stage
        return action if event.stage == stage and (times is None or seen <= times) else None

    return script


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate and its key, as PEM files."""

    certificate: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        """The context of a server that shows it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def trusted(self) -> ssl.SSLContext:
        """The context of a client that trusts it and nothing else."""
        return ssl.create_default_context(cafile=str(self.certificate))


def certificate(folder: Path, name: str = "DNS:localhost,IP:127.0.0.1") -> Certificate:
    """A fresh certificate for `name` (a subjectAltName), made by the openssl command."""
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=sink"
    files = ["-addext", f"subjectAltName={name}", "-keyout", str(made.key), "-out", str(made.certificate)]
    subprocess.run(["openssl", *kind.split(), *files], check=True, capture_output=True)
    return made


class Sink:
    """The server in a thread of its own: `with Sink() as sink:` gives sink.port on 127.0.0.1.

    `pipelining`, `size`, `auth` (user, password) and `tls` say what it offers ("implicit" speaks TLS from
    the first byte). `script` may be replaced at any time; it is called in the sink's thread. `mails`,
    `commands` (connection, line) and `groups` (the verbs answered together) grow until `forget`.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        pipelining: bool = True,
        size: int | None = None,
        auth: tuple[str, str] | None = None,
        tls: Literal["starttls", "implicit"] | None = None,
        certificate: Certificate | None = None,
        port: int = 0,
    ) -> None:
        self.script = script
        self.pipelining, self.size, self.auth = pipelining, size, auth
        self.starttls, self.implicit = tls == "starttls", tls == "implicit"
        self.context = certificate.server() if certificate else None
        self.port = port
        self.mails: list[Mail] = []
        self.commands: list[tuple[int, str]] = []
        self.groups: list[tuple[str, ...]] = []
        self.connections = self.lone_dots = 0
        self.open: set[asyncio.Transport] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="sink", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def url(self) -> str:
        """The relay address of a sink without TLS and AUTH."""
        return f"smtp+plain://127.0.0.1:{self.port}"

    def recipients(self) -> list[str]:
        """The recipients of all accepted mails, in the order of their acceptance."""
        return [mail.recipient for mail in self.mails.copy()]

    def parsed(self) -> list[EmailMessage]:
        """All accepted mails as messages."""
        return [message_from_bytes(mail.data, policy=policy.default) for mail in self.mails.copy()]

    def verbs(self) -> list[str]:
        """The verbs of all commands, in upper case."""
        return [line.split(" ")[0].upper() for _, line in self.commands.copy()]

    def wait(self, mails: int, seconds: float = 10.0) -> None:
        """Blocks until so many mails are here. Raises TimeoutError."""
        last = time.monotonic() + seconds
        while len(self.mails) < mails:
            if time.monotonic() > last:
                raise TimeoutError(f"{len(self.mails)} of {mails} mails came within {seconds:g} s")
            time.sleep(0.005)

    def forget(self) -> None:
        """Forgets mails, commands and groups; connections stay open."""
        self.mails.clear()
        self.commands.clear()
        self.groups.clear()

    def say(self, text: str) -> None:
        """Says something unasked on every open connection; 421 also closes them."""
        self._loop.call_soon_threadsafe(self._say, text)

    def hang_up(self, ending: Literal["reset", "close"] = "close") -> None:
        """Ends every open connection."""
        self._loop.call_soon_threadsafe(self._hang_up, ending)

    def _say(self, text: str) -> None:
        for transport in tuple(self.open):
            transport.write(text.encode() + b"\r\n")
            if text.startswith("421"):
                transport.close()

    def _hang_up(self, ending: Literal["reset", "close"]) -> None:
        for transport in tuple(self.open):
            end(transport, ending)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        context = self.context if self.implicit else None
        try:
            opening = self._loop.create_server(lambda: Session(self), "127.0.0.1", self.port, ssl=context)
            server = self._loop.run_until_complete(opening)
        except BaseException as error:
            self._failure = error
        else:
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            self._loop.run_forever()
            server.close()
            self._loop.run_until_complete(self._clear())
        finally:
            self._ready.set()
            self._loop.close()

    async def _clear(self) -> None:
        self._hang_up("reset")
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)
