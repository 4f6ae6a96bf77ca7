"""Claiming and settling as a worker does them: counted in the same transaction."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from app.delivery import books, claims
from app.delivery.claims import Claim, Settlement


def claim(connection: Connection, worker_id: int, *given: Any) -> list[Claim]:
    """Take on what is due; `given` as for `claims.claim`."""
    taken, moves = claims.claim(connection, worker_id, *given)
    books.count(connection, worker_id, moves)
    return taken


def settle(connection: Connection, worker_id: int, settlements: Sequence[Settlement]) -> None:
    """Record what became of a worker's claims."""
    books.count(connection, worker_id, claims.settle(connection, worker_id, settlements))
