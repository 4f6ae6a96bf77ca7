"""Something comes back: it is verified, kept with what it says, and only then acted on, by the worker."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from datetime import datetime

from app.core.config import Settings
from app.core.db import Database
from app.core.errors import NotFound
from app.feedback import dsn, store
from app.feedback.fetching import Documents
from app.feedback.providers import PROVIDERS, ses
from app.feedback.providers.call import Call, Config, Stale
from app.feedback.report import Kind, Report
from app.flows.attribution import MAIL

LARGEST = 10_000_000  # bytes of a mail or a call that are taken in
READ = 262_144  # bytes of a mail that are read and kept: a report stands at its front
_RECIPIENTS = re.compile(
    rb"^(?:Delivered-To|X-Original-To|X-Envelope-To|Envelope-To):[ \t]*<?([^\s<>]{3,320})>?[ \t]*\r?$",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD = 32_768


async def take_call(
    db: Database,
    settings: Settings,
    documents: Documents,
    call: tuple[str, Mapping[str, str], bytes],
    now: datetime,
) -> int:
    """Verify a provider's call, keep it with its reports, and return how many are new.

    `call` is the provider, the headers with names in small letters, and the raw body. Raises NotFound for a provider
    that is unknown or not set up, else what its parser raises. Opens and clicks are not kept: nobody is watched.
    """
    provider, headers, body = call
    secrets = settings.hook(provider)
    if not secrets or provider not in PROVIDERS:
        raise NotFound("There is no such address here.")
    try:
        verified = await _verified(provider, headers, body, secrets, documents, now)
    except Stale:
        async with db.transaction() as session:
            await store.note_stale(session, provider, now)
        raise
    if verified.confirm is not None:
        await documents.visit(verified.confirm)
    reports = [one for one in verified.reports if one.kind != Kind.OTHER]
    if not reports:
        return 0
    async with db.transaction() as session:
        return await store.keep(session, (provider, verified.id), body, reports, now)


def doubts(settings: Settings) -> list[str]:
    """Return a sentence for each relay whose provider's webhooks cannot be verified, so that they are not let in."""
    named = [(url.name, url.hook) for url in settings.relay_urls if url.hook]
    return [
        f"The relay {name} names hook={hook}, but {_missing(hook)}; its bounces and complaints are not heard."
        for name, hook in named
        if hook not in PROVIDERS or not settings.hook(hook)
    ]


def _missing(hook: str) -> str:
    return f"BROADSHEET_HOOK_{hook.upper()} is not set" if hook in PROVIDERS else "there is no such provider"


async def _verified(
    provider: str,
    headers: Mapping[str, str],
    body: bytes,
    secrets: tuple[str, ...],
    documents: Documents,
    now: datetime,
) -> Call:
    certificate = b""
    if provider == ses.ORIGIN:
        certificate = await documents.get(ses.certificate_url(body, secrets, now))
    return PROVIDERS[provider](headers, body, Config(secrets, certificate), now)


async def take_mail(db: Database, raw: bytes, envelope_to: str | None, now: datetime) -> list[Report]:
    """Read a returned mail, keep it with what it says, and return that; the same mail twice is kept once.

    `envelope_to` is the address it was delivered to, where the way in knows it; else the mail's own trace says.
    """
    kept = raw[:READ]
    to = envelope_to or recipient_in(kept)
    reports = await asyncio.to_thread(dsn.read, kept, to)
    call_id = hashlib.sha256(kept + b"\0" + (to or "").encode("utf-8", "replace")).hexdigest()
    async with db.transaction() as session:
        await store.keep(session, (MAIL, call_id), kept, reports, now)
    return reports


def recipient_in(raw: bytes) -> str | None:
    """The address that a mail was delivered to, as the server that took it in wrote it at its front."""
    head = re.split(rb"\r?\n\r?\n", raw[:_HEAD], maxsplit=1)[0]
    found = _RECIPIENTS.search(head)
    return found[1].decode("ascii", "replace") if found else None
