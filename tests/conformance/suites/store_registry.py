"""Conformance suite for the registry of instances and their tasks."""

from dataclasses import replace

from sqlalchemy import select, update
from tests.conformance.suites.scene import LONG, STALE, Scene

from foliot.db.rows.registry_rows import InstanceRecord, TaskRecord
from foliot.db.tables.cluster import instance_t, task_function_t

INSTANCE = InstanceRecord("one", "machine", 42, ("api", "worker"), "1.0", capacity=50, queues=("a", "b"))
TASK = TaskRecord("work", "Work", "does it", "module:work", "async", "reports", 60.0, {"type": "object"})


class RegistryConformance:
    """Tests for the registry. Fixture: `scene`."""

    async def test_an_instance_is_known_by_its_heartbeat_and_keeps_its_start(self, scene: Scene) -> None:
        registry = scene.store.registry
        await registry.heartbeat(INSTANCE)
        [first] = await scene.rows(select(instance_t))
        assert (first.hostname, first.pid, first.roles, first.queues) == (
            "machine",
            42,
            ["api", "worker"],
            ["a", "b"],
        )
        await registry.heartbeat(replace(INSTANCE, load=7))
        [second] = await scene.rows(select(instance_t))
        assert (second.load, second.started_ts) == (7, first.started_ts)
        assert second.last_heartbeat >= first.last_heartbeat

    async def test_leading_since_is_when_it_began_and_ends_with_it(self, scene: Scene) -> None:
        registry = scene.store.registry
        await registry.heartbeat(INSTANCE)
        await registry.heartbeat(replace(INSTANCE, is_leader=True))
        [[since]] = await scene.rows(select(instance_t.c.leader_since))
        await registry.heartbeat(replace(INSTANCE, is_leader=True))
        assert await scene.rows(select(instance_t.c.leader_since)) == [(since,)]
        assert since is not None
        await registry.heartbeat(INSTANCE)
        assert await scene.rows(select(instance_t.c.leader_since)) == [(None,)]

    async def test_an_instance_that_leaves_or_falls_silent_is_forgotten(self, scene: Scene) -> None:
        registry = scene.store.registry
        await registry.heartbeat(INSTANCE)
        await registry.heartbeat(replace(INSTANCE, instance_id="two"))
        await registry.leave("one")
        assert await registry.forget_stale(LONG) == 0
        assert [row.instance_id for row in await scene.rows(select(instance_t))] == ["two"]
        assert await registry.forget_stale(STALE) == 1

    async def test_registering_a_task_again_brings_it_up_to_date_and_leaves_it_switched_off(
        self, scene: Scene
    ) -> None:
        registry = scene.store.registry
        await registry.register_tasks([TASK, replace(TASK, name="other")])
        await scene.execute(update(task_function_t).values(is_active=False))
        await registry.register_tasks([replace(TASK, description="does it better")])
        rows = await scene.rows(select(task_function_t).order_by(task_function_t.c.name))
        assert [(row.name, row.description, row.is_active) for row in rows] == [
            ("other", "does it", False),
            ("work", "does it better", False),
        ]
