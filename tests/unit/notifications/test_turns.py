"""Whose messages are sent next, while receivers are away."""

from uuid import UUID

from foliot.notifications.send_order import (
    AT_ONCE,
    FORGOTTEN_AFTER_S,
    LONG_S,
    LONGEST_PAUSE_S,
    MAX_AWAY,
    MAX_OF_HOST,
    MAX_OF_RULE,
    SendOrder,
)

HOST, RULE = UUID(int=1), UUID(int=2)


def fail(turns: SendOrder, rule: UUID, began_at: float, at: float) -> None:
    turns.begin(rule, HOST, began_at)
    turns.end(rule, HOST, at, began_at=began_at, is_well=False)


def test_a_rule_and_a_host_have_a_few_places_at_a_time() -> None:
    turns = SendOrder()
    for _ in range(MAX_OF_RULE):
        turns.begin(RULE, HOST, 0.0)
    assert (turns.busy_rules(), turns.busy_hosts()) == ({RULE}, set())
    # All that is taken next may be of this host.
    assert turns.at_a_time == MAX_OF_HOST - MAX_OF_RULE
    for number in range(MAX_OF_HOST - MAX_OF_RULE):
        turns.begin(UUID(int=100 + number), HOST, 0.0)
    assert (turns.busy_hosts(), turns.places) == ({HOST}, AT_ONCE - MAX_OF_HOST)
    assert turns.at_a_time == min(MAX_OF_HOST, turns.places)
    turns.end(RULE, HOST, 0.1, began_at=0.0, is_well=True)
    assert (turns.busy_rules(), turns.busy_hosts()) == (set(), set())


def test_a_rule_that_is_away_is_tried_one_at_a_time_after_pauses_that_grow_until_it_is_well() -> None:
    turns = SendOrder()
    at = 0.0
    pauses = []
    for _ in range(12):
        fail(turns, RULE, at, at + 15)
        assert turns.busy_rules() == {RULE}
        ended_at = at = at + 15
        while not turns.worth_a_try(at):
            at += 0.25
        pauses.append(at - ended_at)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.5, LONGEST_PAUSE_S)
    turns.begin(RULE, HOST, at)
    assert turns.worth_a_try(at + 1000) == []
    turns.end(RULE, HOST, at, began_at=at, is_well=None)
    assert turns.busy_rules() == {RULE}
    turns.begin(RULE, HOST, at)
    turns.end(RULE, HOST, at + 1, began_at=at, is_well=True)
    assert turns.busy_rules() == set()


def test_several_tries_that_fail_together_count_as_one() -> None:
    turns = SendOrder()
    for _ in range(MAX_OF_RULE):
        turns.begin(RULE, HOST, 0.0)
    for number in range(MAX_OF_RULE):
        turns.end(RULE, HOST, 15.0 + number / 100, began_at=0.0, is_well=False)
    assert turns.worth_a_try(15.5) == [RULE]


def test_a_receiver_that_answers_too_slowly_is_away_too() -> None:
    turns = SendOrder()
    turns.begin(RULE, HOST, 0.0)
    turns.end(RULE, HOST, LONG_S, began_at=0.0, is_well=True)
    assert turns.busy_rules() == {RULE}


def test_those_that_are_away_share_a_part_of_the_places_and_take_turns() -> None:
    turns = SendOrder()
    rules = [UUID(int=100 + number) for number in range(AT_ONCE)]
    for number, rule in enumerate(rules):
        fail(turns, rule, float(number), number + 15.0)
    served: list[UUID] = []
    at = 1000.0
    for _ in range(AT_ONCE // MAX_AWAY):
        assert turns.probes == MAX_AWAY
        some = turns.worth_a_try(at)[: turns.probes]
        for rule in some:
            turns.begin(rule, HOST, at)
        assert (turns.probes, turns.places) == (0, AT_ONCE - MAX_AWAY)
        for rule in some:
            turns.end(rule, HOST, at + 15, began_at=at, is_well=False)
        served += some
        at += 1000
    assert served == rules


def test_rules_that_were_not_tried_for_long_are_forgotten() -> None:
    turns = SendOrder()
    fail(turns, RULE, 0.0, 15.0)
    turns.forget(15.0 + FORGOTTEN_AFTER_S)
    assert turns.busy_rules() == {RULE}
    turns.forget(16.0 + FORGOTTEN_AFTER_S)
    assert turns.busy_rules() == set()
