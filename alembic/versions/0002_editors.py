"""The audit trail, answers to calls that come again, and an index for counting who left."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("act", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entry")),
    )
    op.create_table(
        "given_answer",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_given_answer")),
    )
    op.create_index(op.f("ix_given_answer_created_at"), "given_answer", ["created_at"])
    op.create_index(op.f("ix_consent_event_kind_at"), "consent_event", ["kind", "at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_consent_event_kind_at"), "consent_event")
    op.drop_table("given_answer")
    op.drop_table("audit_entry")
