"""Files of readers on their way in."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "import_job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("file", sa.String(length=80), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("preset", sa.String(length=32), nullable=True),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("problem", sa.String(length=300), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("touched_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('running', 'done', 'failed')", name=op.f("ck_import_job_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_job")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_import_job_state_id"), "import_job", ["state", "id"])
    op.create_table(
        "import_fault",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("message", sa.String(length=300), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["import_job.id"], name=op.f("fk_import_fault_job_id_import_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_fault")),
    )
    op.create_index(op.f("ix_import_fault_job_id_id"), "import_fault", ["job_id", "id"])
    op.create_table(
        "import_seen",
        sa.Column("job_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "digest", name=op.f("pk_import_seen")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    for table in ("import_seen", "import_fault", "import_job"):
        op.drop_table(table)
