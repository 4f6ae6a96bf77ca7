"""How fast each relay may be used."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lane",
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("next_slot", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lane")),
    )


def downgrade() -> None:
    op.drop_table("lane")
