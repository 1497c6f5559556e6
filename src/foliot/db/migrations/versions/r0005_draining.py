"""Instances that were asked to take on nothing more, and how they see the lease provider."""

import sqlalchemy as sa
from alembic import op

from foliot.db.types import Json

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "instance_t", sa.Column("draining", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("instance_t", sa.Column("lease_provider", Json, nullable=True))
