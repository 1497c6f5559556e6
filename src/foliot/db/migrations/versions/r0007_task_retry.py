"""The retries of task functions, for schedules that leave theirs out."""

import sqlalchemy as sa
from alembic import op

from foliot.db.types import Json

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("task_function_t", sa.Column("default_retry", Json, nullable=True))
