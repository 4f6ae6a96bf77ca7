"""What an edition says at the foot of its mails, and which letters it sends."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("edition") as edition:
        edition.add_column(sa.Column("footer", sa.String(500), nullable=False, server_default=""))
        edition.add_column(sa.Column("letters", sa.JSON(), nullable=False, server_default="[]"))
    with op.batch_alter_table("edition") as edition:
        edition.alter_column("footer", server_default=None)
        edition.alter_column("letters", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("edition") as edition:
        edition.drop_column("letters")
        edition.drop_column("footer")
