"""Hosts for API tests: keys of every kind, and one of each thing that a request may refer to."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.principal import Role
from foliot.db.tables.access import api_key_t
from foliot.db.tables.events import (
    consumer_offsets,
    dead_letter_queue,
    log_counter,
    outbox_message_t,
    relay_parked_t,
    relay_t,
)
from foliot.db.tables.notifications import notification_t
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.notifications.rules_sql import MAX_RULES
from tests.api.answers import made
from tests.api.served import OPERATOR_KEY, V1, Served

BAD_KEYS = {
    "no credential": None,
    "no key at all": "nonsense",
    "a key that nobody made": "flt_0123456789abcdef_" + "A" * 43,
    "a JWT where JWTs are off": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4Iiwicm9sZSI6ImFkbWluIn0.",
}


def unique(kind: str = "n") -> str:
    return f"{kind}-{uuid.uuid4().hex[:12]}"


def yearly(name: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return the definition of a schedule that does not become due during a test."""
    return {
        "name": name or unique("schedule"),
        "trigger": {"kind": "cron", "expression": "0 0 1 1 *"},
        "target": {"kind": "function", "name": "noop"},
        **fields,
    }


def on_call(name: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return the definition of a notification rule."""
    return {
        "name": name or unique("rule"),
        "on": [{"kind": "failure"}],
        "to": {"kind": "slack", "url": "https://hooks.example/T1/B1/${secret:slack}"},
        **fields,
    }


@dataclass
class Host:
    """A host, with the client of its admin."""

    served: Served
    host_id: UUID
    admin: httpx2.Client
    keys: dict[str, str] = field(default_factory=dict)
    """Keys by role; also the keys `expired` and `revoked`."""

    def schedule(self, **fields: Any) -> str:
        return str(made(self.admin.post(f"{V1}/schedules", json=yearly(**fields)))["schedule_id"])

    def execution(self) -> str:
        """Create an execution that stays pending. The server must have no worker."""
        path = f"{V1}/schedules/{self.schedule()}/trigger"
        return str(made(self.admin.post(path), 202)["execution_id"])

    def cancelled_execution(self) -> str:
        execution_id = self.execution()
        made(self.admin.post(f"{V1}/executions/{execution_id}/cancel"), 202)
        return execution_id

    def running_execution(self) -> tuple[str, str]:
        """Create an execution that an agent has accepted. Return its id and the callback token."""
        queue = unique("queue")
        path = f"{V1}/schedules/{self.schedule(queue=queue)}/trigger"
        execution_id = str(made(self.admin.post(path), 202)["execution_id"])

        async def begin() -> str:
            instance = self.served.instance
            work = instance.store.work
            [claim] = await work.claim("worker", [(self.host_id, queue)], limit=1, lease_s=300)
            assert (await work.accept("worker", claim, lease_s=300, external_id=None)).is_open
            return (await instance.tokens()).token(claim.execution_id, claim.attempt)

        return execution_id, self.served.run(begin())

    def backfill(self) -> str:
        path = f"{V1}/schedules/{self.schedule()}/backfill"
        times = {"from_ts": "2020-01-01T00:00:00Z", "to_ts": "2023-01-01T00:00:00Z"}
        return str(made(self.admin.post(path, json=times), 202)["backfill_id"])

    def calendar(self) -> str:
        name = unique("calendar")
        made(self.admin.post(f"{V1}/calendars", json={"name": name, "days": ["2030-01-01"]}))
        return name

    def secret(self, value: str = "a value") -> str:
        name = unique("secret")
        made(self.admin.post(f"{V1}/secrets", json={"name": name, "value": value}))
        return name

    def rule(self, **fields: Any) -> str:
        """Create a notification rule.

        A host may have 200 rules, and tests create many, so all are deleted when half of that is exceeded.
        """
        rules = self.admin.get(f"{V1}/notifications/rules", params={"page_size": 500}).json()["items"]
        if len(rules) > MAX_RULES // 2:
            for each in rules:
                self.admin.delete(f"{V1}/notifications/rules/{each['rule_id']}")
        return str(made(self.admin.post(f"{V1}/notifications/rules", json=on_call(**fields)))["rule_id"])

    def dead_notification(self) -> str:
        """Create a notification that has been given up."""
        path = f"{V1}/notifications/rules/{self.rule()}/test"
        notification_id = UUID(made(self.admin.post(path), 202)["notification_id"])

        async def give_up(connection: AsyncConnection) -> None:
            await connection.execute(
                update(notification_t)
                .where(notification_t.c.notification_id == notification_id)
                .values(status="dead", due_ts=None)
            )

        self.served.write(give_up)
        return str(notification_id)

    def event_group(self, *, seen: timedelta = timedelta(hours=2), unread: timedelta | None = None) -> str:
        """Create a consumer group.

        `seen`: how long ago it ran. `unread`: age of an event that it has not read. None: it has read all.
        """
        group, now = unique("group"), datetime.now(UTC)

        async def work(connection: AsyncConnection) -> None:
            offset = await _log_end(connection)
            if unread is not None:
                await write_old_event(connection, now - unread)
            await connection.execute(
                insert(consumer_offsets).values(
                    group_id=group,
                    partition_id=0,
                    partitions=1,
                    next_offset=offset,
                    updated_ts=now - seen,
                )
            )

        self.served.write(work)
        return group

    def event_relay(self, *refused: str, age: timedelta = timedelta(hours=2)) -> str:
        """Create a relay that ran `age` ago, and whose broker refused these topics."""
        name, then = unique("relay"), datetime.now(UTC) - age

        async def work(connection: AsyncConnection) -> None:
            offset = await _log_end(connection)
            await connection.execute(
                insert(relay_t).values(
                    relay_name=name, instance_id="one", last_heartbeat=then, epoch=1, next_offset=offset
                )
            )
            for topic in refused:
                await connection.execute(
                    insert(relay_parked_t).values(
                        relay_name=name,
                        event_topic=topic,
                        next_offset=1,
                        reason="not allowed",
                        since_ts=then,
                        tried_ts=then,
                    )
                )

        self.served.write(work)
        return name

    def dead_letter(self, group: str = "billing") -> str:
        """Create a dead letter: an event that the group could not handle."""
        letter_id, now = new_id(), datetime.now(UTC)
        event = {"id": str(new_id()), "type": "OrderDue", "topic": "orders", "offset": 7}

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(
                insert(dead_letter_queue).values(
                    dead_letter_id=letter_id,
                    group_id=group,
                    partition_id=0,
                    host_id=DEFAULT_HOST_ID,
                    transaction_id=new_id(),
                    c_offset=7,
                    events=[{**event, "host_id": str(DEFAULT_HOST_ID), "payload": {"data": "private"}}],
                    error="ValueError: bad",
                    attempts=3,
                    created_ts=now,
                )
            )

        self.served.write(work)
        return str(letter_id)

    def key(self, role: Role = Role.VIEWER, **fields: Any) -> tuple[str, str]:
        """Create an API key. Return its id and the key itself."""
        document = {"name": unique("key"), "role": role.value, **fields}
        answer = made(self.admin.post(f"{V1}/keys", json=document))
        return answer["key_id"], answer["key"]

    def expire(self, key_id: str) -> None:
        """Set the expiry of a key to a time in the past."""
        past = datetime.now(UTC) - timedelta(minutes=1)

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(
                update(api_key_t).where(api_key_t.c.key_id == key_id).values(expires_ts=past)
            )

        self.served.write(work)


def two_hosts(served: Served) -> tuple[Host, Host]:
    """Return the default host and a new one, each with a key per role, an expired and a revoked one."""
    operator = served.by(OPERATOR_KEY)
    own_id = UUID(operator.get(f"{V1}/me").json()["host_id"])
    other_id = UUID(made(operator.post(f"{V1}/hosts", json={"name": unique("host")}))["host_id"])
    return _with_keys(served, own_id), _with_keys(served, other_id)


def _with_keys(served: Served, host_id: UUID) -> Host:
    document = {"name": "first admin", "role": "admin", "host_id": str(host_id)}
    key = made(served.by(OPERATOR_KEY).post(f"{V1}/keys", json=document))["key"]
    host = Host(served, host_id, served.by(key))
    host.keys = {role.value: host.key(role)[1] for role in Role}
    expired_id, host.keys["expired"] = host.key(Role.ADMIN)
    host.expire(expired_id)
    revoked_id, host.keys["revoked"] = host.key(Role.ADMIN)
    assert host.admin.delete(f"{V1}/keys/{revoked_id}").status_code == 204
    return host


async def _log_end(connection: AsyncConnection) -> int:
    offset: int = (await connection.execute(select(log_counter.c.next_offset))).scalar_one()
    return offset


async def write_old_event(connection: AsyncConnection, at: datetime) -> None:
    """Write an event of no host, as if it had been committed at this time."""
    offset, event_id = await _log_end(connection), new_id(at)
    await connection.execute(
        insert(outbox_message_t).values(
            id=event_id,
            host_id=UUID(int=0),
            user_id=UUID(int=0),
            nonce=1,
            aggregate_id=str(event_id),
            aggregate_version=1,
            aggregate_type="Schedule",
            event_type="OrderDue",
            event_ts=at,
            payload={},
            c_offset=offset,
            transaction_id=event_id,
            transaction_ordinal=0,
            transaction_count=1,
            event_topic="orders",
        )
    )
    await connection.execute(update(log_counter).values(next_offset=offset + 1))
