"""Commands on executions: cancel and retry."""

from uuid import UUID

from foliot.commands.executions_sql import Executions
from foliot.commands.schedules import tell_cancelled, tell_replaced
from foliot.commands.schedules_sql import Schedules
from foliot.db.database import Database
from foliot.db.hints import Hint, Hints
from foliot.model.event import ExecutionRetried, Observer
from foliot.model.execution import FINAL, Execution
from foliot.planning.change import Author


class ExecutionCommands:
    def __init__(self, database: Database, hints: Hints, observer: Observer) -> None:
        self._executions = Executions(database)
        self._schedules = Schedules(database)
        self._hints = hints
        self._observer = observer

    async def cancel(self, execution_id: UUID, author: Author, *, host_id: UUID | None = None) -> Execution:
        """Cancel an execution: one that waits ends at once, one that runs is stopped within a second."""
        execution, cancelled = await self._executions.cancel(execution_id, author, host_id=host_id)
        self._hints.send(Hint.ENDED if execution.status in FINAL else Hint.CANCEL, (execution_id,))
        tell_cancelled(self._observer, cancelled)
        return execution

    async def retry(self, execution_id: UUID, author: Author, *, host_id: UUID | None = None) -> Execution:
        """Run an execution again that did not succeed, with its full number of attempts."""
        execution, cancelled = await self._executions.retry(execution_id, author, host_id=host_id)
        self._hints.send(Hint.READY)
        self._observer.notify(
            ExecutionRetried(
                execution_id,
                execution.schedule_id,
                execution.schedule_name,
                execution.attempt,
                author.name,
                execution.trace_context,
            )
        )
        tell_cancelled(self._observer, cancelled)
        tell_replaced(self._hints, await self._schedules.get(execution.schedule_id))
        return execution
