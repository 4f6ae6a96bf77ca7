"""The schema of the database: brought up to this version, or refused when it belongs to a newer one."""

import re
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from app.core import jobs, paths
from app.core.db import Database
from app.core.errors import Misconfigured

if TYPE_CHECKING:  # only who changes the schema needs it, and it takes some 10 MB
    from alembic.config import Config

_FILE = re.compile(r"(\d{4})_\w+\.py")  # a migration's, which begins with its revision


async def upgrade(db: Database) -> str | None:
    """Bring the database to this version and return the revision it had before (None: it was empty).

    Raises Misconfigured when it was made by a newer version; nothing is changed then.
    """
    async with db.engine.begin() as connection:
        before = await connection.run_sync(_upgrade)
        if not db.is_sqlite:
            await jobs.lay_down(connection)
        return before


async def require_current(db: Database) -> None:
    """Raise Misconfigured unless the database has exactly this version's schema."""
    async with db.engine.connect() as connection:
        revision = await connection.run_sync(_revision)
    _refuse_newer(revision)
    if revision is None:
        where = db.engine.url.render_as_string(hide_password=True)
        raise Misconfigured(
            f"There is no Broadsheet database here yet ({where}). Go where `broadsheet run` is started, or set "
            "BROADSHEET_DATABASE_URL; to make a new one, run `broadsheet migrate`."
        )
    if revision != newest():
        raise Misconfigured("The database is older than this program; run `broadsheet migrate`.")


def newest() -> str:
    """Return the revision that this version's schema has."""
    return max(_revisions())


def configure(connection: Connection) -> "Config":
    """Return alembic's configuration for a connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(paths.migrations()))
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: Connection) -> str | None:
    from alembic import command

    before = _revision(connection)
    _refuse_newer(before)
    command.upgrade(configure(connection), "head")
    return before


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


@cache
def _revisions() -> frozenset[str]:
    files = (paths.migrations() / "versions").iterdir()
    return frozenset(named[1] for file in files if (named := _FILE.fullmatch(file.name)))


def _refuse_newer(revision: str | None) -> None:
    if revision is not None and revision not in _revisions():
        raise Misconfigured(
            f"This database was made by a newer Broadsheet (its revision {revision} is not known here). "
            "Install that version, or restore a backup made before the upgrade."
        )
