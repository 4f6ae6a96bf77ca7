"""A page on loopback that shows an issue as it is being written, and again whenever a file of it changes."""

import hashlib
import html
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from app.core.errors import BroadsheetError

LOOPBACK = "127.0.0.1"
GLANCE, PATIENCE = 0.2, 20.0  # seconds between two looks at the files, and until a page asks again
PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Preview</title>
<style>html,body,iframe{{margin:0;border:0;width:100%;height:100%;display:block}}</style>
<iframe src="/mail" title="The mail"></iframe>
<script>
let seen = "{version}";
async function follow() {{
  try {{
    const answer = await fetch("/changes?since=" + seen), version = await answer.text();
    if (version !== seen) {{ seen = version; document.querySelector("iframe").contentWindow.location.reload(); }}
  }} catch {{ await new Promise(done => setTimeout(done, 1000)); }}
  follow();
}}
follow();
</script></html>
"""


class Watch(ThreadingHTTPServer):
    """Serves `/`, `/mail` and `/changes`; `set_type` gives the mail's HTML, `files` are those it is made of."""

    daemon_threads = True

    def __init__(self, port: int, set_type: Callable[[], str], files: Callable[[], Iterable[Path]]) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.set_type, self.files = set_type, files

    @property
    def url(self) -> str:
        """Where to look."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def mail(self) -> str:
        """The mail's HTML, or a page of what is wrong with its text or a template."""
        try:
            return self.set_type()
        except BroadsheetError as error:
            rows = [f"line {fault.line}: {fault.message}" for fault in error.faults if fault.line]
            listed = "".join(f"<li>{html.escape(row)}</li>" for row in rows)
            return f"<!DOCTYPE html><meta charset='utf-8'><p>{html.escape(error.detail)}</p><ul>{listed}</ul>"

    def version(self) -> str:
        """A word that is another one when a file has changed, appeared or gone."""
        seen = hashlib.sha256()
        for path in sorted(self.files()):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            seen.update(f"{path} {found.st_mtime_ns} {found.st_size}\n".encode())
        return seen.hexdigest()[:16]

    def next_version(self, since: str) -> str:
        """The version once it is not `since` any more, or after PATIENCE."""
        pause = threading.Event()
        for _ in range(round(PATIENCE / GLANCE)):
            if (version := self.version()) != since:
                return version
            pause.wait(GLANCE)
        return since


class _Handler(BaseHTTPRequestHandler):
    server: Watch

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        # Another name for this machine would be a foreign page's, which may not read a draft.
        if urlsplit(f"//{self.headers.get('Host', '')}").hostname not in (LOOPBACK, "localhost"):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "This page is for this machine alone.")
        elif asked.path == "/":
            self._answer(HTTPStatus.OK, "text/html", PAGE.format(version=self.server.version()))
        elif asked.path == "/mail":
            self._answer(HTTPStatus.OK, "text/html", self.server.mail())
        elif asked.path == "/changes":
            since = parse_qs(asked.query).get("since", [""])[0]
            self._answer(HTTPStatus.OK, "text/plain", self.server.next_version(since))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "There is / alone.")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the command prints what there is to say."""

    def _answer(self, status: HTTPStatus, media_type: str, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{media_type}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)
