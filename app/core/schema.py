"""The schema of the database: brought up to this version, or refused when it belongs to a newer one."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.core import jobs, paths
from app.core.db import Database
from app.core.errors import Misconfigured


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
    if revision != _scripts().get_current_head():
        raise Misconfigured("The database is older than this program; run `broadsheet migrate`.")


def newest() -> str:
    """Return the revision that this version's schema has."""
    return _scripts().get_current_head() or ""


def configure(connection: Connection) -> Config:
    """Return alembic's configuration for a connection."""
    config = Config()
    config.set_main_option("script_location", str(paths.migrations()))
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: Connection) -> str | None:
    before = _revision(connection)
    _refuse_newer(before)
    command.upgrade(configure(connection), "head")
    return before


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(paths.migrations()))
    return ScriptDirectory.from_config(config)


def _refuse_newer(revision: str | None) -> None:
    known = {script.revision for script in _scripts().walk_revisions()}
    if revision is not None and revision not in known:
        raise Misconfigured(
            f"This database was made by a newer Broadsheet (its revision {revision} is not known here). "
            "Install that version, or restore a backup made before the upgrade."
        )
