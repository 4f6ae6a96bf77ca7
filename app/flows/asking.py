"""The form's two halves: the door takes a request in a moment, the worker answers it.

At the door the work is the same for every address, so neither answer nor time tells who reads what. What the address
is to us is looked at afterwards, within the limits: a mailbox gets few letters, and so does everybody together.
"""

import logging
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.core.db import Database
from app.core.errors import BroadsheetError, TooMany
from app.flows import subscribe
from app.subscribers import addresses, asks
from app.subscribers.models import Ask, AskState
from app.subscribers.store import Origin

log = logging.getLogger(__name__)

BATCH = 100


async def take(session: AsyncSession, settings: Settings, request: subscribe.Request, now: datetime) -> None:
    """Keep a request until the worker answers it; whether its editions are known has been looked at.

    Raises Invalid for an address nobody could mail, TooMany for a network that has asked for too many mailboxes.
    """
    address = addresses.accept(request.address)
    digest, network = address.digest(settings.suppression_key), request.origin.network
    limit = settings.signups_a_network
    if limit and network and await asks.others_of(session, network, digest, now) >= limit:
        raise TooMany("There were many requests from your network just now; try again in some minutes.")
    wish = {
        "address": request.address,
        "editions": list(request.editions),
        "language": request.language,
        "source": request.origin.source,
    }
    session.add(Ask(at=now, digest=digest, network=network, wish=wish))


async def answer(db: Database, settings: Settings, now: datetime) -> bool:
    """Answer the oldest requests, a batch a transaction; returns whether there may be more to do at once."""
    async with db.reading() as session:
        if not await asks.any_waiting(session):
            return False
    return await db.perform(lambda session: _answer_some(session, settings, now)) > 0


async def _answer_some(session: AsyncSession, settings: Settings, now: datetime) -> int:
    """Answer as many of the oldest requests as a batch and the letters of this minute let; return how many."""
    room = BATCH
    if settings.letters_a_minute:
        room = min(BATCH, settings.letters_a_minute - await asks.written_lately(session, now))
    waiting = await asks.waiting(session, room) if room > 0 else ()
    for one in waiting:
        one.state, one.at = await _answered(session, settings, one, now), now
        one.wish = None
        await session.flush()
    return len(waiting)


async def _answered(session: AsyncSession, settings: Settings, one: Ask, now: datetime) -> AskState:
    """Do what a request calls for; one that cannot be answered is set aside and holds nobody up."""
    wish = one.wish or {}
    origin = Origin(wish["source"], one.network)
    request = subscribe.Request(wish["address"], wish["editions"], wish["language"], origin)
    try:
        async with session.begin_nested():
            letter = await asks.may_write(session, settings, one.digest, now)
            written = await subscribe.ask(session, settings, request, now, letter)
    except BroadsheetError as error:  # an edition that is gone, for instance
        log.warning("a request from the form cannot be answered: %s", error.detail)
        return AskState.SILENT
    except SQLAlchemyError:
        raise
    except Exception:
        log.exception("a request from the form cannot be answered")
        return AskState.SILENT
    return AskState.WRITTEN if written else AskState.SILENT
