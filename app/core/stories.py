"""A story: work written for a session; here it is told on a plain connection, where nothing ever waits."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncSession

Found = TypeVar("Found")
Story = Callable[[AsyncSession], Coroutine[Any, Any, Found]]


class _Plain(AsyncSession):
    """A session on a plain connection, whose cursors need nobody to wait for them."""

    async def execute(self, *given: Any, **named: Any) -> Any:
        """Execute a statement."""
        return self.sync_session.execute(*given, **named)

    async def scalars(self, *given: Any, **named: Any) -> Any:
        """Execute a statement for its first column."""
        return self.sync_session.scalars(*given, **named)

    async def get(self, *given: Any, **named: Any) -> Any:
        """Return a row by its key."""
        return self.sync_session.get(*given, **named)


def end_of(connection: Connection, story: Story[Found]) -> Found:
    """Run a story in the transaction of a connection, and return what it returned.

    The connection never makes its session wait, so a story comes to its end at the first push.
    """
    session = _Plain(expire_on_commit=False, join_transaction_mode="rollback_only")
    session.sync_session.bind = connection
    telling = story(session)
    try:
        telling.send(None)
        raise RuntimeError("the story waits for something other than its session")
    except StopIteration as end:
        session.sync_session.commit()
        found: Found = end.value
        return found
    finally:
        telling.close()
        session.sync_session.close()
