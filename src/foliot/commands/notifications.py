"""Commands on notifications: create and change rules, send test messages, send again."""

from dataclasses import replace
from uuid import UUID

from foliot.commands.admission import DefinitionChecker
from foliot.db.database import Database
from foliot.db.hints import Hint, Hints
from foliot.kinds.http_target import HttpTarget
from foliot.kinds.once_trigger import OnceTrigger
from foliot.model.errors import InvalidError, OverloadedError
from foliot.model.instant import EPOCH
from foliot.model.notification import Address, Notification, NotificationRule, NotificationRuleSpec
from foliot.model.schedule import ScheduleSpec
from foliot.notifications.notifications_sql import Notifications
from foliot.notifications.rules_sql import NotificationRules, Redefine
from foliot.planning.change import Author

TRIES = 20


class _ChecksDifferError(Exception):
    """The rule's address changed after it was checked: check again."""


class NotificationCommands:
    """Commands on notification rules and notifications. Those of other hosts raise NotFoundError."""

    def __init__(self, database: Database, hints: Hints, admission: DefinitionChecker) -> None:
        self._rules = NotificationRules(database)
        self._notifications = Notifications(database)
        self._hints = hints
        self._admission = admission

    async def create(
        self, host_id: UUID, spec: NotificationRuleSpec, author: Author, *, rule_id: UUID | None = None
    ) -> NotificationRule:
        """Create a rule. Raises InvalidError, NameTakenError, ConflictError."""
        await self._check(spec)
        rule = await self._rules.create(host_id, spec, author, rule_id=rule_id)
        self._hints.send(Hint.NOTIFICATIONS)
        return rule

    async def edit(
        self,
        rule_id: UUID,
        host_id: UUID,
        redefine: Redefine,
        author: Author,
        *,
        expected_version: int | None = None,
    ) -> NotificationRule:
        """Change a rule. Raises InvalidError, NotFoundError, StaleVersionError, NameTakenError."""
        for _ in range(TRIES):
            checked = redefine(await self._rules.get(rule_id, host_id))
            await self._check(checked)

            def redefined(rule: NotificationRule, to: Address = checked.to) -> NotificationRuleSpec:
                spec = redefine(rule)
                if spec.to != to:
                    raise _ChecksDifferError
                return spec

            try:
                rule = await self._rules.change(
                    rule_id, host_id, redefined, author, expected_version=expected_version
                )
            except _ChecksDifferError:
                continue
            self._hints.send(Hint.NOTIFICATIONS)
            return rule
        raise OverloadedError("too many change this rule at once; try again")

    async def delete(
        self, rule_id: UUID, host_id: UUID, author: Author, *, expected_version: int | None = None
    ) -> None:
        await self._rules.delete(rule_id, host_id, author, expected_version=expected_version)
        self._hints.send(Hint.NOTIFICATIONS)

    async def test(
        self, rule_id: UUID, host_id: UUID, author: Author, *, notification_id: UUID | None = None
    ) -> Notification:
        """Send a test message, also if the rule is muted."""
        rule = await self._rules.get(rule_id, host_id)
        made = await self._notifications.add_test(rule, author, notification_id=notification_id)
        self._hints.send(Hint.NOTIFICATIONS)
        return made

    async def retry(self, notification_id: UUID, host_id: UUID, author: Author) -> Notification:
        """Send a notification again after it was given up. Raises NotFoundError, ConflictError."""
        notification = await self._notifications.retry(notification_id, host_id, author)
        self._hints.send(Hint.NOTIFICATIONS)
        return notification

    async def _check(self, spec: NotificationRuleSpec) -> None:
        """Check the rule's address as the URL of an HTTP target is checked. Raises InvalidError."""
        calling = ScheduleSpec(
            name="notification", trigger=OnceTrigger(at=EPOCH), target=HttpTarget(url=spec.to.url)
        )
        problems = (await self._admission.checker(calling))(calling)
        if problems:
            raise InvalidError(
                [replace(each, pointer=each.pointer.replace("/target/", "/to/")) for each in problems]
            )
