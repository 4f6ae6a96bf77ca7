"""Which relays take mail."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("lane") as lane:
        lane.add_column(sa.Column("problem", sa.String(200), nullable=True))
        lane.add_column(sa.Column("noted_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("lane") as lane:
        lane.drop_column("noted_at")
        lane.drop_column("problem")
