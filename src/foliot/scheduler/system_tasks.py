"""Foliot's own maintenance tasks for the list of task functions. The leader runs them without a schedule."""

from foliot.db.rows.registry_rows import TaskRecord


def _system(name: str, display_name: str, description: str) -> TaskRecord:
    return TaskRecord(
        name=name,
        display_name=display_name,
        description=description,
        handler_path="foliot.scheduler",
        handler_type="system",
        queue=None,
        default_timeout_seconds=0,
        args_schema={"type": "object", "properties": {}, "additionalProperties": False},
        is_system=True,
    )


SYSTEM_TASKS = (
    _system("foliot.prune_history", "Prune history", "Deletes ended executions past FOLIOT_RETENTION_DAYS."),
    _system("foliot.rescue_executions", "Rescue executions", "Tries again what vanished workers left."),
    _system("foliot.release_held", "Release held executions", "Lets held executions run as overlap allows."),
    _system("foliot.forget_instances", "Forget stale instances", "Removes instances that have vanished."),
    _system("foliot.backfill", "Backfill", "Creates the executions of backfills, a few at a time."),
)
