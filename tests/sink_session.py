"""One connection of the test sink: bytes in, events to the script, replies out."""

import asyncio
import base64
import socket
import struct
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from tests.sink import Sink

Stage = Literal["connect", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "body", "dot"]
Ending = Literal["reset", "close", "hang"]


@dataclass(frozen=True, slots=True)
class Mail:
    """One accepted mail; `data` has its dots unstuffed, `at` is time.time(), `connection` counts from 1."""

    sender: str
    recipient: str
    data: bytes
    at: float
    connection: int


@dataclass(frozen=True, slots=True)
class Event:
    """Where a connection is; `n` mails have been accepted by the whole sink, `connection` counts from 1."""

    stage: Stage
    n: int
    connection: int
    sender: str | None
    recipient: str | None


@dataclass(frozen=True, slots=True)
class Action:
    """What the sink does instead of going on as usual; made by the functions of tests.sink."""

    kind: Literal["reply", "raw", "reset", "close", "hang", "delay", "accept_then"]
    text: str = ""
    chunks: tuple[bytes, ...] = ()
    seconds: float = 0.0
    then: "Action | None" = None


Script = Callable[[Event], Action | None]


def end(transport: asyncio.Transport, ending: Ending) -> None:
    """Ends a connection with RST or FIN, or leaves it open and never reads again."""
    if ending == "hang":
        transport.pause_reading()
    elif ending == "close":
        transport.close()
    else:
        wire = transport.get_extra_info("socket")
        if wire is not None:  # a TLS connection in its last throes has none
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


class Session(asyncio.Protocol):
    """Answers what has come in one write; `waiting` while a script holds it up or the connection is over."""

    def __init__(self, sink: "Sink") -> None:
        self.sink = sink
        self.number = self.scanned = 0
        self.buffer, self.out = bytearray(), bytearray()
        self.waiting = self.in_body = self.body_seen = self.secure = self.greeted = self.over = False
        self.sender: str | None = None
        self.recipients: list[str] = []
        self.verbs: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.sink.open.add(self.transport)
        self.sink.connections += 1
        self.number = self.sink.connections
        self.secure = self.sink.implicit
        self.act("connect", lambda: self.answer("220 sink.example ESMTP"))
        self.greeted = True
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.sink.open.discard(self.transport)
        self.waiting = self.over = True

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.waiting:
            self.work()

    def work(self) -> None:
        """Goes through what has come; a script may stop it and a delay resume it."""
        while not self.waiting and (self.read_body() if self.in_body else self.read_command()):
            pass
        self.flush()

    def read_command(self) -> bool:
        line, found, _ = self.buffer.partition(b"\r\n")
        if not found:
            return False
        del self.buffer[: len(line) + 2]
        text = line.decode("utf-8", "replace")
        self.verbs.append(text.split(" ")[0].upper())
        self.sink.commands.append((self.number, text))
        self.command(self.verbs[-1], text)
        return True

    def command(self, verb: str, text: str) -> None:
        path = text[text.find("<") + 1 : text.find(">")]
        match verb:
            case "EHLO" | "HELO":
                self.act("ehlo", self.offer)
            case "MAIL":
                self.act("mail", lambda: self.take_sender(path), sender=path)
            case "RCPT":
                self.act("rcpt", lambda: self.take_recipient(path), recipient=path)
            case "DATA":
                self.act("data", self.take_data)
            case "RSET":
                self.sender, self.recipients = None, []
                self.answer("250 2.0.0 Ok")
            case "QUIT":
                self.answer("221 2.0.0 Bye")
                self.finish("close")
            case "STARTTLS" if self.sink.starttls and not self.secure:
                self.act("starttls", self.start_tls)
            case "AUTH" if self.sink.auth:
                self.act("auth", lambda: self.authenticate(text))
            case _:
                self.answer("502 5.5.2 Not here")

    def offer(self) -> None:
        sink = self.sink
        lines = ["sink.example", "8BITMIME", "ENHANCEDSTATUSCODES"]
        lines += ["PIPELINING"] if sink.pipelining else []
        lines += [f"SIZE {sink.size}"] if sink.size is not None else []
        lines += ["STARTTLS"] if sink.starttls and not self.secure else []
        lines += ["AUTH PLAIN"] if sink.auth and (self.secure or not sink.starttls) else []
        self.answer("250 " + "\n".join(lines))

    def take_sender(self, sender: str) -> None:
        self.answer("250 2.1.0 Ok" if self.sender is None else "503 5.5.1 Nested MAIL")
        self.sender = sender if self.sender is None else self.sender

    def take_recipient(self, recipient: str) -> None:
        if self.sender is None:
            self.answer("503 5.5.1 MAIL first")
            return
        self.recipients.append(recipient)
        self.answer("250 2.1.5 Ok")

    def take_data(self) -> None:
        self.answer("354 Go on" if self.recipients else "503 5.5.1 RCPT first")

    def read_body(self) -> bool:
        if not self.buffer:
            return False
        if not self.body_seen:
            self.body_seen = True
            self.act("body", lambda: None)
            return True
        length = 0 if self.buffer.startswith(b".\r\n") else self.buffer.find(b"\r\n.\r\n", self.scanned) + 2
        if length == 1:
            self.scanned = max(0, len(self.buffer) - 4)
            return False
        body = bytes(self.buffer[:length])
        del self.buffer[: length + 3]
        self.in_body, self.scanned = False, 0
        sender, recipients = self.sender or "", self.recipients
        self.sender, self.recipients = None, []
        usual = partial(self.take_mail, sender, recipients, body)
        self.act("dot", usual, sender, recipients[0] if recipients else None)
        return True

    def take_mail(self, sender: str, recipients: list[str], body: bytes) -> None:
        sink, now, data = self.sink, time.time(), body.replace(b"\r\n..", b"\r\n.")
        data = data[1:] if data.startswith(b"..") else data
        sink.lone_dots += body == b""
        sink.mails.extend(Mail(sender, recipient, data, now, self.number) for recipient in recipients)
        done = f"250 2.0.0 Ok: queued as SINK{len(sink.mails)}"
        self.answer(done if recipients else "554 5.5.1 No valid recipients")

    def act(
        self, stage: Stage, usual: Callable[[], None], sender: str | None = None, recipient: str | None = None
    ) -> None:
        """Asks the script, then does what it says or what is usual."""
        if self.sink.script is None:
            usual()
            return
        sender = self.sender if sender is None else sender
        recipient = recipient or next(iter(self.recipients), None)
        event = Event(stage, len(self.sink.mails), self.number, sender, recipient)
        self.perform(self.sink.script(event), usual)

    def perform(self, action: Action | None, usual: Callable[[], None]) -> None:
        if action is None:
            usual()
            return
        match action.kind:
            case "reply":
                self.answer_instead(action.text, usual)
            case "raw":
                self.silently(usual, only_if=action.chunks[0][:1] in b"23")
                self.hold(self.send(action, usual))
            case "delay":
                self.hold(self.perform_later(action, usual))
            case "accept_then":
                self.silently(usual)
                self.perform(action.then, usual)
            case "hang" | "reset" | "close":
                self.finish(action.kind)

    def silently(self, usual: Callable[[], None], only_if: bool = True) -> None:
        """Does what is usual but says nothing."""
        said = len(self.out)
        if only_if:
            usual()
        del self.out[said:]

    def answer_instead(self, text: str, usual: Callable[[], None]) -> None:
        self.silently(usual, only_if=text[0] in "23")
        self.answer(text)
        if text.startswith("421") or (not self.greeted and not text.startswith("220")):
            self.finish("close")

    def answer(self, text: str) -> None:
        code, lines = text[:3], text[4:].split("\n")
        self.out += "".join(f"{code}-{line}\r\n" for line in lines[:-1]).encode()
        self.out += f"{code} {lines[-1]}\r\n".encode()
        if code == "354":
            self.in_body, self.body_seen = True, False

    def flush(self) -> None:
        if self.verbs:
            self.sink.groups.append(tuple(self.verbs))
            self.verbs.clear()
        if self.out and not self.transport.is_closing():
            self.transport.write(bytes(self.out))
        self.out.clear()

    def finish(self, ending: Ending) -> None:
        self.waiting = self.over = True
        self.flush()
        end(self.transport, ending)

    def hold(self, rest: Coroutine[None, None, None]) -> None:
        """Reads nothing until `rest` has run."""
        self.waiting = True
        self.flush()
        self.transport.pause_reading()
        asyncio.get_running_loop().create_task(rest).add_done_callback(self.resume)

    def resume(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and not self.over and not self.transport.is_closing():
            task.result()
            self.transport.resume_reading()
            self.waiting = False
            self.work()

    async def send(self, action: Action, usual: Callable[[], None]) -> None:
        for chunk in action.chunks:
            self.transport.write(chunk)
            await asyncio.sleep(0.01)
        if action.then is not None:
            self.perform(action.then, usual)

    async def perform_later(self, action: Action, usual: Callable[[], None]) -> None:
        await asyncio.sleep(action.seconds)
        self.perform(action.then, usual)

    def authenticate(self, text: str) -> None:
        words = base64.b64decode(text.removeprefix("AUTH PLAIN ")).decode().split("\0")
        right = tuple(words[1:]) == self.sink.auth
        self.answer("235 2.7.0 Welcome" if right else "535 5.7.8 Authentication credentials invalid")

    def start_tls(self) -> None:
        self.answer("220 2.0.0 Go on in TLS")
        self.hold(self.shake_hands())

    async def shake_hands(self) -> None:
        plain, context = self.transport, self.sink.context
        assert context is not None, "a sink that offers STARTTLS needs a certificate"
        self.sink.open.discard(plain)
        with suppress(OSError):
            secured = await asyncio.get_running_loop().start_tls(plain, self, context, server_side=True)
            if secured is not None:
                self.transport, self.secure = secured, True
                self.sink.open.add(secured)
