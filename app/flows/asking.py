"""The form's two halves: the door takes a request in a moment, the worker answers it.

At the door the work is the same for every address, so neither answer nor time tells who reads what. What the address
is to us is looked at afterwards, within the limits: a mailbox gets few letters, and so does everybody together.
"""

import logging
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.core.db import Database
from app.core.errors import BroadsheetError, TooMany
from app.flows import subscribe
from app.issues import store as issues
from app.issues.models import Edition
from app.subscribers import asks
from app.subscribers.addresses import Address
from app.subscribers.models import Ask, AskState
from app.subscribers.store import Origin

log = logging.getLogger(__name__)

BATCH = 100


def take(
    connection: Connection, settings: Settings, request: subscribe.Request, address: Address, now: datetime
) -> None:
    """Keep a request until the worker answers it; its address and editions have been looked at.

    Raises TooMany for a network that has asked for too many mailboxes.
    """
    digest, network = address.digest(settings.suppression_key), request.origin.network
    limit = settings.signups_a_network
    if limit and network and asks.others_of(connection, network, digest, now) >= limit:
        raise TooMany("There were many requests from your network just now; try again in some minutes.")
    wish = {
        "address": request.address,
        "editions": list(request.editions),
        "language": request.language,
        "source": request.origin.source,
    }
    asks.take(connection, digest, network, wish, now)


async def answer(db: Database, settings: Settings, now: datetime) -> bool:
    """Answer the oldest requests, a batch a transaction; returns whether there may be more to do at once."""
    if not await db.told(asks.any_waiting):
        return False
    return await db.perform(lambda session: _answer_some(session, settings, now)) > 0


async def _answer_some(session: AsyncSession, settings: Settings, now: datetime) -> int:
    """Answer as many of the oldest requests as a batch and the letters of this minute let; return how many."""
    room = BATCH
    if settings.letters_a_minute:
        room = min(BATCH, settings.letters_a_minute - await asks.written_lately(session, now))
    waiting = await asks.waiting(session, room) if room > 0 else ()
    if not waiting:
        return 0
    known = await issues.editions(session)
    written = await asks.written(session, [one.digest for one in waiting], now)
    ends = []
    for one in waiting:
        may_write = asks.is_within(settings, written[one.digest], now)
        ends.append(await _answered(session, settings, one, known, may_write, now))
        if ends[-1] == AskState.WRITTEN:
            written[one.digest].append(now)
    for one, end in zip(waiting, ends, strict=True):
        one.state, one.at, one.wish = end, now, None
    await session.flush()
    return len(waiting)


async def _answered(
    session: AsyncSession,
    settings: Settings,
    one: Ask,
    known: Sequence[Edition],
    may_write: bool,
    now: datetime,
) -> AskState:
    """Do what a request calls for; one that cannot be answered is set aside and holds nobody up."""
    wish = one.wish or {}
    origin = Origin(wish["source"], one.network)
    request = subscribe.Request(wish["address"], wish["editions"], wish["language"], origin)
    try:
        async with session.begin_nested():
            written = await subscribe.ask(session, settings, request, known, now, may_write)
    except BroadsheetError as error:  # an edition that is gone, for instance
        log.warning("a request from the form cannot be answered: %s", error.detail)
        return AskState.SILENT
    except SQLAlchemyError:
        raise
    except Exception:
        log.exception("a request from the form cannot be answered")
        return AskState.SILENT
    return AskState.WRITTEN if written else AskState.SILENT
