"""A story: work written for a session; here it is told on a plain connection, where nothing ever waits."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

Found = TypeVar("Found")
Story = Callable[[AsyncSession], Coroutine[Any, Any, Found]]


def end_of(connection: Connection, story: Story[Any]) -> Any:
    """Run a story in a savepoint; return what it returned or raised, and raise when the transaction is lost.

    The connection never makes its session wait, so a story comes to its end at the first push.
    """
    session = AsyncSession(expire_on_commit=False, join_transaction_mode="create_savepoint")
    session.sync_session.bind = connection
    telling = story(session)
    try:
        telling.send(None)
        raise RuntimeError("the story waits for something other than its session")
    except StopIteration as end:
        session.sync_session.commit()
        return end.value
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        return error
    finally:
        telling.close()
        session.sync_session.close()
