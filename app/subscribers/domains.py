"""Whose mailboxes a domain has: what the mail exchangers say of those whose name alone does not tell."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Table, delete, func, literal, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import String
from sqlmodel import col

from app.core.db import upsert
from app.subscribers.models import MailDomain, Subscriber

mail_domain: Table = MailDomain.__table__  # type: ignore[attr-defined]

LASTS = timedelta(days=30)  # for which an answer is believed
AGAIN = timedelta(days=1)  # after which one that did not come is asked for again
MOST = 1_000  # domains that are put down or forgotten in one transaction


class domain_of(GenericFunction[str]):  # noqa: N801 - it is written as the function it is
    """The domain of an address's key."""

    type = String()
    inherit_cache = True


@compiles(domain_of, "sqlite")
def _in_sqlite(element: domain_of, compiler: SQLCompiler, **options: object) -> str:
    key = compiler.process(element.clauses, **options)
    return f"substr({key}, instr({key}, '@') + 1)"


@compiles(domain_of, "postgresql")
def _in_postgresql(element: domain_of, compiler: SQLCompiler, **options: object) -> str:
    return f"split_part({compiler.process(element.clauses, **options)}, '@', 2)"


def their_domain() -> ColumnElement[str]:
    """Return the domain of a subscriber's address."""
    return domain_of(col(Subscriber.address_key))


def their_provider() -> ColumnElement[str]:
    """Return a subscriber's provider, or "", in a SELECT that has mail_domain outer-joined by `theirs`."""
    return func.coalesce(
        func.nullif(col(Subscriber.provider), literal("")), col(MailDomain.provider), literal("")
    )


def theirs() -> ColumnElement[bool]:
    """Return that a row of mail_domain is of a subscriber's domain."""
    return col(MailDomain.domain) == their_domain()


async def strange(session: AsyncSession) -> list[str]:
    """Return domains of readers of which nobody knows yet whose they are, and that are not put down."""
    which = (
        select(their_domain())
        .outerjoin(MailDomain, theirs())
        .where(col(Subscriber.provider) == "", col(MailDomain.domain).is_(None))
        .distinct()
        .limit(MOST)
    )
    return list((await session.execute(which)).scalars())


async def abandoned(session: AsyncSession) -> list[str]:
    """Return domains that no reader has any more."""
    had = select(their_domain()).where(col(Subscriber.provider) == "")
    which = select(mail_domain.c.domain).where(mail_domain.c.domain.not_in(had)).limit(MOST)
    return list((await session.execute(which)).scalars())


async def put_down(session: AsyncSession, domains: Sequence[str], now: datetime) -> None:
    """Put domains down to be looked up."""
    rows = [{"domain": one, "provider": "", "due_at": now} for one in domains]
    await session.execute(upsert(session, mail_domain).values(rows).on_conflict_do_nothing())


async def forget(session: AsyncSession, domains: Sequence[str]) -> None:
    """Forget domains."""
    await session.execute(delete(mail_domain).where(mail_domain.c.domain.in_(domains)))


async def due(session: AsyncSession, now: datetime, limit: int) -> list[str]:
    """Return domains whose exchangers are to be looked up now, those that wait longest first."""
    which = select(mail_domain.c.domain).where(mail_domain.c.due_at <= now)
    return list((await session.execute(which.order_by(mail_domain.c.due_at).limit(limit))).scalars())


async def note(session: AsyncSession, found: Mapping[str, str | None], now: datetime) -> None:
    """Keep whose each domain is; None is one that could not be looked up, and stays what it was."""
    for domain, provider in sorted(found.items()):
        values: dict[str, object] = {"due_at": now + AGAIN}
        if provider is not None:
            values = {"due_at": now + LASTS, "looked_at": now, "provider": provider}
        await session.execute(mail_domain.update().where(mail_domain.c.domain == domain).values(values))
