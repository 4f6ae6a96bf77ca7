"""A database that cannot be reached, or cannot take a write, told in a sentence for the operator."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.errors import Unavailable


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn a database that cannot be reached, or cannot take a write, into Unavailable."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise Unavailable(explain(error)) from error
    except PoolTimeout as error:
        raise Unavailable("Too much is asked of the database at once; try again in a moment.") from error


@contextmanager
def from_driver(connection: Connection, statement: str) -> Iterator[None]:
    """Raise what the driver of a connection raises as SQLAlchemy would, without any value of the statement."""
    driver: Any = connection.dialect.dbapi
    try:
        yield
    except driver.Error as error:
        raise DBAPIError.instance(statement, None, error, driver.Error, hide_parameters=True) from error


def explain(error: OperationalError | InterfaceError) -> str:
    """Say in a sentence what a failed database call means for the operator, without any value of it."""
    cause = str(error.orig)
    if "is full" in cause or "No space left" in cause or "disk I/O error" in cause:
        return "The disk that holds the database is full; free some space, and everything resumes by itself."
    if "locked" in cause or "lock timeout" in cause:
        return "The database is held by another process; try again in a moment."
    if "readonly" in cause:
        return "The database file cannot be written; check who owns it."
    if "no such table" in cause:
        return "The database has no tables yet; run `broadsheet migrate`."
    return "The database cannot be reached; try again in a moment."
