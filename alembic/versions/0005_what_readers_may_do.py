"""A reader's hour and pause, what they ask for, and the links they have mailed to them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

HAS_HOUR = sa.text("hour IS NOT NULL")
WAITS = sa.text("state = 'waiting'")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column(
        "subscriber",
        sa.Column("weekdays_only", sa.Boolean(), nullable=False, server_default=sa.text("false")),
    )
    op.add_column("subscriber", sa.Column("paused_at", MOMENT, nullable=True))
    op.create_index(
        "hours", "subscriber", ["timezone", "hour"], sqlite_where=HAS_HOUR, postgresql_where=HAS_HOUR
    )
    op.add_column("consent_event", sa.Column("detail", sa.String(16), nullable=False, server_default=""))
    op.add_column("mailing", sa.Column("wait", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("delivery", sa.Column("slot", MOMENT, nullable=True))
    op.create_table(
        "ask",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("network", sa.LargeBinary(), nullable=True),
        sa.Column("wish", sa.JSON(), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'written', 'silent')", name=op.f("ck_ask_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ask")),
    )
    op.create_index(op.f("ix_ask_at"), "ask", ["at"])
    op.create_index(op.f("ix_ask_network_at"), "ask", ["network", "at"])
    op.create_index(op.f("ix_ask_digest_at"), "ask", ["digest", "at"])
    op.create_index("waiting", "ask", ["id"], sqlite_where=WAITS, postgresql_where=WAITS)
    op.create_table(
        "errand",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("subscriber_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("address", sa.String(254), nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
        sa.CheckConstraint("kind IN ('address', 'move', 'data', 'erase')", name=op.f("ck_errand_kind")),
        sa.ForeignKeyConstraint(
            ["subscriber_id"],
            ["subscriber.id"],
            name=op.f("fk_errand_subscriber_id_subscriber"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_errand")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_errand_subscriber_id"), "errand", ["subscriber_id"])


def downgrade() -> None:
    op.drop_table("errand")
    op.drop_table("ask")
    op.drop_index("hours", "subscriber")
    for table, columns in (
        ("subscriber", ("weekdays_only", "paused_at")),
        ("consent_event", ("detail",)),
        ("mailing", ("wait",)),
        ("delivery", ("slot",)),
    ):
        for column in columns:
            op.drop_column(table, column)
