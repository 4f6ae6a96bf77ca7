"""What comes back: mails and calls as they were, reports, and the numbers beside them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATES = "'waiting', 'suppressed', 'counted', 'left', 'noted', 'stray'"


def upgrade() -> None:
    op.create_table(
        "received",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("call_id", sa.String(200), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_received")),
        sa.UniqueConstraint("origin", "call_id", name=op.f("uq_received_origin_call_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_received_received_at"), "received", ["received_at"])
    _reports()
    op.create_table(
        "stale_calls",
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("origin", name=op.f("pk_stale_calls")),
    )
    op.create_table(
        "reach",
        sa.Column("mailing_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["mailing_id"], ["mailing.id"], name=op.f("fk_reach_mailing_id_mailing")),
        sa.PrimaryKeyConstraint("mailing_id", "provider", name=op.f("pk_reach")),
    )
    op.create_table(
        "storm",
        sa.Column("mailing_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["mailing_id"], ["mailing.id"], name=op.f("fk_storm_mailing_id_mailing")),
        sa.PrimaryKeyConstraint("mailing_id", "kind", name=op.f("pk_storm")),
    )


def _reports() -> None:
    op.create_table(
        "report",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("received_id", sa.Integer(), nullable=True),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("event_id", sa.String(240), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("action", sa.String(8), nullable=False),
        sa.Column("meaning", sa.String(32), nullable=False),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.Column("status", sa.String(16), nullable=True),
        sa.Column("text", sa.String(200), nullable=False),
        *(
            sa.Column(name, sa.String(320), nullable=True)
            for name in ("address", "token", "message_id", "relay_id")
        ),
        sa.Column("happened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("issue_id", sa.Integer(), nullable=True),
        sa.Column("subscriber_id", sa.Integer(), nullable=True),
        sa.Column("letter_id", sa.Integer(), nullable=True),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.CheckConstraint(f"state IN ({STATES})", name=op.f("ck_report_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report")),
        sa.UniqueConstraint("origin", "event_id", name=op.f("uq_report_origin_event_id")),
        sqlite_autoincrement=True,
    )
    waiting = sa.text("state = 'waiting'")
    op.create_index("waiting_report", "report", ["id"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_index(op.f("ix_report_issue_id_subscriber_id"), "report", ["issue_id", "subscriber_id"])
    op.create_index(op.f("ix_report_state_id"), "report", ["state", "id"])
    op.create_index(op.f("ix_report_subscriber_id"), "report", ["subscriber_id"])
    op.create_index(op.f("ix_report_received_at"), "report", ["received_at"])


def downgrade() -> None:
    for table in ("storm", "reach", "stale_calls", "report", "received"):
        op.drop_table(table)
