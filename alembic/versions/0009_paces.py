"""Whose mailboxes they are, and how fast each provider takes mail by each relay."""

import sqlalchemy as sa
from alembic import op

from app.mail import verdict

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "mail_domain",
        sa.Column("domain", sa.String(255), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("looked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("domain", name=op.f("pk_mail_domain")),
    )
    op.create_index(op.f("ix_mail_domain_due_at"), "mail_domain", ["due_at"])
    name_known_providers()
    # A lane holds nothing that outlives a minute, so its new key needs no copy of it.
    op.drop_table("lane")
    op.create_table(
        "lane",
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("next_slot", sa.Float(), nullable=False),
        sa.Column("problem", sa.String(200), nullable=True),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("day", sa.Date(), nullable=True),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("began", sa.Date(), nullable=True),
        sa.Column("rate", sa.Float(), nullable=True),
        sa.Column("top", sa.Float(), nullable=True),
        sa.Column("slowed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("meaning", sa.String(24), nullable=True),
        sa.Column("strikes", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("struck_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("pause", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", "provider", name=op.f("pk_lane")),
    )


def name_known_providers() -> None:
    """Name the provider of every reader whose domain tells it, in one pass over them."""
    connection = op.get_bind()
    domain = (
        "split_part(address_key, '@', 2)"
        if connection.dialect.name == "postgresql"
        else "substr(address_key, instr(address_key, '@') + 1)"
    )
    found = connection.execute(sa.text(f"SELECT DISTINCT {domain} FROM subscriber")).scalars().all()
    known = [{"domain": one, "provider": verdict.provider_of(one, "")} for one in found]
    rows = [row for row in known if row["provider"]]
    if not rows:
        return
    op.execute("CREATE TEMPORARY TABLE named (domain VARCHAR(255) PRIMARY KEY, provider VARCHAR(64))")
    connection.execute(sa.text("INSERT INTO named VALUES (:domain, :provider)"), rows)
    theirs = f"SELECT provider FROM named WHERE named.domain = {domain}"
    op.execute(f"UPDATE subscriber SET provider = ({theirs}) WHERE EXISTS ({theirs})")
    op.execute("DROP TABLE named")


def downgrade() -> None:
    op.drop_table("lane")
    op.create_table(
        "lane",
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("next_slot", sa.Float(), nullable=False),
        sa.Column("problem", sa.String(200), nullable=True),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lane")),
    )
    op.drop_table("mail_domain")
