"""Rules that several make at once, and such as another version has written."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select, update
from tests.conformance.suites.scene import SOMEBODY, Scene
from tests.conformance.test_notifications import FAILURE, SLACK, Stage, add

from foliot.db.tables.notifications import notification_incident_t, notification_rule_t, notification_t
from foliot.model.errors import ConflictError
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.notification import NotificationRule, NotificationRuleSpec
from foliot.notifications import rules_sql as rules_module
from foliot.timing.clock import Clock


@pytest.fixture
async def stage(scene: Scene, clock: Clock) -> Stage:
    made = Stage(scene, clock)
    await made.take_over()
    return made


def spec_of(name: str) -> NotificationRuleSpec:
    return NotificationRuleSpec.parse({"name": name, "on": [FAILURE], "to": SLACK})


async def rewrite(stage: Stage, rule: NotificationRule, **fields: Any) -> None:
    """As another version would have written it."""
    document = rule.spec.model_dump(mode="json") | fields
    table = notification_rule_t
    await stage.scene.execute(
        update(table).where(table.c.rule_id == rule.rule_id).values(document=document, version=2)
    )


async def test_a_host_has_no_more_rules_than_it_may_also_when_several_make_them_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules_module, "MAX_RULES", 3)
    stores = await stage.scene.stores(2)
    made = await asyncio.gather(
        *(
            stores[number % 2].notification_rules.create(DEFAULT_HOST_ID, spec_of(f"r{number}"), SOMEBODY)
            for number in range(8)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(each, NotificationRule) for each in made) == 3
    assert sum(isinstance(each, ConflictError) for each in made) == 5


async def test_what_a_newer_version_has_added_to_a_rule_is_not_in_its_way(stage: Stage) -> None:
    rule = await stage.rule(FAILURE)
    await rewrite(stage, rule, colour="red")
    rules = stage.scene.store.notification_rules
    assert (await rules.get(rule.rule_id, DEFAULT_HOST_ID)).spec == rule.spec
    await stage.run(await add(stage.scene), Status.FAILED)
    assert await stage.look() == [("failed", "job")]


async def test_a_rule_that_can_not_be_understood_stops_nobody_and_can_be_deleted(stage: Stage) -> None:
    broken, well = await stage.rule(FAILURE, name="broken"), await stage.rule(FAILURE, name="well")
    await rewrite(stage, broken, on=[{"kind": "bored"}])
    rules = stage.scene.store.notification_rules
    with pytest.raises(ConflictError):
        await rules.get(broken.rule_id, DEFAULT_HOST_ID)
    assert [each.rule_id for each in await rules.list_all(DEFAULT_HOST_ID)] == [well.rule_id]
    await stage.run(await add(stage.scene), Status.FAILED)
    assert await stage.look() == [("failed", "job")]
    await rules.delete(broken.rule_id, DEFAULT_HOST_ID, SOMEBODY)
    [[left]] = await stage.scene.rows(select(func.count()).select_from(notification_rule_t))
    assert left == 1


async def test_a_rule_with_very_many_messages_and_incidents_is_deleted_with_all_of_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules_module, "FORGOTTEN_AT_ONCE", 2)
    rule, other = await stage.rule(FAILURE), await stage.rule(FAILURE, name="other")
    for number in range(5):
        await stage.run(await add(stage.scene, f"job {number}"), Status.FAILED)
    assert len(await stage.look()) == 10
    await stage.scene.store.notification_rules.delete(rule.rule_id, DEFAULT_HOST_ID, SOMEBODY)
    for table in (notification_t, notification_incident_t):
        rows = await stage.scene.rows(select(table.c.rule_id))
        assert [row.rule_id for row in rows] == [other.rule_id] * 5
