"""Instances that were asked to take on nothing more."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "instance_t", sa.Column("draining", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
