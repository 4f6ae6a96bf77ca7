"""Runs migrations on the connection that `app.core.schema` hands over."""

from alembic import context
from sqlalchemy import Connection

import app.delivery.models
import app.editors.models
import app.feedback.models
import app.issues.models
import app.subscribers.models  # noqa: F401  (imported, the tables are known)
from app.core.db import metadata

connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=True,
    compare_type=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
