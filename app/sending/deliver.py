"""One delivery's life: claim, compose, hand over, settle; never with a transaction open while mail is sent."""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database
from app.core.errors import Unavailable
from app.delivery import books, claims, ledger, mailings, timing
from app.delivery.claims import Claim, Key, Settlement
from app.delivery.models import State
from app.flows import bounce
from app.flows.compose import Composer, Envelope, Reader
from app.mail import headers, verdict
from app.mail.outcome import Deferred, Outcome, Refused, Reply, Sent, Uncertain, Unreached
from app.sending.stock import Stock
from app.subscribers import audience

log = logging.getLogger(__name__)

WORDS_LIMIT = 200  # characters of a reason or a reply
# What a 5xx may mean that is neither about this reader nor for good.
PACE = frozenset({verdict.Action.SLOW_PROVIDER, verdict.Action.PAUSE_PROVIDER})
PASSING = PACE | {verdict.Action.RETRY, verdict.Action.PAUSE_MAILING}
TOO_LARGE = 552  # the one refusal of MAIL that is about the message (RFC 1870 §6.1)
NAME_LIMIT = 100  # characters of a relay's name, and of its name for a mail


@dataclass(frozen=True, slots=True)
class Wish:
    """How much a worker could take on now: letters, issues, and of which mailings; `apart` is two lanes.

    `limits` are the providers whose mails may go, with how many of each (None: any number), in their turn.
    """

    letters: int
    issues: int
    apart: bool
    stocks: Sequence[Stock]
    limits: Mapping[str, int | None]


def exchange(
    connection: Connection, worker_id: int, outcomes: Sequence[Settlement], wish: Wish, now: datetime
) -> list[Claim]:
    """Record outcomes and take on what is due: letters first, then a fair share of each mailing."""
    moves = _settled(connection, worker_id, outcomes, now)
    taken = claims.claim_letters(connection, worker_id, wish.letters, now) if wish.letters else []
    room, left = wish.issues if wish.apart else wish.issues - len(taken), dict(wish.limits)
    for waiting, one in zip(range(len(wish.stocks), 0, -1), wish.stocks, strict=True):
        share, who = -(-room // waiting), audience.addressees(one.press(one.default).edition_id)
        time = one.time(now)
        for provider in wish.limits if share > 0 else ():
            limit = left[provider] if provider in one.providers else 0
            if (many := share if limit is None else min(share, limit)) > 0:
                mine, its_moves = claims.claim(
                    connection, worker_id, (one.mailing_id, provider), who, many, time
                )
                taken, room, share = taken + mine, room - len(mine), share - len(mine)
                left[provider] = limit and limit - len(mine)
                moves += its_moves
    books.count(connection, worker_id, moves)
    return taken


def compose(composer: Composer, stock: Stock | None, claim: Claim) -> Envelope:
    """Return the message for a claim; only a letter has no stock. Raises ValueError when it cannot be written."""
    if stock is None:
        return composer.letter_message(claim.letter or {})
    reader = Reader(claim.subscriber_id or 0, claim.address, claim.slot)
    return composer.issue_message(stock.press(claim.language), reader)


def composed(composer: Composer, stock: Stock | None, claim: Claim, now: datetime) -> Envelope | Settlement:
    """Return the message for a claim, or what to record where it cannot be written."""
    try:
        return compose(composer, stock, claim)
    except Exception as error:
        if not isinstance(error, ValueError):
            log.exception("a message could not be composed")
        return failed(claim, error, now)


def failed(claim: Claim, error: Exception, now: datetime) -> Settlement:
    """Settle a claim that cannot be composed or addressed: it is set aside and blocks nobody."""
    reason = words(claim, str(error) or type(error).__name__)
    return Settlement(claim, State.FAILED, due_at=now, done_at=now, reason=reason, attempts=claim.attempts)


def released(claim: Claim, due_at: datetime) -> Settlement:
    """Give a claim back untouched: it was not tried."""
    return Settlement(claim, State.OWED, due_at=due_at, done_at=due_at, attempts=claim.attempts - 1)


def put_off(claim: Claim, reason: str, now: datetime, jitter: float) -> Settlement:
    """Try a mail again later that broke a fresh connection before its end; it counts as a try."""
    again = timing.next_try(claim.attempts, now, jitter)
    return Settlement(
        claim,
        State.DEFERRED if again else State.EXPIRED,
        due_at=again or now,
        done_at=now,
        reason=words(claim, reason),
        attempts=claim.attempts,
    )


def without_words(one: Settlement) -> Settlement:
    """Return a settlement without anything that came from outside."""
    return one._replace(reason=None, relay=None, relay_id=None, reply=None)


def settlement(
    claim: Claim, outcome: Outcome, relay: str, holds: bool, now: datetime, jitter: float
) -> Settlement:
    """Turn what the relay said into what the ledger records; `jitter` from -1 to 1 spreads the retries."""
    relay = relay[:NAME_LIMIT]
    if isinstance(outcome, Sent):
        reply, number = outcome.reply, outcome.relay_id and outcome.relay_id[:NAME_LIMIT]
        text = words(claim, reply.text)
        return Settlement(claim, State.SENT, now, now, None, relay, number, reply.code, text, claim.attempts)
    base = Settlement(claim, State.OWED, now, now, relay=relay, attempts=claim.attempts)
    again = timing.next_try(claim.attempts, now, jitter)
    match outcome:
        case Refused(reply) | Deferred(reply) if again and fault_in(claim, outcome):
            reason = mailings.OWN_FAULT
            return _with(base, reply)._replace(state=State.OWED, due_at=again, reason=reason)
        case Refused(reply, stage) if not _passes(claim, reply, stage):
            return _with(base, reply)._replace(state=State.REFUSED, stage=stage)
        case Refused(reply) | Deferred(reply) if again:
            return _with(base, reply)._replace(state=State.DEFERRED, due_at=again)
        case Refused(reply) | Deferred(reply):
            return _with(base, reply)._replace(state=State.EXPIRED)
        case Uncertain(reason) if again is None or holds:
            return base._replace(state=State.UNCERTAIN, reason=words(claim, reason))
        case Uncertain(reason):
            return base._replace(state=State.OWED, due_at=again or now, reason=words(claim, reason))
        case Unreached():
            return released(claim, now)


def record(connection: Connection, worker_id: int, settlements: Sequence[Settlement], now: datetime) -> None:
    """Record what became of a worker's claims; what was refused for good waits as a report, too."""
    books.count(connection, worker_id, _settled(connection, worker_id, settlements, now))


def _settled(
    connection: Connection, worker_id: int, settlements: Sequence[Settlement], now: datetime
) -> books.Moves:
    moves = claims.settle(connection, worker_id, settlements)
    bounce.refused(connection, settlements, now)
    return moves


async def record_alone(db: Database, worker_id: int, one: Settlement, now: datetime) -> bool:
    """Record one outcome, without its words if need be; False where that cannot be done. Raises Unavailable."""
    for version in (one, without_words(one)):
        step = partial(record, worker_id=worker_id, settlements=[version], now=now)
        try:
            await db.work(step)
        except Unavailable:
            raise
        except Exception:
            log.exception("an outcome could not be recorded")
        else:
            return True
    return False


async def give_back_unknown(db: Database, worker_id: int, held: Collection[Key], now: datetime) -> None:
    """Give back what is a worker's by the rows though it does not know of it: a commit's answer was lost."""
    async with db.transaction() as session:
        freed = await ledger.free_unknown(session, worker_id, held, now)
    log.warning("%d claims were given back whose commit had not been answered", freed)


def is_about_us(outcome: Refused) -> bool:
    """Tell whether a refusal is about our sender or our login: nobody else has been named yet."""
    if outcome.stage != "mail" or outcome.reply.code == TOO_LARGE:
        return False
    return verdict.judge(outcome.reply, "mail").action not in PACE


def is_enough(outcome: Outcome) -> bool:
    """Tell whether the relay has taken all the mails that it takes on one connection."""
    if not isinstance(outcome, Refused | Deferred | Unreached) or outcome.reply is None:
        return False
    return verdict.judge(outcome.reply, outcome.stage).meaning == verdict.ENOUGH


def fault_in(claim: Claim, outcome: Outcome) -> str | None:
    """Return what the relay said where the fault is ours and would meet every reader, else None."""
    if not isinstance(outcome, Refused | Deferred):
        return None
    reply, whose = outcome.reply, verdict.provider_of(claim.address)
    is_ours = isinstance(outcome, Refused) and is_about_us(outcome)
    if is_ours or verdict.judge(reply, outcome.stage, whose).action == verdict.Action.PAUSE_MAILING:
        return words(claim, f"{reply.code} {reply.text}")
    return None


def _passes(claim: Claim, reply: Reply, stage: str) -> bool:
    """Tell whether a refusal will pass: a limit that some providers say with 550, or a fault of our own."""
    return verdict.judge(reply, stage, verdict.provider_of(claim.address)).action in PASSING


def _with(one: Settlement, reply: Reply) -> Settlement:
    return one._replace(code=reply.code, reply=words(one.claim, reply.text))


def words(claim: Claim, text: str) -> str:
    """Return a text as it is kept: on one line that any database takes, without the reader's address."""
    if "@" not in text and text.isprintable():
        return text[:WORDS_LIMIT]
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    folded = plain.casefold()
    for form in _forms(claim.address):
        if form.casefold() in folded:
            plain = re.sub(re.escape(form), "‹address›", plain, flags=re.IGNORECASE)
    return plain[:WORDS_LIMIT]


def _forms(address: str) -> set[str]:
    """Return what an address may be repeated as: as it was typed, and as a relay was given it."""
    try:
        return {address, headers.envelope_address(address)}
    except ValueError:  # no relay was; one that has been erased meanwhile is empty
        return {address} - {""}


async def look_after(session: AsyncSession, now: datetime) -> list[int]:
    """Settle what has outlived its time and finish what has nothing open; returns the finished mailings."""
    await ledger.expire(session, now)
    await ledger.expire_letters(session, now - timing.LETTER_LIFE, now)
    await mailings.withdraw_cancelled(session, now)
    return await mailings.finish(session, now)
