"""The first schema, with a daily and a weekly edition."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


DELIVERY_STATES = (
    "state IN ('owed', 'in_flight', 'sent', 'deferred', 'refused', 'failed', 'uncertain', "
    "'withdrawn', 'suppressed', 'expired')"
)
editions = sa.table(
    "edition",
    *(sa.column(name) for name in ("slug", "name", "label", "description", "language", "accent")),
    *(sa.column(name) for name in ("accent_dark", "timezone", "max_lateness", "time_to_live", "position")),
    sa.column("cadence", sa.JSON),
)
DAILY_AND_WEEKLY = [
    {
        "slug": "daily",
        "name": "AI 技术日报",
        "label": "日报",
        "description": "一个重点，几则简讯，一篇经典回顾",
        "language": "zh",
        "accent": "#b4371e",
        "accent_dark": "#f08a6e",
        "cadence": {"weekdays": [0, 1, 2, 3, 4, 5, 6]},
        "timezone": "Asia/Shanghai",
        "max_lateness": 6 * 3600,
        "time_to_live": 20 * 3600,
        "position": 1,
    },
    {
        "slug": "weekly",
        "name": "AI 技术周报",
        "label": "周报",
        "description": "把一周的进展放在同一个问题下看",
        "language": "zh",
        "accent": "#1d5785",
        "accent_dark": "#86b7e8",
        "cadence": {"weekdays": [6]},
        "timezone": "Asia/Shanghai",
        "max_lateness": 24 * 3600,
        "time_to_live": 3 * 24 * 3600,
        "position": 2,
    },
]


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("handle", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("scope", sa.String(length=8), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("scope IN ('editor', 'admin', 'inbound')", name=op.f("ck_api_key_scope")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("handle", name=op.f("uq_api_key_handle")),
    )
    op.create_table(
        "consent_event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("subscriber_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("wording", sa.String(length=16), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("source", sa.String(length=120), nullable=False),
        sa.Column("network", sa.LargeBinary(), nullable=True),
        sa.Column("editions", sa.String(length=400), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consent_event")),
    )
    with op.batch_alter_table("consent_event", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_consent_event_subscriber_id"), ["subscriber_id"], unique=False)

    op.create_table(
        "edition",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("label", sa.String(length=20), nullable=False),
        sa.Column("description", sa.String(length=200), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("list_id", sa.String(length=120), nullable=True),
        sa.Column("sender", sa.String(length=254), nullable=True),
        sa.Column("sender_name", sa.String(length=80), nullable=True),
        sa.Column("accent", sa.String(length=7), nullable=False),
        sa.Column("accent_dark", sa.String(length=7), nullable=False),
        sa.Column("cadence", sa.JSON(), nullable=False),
        sa.Column("timezone", sa.String(length=64), nullable=False),
        sa.Column("max_lateness", sa.Integer(), nullable=False),
        sa.Column("time_to_live", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_edition")),
        sa.UniqueConstraint("slug", name=op.f("uq_edition_slug")),
    )
    op.create_table(
        "letter",
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=True),
        sa.Column("relay", sa.String(length=100), nullable=True),
        sa.Column("relay_id", sa.String(length=100), nullable=True),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.Column("reply", sa.String(length=200), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("address", sa.String(length=254), nullable=False),
        sa.Column("subscriber_id", sa.Integer(), nullable=True),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            DELIVERY_STATES,
            name=op.f("ck_letter_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_letter")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("letter", schema=None) as batch_op:
        batch_op.create_index(
            "claimed_letter",
            ["worker_id"],
            unique=False,
            sqlite_where=sa.text("state = 'in_flight'"),
            postgresql_where=sa.text("state = 'in_flight'"),
        )
        batch_op.create_index(
            "due_letter",
            ["due_at"],
            unique=False,
            sqlite_where=sa.text("state IN ('owed', 'deferred')"),
            postgresql_where=sa.text("state IN ('owed', 'deferred')"),
        )
        batch_op.create_index(batch_op.f("ix_letter_subscriber_id"), ["subscriber_id"], unique=False)

    op.create_table(
        "subscriber",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(length=254), nullable=False),
        sa.Column("address_key", sa.String(length=320), nullable=False),
        sa.Column("address_hash", sa.LargeBinary(), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("timezone", sa.String(length=64), nullable=True),
        sa.Column("hour", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.String(length=12), nullable=True),
        sa.Column("paused_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source", sa.String(length=120), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('pending', 'active', 'paused', 'ended')", name=op.f("ck_subscriber_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subscriber")),
        sa.UniqueConstraint("address_key", name=op.f("uq_subscriber_address_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("subscriber", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_subscriber_address_hash"), ["address_hash"], unique=False)
        batch_op.create_index(batch_op.f("ix_subscriber_state_id"), ["state", "id"], unique=False)

    op.create_table(
        "suppression",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("address_hash", sa.LargeBinary(), nullable=False),
        sa.Column("address", sa.String(length=254), nullable=True),
        sa.Column("reason", sa.String(length=12), nullable=False),
        sa.Column("note", sa.String(length=200), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suppression")),
        sa.UniqueConstraint("address_hash", name=op.f("uq_suppression_address_hash")),
    )
    op.create_table(
        "suppression_key",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suppression_key")),
    )
    op.create_table(
        "worker",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
    )
    with op.batch_alter_table("worker", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_worker_name"), ["name"], unique=False)

    op.create_table(
        "issue",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("edition_id", sa.Integer(), nullable=False),
        sa.Column("date", sa.Date(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('draft', 'scheduled', 'published')", name=op.f("ck_issue_state")),
        sa.ForeignKeyConstraint(["edition_id"], ["edition.id"], name=op.f("fk_issue_edition_id_edition")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_issue")),
        sa.UniqueConstraint("edition_id", "date", name=op.f("uq_issue_edition_id_date")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "subscription",
        sa.Column("subscriber_id", sa.Integer(), nullable=False),
        sa.Column("edition_id", sa.Integer(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["edition_id"], ["edition.id"], name=op.f("fk_subscription_edition_id_edition")
        ),
        sa.ForeignKeyConstraint(
            ["subscriber_id"],
            ["subscriber.id"],
            name=op.f("fk_subscription_subscriber_id_subscriber"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("subscriber_id", "edition_id", name=op.f("pk_subscription")),
    )
    with op.batch_alter_table("subscription", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_subscription_edition_id_subscriber_id"),
            ["edition_id", "subscriber_id"],
            unique=False,
        )

    op.create_table(
        "issue_text",
        sa.Column("issue_id", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("subject", sa.String(length=2000), nullable=False),
        sa.ForeignKeyConstraint(
            ["issue_id"], ["issue.id"], name=op.f("fk_issue_text_issue_id_issue"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("issue_id", "language", name=op.f("pk_issue_text")),
    )
    op.create_table(
        "mailing",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("issue_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("problem", sa.String(length=200), nullable=True),
        sa.Column("scheduled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cutoff", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cursor", sa.Integer(), nullable=False),
        sa.Column("enlisted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("audience", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("max_lateness", sa.Integer(), nullable=False),
        sa.Column("time_to_live", sa.Integer(), nullable=False),
        sa.Column("on_uncertain", sa.String(length=6), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("on_uncertain IN ('resend', 'hold')", name=op.f("ck_mailing_on_uncertain")),
        sa.CheckConstraint(
            "state IN ('scheduled', 'preparing', 'sending', 'paused', 'finished', 'cancelled')",
            name=op.f("ck_mailing_state"),
        ),
        sa.ForeignKeyConstraint(["issue_id"], ["issue.id"], name=op.f("fk_mailing_issue_id_issue")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mailing")),
        sa.UniqueConstraint("issue_id", name=op.f("uq_mailing_issue_id")),
    )
    op.create_table(
        "delivery",
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=True),
        sa.Column("relay", sa.String(length=100), nullable=True),
        sa.Column("relay_id", sa.String(length=100), nullable=True),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.Column("reply", sa.String(length=200), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("issue_id", sa.Integer(), nullable=False),
        sa.Column("subscriber_id", sa.Integer(), nullable=False),
        sa.Column("mailing_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.CheckConstraint(
            DELIVERY_STATES,
            name=op.f("ck_delivery_state"),
        ),
        sa.ForeignKeyConstraint(["mailing_id"], ["mailing.id"], name=op.f("fk_delivery_mailing_id_mailing")),
        sa.PrimaryKeyConstraint("issue_id", "subscriber_id", name=op.f("pk_delivery")),
    )
    with op.batch_alter_table("delivery", schema=None) as batch_op:
        batch_op.create_index(
            "claimed",
            ["worker_id"],
            unique=False,
            sqlite_where=sa.text("state = 'in_flight'"),
            postgresql_where=sa.text("state = 'in_flight'"),
        )
        batch_op.create_index(
            "due",
            ["mailing_id", "provider", "due_at"],
            unique=False,
            sqlite_where=sa.text("state IN ('owed', 'deferred')"),
            postgresql_where=sa.text("state IN ('owed', 'deferred')"),
        )
        batch_op.create_index(batch_op.f("ix_delivery_relay_id"), ["relay_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_delivery_subscriber_id"), ["subscriber_id"], unique=False)

    op.create_table(
        "rendition",
        sa.Column("mailing_id", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.String(length=2000), nullable=False),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["mailing_id"], ["mailing.id"], name=op.f("fk_rendition_mailing_id_mailing")),
        sa.PrimaryKeyConstraint("mailing_id", "language", name=op.f("pk_rendition")),
    )
    op.create_table(
        "tally",
        sa.Column("mailing_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("owed", sa.Integer(), nullable=False),
        sa.Column("in_flight", sa.Integer(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("deferred", sa.Integer(), nullable=False),
        sa.Column("refused", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("uncertain", sa.Integer(), nullable=False),
        sa.Column("withdrawn", sa.Integer(), nullable=False),
        sa.Column("suppressed", sa.Integer(), nullable=False),
        sa.Column("expired", sa.Integer(), nullable=False),
        sa.Column("rate", sa.Float(), nullable=False),
        sa.Column("rated_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["mailing_id"], ["mailing.id"], name=op.f("fk_tally_mailing_id_mailing")),
        sa.PrimaryKeyConstraint("mailing_id", "worker_id", name=op.f("pk_tally")),
    )

    op.bulk_insert(editions, DAILY_AND_WEEKLY)


def downgrade() -> None:
    for table in (
        "tally",
        "rendition",
        "delivery",
        "mailing",
        "issue_text",
        "subscription",
        "issue",
        "worker",
        "suppression_key",
        "suppression",
        "subscriber",
        "letter",
        "edition",
        "consent_event",
        "api_key",
    ):
        op.drop_table(table)
