"""A private PostgreSQL that replicates another by streaming replication, on its own port."""

import asyncpg

from tests.servers import PostgresServer


class ReplicaServer(PostgresServer):
    """A streaming replica of a running server. It can be killed and started again."""

    def __init__(self, primary: PostgresServer) -> None:
        # The parent's constructor calls `_run` for initdb, which copies the primary's data here.
        self._primary = primary
        super().__init__()

    def _run(self, tool: str, *arguments: str) -> None:
        if tool != "initdb":
            super()._run(tool, *arguments)
            return
        where = ("-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "foliot")
        # With a slot the primary keeps all WAL that this replica has not received, for any time.
        how = ("-R", "-X", "stream", "-C", "-S", f"replica_{self.port}", "--checkpoint=fast", "--no-sync")
        super()._run("pg_basebackup", *where, "-D", str(self._data), *how)

    async def pause_replay(self) -> None:
        """Receive changes, but do not apply them, until `resume_replay`."""
        await self._call("SELECT pg_wal_replay_pause()")

    async def resume_replay(self) -> None:
        await self._call("SELECT pg_wal_replay_resume()")

    async def _call(self, statement: str) -> None:
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()
