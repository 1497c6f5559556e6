"""Very much at once: some messages one by one, the rest as one for each rule and kind."""

from uuid import UUID

from foliot.model.incident import Notice
from foliot.model.notification import NotificationType
from foliot.notifications.digest import MAX_ALONE, MAX_NAMED, WINDOW_S, MessageDigest

FAILED, SILENT = NotificationType.FAILED, NotificationType.DID_NOT_RUN
HOST, ON_CALL, CHANNEL = UUID(int=1), UUID(int=2), UUID(int=3)


def notices(
    count: int, rule_id: UUID = ON_CALL, kind: NotificationType = FAILED, first: int = 0
) -> list[Notice]:
    return [
        Notice(
            HOST,
            rule_id,
            UUID(int=1000 + number),
            kind,
            f"{kind}:{rule_id}:{number}",
            {"host_id": str(HOST), "rule": {"name": "r"}, "schedule": {"name": f"job-{number}"}},
        )
        for number in range(first, first + count)
    ]


def test_a_few_messages_stay_as_they_are() -> None:
    made = notices(MAX_ALONE)
    assert MessageDigest().gather(made, at=0.0) == made


def test_what_is_beyond_becomes_one_message_for_each_rule_and_kind() -> None:
    many = [*notices(MAX_ALONE + 100), *notices(30, kind=SILENT), *notices(3, CHANNEL)]
    sent = MessageDigest().gather(many, at=0.0)
    alone = [each for each in sent if each.type is not NotificationType.GATHERED]
    assert alone == [*notices(MAX_ALONE), *notices(3, CHANNEL)]
    told = {each.data["of"]: each for each in sent if each.type is NotificationType.GATHERED}
    assert {of: each.data["count"] for of, each in told.items()} == {FAILED.value: 100, SILENT.value: 30}
    failed = told[FAILED.value]
    assert (failed.rule_id, failed.host_id, failed.schedule_id) == (ON_CALL, HOST, None)
    assert [each["name"] for each in failed.data["schedules"]] == [
        f"job-{number}" for number in range(MAX_ALONE, MAX_ALONE + MAX_NAMED)
    ]


def test_the_same_gathered_again_has_the_same_key() -> None:
    keys = [MessageDigest().gather(notices(MAX_ALONE + 5), at=at)[-1].dedupe_key for at in (0.0, 1000.0)]
    assert keys[0] == keys[1]


def test_the_last_one_beyond_is_told_as_itself() -> None:
    made = notices(MAX_ALONE + 1)
    assert MessageDigest().gather(made, at=0.0) == made


def test_what_was_sent_counts_for_a_minute() -> None:
    gathering = MessageDigest()
    gathering.gather(notices(MAX_ALONE), at=0.0)
    soon = gathering.gather(notices(5, first=100), at=WINDOW_S - 0.1)
    assert [each.data["count"] for each in soon] == [5]
    later = notices(5, first=200)
    assert gathering.gather(later, at=WINDOW_S) == later


def test_rules_that_have_sent_nothing_lately_are_not_remembered() -> None:
    gathering = MessageDigest()
    for number in range(50):
        gathering.gather(notices(1, UUID(int=100 + number)), at=0.0)
    gathering.gather(notices(1), at=WINDOW_S)
    assert set(gathering._sent_at) == {ON_CALL}
