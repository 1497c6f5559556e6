"""A private PostgreSQL that follows another by streaming replication, on a port of its own."""

import asyncpg

from tests.servers import PostgresServer


class ReplicaServer(PostgresServer):
    """A copy of a running server, which it follows from then on. It can be killed and started again."""

    def __init__(self, primary: PostgresServer) -> None:
        # As its parent makes a server, but with what the other has for its data.
        self._primary = primary
        super().__init__()

    def _run(self, tool: str, *arguments: str) -> None:
        if tool != "initdb":
            super()._run(tool, *arguments)
            return
        where = ("-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "foliot")
        # With a slot the primary keeps what this one has not seen yet, however long it is away.
        how = ("-R", "-X", "stream", "-C", "-S", f"replica_{self.port}", "--checkpoint=fast", "--no-sync")
        super()._run("pg_basebackup", *where, "-D", str(self._data), *how)

    async def pause_replay(self) -> None:
        """From now on it keeps what comes, and shows none of it."""
        await self._call("SELECT pg_wal_replay_pause()")

    async def resume_replay(self) -> None:
        await self._call("SELECT pg_wal_replay_resume()")

    async def _call(self, statement: str) -> None:
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()
